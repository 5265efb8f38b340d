from __future__ import annotations

from podium.config import STORAGE_PLUGINS, default_config, ignoring
from podium.plugins import IN_TREE
from podium.rules import NEWEST_RULES


def test_takes_plugins_out_of_every_extension_point() -> None:
    config = default_config(IN_TREE.points_in(NEWEST_RULES), NEWEST_RULES)

    ignored = ignoring(config, STORAGE_PLUGINS)

    names = {ref.name for profile in ignored.profiles for refs in profile.points.values() for ref in refs}
    before = {ref.name for profile in config.profiles for refs in profile.points.values() for ref in refs}
    assert before - names == {"NodeVolumeLimits", "VolumeBinding", "VolumeRestrictions", "VolumeZone"}
    assert names < before
    assert ignored.profiles[0].points["filter"][0] == config.profiles[0].points["filter"][0]
