"""What is written down while a simulation runs."""

from __future__ import annotations

from typing import Any

from podium.loop.cycle import SchedulerLoop
from podium.loop.timeline_result import Life, Record, Sample, TimelineResult


class History:
    """The log, the lives of pods, and samples of the cluster. Times are in seconds."""

    def __init__(self, loop: SchedulerLoop, sample_every: float) -> None:
        self._loop, self._sample_every = loop, sample_every
        self.log: list[Record] = []
        self.lives: list[Life] = []
        self.current: dict[str, Life] = {}
        """The lives of the pods that are there, by namespace and name."""
        self.samples: list[Sample] = []
        self.last_messages: dict[str, str] = {}
        self.running = 0
        self.last_change = 0.0
        """When something last happened."""
        self._in_vain: dict[str, list[str]] = {}

    def in_vain(self, where: str, what: str, why: str) -> None:
        """An event, or a part of it, came to nothing, for a reason that others may share."""
        self._in_vain.setdefault(why, []).append(f"{where}: {what}" if where else what)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What came to nothing: the first of each sort, and how many more there are."""
        found = ((why, first, len(rest)) for why, (first, *rest) in self._in_vain.items())
        return tuple(f"{first} {why}" + (f"; {more:,} more like it" if more else "") for why, first, more in found)

    def note(self, time: float, event: str, **what: Any) -> None:
        """Add a record to the log: something happened."""
        self.remark(time, event, **what)
        self.last_change = time

    def remark(self, time: float, event: str, **what: Any) -> None:
        """Add a record to the log that may come again and again without anything happening."""
        self.log.append({"time": round_time(time), "event": event, **what})

    def arrived(self, pod: str, now: float, lifetime: float | None) -> Life:
        life = Life(pod, len(self.lives) + 1, now, lifetime)
        self.lives.append(life)
        self.current[pod] = life
        return life

    def bound(self, pod: str, node: str, attempts: int, now: float) -> Life:
        life = self.current[pod]
        life.bound, life.node, life.attempts = now, node, attempts
        self.last_messages.pop(pod, None)
        self.running += 1
        return life

    def ended(self, pod: str, now: float) -> Life | None:
        life = self.current.pop(pod, None)
        if life is not None:
            life.ended = now
            self.running -= life.bound is not None
        self.last_messages.pop(pod, None)
        return life

    def unschedulable(self, pod: str, message: str, now: float) -> None:
        """A pod was tried in vain: noted unless that was for the same reasons as before."""
        if self.last_messages.get(pod) != message:
            self.last_messages[pod] = message
            self.note(now, "unschedulable", pod=pod, message=message)

    # -- samples -----------------------------------------------------------------------------------------------------

    def sample_before(self, time: float) -> None:
        """Take the samples that are due before a time."""
        while len(self.samples) * self._sample_every < time:
            self._sample()

    def sample_until(self, time: float) -> None:
        """Take the samples that are due by a time."""
        while len(self.samples) * self._sample_every <= time:
            self._sample()

    def _sample(self) -> None:
        queue, cluster = self._loop.queue, self._loop.cluster
        columns = cluster.columns
        alive = columns.alive[: columns.size]
        resources = columns.resources.values
        gated = queue.unschedulable.gated_count

        def total(table: Any) -> dict[str, int]:
            sums = table[:, : columns.size][:, alive].sum(axis=1).tolist()
            return {name: amount for name, amount in zip(resources, sums, strict=False) if amount}

        self.samples.append(
            Sample(
                time=round_time(len(self.samples) * self._sample_every),
                nodes=cluster.node_count,
                running=self.running,
                active=len(queue.active),
                backoff=len(queue.backoff),
                unschedulable=len(queue.unschedulable) - gated,
                gated=gated,
                waiting=len(self._loop.waiting),
                requested=total(columns.requested),
                allocatable=total(columns.allocatable),
            )
        )

    def result(self, end: float) -> TimelineResult:
        return TimelineResult(tuple(self.log), tuple(self.lives), tuple(self.samples), end, self.warnings)


def round_time(time: float) -> float:
    """A time to the microsecond, as a whole number where it is one, so that it is always written alike."""
    rounded = round(float(time), 6)
    return int(rounded) if rounded.is_integer() else rounded
