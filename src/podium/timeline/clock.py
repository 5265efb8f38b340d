"""A clock that goes from one thing that is due to the next, without waiting in between."""

from __future__ import annotations

import heapq

import msgspec

from podium.model import Pod


class Due(msgspec.Struct, frozen=True, tag=True):
    """Something that happens by itself at its time."""


class Finish(Due, frozen=True):
    """A pod's lifetime is over, if it is still the same one that `serial` numbers."""

    pod: str
    serial: int


class Terminate(Due, frozen=True):
    """A pod that was told to end is gone."""

    pod: str
    serial: int


class Lose(Due, frozen=True):
    """A pod that does not tolerate its node's taints any longer is evicted."""

    pod: str
    serial: int


class Create(Due, frozen=True):
    """A controller makes a pod."""

    pod: Pod
    lifetime: float | None
    replaces: str


class Drain(Due, frozen=True):
    """Evict what is left on a node that is being drained, as far as budgets allow."""

    node: str


AnyDue = Finish | Terminate | Lose | Create | Drain


class Entry(msgspec.Struct, frozen=True, order=True, array_like=True):
    """Something due at a time; of several at the same time, the one that was planned first comes first."""

    time: float
    number: int


class VirtualClock:
    """What time it is, in seconds, and what is due when."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now
        self._planned = 0
        self._heap: list[Entry] = []
        self._dues: dict[int, AnyDue] = {}

    def plan(self, after: float, due: AnyDue) -> None:
        """Let something happen after some seconds."""
        self._planned += 1
        self._dues[self._planned] = due
        heapq.heappush(self._heap, Entry(self.now + after, self._planned))

    def next_time(self) -> float | None:
        return self._heap[0].time if self._heap else None

    def has_only(self, kind: type[Due]) -> bool:
        """Whether everything that is due is of one kind; also if nothing is."""
        return all(isinstance(due, kind) for due in self._dues.values())

    def take_due(self) -> AnyDue | None:
        """The next thing that is due by now; None if nothing is."""
        if not self._heap or self._heap[0].time > self.now:
            return None
        return self._dues.pop(heapq.heappop(self._heap).number)

    def save(self) -> list[tuple[float, int, AnyDue]]:
        """Everything that is due, to be given to `restore`."""
        return [(entry.time, entry.number, self._dues[entry.number]) for entry in sorted(self._heap)]

    def restore(self, saved: list[tuple[float, int, AnyDue]], planned: int) -> None:
        self._planned = planned
        self._heap = [Entry(time, number) for time, number, _ in saved]
        self._dues = {number: due for _, number, due in saved}

    @property
    def planned(self) -> int:
        """How many things were planned so far."""
        return self._planned
