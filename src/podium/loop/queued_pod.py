"""Pods that wait: one by one in the queue's collections, in groups that events affect in the same way, or at Permit.

A group keeps its pods in columns, so that the failed attempts of a thousand pods are recorded in a few steps.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from podium.cluster import PodInfo
from podium.cluster.columns import Floats, Ints, Mask
from podium.engine.decision import NO_PLUGINS, Diagnosis
from podium.framework import Code, CycleState, Status
from podium.framework.events import ClusterEvent
from podium.model import Pod

WINDOW = 1.0
"""Seconds. Backoffs end on multiples of it, so that pods of one window are ordered like active pods."""

LOOK_EVERY = 1.0
"""Seconds between two checks for backoffs that are over, where they do not end on windows."""

NEVER = float("-inf")


class BackoffTimes:
    """How long pods back off: longer after each failure, up to a limit. Times are in seconds.

    Backoffs end on multiples of `window` or, if that is 0, at the checks that happen once a second from `start` on.
    `fewest` is the minimum number of failures assumed for a pod. With `ends_late`, a backoff still goes on at the
    moment it ends.
    """

    def __init__(
        self,
        initial: float,
        longest: float,
        *,
        window: float = WINDOW,
        start: float = 0.0,
        fewest: int = 0,
        ends_late: bool = False,
    ) -> None:
        # Doubled for each failure; after sixty failures the limit is long reached.
        self._durations = [min(initial * 2.0**failures, longest) for failures in range(61)] if longest else []
        self._window, self._start, self._fewest, self._ends_late = window, start, fewest, ends_late
        self.longest = longest
        """The longest backoff, in seconds."""

    def until(self, queued: QueuedPod) -> float:
        """The window in which a pod's backoff ends; minus infinity for a pod without backoff."""
        count = queued.consecutive_errors or queued.unschedulable_count or self._fewest
        if not count or not self._durations:
            return NEVER
        return self._begin(queued.timestamp + self._durations[count - 1 if count <= 61 else 60])

    def ends(self, now: float, failures: Ints, timestamps: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same as `until` for pods with these numbers of rejections; minus infinity where the backoff is
        over now.
        """
        if not self._durations:
            return np.full(len(failures), NEVER)
        durations = np.array([NEVER, *self._durations])[np.minimum(failures, 61)]
        ends = timestamps + durations
        if not self._window:
            return np.where((ends > now) | ((ends == now) & self._ends_late), ends, NEVER)
        ends = np.floor(ends / self._window) * self._window
        return np.where(ends >= self._begin(now), ends, NEVER)

    def is_backing_off(self, queued: QueuedPod, now: float) -> bool:
        until = self.until(queued)
        return until >= self._begin(now) if self._window or self._ends_late else until > now

    def leaves_at(self, queued: QueuedPod) -> float:
        """The time of the check that notices the end of a pod's backoff."""
        until = self.until(queued)
        if self._window or self._ends_late or until == NEVER:
            return self.ends_at(until)
        return self._start + math.ceil((until - self._start) / LOOK_EVERY) * LOOK_EVERY

    # -- groups ----------------------------------------------------------------------------------------------------

    def until_of_group(self, failures: int, size: int, timestamp: float) -> float:
        """The window in which the backoff of a group of `size` pods ends; the limit grows with the square root of
        that.
        """
        if not failures or not self._durations:
            return NEVER
        longest = self.longest * math.sqrt(size)
        return self._begin(timestamp + min(self._durations[0] * 2.0 ** min(failures - 1, 60), longest))

    def is_within(self, until: float, now: float) -> bool:
        """Whether a backoff that ends in this window is still going on."""
        return until >= self._begin(now)

    def ends_at(self, until: float) -> float:
        """The time of the check that notices the end of a backoff."""
        if self._window or until == NEVER:
            return until + self._window
        return self._start + (math.floor((until - self._start) / LOOK_EVERY) + 1) * LOOK_EVERY

    def _begin(self, time: float) -> float:
        """The beginning of the window that contains a time."""
        return math.floor(time / self._window) * self._window if self._window else time


class BackoffQueue:
    """Pods that wait for their backoff to end."""

    def __init__(self, times: BackoffTimes, sort_key: Callable[[QueuedPod], Any]) -> None:
        self.times = times
        self.rejected: Heap[QueuedPod] = Heap(lambda queued: (times.until(queued), sort_key(queued)))
        """Pods that plugins rejected: they may be popped early when no pod is active."""
        self.failed: Heap[QueuedPod] = Heap(times.until)
        """Pods that had an error: they always wait."""

    def __len__(self) -> int:
        return len(self.rejected) + len(self.failed)

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self.rejected
        yield from self.failed

    def add(self, queued: QueuedPod) -> None:
        (self.rejected if queued.rejectors else self.failed).push(queued)

    def get(self, key: str) -> QueuedPod | None:
        return self.rejected.get(key) or self.failed.get(key)

    def remove(self, key: str) -> QueuedPod | None:
        return self.rejected.remove(key) or self.failed.remove(key)

    def pop_completed(self, now: float) -> Iterator[QueuedPod]:
        """Take the pods whose backoff is over."""
        for heap in (self.rejected, self.failed):
            while (queued := heap.first()) is not None and self.times.leaves_at(queued) <= now:
                heap.pop()
                yield queued

    def next_completion(self) -> float | None:
        """The time when the next pod's backoff ends."""
        first = [queued for heap in (self.rejected, self.failed) if (queued := heap.first()) is not None]
        return min((self.times.leaves_at(queued) for queued in first), default=None)


class InFlight:
    """Pods being scheduled, by namespace and name, and the events since the first of them was popped."""

    def __init__(self) -> None:
        self._since: dict[str, int] = {}
        self._events: list[ClusterEvent] = []
        self._forgotten = 0

    def __contains__(self, key: str) -> bool:
        return key in self._since

    def __iter__(self) -> Iterator[str]:
        return iter(self._since)

    def start(self, key: str) -> None:
        self._since[key] = self._forgotten + len(self._events)

    def note(self, event: ClusterEvent) -> None:
        """Record an event for the pods that are being scheduled, if there are any."""
        if self._since:
            self._events.append(event)

    def events_for(self, key: str) -> list[ClusterEvent]:
        """The events since a pod was popped."""
        return self._events[self._since[key] - self._forgotten :]

    def done(self, key: str) -> None:
        """Drop a pod, and the events that no other pod needs."""
        self._since.pop(key, None)
        kept_from = min(self._since.values(), default=self._forgotten + len(self._events))
        del self._events[: kept_from - self._forgotten]
        self._forgotten = kept_from


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod without a node, and its attempts so far. Times are in seconds."""

    pod: Pod
    info: PodInfo
    number: int
    """How many pods were added before it: breaks ties between pods that compare equal."""
    timestamp: float
    """When it was added, or last tried."""
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    unschedulable_plugins: frozenset[str] = NO_PLUGINS
    """The plugins that rejected it at the last attempt."""
    pending_plugins: frozenset[str] = NO_PLUGINS
    """The plugins that asked it to wait, and let it skip its backoff later."""
    gating_plugin: str = ""
    """The plugin that gates it."""
    flushed_at: float = NEVER
    message: str = ""
    """Why the last attempt failed."""
    active_since: float | None = None
    """When it could first be tried; None if it could not yet."""
    key: str = field(init=False)
    """Namespace and name of the pod."""

    def __post_init__(self) -> None:
        self.key = self.pod.key

    @property
    def rejectors(self) -> frozenset[str]:
        return self.unschedulable_plugins | self.pending_plugins if self.pending_plugins else self.unschedulable_plugins

    @property
    def is_gated(self) -> bool:
        return bool(self.gating_plugin)


class Entity(Protocol):
    """A pod or a group in the queue."""

    @property
    def key(self) -> str: ...

    @property
    def number(self) -> int: ...


E = TypeVar("E", bound=Entity)


class Heap(Generic[E]):
    """Pods or groups by namespace and name: the smallest key comes first; among equal keys, the one that arrived
    first.
    """

    def __init__(self, order: Callable[[E], Any]) -> None:
        self._order = order
        self._entries: list[tuple[Any, int, int, E]] = []
        self._versions: dict[str, tuple[int, E]] = {}
        self._pushed = 0

    def __len__(self) -> int:
        return len(self._versions)

    def __contains__(self, key: str) -> bool:
        return key in self._versions

    def __iter__(self) -> Iterator[E]:
        """In the order they were pushed."""
        return (queued for _, queued in self._versions.values())

    def get(self, key: str) -> E | None:
        found = self._versions.get(key)
        return None if found is None else found[1]

    def push(self, queued: E) -> None:
        """Add a pod, or update its position."""
        self._pushed += 1
        self._versions[queued.key] = self._pushed, queued
        heapq.heappush(self._entries, (self._order(queued), queued.number, self._pushed, queued))

    def first(self) -> E | None:
        """The next pod, without removing it."""
        while self._entries:
            _, _, version, queued = self._entries[0]
            if self._versions.get(queued.key, (0,))[0] == version:
                return queued
            heapq.heappop(self._entries)
        return None

    def pop(self) -> E | None:
        queued = self.first()
        if queued is not None:
            heapq.heappop(self._entries)
            del self._versions[queued.key]
        return queued

    def remove(self, key: str) -> E | None:
        found = self._versions.pop(key, None)
        return None if found is None else found[1]


WAITING_PODS = "WaitingPods"
"""The cycle state's key for the waiting pods, for Permit plugins that allow or reject them."""

MAX_PERMIT_TIMEOUT = 15 * 60.0
"""The maximum time, in seconds, that a plugin can let a pod wait."""


class Assumed(NamedTuple):
    """A pod that counts on its node before the API server knows about it."""

    pod: Pod
    node: str
    state: CycleState


@dataclass(slots=True, eq=False)
class PodAtPermit:
    """A pod that waits at Permit until every plugin that asked it to wait allows it, or one rejects it."""

    queued: QueuedPod
    assumed: Assumed
    deadlines: dict[str, tuple[float, float]]
    """Per plugin, the deadline, and the timeout in seconds that led to it."""
    rejection: Status | None = field(default=None)

    @property
    def until(self) -> float:
        return min(until for until, _ in self.deadlines.values())


class WaitingPods:
    """The pods that wait at Permit, by namespace and name. Permit plugins find it in the cycle state."""

    def __init__(self) -> None:
        self._pods: dict[str, PodAtPermit] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def __iter__(self) -> Iterator[Assumed]:
        """Each pod with its node and cycle state, in the order they began to wait."""
        return iter([waiting.assumed for waiting in self._pods.values()])

    def allow(self, key: str, plugin: str) -> None:
        """Allow a pod for a plugin; the pod is bound once no other plugin wants it to wait."""
        if key in self._pods:
            self._pods[key].deadlines.pop(plugin, None)

    def reject(self, key: str, plugin: str, message: str) -> None:
        """Reject a pod for a plugin."""
        if key in self._pods and self._pods[key].rejection is None:
            self._pods[key].rejection = Status(Code.UNSCHEDULABLE, (message,), plugin)

    def add(self, waiting: PodAtPermit) -> None:
        self._pods[waiting.assumed.pod.key] = waiting

    def take(self, key: str) -> PodAtPermit:
        """Remove a pod that need not wait any more."""
        return self._pods.pop(key)

    def take_ready(self, now: float) -> list[PodAtPermit]:
        """Remove the pods that are allowed, rejected or past their deadline; the latter two have a status that
        says so.
        """
        ready = [waiting for waiting in self._pods.values() if self._is_ready(waiting, now)]
        for waiting in ready:
            del self._pods[waiting.assumed.pod.key]
        return ready

    def next_timeout(self) -> float | None:
        """The next deadline; minus infinity if a pod may go on, or was rejected, already; None if no pod waits."""
        if not self._pods:
            return None
        if any(not waiting.deadlines or waiting.rejection is not None for waiting in self._pods.values()):
            return float("-inf")
        return min(waiting.until for waiting in self._pods.values())

    @staticmethod
    def _is_ready(waiting: PodAtPermit, now: float) -> bool:
        if waiting.rejection is not None or not waiting.deadlines:
            return True
        if waiting.until > now:
            return False
        plugin, (_, patience) = min(waiting.deadlines.items(), key=lambda item: item[1])
        message = f"rejected due to timeout after waiting {patience:g}s at plugin {plugin}"
        waiting.rejection = Status(Code.UNSCHEDULABLE, (message,), plugin)
        return True


class Position(NamedTuple):
    """The position of a pod among those to try: the smallest is next."""

    until: float
    """The window in which its backoff ends; minus infinity for a pod without backoff."""
    rank: int
    """The negative of its priority."""
    timestamp: float
    number: int


class PodGroup:
    """The pods of one group. Times are in seconds; the columns mean the same as the fields of `QueuedPod`.

    Values that change with every attempt are kept here while a pod is in the group, and not in its `QueuedPod`.
    """

    def __init__(self) -> None:
        self.pods: list[QueuedPod] = []
        self._places: dict[str, int] = {}
        self._numbers: Ints = np.zeros(4, dtype=np.int64)
        self._attempts, self._failures, self._said = (np.zeros(4, dtype=np.int64) for _ in range(3))
        """Per pod, the number of attempts, the number of rejections, and the code of its last message."""
        self._timestamps, self._flushed = np.zeros(4), np.full(4, NEVER)
        self._woken: Mask = np.zeros(4, dtype=np.bool_)
        self._until: Floats = np.zeros(4)
        """When the backoff of a woken pod ends; minus infinity if it has ended."""
        self.woken_count = 0
        """How many of the pods are woken."""
        self._messages: dict[str, int] = {"": 0}
        self._earliest: float | None = None

    def __len__(self) -> int:
        return len(self.pods)

    @property
    def example(self) -> QueuedPod:
        """One of the pods, which represents the others."""
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
        """Remove a pod and return it, up to date; the last pod moves to its place."""
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
        """Whether a pod is woken."""
        return self._woken.item(self._places[key])

    def idle(self) -> list[QueuedPod]:
        """The pods that are not woken, up to date."""
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
        """Wake all pods; `ends` returns when their backoffs end, minus infinity for those that have ended."""
        size = len(self.pods)
        if self.woken_count < size:
            places = np.flatnonzero(~self._woken[:size])
            self._until[places] = ends(self._failures[places], self._timestamps[places])
            self._woken[:size] = True
            self.woken_count, self._earliest = size, None

    def first(self) -> tuple[Position, str]:
        """The first woken pod and its position; there must be one."""
        places = np.flatnonzero(self._woken[: len(self.pods)])
        for column in (self._until, self._timestamps, self._numbers):
            values = column[places]
            places = places[values == values.min()]
        place = places.item(0)
        return self._position(place), self.pods[place].key

    def reject(self, diagnosis: Diagnosis, before: Position | None, now: float) -> list[tuple[Position, QueuedPod]]:
        """Record a failed attempt of the woken pods before a position; None for all.

        Returns the pods whose message changed.
        """
        places = self._woken_before(before)
        if not len(places):
            return []
        code = self._messages.setdefault(diagnosis.message, len(self._messages))
        changed = places[self._said[places] != code]
        found = [(self._position(place), self.pods[place]) for place in changed.tolist()]
        self._said[changed] = code
        self._attempts[places] += 1
        self._failures[places] += 1
        self._timestamps[places], self._flushed[places] = now, NEVER
        self._woken[places] = False
        self.woken_count -= len(places)
        self._earliest = None
        return found

    def keys_before(self, before: Position | None) -> list[str]:
        """The woken pods before a position; None for all."""
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
        """When the pod that has waited longest was tried or flushed; infinity if no pod waits."""
        if self._earliest is None:
            idle = ~self._woken[: len(self.pods)]
            since = np.maximum(self._timestamps[: len(self.pods)], self._flushed[: len(self.pods)])[idle]
            self._earliest = float(since.min()) if len(since) else float("inf")
        return self._earliest


COLUMNS = ("_numbers", "_attempts", "_failures", "_said", "_timestamps", "_flushed", "_woken", "_until")
