"""The result of a simulated timeline: a log, how long pods waited, and how full the cluster was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from podium.cluster import Aspect, Cluster
from podium.cluster.cluster import ChangedRows
from podium.loop.cycle import SchedulerLoop
from podium.wording import csv_text

EventRecord = dict[str, Any]
T = TypeVar("T")

FIRST_RESOURCES = ("cpu", "memory", "pods")
COUNTS = ("time", "nodes", "running", "active", "backoff", "unschedulable", "gated", "waiting")


class Life(msgspec.Struct):
    """The life of one pod. Times are in seconds, None for what has not happened."""

    pod: str
    serial: int
    arrived: float
    lifetime: float | None = None
    bound: float | None = None
    node: str = ""
    attempts: int = 0
    ended: float | None = None

    @property
    def waited(self) -> float | None:
        """How long the pod waited for its node, in seconds; None if it has none."""
        return None if self.bound is None else self.bound - self.arrived


class Sample(msgspec.Struct, frozen=True):
    """The cluster at one moment. Resources are summed over all nodes, in milli-cpu, bytes or units."""

    time: float
    nodes: int
    running: int
    active: int
    backoff: int
    unschedulable: int
    gated: int
    waiting: int
    """Pods whose node is chosen and that wait at Permit."""
    requested: dict[str, int]
    allocatable: dict[str, int]

    @property
    def queued(self) -> int:
        """The number of pods that wait for a node."""
        return self.active + self.backoff + self.unschedulable + self.gated

    def utilisation(self, resource: str) -> float:
        """The requested share of a resource, from 0 to 1."""
        allocatable = self.allocatable.get(resource, 0)
        return self.requested.get(resource, 0) / allocatable if allocatable else 0.0


class Utilisation(NamedTuple):
    """The requested share of a resource over time, from 0 to 1."""

    mean: float
    most: float


@dataclass(frozen=True, slots=True)
class TimelineResult:
    """The result of a simulated timeline."""

    log: tuple[EventRecord, ...]
    """Everything that happened, in order."""
    lives: tuple[Life, ...]
    """Every pod, in order of arrival."""
    samples: tuple[Sample, ...]
    end: float
    """The time at the end, in seconds."""
    warnings: tuple[str, ...] = ()
    """Warnings, one line for each sort: events without effect, and errors that kept pods waiting."""
    scaling: Mapping[str, Any] | None = None
    """The autoscaler's report: cost, node hours, nodes added and removed, in total and by group; None without one."""
    failed_plugins: Mapping[str, str] = field(default_factory=dict)
    """By plugin that failed on pods, the first pod and the error."""
    utilisation: Mapping[str, Utilisation] = field(default_factory=dict)
    """The requested share of each resource that nodes offer, cpu and memory first. Unlike samples, it misses nothing.
    """
    unfinished_drains: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By node that was still being drained at the end, the pods left there and why each was not evicted."""

    @property
    def pending_times(self) -> dict[str, float]:
        """How long each pod waited for its node, in seconds; for one that still waits, until the end.

        Of pods with the same name, one after the other, the last one counts.
        """
        ends = ((life, self.end if life.ended is None else life.ended) for life in self.lives)
        return {life.pod: (end if life.bound is None else life.bound) - life.arrived for life, end in ends}

    @property
    def unplaced(self) -> tuple[Life, ...]:
        """The pods that still waited at the end."""
        return tuple(life for life in self.lives if life.bound is None and life.ended is None)

    def log_lines(self) -> bytes:
        """The log as JSON lines: the same bytes for the same events and seed."""
        return b"".join(msgspec.json.encode(record) + b"\n" for record in self.log)

    def samples_csv(self) -> str:
        """One row per sample: counts, then for each resource what is requested and allocatable."""
        resources = resources_of(self.samples)
        header = [*COUNTS, *(f"{name}_{what}" for name in resources for what in ("requested", "allocatable"))]
        rows: list[list[object]] = []
        for sample in self.samples:
            amounts = ((sample.requested.get(name, 0), sample.allocatable.get(name, 0)) for name in resources)
            rows.append([*(getattr(sample, name) for name in COUNTS), *(amount for pair in amounts for amount in pair)])
        return csv_text(header, rows)

    def pods_csv(self) -> str:
        """One row per pod: when it came, was bound and ended, and how long it waited."""
        header = ["pod", "node", "arrived", "bound", "ended", "waited", "attempts"]
        lives = (
            (life.pod, life.node, life.arrived, life.bound, life.ended, life.waited, life.attempts)
            for life in self.lives
        )
        return csv_text(header, ([("" if value is None else value) for value in life] for life in lives))

    def to_dict(self) -> EventRecord:
        """The samples and the pods as plain data, without the log."""
        return {
            "end": self.end,
            "pods": [msgspec.to_builtins(life) | {"waited": life.waited} for life in self.lives],
            "samples": [msgspec.to_builtins(sample) for sample in self.samples],
            "unfinishedDrains": [
                {"node": node, "pods": [{"pod": pod, "reason": reason} for pod, reason in pods.items()]}
                for node, pods in self.unfinished_drains.items()
            ],
            **({} if self.scaling is None else {"scaling": self.scaling}),
        }


def resources_of(samples: Sequence[Sample]) -> list[str]:
    """The resources of the nodes, cpu and memory first."""
    return _in_order({name for sample in samples for name, amount in sample.allocatable.items() if amount})


def _in_order(resources: set[str]) -> list[str]:
    return [*(name for name in FIRST_RESOURCES if name in resources), *sorted(resources.difference(FIRST_RESOURCES))]


class UtilisationSums(msgspec.Struct, frozen=True):
    """The sums of a `UtilisationMeter`, for a snapshot."""

    seconds: float
    share_seconds: dict[str, float]
    most: dict[str, float]


class UtilisationMeter:
    """Averages the requested share of each resource of a cluster over time. It reads only the nodes that changed.

    Lists have an entry for each resource. Lists of Python's numbers are faster here than arrays: they are short.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._changed = cluster, ChangedRows(Aspect.RESOURCES)
        self._on_row: dict[int, list[int]] = {}
        """The requested amounts of each node, as last read."""
        self._requested: list[int] = []
        self._allocatable: tuple[int, list[int]] = (-1, [])
        """The allocatable amounts of all nodes, and the `node_set_version` for which they hold."""
        self._shares: list[float] = []
        self._share_seconds: list[float] = []
        self._most: list[float] = []
        self._is_offered: list[bool] = []
        """Whether nodes offered the resource at any time."""
        self._seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count a period in which the cluster stays as it is now."""
        self._catch_up()
        self._seconds += seconds
        self._share_seconds = [
            before + share * seconds for before, share in zip(self._share_seconds, self._shares, strict=True)
        ]

    def _catch_up(self) -> None:
        cluster, rows = self._cluster, self._changed.take(self._cluster)
        if not rows:
            return
        if self._allocatable[0] != cluster.node_set_version:
            self._add_up_nodes()
        table, total, on_row = cluster.columns.requested, self._requested, self._on_row
        _extend(total, len(table), 0)
        for row in rows:
            now, before = table[:, row].tolist(), on_row.setdefault(row, [])
            if now != before:
                _extend(before, len(now), 0)
                total = [amount + new - old for amount, new, old in zip(total, now, before, strict=True)]
                on_row[row] = now
        self._requested = total
        self._set_shares()
        self._most = [most if most > share else share for most, share in zip(self._most, self._shares, strict=True)]

    def _set_shares(self) -> None:
        self._shares = [
            requested / offered if offered > 0 else 0.0
            for requested, offered in zip(self._requested, self._allocatable[1], strict=False)
        ]

    def _add_up_nodes(self) -> None:
        """Read what all nodes offer."""
        offered = self._cluster.columns.allocatable.sum(axis=1).tolist()
        self._allocatable = self._cluster.node_set_version, offered
        for numbers in (self._share_seconds, self._most):
            _extend(numbers, len(offered), 0.0)
        _extend(self._requested, len(offered), 0)
        _extend(self._is_offered, len(offered), False)
        self._is_offered = [was or amount > 0 for was, amount in zip(self._is_offered, offered, strict=True)]

    def result(self) -> dict[str, Utilisation]:
        """The utilisation of each resource that nodes offered; if no time passed, as it is now."""
        sums = self.save()
        now = dict(zip(self._cluster.columns.resources.values, self._shares, strict=False))
        means = {name: sums.share_seconds[name] / sums.seconds for name in sums.most} if sums.seconds else now
        return {name: Utilisation(means[name], sums.most[name]) for name in _in_order({*sums.most})}

    def save(self) -> UtilisationSums:
        self._catch_up()
        names = self._cluster.columns.resources.values
        offered = [
            (name, code) for code, (name, is_it) in enumerate(zip(names, self._is_offered, strict=False)) if is_it
        ]
        sums, most = self._share_seconds, self._most
        return UtilisationSums(
            self._seconds, {name: sums[code] for name, code in offered}, {name: most[code] for name, code in offered}
        )

    def restore(self, saved: UtilisationSums) -> None:
        # No node may offer some of the resources now.
        codes = {name: self._cluster.columns.resource(name) for name in saved.share_seconds}
        self._catch_up()
        self._add_up_nodes()
        self._set_shares()
        self._seconds = saved.seconds
        for name, code in codes.items():
            self._share_seconds[code], self._most[code] = saved.share_seconds[name], saved.most[name]
            self._is_offered[code] = True


def _extend(numbers: list[T], length: int, value: T) -> None:
    numbers.extend([value] * (length - len(numbers)))


class History:
    """The log, the lives of pods, and samples of the cluster. Times are in seconds."""

    def __init__(self, loop: SchedulerLoop, sample_every: float) -> None:
        self._loop, self._sample_every = loop, sample_every
        self.log: list[EventRecord] = []
        self.lives: list[Life] = []
        self.current: dict[str, Life] = {}
        """The lives of the pods that exist now, by namespace/name."""
        self.samples: list[Sample] = []
        self.utilisation = UtilisationMeter(loop.cluster)
        self.last_messages: dict[str, str] = {}
        self.running = 0
        self.last_change = 0.0
        """When something last happened."""
        self.failed_plugins: dict[str, str] = {}
        """By plugin that failed on pods, the first pod and the error."""
        self._in_vain: dict[str, list[str]] = {}

    def in_vain(self, where: str, what: str, why: str) -> None:
        """Record a warning: an event, or a part of it, has no effect. Events with the same reason share one line."""
        self._in_vain.setdefault(why, []).append(f"{where}: {what}" if where else what)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings: the first event of each sort, and how many more there are."""
        found = ((why, first, len(rest)) for why, (first, *rest) in self._in_vain.items())
        return tuple(f"{first} {why}" + (f"; {more:,} more like it" if more else "") for why, first, more in found)

    def note(self, time: float, event: str, **what: Any) -> None:
        """Add a record of a change to the log."""
        self.remark(time, event, **what)
        self.last_change = time

    def remark(self, time: float, event: str, **what: Any) -> None:
        """Add a record to the log that does not count as a change: it may repeat while nothing else happens."""
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
        """Log a failed attempt to place a pod, unless its message is the same as last time."""
        if self.last_messages.get(pod) != message:
            self.last_messages[pod] = message
            self.note(now, "unschedulable", pod=pod, message=message)

    def failed(self, pod: str, message: str, plugin: str) -> None:
        """Record a warning: an error in a plugin, or elsewhere if `plugin` is empty, kept a pod from being placed."""
        if self.last_messages.get(pod) != message:
            self.in_vain("", f"Pod {pod}", f"waits because of an error: {message}")
            if plugin:
                self.failed_plugins.setdefault(plugin, f"pod {pod}: {message}")

    # -- samples -----------------------------------------------------------------------------------------------------

    def sample_between(self, since: float, until: float, *, with_end: bool = False) -> None:
        """Take the samples of a period in which nothing happens, from `since` to `until`; including `until` if
        `with_end`. The period also counts for the utilisation.

        A sample equal to the one before is kept only if it is the last before a change, so that a line drawn through
        the samples is right.
        """
        if until > since:
            self.utilisation.add(until - since)
        number = ceil(since / self._sample_every)
        if self.samples:
            number = max(number, self._number(self.samples[-1]) + 1)
        at = number * self._sample_every
        if at > until or (at == until and not with_end):
            return
        sample = self._sample(round_time(at))
        if self.samples:
            last = self.samples[-1]
            if replace(sample, time=last.time) == last:
                return
            if self._number(last) + 1 < number:
                self.samples.append(replace(last, time=round_time((number - 1) * self._sample_every)))
        self.samples.append(sample)

    def _number(self, sample: Sample) -> int:
        """The index of a sample among all that are due; the first is 0."""
        return round(sample.time / self._sample_every)

    def _sample(self, time: float) -> Sample:
        queue, cluster = self._loop.queue, self._loop.cluster
        columns = cluster.columns
        alive = columns.alive[: columns.size]
        resources = columns.resources.values
        gated = queue.unschedulable.gated_count

        def total(table: Any) -> dict[str, int]:
            sums = table[:, : columns.size][:, alive].sum(axis=1).tolist()
            return {name: amount for name, amount in zip(resources, sums, strict=False) if amount}

        return Sample(
            time=time,
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

    def result(self, end: float) -> TimelineResult:
        samples = tuple(self.samples)
        # The last point of a line through the samples, if nothing changed since the last one kept.
        last_due = round_time(floor(end / self._sample_every) * self._sample_every)
        if samples and samples[-1].time < last_due:
            samples += (replace(samples[-1], time=last_due),)
        lives, failed = tuple(self.lives), dict(self.failed_plugins)
        return TimelineResult(
            tuple(self.log),
            lives,
            samples,
            end,
            self.warnings,
            failed_plugins=failed,
            utilisation=self.utilisation.result(),
        )


def round_time(time: float) -> float:
    """Round a time to the microsecond; a whole number becomes an int, so that it is always written the same way."""
    rounded = round(float(time), 6)
    return int(rounded) if rounded.is_integer() else rounded
