"""The pods that fit nowhere, or may not be tried yet, until something happens that may help."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Hashable, Iterator, Mapping

from podium.loop.queued_pod import QueuedPod

FLUSH_AFTER = 300.0
"""Seconds after which a pod is tried again, whatever happens."""
FLUSH_EVERY = 30.0
"""Seconds between two looks at who has waited that long."""

Group = Mapping[str, QueuedPod]


class UnschedulablePods:
    """Pods by namespace and name, in groups that every event treats alike. Times are in seconds."""

    def __init__(self, group_of: Callable[[QueuedPod], Hashable], start: float) -> None:
        self._group_of, self._start = group_of, start
        self._pods: dict[str, tuple[QueuedPod, Hashable, float]] = {}
        """Each pod with its group and the time it is flushed."""
        self._groups: dict[Hashable, dict[str, QueuedPod]] = {}
        self._flushes: list[tuple[float, int, str]] = []

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return (queued for queued, _, _ in self._pods.values())

    @property
    def gated_count(self) -> int:
        return sum(len(pods) for pods in self._groups.values() if next(iter(pods.values())).is_gated)

    def get(self, key: str) -> QueuedPod | None:
        found = self._pods.get(key)
        return None if found is None else found[0]

    def groups(self) -> list[Group]:
        return list(self._groups.values())

    def put(self, queued: QueuedPod) -> None:
        """Add a pod, or move it to the group it belongs to now."""
        key = queued.pod.key
        self.remove(key)
        group, due = self._group_of(queued), self._due(queued)
        self._pods[key] = queued, group, due
        self._groups.setdefault(group, {})[key] = queued
        heapq.heappush(self._flushes, (due, queued.number, key))

    def remove(self, key: str) -> QueuedPod | None:
        found = self._pods.pop(key, None)
        if found is None:
            return None
        queued, group, _ = found
        del self._groups[group][key]
        if not self._groups[group]:
            del self._groups[group]
        return queued

    def due(self, now: float) -> Iterator[tuple[float, QueuedPod]]:
        """The pods that have waited too long, and when that was noticed."""
        while (at := self.next_flush()) is not None and at <= now:
            _, _, key = heapq.heappop(self._flushes)
            yield at, self._pods[key][0]

    def next_flush(self) -> float | None:
        """When the next pod has waited too long."""
        while self._flushes:
            at, number, key = self._flushes[0]
            found = self._pods.get(key)
            if found is not None and found[0].number == number and found[2] == at:
                return at
            heapq.heappop(self._flushes)
        return None

    def _due(self, queued: QueuedPod) -> float:
        since = max(queued.timestamp, queued.flushed_at)
        looks = math.floor((since + FLUSH_AFTER - self._start) / FLUSH_EVERY) + 1
        return self._start + looks * FLUSH_EVERY
