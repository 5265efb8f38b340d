"""A pod in the queue, and heaps of them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from podium.cluster import PodInfo
from podium.objects import Pod

NO_PLUGINS: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod that wants a node, and what became of it so far. Times are in seconds."""

    pod: Pod
    info: PodInfo
    number: int
    """How many pods came before it: decides between pods that are alike."""
    timestamp: float
    """When it came, or when it was last tried."""
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    unschedulable_plugins: frozenset[str] = NO_PLUGINS
    """Who rejected it when it was last tried."""
    pending_plugins: frozenset[str] = NO_PLUGINS
    """Who asked it to wait, and lets it skip its backoff when the time comes."""
    gating_plugin: str = ""
    """Who keeps it from being tried at all."""
    flushed_at: float = float("-inf")

    @property
    def rejectors(self) -> frozenset[str]:
        return self.unschedulable_plugins | self.pending_plugins if self.pending_plugins else self.unschedulable_plugins

    @property
    def is_gated(self) -> bool:
        return bool(self.gating_plugin)


class Heap:
    """Queued pods by namespace and name: the smallest key comes first; of equal ones, the pod that arrived first."""

    def __init__(self, order: Callable[[QueuedPod], Any]) -> None:
        self._order = order
        self._entries: list[tuple[Any, int, int, QueuedPod]] = []
        self._versions: dict[str, tuple[int, QueuedPod]] = {}
        self._pushed = 0

    def __len__(self) -> int:
        return len(self._versions)

    def __contains__(self, key: str) -> bool:
        return key in self._versions

    def __iter__(self) -> Iterator[QueuedPod]:
        """In the order they were pushed."""
        return (queued for _, queued in self._versions.values())

    def get(self, key: str) -> QueuedPod | None:
        found = self._versions.get(key)
        return None if found is None else found[1]

    def push(self, queued: QueuedPod) -> None:
        """Add a pod, or put it where it belongs now."""
        self._pushed += 1
        self._versions[queued.pod.key] = self._pushed, queued
        heapq.heappush(self._entries, (self._order(queued), queued.number, self._pushed, queued))

    def first(self) -> QueuedPod | None:
        """The pod that is next, without taking it."""
        while self._entries:
            _, _, version, queued = self._entries[0]
            if self._versions.get(queued.pod.key, (0,))[0] == version:
                return queued
            heapq.heappop(self._entries)
        return None

    def pop(self) -> QueuedPod | None:
        queued = self.first()
        if queued is not None:
            heapq.heappop(self._entries)
            del self._versions[queued.pod.key]
        return queued

    def remove(self, key: str) -> QueuedPod | None:
        found = self._versions.pop(key, None)
        return None if found is None else found[1]
