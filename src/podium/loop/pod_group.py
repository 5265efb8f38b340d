"""Waiting pods that every event treats alike, in columns: a thousand of them are tried in vain in a few steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster.columns import Ints, Mask
from podium.engine.decision import Diagnosis
from podium.loop.queued_pod import NEVER, QueuedPod

Floats = NDArray[np.float64]


class Position(NamedTuple):
    """Where a pod stands among those to be tried: the smallest is next."""

    until: float
    """The window in which its backoff ends; minus infinity for a pod that need not wait."""
    rank: int
    """The negative of its priority."""
    timestamp: float
    number: int


class PodGroup:
    """The pods of one group. Times are in seconds; `attempts` and the like are those of `QueuedPod`.

    What changes with every attempt is kept here while a pod is in the group, and not in its `QueuedPod`.
    """

    def __init__(self) -> None:
        self.pods: list[QueuedPod] = []
        self._places: dict[str, int] = {}
        self._numbers: Ints = np.zeros(4, dtype=np.int64)
        self._attempts, self._failures, self._said = (np.zeros(4, dtype=np.int64) for _ in range(3))
        """How often each was tried, how often plugins rejected it, and the code of what was last said about it."""
        self._timestamps, self._flushed = np.zeros(4), np.full(4, NEVER)
        self._woken: Mask = np.zeros(4, dtype=np.bool_)
        self._until: Floats = np.zeros(4)
        """When the backoff of a woken pod ends; minus infinity if it has ended."""
        self.woken_count = 0
        """How many of the pods are to be tried."""
        self._messages: dict[str, int] = {"": 0}
        self._earliest: float | None = None

    def __len__(self) -> int:
        return len(self.pods)

    @property
    def example(self) -> QueuedPod:
        """One of the pods, which stands for the others."""
        return self.pods[0]

    # -- pods come and go --------------------------------------------------------------------------------------------

    def add(self, queued: QueuedPod) -> None:
        place = len(self.pods)
        if place == len(self._numbers):
            self._grow()
        self.pods.append(queued)
        self._places[queued.key] = place
        self._numbers[place], self._attempts[place] = queued.number, queued.attempts
        self._failures[place], self._timestamps[place] = queued.unschedulable_count, queued.timestamp
        self._said[place] = self._messages.setdefault(queued.message, len(self._messages))
        self._flushed[place], self._woken[place] = queued.flushed_at, False
        self._earliest = None

    def remove(self, key: str) -> QueuedPod:
        """Take a pod out, up to date; the last one takes its place."""
        place, last = self._places.pop(key), len(self.pods) - 1
        queued = self._up_to_date(place)
        self.woken_count -= self._woken.item(place)
        moved = self.pods.pop()
        if place != last:
            self.pods[place] = moved
            self._places[moved.key] = place
            for column in self._columns():
                column[place] = column[last]
        self._earliest = None
        return queued

    def get(self, key: str) -> QueuedPod:
        """A pod, up to date."""
        return self._up_to_date(self._places[key])

    def is_woken(self, key: str) -> bool:
        """Whether a pod is to be tried."""
        return self._woken.item(self._places[key])

    def idle(self) -> list[QueuedPod]:
        """The pods that are not to be tried, up to date."""
        return [self._up_to_date(place) for place in np.flatnonzero(~self._woken[: len(self)]).tolist()]

    def _up_to_date(self, place: int) -> QueuedPod:
        queued = self.pods[place]
        queued.attempts, queued.unschedulable_count = self._attempts.item(place), self._failures.item(place)
        queued.timestamp, queued.flushed_at = self._timestamps.item(place), self._flushed.item(place)
        codes = self._messages
        if codes[queued.message] != self._said.item(place):
            queued.message = list(codes)[self._said.item(place)]
        return queued

    def _columns(self) -> list[NDArray[np.int64] | Floats | Mask]:
        return [getattr(self, name) for name in COLUMNS]

    def _grow(self) -> None:
        for name in COLUMNS:
            column = getattr(self, name)
            setattr(self, name, np.concatenate([column, column]))

    # -- pods are tried ----------------------------------------------------------------------------------------------

    def wake(self, ends: Callable[[Ints, Floats], Floats]) -> None:
        """Let all pods be tried; `ends` says when backoffs end, minus infinity for those that have."""
        size = len(self.pods)
        if self.woken_count < size:
            places = np.flatnonzero(~self._woken[:size])
            self._until[places] = ends(self._failures[places], self._timestamps[places])
            self._woken[:size] = True
            self.woken_count, self._earliest = size, None

    def first(self) -> tuple[Position, str]:
        """The pod that is to be tried first; there has to be one."""
        places = np.flatnonzero(self._woken[: len(self.pods)])
        for column in (self._until, self._timestamps, self._numbers):
            values = column[places]
            places = places[values == values.min()]
        place = places.item(0)
        return self._position(place), self.pods[place].key

    def reject(self, diagnosis: Diagnosis, before: Position | None, now: float) -> list[tuple[Position, QueuedPod]]:
        """Note that the pods were tried in vain that come before a position, None for all.

        Gives those of which something else was said so far.
        """
        places = self._woken_before(before)
        if not len(places):
            return []
        code = self._messages.setdefault(diagnosis.message, len(self._messages))
        news = places[self._said[places] != code]
        found = [(self._position(place), self.pods[place]) for place in news.tolist()]
        self._said[news] = code
        self._attempts[places] += 1
        self._failures[places] += 1
        self._timestamps[places], self._flushed[places] = now, NEVER
        self._woken[places] = False
        self.woken_count -= len(places)
        self._earliest = None
        return found

    def keys_before(self, before: Position | None) -> list[str]:
        """The woken pods that come before a position, None for all."""
        return [self.pods[place].key for place in self._woken_before(before).tolist()]

    def _woken_before(self, before: Position | None) -> Ints:
        places = np.flatnonzero(self._woken[: len(self.pods)])
        if before is None:
            return places
        until, rank = self._until[places], self._rank
        earlier = until < before.until
        if rank < before.rank:
            earlier |= until == before.until
        elif rank == before.rank:
            timestamps = self._timestamps[places]
            sooner = timestamps < before.timestamp
            sooner |= (timestamps == before.timestamp) & (self._numbers[places] < before.number)
            earlier |= (until == before.until) & sooner
        return places[earlier]

    def _position(self, place: int) -> Position:
        return Position(self._until.item(place), self._rank, self._timestamps.item(place), self._numbers.item(place))

    @property
    def _rank(self) -> int:
        return -self.example.pod.priority

    # -- waiting too long --------------------------------------------------------------------------------------------

    @property
    def earliest(self) -> float:
        """When the pod that has waited longest was tried or flushed; infinity without pods that wait."""
        if self._earliest is None:
            idle = ~self._woken[: len(self.pods)]
            since = np.maximum(self._timestamps[: len(self.pods)], self._flushed[: len(self.pods)])[idle]
            self._earliest = float(since.min()) if len(since) else float("inf")
        return self._earliest


COLUMNS = ("_numbers", "_attempts", "_failures", "_said", "_timestamps", "_flushed", "_woken", "_until")
