"""Pods whose node is chosen and that Permit plugins let wait before they are bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from podium.framework import Code, CycleState, Status
from podium.loop.queued_pod import QueuedPod
from podium.model import Pod

WAITING_PODS = "WaitingPods"
"""Where the cycle state has the pods that wait, for Permit plugins that let them go on."""

LONGEST = 15 * 60.0
"""Seconds: no plugin can let a pod wait longer."""


class Assumed(NamedTuple):
    """A pod that counts on its node already, though nobody else knows yet."""

    pod: Pod
    node: str
    state: CycleState


@dataclass(slots=True, eq=False)
class WaitingPod:
    """A pod that waits on its node until every plugin that asked it to has let it go on, or one rejects it."""

    queued: QueuedPod
    assumed: Assumed
    deadlines: dict[str, tuple[float, float]]
    """Per plugin, when its patience ends, and how long that is in seconds."""
    rejection: Status | None = field(default=None)

    @property
    def until(self) -> float:
        return min(until for until, _ in self.deadlines.values())


class WaitingPods:
    """The pods that wait, by namespace and name. Permit plugins find it in the cycle state."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def __iter__(self) -> Iterator[Assumed]:
        """Each pod, its node and its cycle state, in the order they began to wait."""
        return iter([waiting.assumed for waiting in self._pods.values()])

    def allow(self, key: str, plugin: str) -> None:
        """A plugin lets a pod go on; the pod is bound when no other plugin wants it to wait."""
        if key in self._pods:
            self._pods[key].deadlines.pop(plugin, None)

    def reject(self, key: str, plugin: str, message: str) -> None:
        """A plugin gives up on a pod."""
        if key in self._pods and self._pods[key].rejection is None:
            self._pods[key].rejection = Status(Code.UNSCHEDULABLE, (message,), plugin)

    def add(self, waiting: WaitingPod) -> None:
        self._pods[waiting.assumed.pod.key] = waiting

    def take(self, key: str) -> WaitingPod:
        """Take out a pod that need not wait any more."""
        return self._pods.pop(key)

    def take_ready(self, now: float) -> list[WaitingPod]:
        """Take out the pods that are through or out of time; those rejected say so."""
        ready = [waiting for waiting in self._pods.values() if self._is_ready(waiting, now)]
        for waiting in ready:
            del self._pods[waiting.assumed.pod.key]
        return ready

    def next_timeout(self) -> float | None:
        """When the next pod is out of time, or may go on: at once, for one that waits for nothing any more."""
        if not self._pods:
            return None
        if any(not waiting.deadlines or waiting.rejection is not None for waiting in self._pods.values()):
            return float("-inf")
        return min(waiting.until for waiting in self._pods.values())

    @staticmethod
    def _is_ready(waiting: WaitingPod, now: float) -> bool:
        if waiting.rejection is not None or not waiting.deadlines:
            return True
        if waiting.until > now:
            return False
        plugin, (_, patience) = min(waiting.deadlines.items(), key=lambda item: item[1])
        message = f"rejected due to timeout after waiting {patience:g}s at plugin {plugin}"
        waiting.rejection = Status(Code.UNSCHEDULABLE, (message,), plugin)
        return True
