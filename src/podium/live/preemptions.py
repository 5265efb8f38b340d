"""Evicts pods for others, and holds back a pod while its victims have yet to be deleted."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from podium.framework import SUCCESS, PreEnqueuePlugin, Status
from podium.live.binding import path_of
from podium.live.client import ApiClient, ApiError
from podium.live.pod_statuses import generation_of, patch_status, time_now
from podium.model import Pod, PodGroup
from podium.plugins.default_preemption import DefaultPreemption

WAITING = Status.unresolvable("waiting for the preemption for this pod to be finished")


async def preempt(client: ApiClient, victim: Pod, by: Pod, group: PodGroup | None = None) -> bool:
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


class Preemptions:
    """The victims that each preempting pod waits for, and which of them are being deleted."""

    def __init__(self) -> None:
        self._victims: dict[str, dict[str, bool]] = {}
        """By the uid of the preempting pod, its victims by uid, and whether they are gone or terminating."""

    def begin(self, preemptor: Pod, victims: Iterable[Pod]) -> None:
        """Note that pods are to be evicted for another pod."""
        self._victims[preemptor.metadata.uid] = {each.metadata.uid: False for each in victims}

    def give_up(self, preemptor: Pod) -> None:
        """Note that a pod no longer waits for victims."""
        self._victims.pop(preemptor.metadata.uid, None)

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

        return EvictingPreemption
