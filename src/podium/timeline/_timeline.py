"""Simulates a cluster over time: applies events and schedules, runs and ends pods. A run can be saved and resumed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Protocol, Unpack

import msgspec

from podium.cluster import Cluster
from podium.config.fields import LONGEST
from podium.engine.scheduler import Config, SchedulerKeywords, SchedulerOptions
from podium.errors import InputError
from podium.loop.cycle import SchedulerLoop
from podium.loop.events import Bind, ChangeObject, Evict, Instruction, Nominate, SetCondition, Unschedulable, Wait
from podium.loop.queue import FLUSH_AFTER, FLUSH_EVERY, RETRY_EVERY
from podium.loop.queued_pod import MAX_PERMIT_TIMEOUT
from podium.loop.snapshot import LoopSnapshot, resume, take_snapshot
from podium.manifests import Objects
from podium.memory import collector_relaxed
from podium.model import Node, Object, PodDisruptionBudget, ResourceClaim
from podium.timeline._world import Surroundings, World
from podium.timeline.result import History, Life, Sample, TimelineResult, UtilisationSums
from podium.timeline.timed_events import (
    FIRST_MOMENT,
    AnyDue,
    ContinueDrain,
    TimedEvent,
    TimelineEvents,
    VirtualClock,
    check_events,
    read_timeline,
)
from podium.workloads import expand_workloads
from podium.workloads.controllers import SavedControllers


class Companion(Protocol):
    """Takes part in a timeline besides the scheduler and may change the cluster; the autoscaler is one."""

    def next_time(self) -> float | None:
        """The time of its next action; None if it has nothing to do until an event happens."""
        ...

    def act(self) -> bool:
        """Do what is due now; returns whether that changed the cluster."""
        ...

    def report(self) -> Mapping[str, Any]:
        """Its results until now, as plain data."""
        ...


class Timeline:
    """A simulation of a cluster, the events that change it, and the scheduler.

    The same objects, events and seed give the same history. Scheduling takes no simulated time.
    """

    def __init__(
        self,
        objects: Iterable[Object] = (),
        events: TimelineEvents | str | Iterable[Mapping[str, Any]] = TimelineEvents(()),
        config: Config | SchedulerOptions = None,
        *,
        surroundings: Surroundings | None = None,
        **keywords: Unpack[SchedulerKeywords],
    ) -> None:
        """`events` may also be the name of a file, or dicts. `keywords` are those of `Scheduler`: tie_break, seed and
        so on.
        """
        read = events if isinstance(events, TimelineEvents) else read_timeline(events)
        surroundings = surroundings or Surroundings(controllers=not read.is_record)
        given = objects if isinstance(objects, Objects) else Objects(objects)
        there = expand_workloads(given) if surroundings.controllers else given
        if not read.is_record:
            # A recording may refer to objects from before it began.
            check_events((event for event in read.events if not isinstance(event.object, Node)), there)
        cluster = Cluster.from_objects(there)
        loop = SchedulerLoop(cluster, config, **keywords)
        self._set_up(loop, read, surroundings, read.epoch or latest_moment(loop))
        self.world.settle_in()
        self._checks_nodes = not read.is_record

    def _set_up(self, loop: SchedulerLoop, events: TimelineEvents, surroundings: Surroundings, epoch: datetime) -> None:
        self.loop, self.clock = loop, VirtualClock(epoch=epoch)
        loop.extenders_bind = surroundings.extenders_bind
        loop.queue.try_groups()
        self.surroundings = surroundings
        self.history = History(loop, surroundings.sample_every)
        self.world = World(loop, self.history, surroundings, self.clock)
        self.events = events
        self.next_event = 0
        """The number of events that have happened; the index of the next one."""
        self._companion: Companion | None = None
        self._checks_nodes = False
        """Whether events about nodes are still to be checked: a companion that joins may bring nodes."""
        # Seconds in which every waiting pod is tried once more.
        self.keeps_trying = FLUSH_AFTER + 2 * FLUSH_EVERY + loop.scheduler.config.pod_max_backoff_seconds

    @classmethod
    def around(
        cls, loop: SchedulerLoop, events: TimelineEvents, surroundings: Surroundings, epoch: datetime
    ) -> Timeline:
        """Make a simulation from a loop that has its cluster already."""
        timeline = cls.__new__(cls)
        timeline._set_up(loop, events, surroundings, epoch)
        return timeline

    @classmethod
    def of_cluster(
        cls, loop: SchedulerLoop, events: Iterable[TimedEvent] = (), surroundings: Surroundings | None = None
    ) -> Timeline:
        """A simulation of a cluster that has the pods of its workloads already.

        By default, pods run until something removes them, keep their names when they are created again, and no samples
        are taken.
        """
        surroundings = surroundings or Surroundings(sample_every=LONGEST, pods_stay=True, names_stay=True)
        timeline = cls.around(loop, TimelineEvents(tuple(events)), surroundings, latest_moment(loop))
        timeline.world.settle_in()
        return timeline

    def join(self, companion: Companion) -> None:
        """Add the companion, an autoscaler; it takes part from now on."""
        self._companion = companion

    @property
    def now(self) -> float:
        """The simulated time, in seconds since the beginning."""
        return self.clock.now

    def run(self, until: float | None = None) -> TimelineResult:
        """Simulate until a time, in seconds, or until nothing more happens; returns everything that has happened so
        far.

        Nothing more happens once there are no events left and the waiting pods were tried again, minutes later, without
        success. A timeline that was run until some time can be run further.
        """
        self.check_nodes()
        with collector_relaxed():
            while (at := self._next_time(until)) is not None and (until is None or at <= until):
                self.history.sample_between(self.clock.now, at)
                self._set_time(at)
                self._live_through_this_moment()
        end = self.clock.now if until is None else max(self.clock.now, until)
        self.history.sample_between(self.clock.now, end, with_end=True)
        self._set_time(end)
        scaling = None if self._companion is None else self._companion.report()
        drains = self.world.unfinished_drains()
        return replace(self.history.result(self.clock.now), scaling=scaling, unfinished_drains=drains)

    def check_nodes(self) -> None:
        """Refuse events about nodes that neither exist nor may come, before anything happens."""
        if self._checks_nodes:
            self._checks_nodes = False
            cluster = self.loop.cluster
            about_nodes = [event for event in self.events.events if isinstance(event.object, Node)]
            check_events(about_nodes, map(cluster.node, cluster.rows), self.world.may_come)

    def _set_time(self, now: float) -> None:
        self.clock.now = now
        self.loop.cluster.moment = self.clock.epoch.timestamp() + now

    def close(self) -> None:
        """Close connections to extenders, and let go of the companion, which refers to this timeline."""
        self.loop.close()
        self._companion = None

    def _next_time(self, until: float | None) -> float | None:
        """The time of the next event, action or retry; None at the end. Retries alone end some minutes after the last
        change.
        """
        coming, planned = self._coming(), self.clock.next_time()
        certain = [] if coming is None else [coming.time]
        scaling = None if self._companion is None else self._companion.next_time()
        if scaling is not None:
            certain.append(scaling)
        retries = [self.loop.next_wake_up()]
        if self.clock.has_only(ContinueDrain):
            retries.append(planned)
        elif planned is not None:
            certain.append(planned)
        if self.loop.queue.has_next:
            certain.append(self.clock.now)
        limit = self.history.last_change + self.keeps_trying + (MAX_PERMIT_TIMEOUT if len(self.loop.waiting) else 0.0)
        gap_ends = min((*certain, *([] if until is None else [until])), default=0.0)
        if certain and self._companion is None and gap_ends - self.clock.now > 2 * RETRY_EVERY:
            self.loop.count_vain_retries(gap_ends)
            retries[0] = self.loop.next_wake_up()
        times = [time for time in retries if time is not None and (certain or time <= limit)]
        return max(min((*certain, *times)), self.clock.now) if certain or times else None

    def _coming(self) -> TimedEvent | None:
        return self.events.events[self.next_event] if self.next_event < len(self.events.events) else None

    def _live_through_this_moment(self) -> None:
        """Carry out what was planned for now, then the events of now, then scheduling, until there is nothing left to
        do now.
        """
        while True:
            while (due := self.clock.take_due()) is not None:
                self.world.happen(due)
            while (event := self._coming()) is not None and event.time <= self.clock.now:
                self.next_event += 1
                self.world.apply(event)
            self.world.refresh_budgets()
            if not self.loop.has_work(self.clock.now):
                if self._companion is None or not self._companion.act():
                    return
                continue
            for instruction in self.loop.run_one(self.clock.now):
                self._carry_out(instruction)

    def _carry_out(self, instruction: Instruction) -> None:
        match instruction:
            # First, because on a full cluster nearly all instructions are of this kind.
            case Unschedulable(pod, message, _, is_error, plugin):
                if is_error:
                    self.history.failed(pod.key, message, plugin)
                self.history.unschedulable(pod.key, message, self.clock.now)
            case Bind(pod, node, attempts):
                self.world.bind(pod, node, attempts)
            case ChangeObject(pod, before, after):
                self.world.change(pod, before, after)
            case Evict(pod, by, node):
                self.world.preempt(pod, by, node)
            case Nominate(pod, node):
                self.world.nominate(pod, node)
            case SetCondition(_, group, condition):
                self.world.set_condition(group, condition)
            case Wait(pod, node, plugins, _):
                self.history.remark(self.clock.now, "wait", pod=pod.key, node=node, plugins=plugins)


def latest_moment(loop: SchedulerLoop) -> datetime:
    """The calendar time at which a simulation starts if its events have no dates.

    It is the latest time in the objects at the beginning: when a pod was created or started, or a claim allocated.
    """
    latest = FIRST_MOMENT
    for pod in loop.pods.values():
        started = _moment(f"pod {pod.key}: status.startTime", pod.status.start_time)
        latest = max(
            latest, started, _moment(f"pod {pod.key}: metadata.creationTimestamp", pod.metadata.creation_timestamp)
        )
    for claim in loop.cluster.store.of(ResourceClaim):
        if claim.status.allocation is not None:
            field = f"resource claim {claim.key}: status.allocation.allocationTimestamp"
            latest = max(latest, _moment(field, claim.status.allocation.allocation_timestamp))
    return latest


def _moment(field: str, time: str | None) -> datetime:
    try:
        moment = datetime.fromisoformat(time) if time else FIRST_MOMENT
    except ValueError:
        raise InputError(f"{field} {time!r} is not a time; write it like 2026-01-31T09:30:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class TimelineSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The saved state of a simulation, without its log; a resumed simulation logs only what happens from then on."""

    loop: LoopSnapshot
    now: float
    epoch: datetime
    surroundings: Surroundings
    events: str
    """A digest of the events, to refuse other events when it is resumed."""
    next_event: int
    planned: int
    dues: list[tuple[float, int, AnyDue]]
    lives: list[Life]
    samples: list[Sample]
    last_messages: dict[str, str]
    last_change: float
    held: dict[str, int]
    leaving: dict[str, float]
    draining: dict[str, list[int]]
    controllers: SavedControllers
    utilisation: UtilisationSums = UtilisationSums(0.0, {}, {})


_DECODER = msgspec.json.Decoder(TimelineSnapshot)


def save_timeline(timeline: Timeline) -> bytes:
    """Save a simulation as JSON, for `resume_timeline`."""
    timeline.check_nodes()
    world, history = timeline.world, timeline.history
    snapshot = TimelineSnapshot(
        loop=take_snapshot(timeline.loop),
        now=timeline.now,
        epoch=timeline.clock.epoch,
        surroundings=timeline.surroundings,
        events=events_digest(timeline.events),
        next_event=timeline.next_event,
        planned=timeline.clock.planned,
        dues=timeline.clock.save(),
        lives=history.lives,
        samples=history.samples,
        last_messages=history.last_messages,
        last_change=history.last_change,
        held=world.held,
        leaving=world.leaving,
        draining=world.draining,
        controllers=world.controllers.save(),
        utilisation=history.utilisation.save(),
    )
    return msgspec.json.encode(snapshot)


def resume_timeline(
    data: bytes,
    events: TimelineEvents | str | Iterable[Mapping[str, Any]],
    config: Config | SchedulerOptions = None,
    *,
    where: str = "snapshot",
    **keywords: Unpack[SchedulerKeywords],
) -> Timeline:
    """Resume a saved simulation. The events and the configuration must be the same as before."""
    try:
        snapshot = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"is not a snapshot of a simulation: {error}", where) from None
    read = events if isinstance(events, TimelineEvents) else read_timeline(events)
    if events_digest(read) != snapshot.events:
        raise InputError("was taken with other events; give the same file", where)
    try:
        return _resumed(snapshot, read, config, **keywords)
    except InputError as error:
        raise error.at(where) from None
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"is damaged, as it does not agree with itself: {error!r}; take a new one", where) from None


def _resumed(
    snapshot: TimelineSnapshot,
    read: TimelineEvents,
    config: Config | SchedulerOptions,
    **keywords: Unpack[SchedulerKeywords],
) -> Timeline:
    loop = resume(snapshot.loop, config, **keywords)
    timeline = Timeline.around(loop, read, snapshot.surroundings, snapshot.epoch)
    timeline.next_event = snapshot.next_event
    timeline.clock.now = snapshot.now
    timeline.clock.restore(snapshot.dues, snapshot.planned)
    _restore_history(timeline, snapshot)
    world = timeline.world
    world.held, world.leaving, world.draining = snapshot.held, snapshot.leaving, snapshot.draining
    world.controllers.restore(snapshot.controllers)
    world.watch(*loop.cluster.store.of(PodDisruptionBudget))
    return timeline


def _restore_history(timeline: Timeline, snapshot: TimelineSnapshot) -> None:
    history = timeline.history
    history.lives, history.samples = snapshot.lives, snapshot.samples
    history.last_messages, history.last_change = snapshot.last_messages, snapshot.last_change
    history.utilisation.restore(snapshot.utilisation)
    history.current = {life.pod: life for life in snapshot.lives if life.ended is None}
    history.running = sum(life.bound is not None for life in history.current.values())


def events_digest(events: TimelineEvents) -> str:
    """A digest of the events: it differs for other events."""
    digest = hashlib.blake2b(digest_size=16)
    for event in events.events:
        digest.update(f"{event.time} {event.verb} {type(event.object).__name__} {event.object.key}\n".encode())
    return digest.hexdigest()
