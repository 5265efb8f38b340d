"""Plugins before and after the decision: PrioritySort, SchedulingGates, DefaultPreemption, DefaultBinder, and plugins
of features that are off by default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

from podium.cluster import NodeInfo, Nodes
from podium.config.plugin_args import DefaultPreemptionArgs
from podium.errors import InputError
from podium.framework import BindPlugin
from podium.framework.plugin import (
    Action,
    CycleState,
    EventHint,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostFilterPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    QueuedPod,
    QueueSortPlugin,
    WaitingPod,
    is_about_itself,
)
from podium.framework.status import SKIPPED, SUCCESS, PostFilterResult, PreFilterResult, Status
from podium.model import Pod
from podium.rules import Rules


class PrioritySort(QueueSortPlugin):
    """Higher priority first, then the pod that has waited longer."""

    name = "PrioritySort"

    def sort_key(self, queued: QueuedPod) -> tuple[int, float]:
        return -queued.pod.priority, queued.timestamp


class SchedulingGates(PreEnqueuePlugin):
    """Keep pods with scheduling gates out of the queue."""

    name = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> Status:
        if not pod.spec.scheduling_gates:
            return SUCCESS
        gates = " ".join(gate.name for gate in pod.spec.scheduling_gates)
        return Status.unresolvable(f"waiting for scheduling gates: [{gates}]")

    def events_to_register(self) -> Sequence[EventHint]:
        # Without hints, any update of a pod lets it try again.
        if not self.release_rules.own_updates_ask_hints:
            return ()
        return (EventHint("Pod", Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, is_about_itself),)


NO_POINTS: frozenset[str] = frozenset()

PREEMPTION = "Preemption"
"""The cycle state's key for the engine's PreemptionSearch."""


class PreemptionSearch(Protocol):
    """The engine's search for a node where evicting pods helps."""

    def attempt(self, policy: DefaultPreemption, statuses: Mapping[str, Status]) -> PostFilterResult:
        """Find the best node for the pod being scheduled; `statuses` has each node's reason why it does not fit."""


class DefaultPreemption(PostFilterPlugin):
    """Nominate the pod to the node where the least important pods have to be evicted.

    It is listed at PreEnqueue in releases that let a pod wait there until its own preemption is carried out; here
    evicting takes no time, so no pod has to wait.

    Derive from it to change which pods may be evicted (`may_evict`) or which of them matter more (`importance`).
    """

    name = "DefaultPreemption"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        points = super().points(rules) | ({"podGroupPostFilter"} if rules.has_pod_group_post_filter else NO_POINTS)
        return points | {"preEnqueue"} if rules.preemption_holds_pods_back else points - {"preEnqueue"}

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._args = args if isinstance(args, DefaultPreemptionArgs) else DefaultPreemptionArgs()

    def post_filter(self, state: CycleState, pod: Pod, statuses: Mapping[str, Status]) -> PostFilterResult:
        preemption: PreemptionSearch = state[PREEMPTION]
        result = preemption.attempt(self, statuses)
        status = result.status
        message = status.message
        if not message:
            return result
        said = Status(status.code, (f"preemption: {message}",), status.plugin)
        return PostFilterResult(said, result.nominated_node, result.changes)

    def events_to_register(self) -> Sequence[EventHint]:
        return (EventHint("Pod", Action.DELETE, self.ends_preemption),)

    def ends_preemption(self, waiting: WaitingPod, old: Pod, new: None) -> bool:
        """Whether the deleted pod was the last victim of the waiting pod: always False, as evicting takes no
        time here.
        """
        return False

    def may_evict(self, victim: Pod, preemptor: Pod) -> bool:
        """Whether a pod may be evicted for another pod."""
        return victim.priority < preemptor.priority

    def importance(self, pod: Pod) -> tuple[float, ...]:
        """The sort key of victims: the pod with the smallest key is reprieved first. By priority, then by
        earlier start.
        """
        return -pod.priority, start_time(pod)

    def enough_candidates(self, nodes: int) -> int:
        """How many candidates to find before choosing one, given the number of nodes where evicting pods might help."""
        share = nodes * self._args.min_candidate_nodes_percentage // 100
        return min(max(share, self._args.min_candidate_nodes_absolute), nodes)


def start_time(pod: Pod) -> float:
    """The pod's start time in seconds since 1970; infinity for a pod that has not started."""
    if pod.status.start_time is None:
        return math.inf
    try:
        return _seconds(pod.status.start_time)
    except ValueError:
        raise InputError(
            f"pod {pod.key}: status.startTime {pod.status.start_time!r} is not a time; "
            "write it like 2026-01-31T09:30:00Z"
        ) from None


@lru_cache(maxsize=1 << 14)
def _seconds(text: str) -> float:
    time = datetime.fromisoformat(text)
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


BINDER = "Binder"
"""The cycle state's key for the Binder that binds pods at an API server; not set in a simulation."""
Binder = Callable[[Pod, str], Status]
"""Binds a pod to the node with this name."""


class DefaultBinder(BindPlugin):
    """Bind the pod at the API server; in a simulation, the caller of the loop puts the pod on its node.

    Derive from it to do something before or after binding.
    """

    name = "DefaultBinder"

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        binder: Binder | None = state.get(BINDER)
        return SUCCESS if binder is None else binder(pod, node_name)


class GangScheduling(Plugin):
    """Holds back the pods of a group until there are enough of them; needs pod groups."""

    name = "GangScheduling"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return frozenset({"preEnqueue", "permit"}) if rules.has_gang_scheduling else NO_POINTS

    def events_to_register(self) -> Sequence[EventHint]:
        return ()


class TopologyPlacementGenerator(Plugin):
    """Proposes sets of nodes for a group of pods."""

    name = "TopologyPlacementGenerator"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return frozenset(("placementGenerate",)) if rules.has_placement_points else NO_POINTS


class PodGroupPodsCount(Plugin):
    """Prefers sets of nodes that fit more pods of a group."""

    name = "PodGroupPodsCount"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return frozenset(("placementScore",)) if rules.has_placement_points else NO_POINTS


class DeferredPodScheduling(PreFilterPlugin, FilterPlugin, PermitPlugin):
    """Makes room for running pods with a deferred resize."""

    name = "DeferredPodScheduling"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return super().points(rules) if rules.more_plugins_pre_filter else NO_POINTS

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return SKIPPED

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS

    def events_to_register(self) -> Sequence[EventHint]:
        return ()

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        return SUCCESS, 0.0
