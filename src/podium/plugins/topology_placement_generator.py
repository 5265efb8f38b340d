"""TopologyPlacementGenerator: the sets of nodes where a group of pods may go."""

from __future__ import annotations

from podium.framework.plugin import NO_POINTS, Plugin
from podium.rules import Rules


class TopologyPlacementGenerator(Plugin):
    """Proposes sets of nodes for a group of pods."""

    name = "TopologyPlacementGenerator"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return frozenset(("placementGenerate",)) if rules.has_placement_points else NO_POINTS
