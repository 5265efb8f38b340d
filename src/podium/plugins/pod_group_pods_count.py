"""PodGroupPodsCount: prefers placements that fit more pods of a group."""

from __future__ import annotations

from podium.framework.plugin import NO_POINTS, Plugin
from podium.rules import Rules


class PodGroupPodsCount(Plugin):
    """Prefers sets of nodes that fit more pods of a group."""

    name = "PodGroupPodsCount"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return frozenset(("placementScore",)) if rules.has_placement_points else NO_POINTS
