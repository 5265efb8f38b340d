"""Pods that were tried in vain and have to let some time pass before they are tried again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from podium.loop.queued_pod import Heap, QueuedPod

WINDOW = 1.0
"""Seconds: backoffs end on multiples of it, so that pods of one window are ordered like the active ones."""

NEVER = float("-inf")


class BackoffQueue:
    """Pods that wait for their backoff to end: longer after each failure, up to a limit. Times are in seconds."""

    def __init__(self, initial: float, longest: float, sort_key: Callable[[QueuedPod], Any]) -> None:
        self._initial, self._longest = initial, longest
        self.rejected = Heap(lambda queued: (self.until(queued), sort_key(queued)))
        """Pods that plugins rejected: they may be taken early when there is nothing else to do."""
        self.failed = Heap(self.until)
        """Pods that something went wrong with: they wait in any case."""

    def __len__(self) -> int:
        return len(self.rejected) + len(self.failed)

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self.rejected
        yield from self.failed

    def until(self, queued: QueuedPod) -> float:
        """The window in which a pod's backoff ends; minus infinity for a pod that has none."""
        count = queued.consecutive_errors or queued.unschedulable_count
        if not count or not self._longest:
            return NEVER
        # Doubled for each failure; beyond sixty of them the limit is long reached.
        duration = min(self._initial * 2.0 ** min(count - 1, 60), self._longest)
        return window(queued.timestamp + duration)

    def is_backing_off(self, queued: QueuedPod, now: float) -> bool:
        return self.until(queued) >= window(now)

    def add(self, queued: QueuedPod) -> None:
        (self.rejected if queued.rejectors else self.failed).push(queued)

    def get(self, key: str) -> QueuedPod | None:
        return self.rejected.get(key) or self.failed.get(key)

    def remove(self, key: str) -> QueuedPod | None:
        return self.rejected.remove(key) or self.failed.remove(key)

    def pop_completed(self, now: float) -> Iterator[QueuedPod]:
        """Take the pods whose backoff is over."""
        for heap in (self.rejected, self.failed):
            while (queued := heap.first()) is not None and not self.is_backing_off(queued, now):
                heap.pop()
                yield queued

    def next_completion(self) -> float | None:
        """When the next pod is through."""
        first = [queued for heap in (self.rejected, self.failed) if (queued := heap.first()) is not None]
        return min((self.until(queued) + WINDOW for queued in first), default=None)


def window(time: float) -> float:
    """The beginning of the window that a time is in."""
    return math.floor(time / WINDOW) * WINDOW
