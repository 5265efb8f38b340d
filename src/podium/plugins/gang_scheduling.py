"""GangScheduling: groups of pods that start together."""

from __future__ import annotations

from collections.abc import Sequence

from podium.framework.events import EventHint
from podium.framework.plugin import NO_POINTS, Plugin
from podium.rules import Rules


class GangScheduling(Plugin):
    """Holds back the pods of a group until there are enough of them; needs pod groups."""

    name = "GangScheduling"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return frozenset({"preEnqueue", "permit"}) if rules.has_gang_scheduling else NO_POINTS

    def events_to_register(self) -> Sequence[EventHint]:
        return ()
