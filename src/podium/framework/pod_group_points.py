"""The extension points of the cycle that schedules a whole PodGroup."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from podium.cluster import Cluster
from podium.cluster.columns import Ints
from podium.framework.plugin import CycleState, Plugin
from podium.framework.status import ObjectChange, Status
from podium.model import Pod, PodGroup

GROUP_CYCLE = "PodGroupCycle"
"""The cycle state's key that pods of a group find during the group's cycle, with the state that they share."""


class Placement(NamedTuple):
    """A set of nodes that a group may go to: their rows, in ascending order."""

    name: str
    rows: Ints


class Assignment(NamedTuple):
    """A pod of the group, and the node that was found for it."""

    pod: Pod
    node: str


class PlacementFeasiblePlugin(Plugin):
    """Says whether a group has enough pods placed."""

    def placement_feasible(self, group: PodGroup, scheduled: int, remaining: int) -> Status:
        """Success, Wait if the remaining pods may make up what is missing, or Unschedulable if they cannot."""
        raise NotImplementedError(f"{type(self).__name__} must define placement_feasible")


class PlacementGeneratePlugin(Plugin):
    """Divides the nodes into placements, each of which may take a group."""

    def generate_placements(self, group: PodGroup, cluster: Cluster) -> Sequence[Placement] | Status:
        """The placements, by name; a status if there are none or they cannot be determined."""
        raise NotImplementedError(f"{type(self).__name__} must define generate_placements")


class PlacementScorePlugin(Plugin):
    """Ranks the placements that can take a group; scores are 0..100 after normalising."""

    def score_placement(
        self, group: PodGroup, placement: Placement, assigned: Sequence[Assignment], cluster: Cluster
    ) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define score_placement")

    def normalize_placements(self, scores: Sequence[int]) -> Sequence[int]:
        """Bring the scores of all placements to 0..100."""
        return scores


class PodGroupPostFilterResult(NamedTuple):
    """What PodGroupPostFilter decided; the caller nominates, evicts and makes the changes."""

    status: Status
    nominated: Mapping[str, str] = {}
    """By namespace/name, the node that a pod waits for; empty to remove a nomination."""
    victims: tuple[Pod, ...] = ()
    changes: tuple[ObjectChange, ...] = ()


class FailedGroup(NamedTuple):
    """A group that could not be placed, as PodGroupPostFilter sees it."""

    group: PodGroup
    pods: Sequence[Pod]
    """The queued pods, in the order in which they were tried."""
    states: Mapping[str, CycleState]
    """By namespace/name, the cycle state of each pod that was tried."""
    shared: Mapping[str, Any]
    """What plugins kept for the pods of this cycle."""
    was_seen_by: Callable[[str], bool]
    """Whether PreFilter of a plugin ran for any of the pods."""
    preempt: Callable[[], PodGroupPostFilterResult]
    """Searches for pods whose eviction makes room for the group."""
    cluster: Cluster


class PodGroupPostFilterPlugin(Plugin):
    """Tries to make room for a group that could not be placed."""

    def pod_group_post_filter(self, failed: FailedGroup) -> PodGroupPostFilterResult:
        raise NotImplementedError(f"{type(self).__name__} must define pod_group_post_filter")
