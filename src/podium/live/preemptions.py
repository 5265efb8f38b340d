"""Preemptions under way: a pod that others have to go for waits until they do."""

from __future__ import annotations

from collections.abc import Iterable

from podium.framework import SUCCESS, Status
from podium.model import Pod
from podium.plugins.queue_and_bind import DefaultPreemption

WAITING = Status.unresolvable("waiting for the preemption for this pod to be finished")


class Preemptions:
    """Who has to go for whom, and which of them are on their way."""

    def __init__(self) -> None:
        self._victims: dict[str, dict[str, bool]] = {}
        """By the uid of the pod they make room for, victims by uid, and whether they are gone or going."""

    def begin(self, preemptor: Pod, victims: Iterable[Pod]) -> None:
        """Pods are to be evicted for another one."""
        self._victims[preemptor.metadata.uid] = {each.metadata.uid: False for each in victims}

    def give_up(self, preemptor: Pod) -> None:
        """A pod waits for nobody any more."""
        self._victims.pop(preemptor.metadata.uid, None)

    def pod_goes(self, pod: Pod) -> None:
        """A pod is gone or going."""
        for victims in self._victims.values():
            if pod.metadata.uid in victims:
                victims[pod.metadata.uid] = True

    def status(self, pod: Pod) -> Status:
        """Whether a pod may be tried: not while somebody has to go for it and does not."""
        victims = self._victims.get(pod.metadata.uid)
        return SUCCESS if victims is None or all(victims.values()) else WAITING

    def plugin(self) -> type[DefaultPreemption]:
        """DefaultPreemption where evicting takes time."""
        preemptions = self

        class EvictingPreemption(DefaultPreemption):
            """Holds a pod back until those are on their way that have to go for it."""

            def pre_enqueue(self, pod: Pod) -> Status:
                return preemptions.status(pod)

        return EvictingPreemption
