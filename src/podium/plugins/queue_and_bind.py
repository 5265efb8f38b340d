"""Plugins before and after the decision: PrioritySort, SchedulingGates, DefaultPreemption, DefaultBinder, and
those behind gates that are off.
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
    CycleState,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    QueuedPod,
    QueueSortPlugin,
)
from podium.framework.status import SKIP, SUCCESS, Status
from podium.framework.suggested_change import Action, EventHint, WaitingPod, is_about_itself
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
        # Where there are no hints, any change of a pod lets it try again.
        if not self.release_rules.own_updates_ask_hints:
            return ()
        return (EventHint("Pod", Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, is_about_itself),)


NOWHERE: frozenset[str] = frozenset()

PREEMPTION = "Preemption"
"""Where the cycle state has what the engine can do for a plugin that wants to preempt."""


class PreemptionSearch(Protocol):
    """The engine's search for a node where evicting pods helps."""

    def attempt(self, policy: DefaultPreemption, statuses: Mapping[str, Status]) -> PostFilterResult:
        """Find the best node for the pod being scheduled; `statuses` says why it does not fit any."""


class DefaultPreemption(PostFilterPlugin):
    """Nominate the pod to the node where the least important pods have to go.

    It is listed at PreEnqueue where the release lets a pod wait there until its own preemption is carried out; here
    evicting takes no time, so no pod has to wait.

    Derive from it to change which pods may be evicted (`may_evict`) or which of them matter more (`importance`).
    """

    name = "DefaultPreemption"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        points = super().points(rules) | ({"podGroupPostFilter"} if rules.has_pod_group_post_filter else NOWHERE)
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
        """Whether the deleted pod was the last victim of the waiting pod: never, as evicting takes no time here."""
        return False

    def may_evict(self, victim: Pod, preemptor: Pod) -> bool:
        """Whether a pod may have to go for another one."""
        return victim.priority < preemptor.priority

    def importance(self, pod: Pod) -> tuple[float, ...]:
        """Sorts victims: the pod with the smallest key is spared first. By priority, then by who started earlier."""
        return -pod.priority, start_time(pod)

    def enough_candidates(self, nodes: int) -> int:
        """How many nodes to find, out of this many on which evicting pods might help, before choosing one."""
        share = nodes * self._args.min_candidate_nodes_percentage // 100
        return min(max(share, self._args.min_candidate_nodes_absolute), nodes)


def start_time(pod: Pod) -> float:
    """When a pod started, in seconds since 1970; a pod that did not start yet does so later than all others."""
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
"""Where the cycle state has who binds pods at an API server; nothing is there in a simulation."""
Binder = Callable[[Pod, str], Status]
"""Binds a pod to the node of a name."""


class DefaultBinder(BindPlugin):
    """Bind the pod at the API server; in a simulation, whoever runs the loop puts the pod on its node.

    A Bind plugin that has something to do before or after may derive from it.
    """

    name = "DefaultBinder"

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        binder: Binder | None = state.get(BINDER)
        return SUCCESS if binder is None else binder(pod, node_name)


class GangScheduling(Plugin):
    """Holds back the pods of a group until there are enough of them, where pods have groups."""

    name = "GangScheduling"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return frozenset({"preEnqueue", "permit"}) if rules.has_gang_scheduling else NOWHERE

    def events_to_register(self) -> Sequence[EventHint]:
        return ()


class TopologyPlacementGenerator(Plugin):
    """Proposes sets of nodes for a group of pods."""

    name = "TopologyPlacementGenerator"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return frozenset(("placementGenerate",)) if rules.has_placement_points else NOWHERE


class PodGroupPodsCount(Plugin):
    """Prefers sets of nodes that take more pods of a group."""

    name = "PodGroupPodsCount"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return frozenset(("placementScore",)) if rules.has_placement_points else NOWHERE


class DeferredPodScheduling(PreFilterPlugin, FilterPlugin, PermitPlugin):
    """Makes room for running pods whose resize waits."""

    name = "DeferredPodScheduling"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return super().points(rules) if rules.more_plugins_pre_filter else NOWHERE

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PreFilterResult(SKIP)

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS

    def events_to_register(self) -> Sequence[EventHint]:
        return ()

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        return SUCCESS, 0.0
