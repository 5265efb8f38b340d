"""PodGroupPodsCount: prefers placements that fit more pods of a group."""

from __future__ import annotations

from collections.abc import Sequence

from podium.cluster import Cluster
from podium.framework.plugin import NO_POINTS
from podium.framework.pod_group_points import Assignment, Placement, PlacementScorePlugin
from podium.model import PodGroup
from podium.rules import Rules


class PodGroupPodsCount(PlacementScorePlugin):
    """Prefers sets of nodes that fit more pods of a group; pods that run already count as well."""

    name = "PodGroupPodsCount"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return frozenset(("placementScore",)) if rules.has_placement_points else NO_POINTS

    def score_placement(
        self, group: PodGroup, placement: Placement, assigned: Sequence[Assignment], cluster: Cluster
    ) -> int:
        return cluster.members.scheduled_count(group.key) + len(assigned)

    def normalize_placements(self, scores: Sequence[int]) -> Sequence[int]:
        most = max(scores)
        return [score * 100 // most for score in scores]
