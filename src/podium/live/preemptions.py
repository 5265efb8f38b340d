"""Evicts pods for others, and holds back a pod while its victims have yet to be deleted."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

import msgspec

from podium.framework import SUCCESS, CycleState, PostFilterResult, PreEnqueuePlugin, Status
from podium.framework.pod_group_points import FailedGroup, PodGroupPostFilterResult
from podium.live.binding import path_of
from podium.live.client import ApiError, Requests
from podium.live.pod_statuses import generation_of, patch_status, time_now
from podium.model import Pod, PodGroup
from podium.plugins.default_preemption import DefaultPreemption

WAITING = Status.unresolvable("waiting for the preemption for this pod to be finished")


async def preempt(client: Requests, victim: Pod, by: Pod, group: PodGroup | None = None) -> bool:
    """Write why a pod is evicted, and delete it; returns whether it was still there, which is not an error if not.

    `group` is the PodGroup that room is made for, if it is a group.
    """
    preemptor = "pod" if group is None else "podgroup"
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{by.spec.scheduler_name}: preempting to accommodate a higher priority {preemptor}",
        "lastTransitionTime": time_now(),
        **generation_of(victim),
    }
    try:
        await patch_status(client, victim, {"conditions": [condition]})
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": victim.metadata.uid}}
        await client.request("DELETE", path_of(victim), msgspec.json.encode(options))
    except ApiError as error:
        # A new pod with the same name has another uid, which causes a conflict.
        if error.code not in (404, 409):
            raise
        return False
    return True


FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a pod whose victims could not be evicted may have pods evicted again."""
OFF = "preemption is off: this scheduler may not evict pods"
PAUSED = "waiting to evict pods again, as evicting them was refused"


class Preemptions:
    """The victims that each preempting pod waits for, which of them are being deleted, and whose evictions failed."""

    def __init__(self, *, is_allowed: bool = True) -> None:
        """With `is_allowed` off, no pod is ever evicted."""
        self._is_allowed = is_allowed
        self._pauses: dict[str, tuple[float, float]] = {}
        """By the uid of a pod whose evictions failed, the last pause and when it ends, in monotonic seconds."""
        self._victims: dict[str, dict[str, bool]] = {}
        """By the uid of the preempting pod, its victims by uid, and whether they are gone or terminating."""

    def begin(self, preemptor: Pod, victims: Iterable[Pod]) -> None:
        """Note that pods are to be evicted for another pod."""
        self._victims[preemptor.metadata.uid] = {each.metadata.uid: False for each in victims}

    def give_up(self, preemptor: Pod) -> None:
        """Note that a pod no longer waits for victims."""
        self._victims.pop(preemptor.metadata.uid, None)

    def refused(self, preemptor: Pod) -> float:
        """Note that the victims of a pod could not be evicted; returns the seconds until it may try again."""
        self.give_up(preemptor)
        before = self._pauses.get(preemptor.metadata.uid)
        pause = FIRST_PAUSE if before is None else min(before[0] * 2, LONGEST_PAUSE)
        self._pauses[preemptor.metadata.uid] = pause, time.monotonic() + pause
        return pause

    def forget(self, preemptor: Pod) -> None:
        """Forget a pod that is gone or bound."""
        self.give_up(preemptor)
        self._pauses.pop(preemptor.metadata.uid, None)

    def hindrance(self, preemptor: Pod) -> str:
        """Why nothing may be evicted for a pod now; empty if it may."""
        if not self._is_allowed:
            return OFF
        pause = self._pauses.get(preemptor.metadata.uid)
        return PAUSED if pause is not None and time.monotonic() < pause[1] else ""

    def pod_goes(self, pod: Pod) -> None:
        """Note that a pod is gone or terminating."""
        for victims in self._victims.values():
            if pod.metadata.uid in victims:
                victims[pod.metadata.uid] = True

    def status(self, pod: Pod) -> Status:
        """Whether a pod may be tried: not while a victim has yet to be deleted."""
        victims = self._victims.get(pod.metadata.uid)
        return SUCCESS if victims is None or all(victims.values()) else WAITING

    def plugin(self) -> type[PreEnqueuePlugin]:
        """The DefaultPreemption class to use where evicting takes time."""
        preemptions = self

        class EvictingPreemption(DefaultPreemption, PreEnqueuePlugin):
            """Holds a pod back until its victims are being deleted."""

            def pre_enqueue(self, pod: Pod) -> Status:
                return preemptions.status(pod)

            def post_filter(self, state: CycleState, pod: Pod, statuses: Mapping[str, Status]) -> PostFilterResult:
                hindrance = preemptions.hindrance(pod)
                if hindrance:
                    return PostFilterResult(Status.unschedulable(hindrance))
                return super().post_filter(state, pod, statuses)

            def pod_group_post_filter(self, failed: FailedGroup) -> PodGroupPostFilterResult:
                hindrance = next(filter(None, map(preemptions.hindrance, failed.pods)), "")
                if hindrance:
                    return PodGroupPostFilterResult(Status.unschedulable(hindrance))
                return super().pod_group_post_filter(failed)

        return EvictingPreemption
