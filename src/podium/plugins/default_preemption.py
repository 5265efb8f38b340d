"""DefaultPreemption: which pods may be evicted to make room for another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

from podium.config.plugin_args import DefaultPreemptionArgs
from podium.errors import InputError
from podium.framework.events import Action, EventHint, WaitingPod
from podium.framework.plugin import NO_POINTS, CycleState, PostFilterPlugin
from podium.framework.pod_group_points import FailedGroup, PodGroupPostFilterPlugin, PodGroupPostFilterResult
from podium.framework.status import PostFilterResult, Status
from podium.model import Pod
from podium.rules import Rules

PREEMPTION = "Preemption"
"""The cycle state's key for the engine's PreemptionSearch."""


class PreemptionSearch(Protocol):
    """The engine's search for a node where evicting pods helps."""

    def attempt(self, policy: DefaultPreemption, statuses: Mapping[str, Status]) -> PostFilterResult:
        """Find the best node for the pod being scheduled; `statuses` has each node's reason why it does not fit."""


class DefaultPreemption(PostFilterPlugin, PodGroupPostFilterPlugin):
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

    def pod_group_post_filter(self, failed: FailedGroup) -> PodGroupPostFilterResult:
        result = failed.preempt()
        message = result.status.message
        if not message:
            return result
        said = Status(result.status.code, (f"pod group preemption: {message}",))
        return result._replace(status=said)

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
