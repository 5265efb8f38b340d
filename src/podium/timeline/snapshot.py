"""A simulation at one moment, as data, to go on from there later."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Unpack

import msgspec

from podium.engine.options import Config, SchedulerKeywords, SchedulerOptions
from podium.errors import InputError
from podium.loop.snapshot import LoopSnapshot, resume, take_snapshot
from podium.model import PodDisruptionBudget
from podium.timeline import controllers
from podium.timeline.clock import AnyDue
from podium.timeline.events import TimelineEvents, read_timeline
from podium.timeline.result import Life, Sample
from podium.timeline.timeline import Timeline
from podium.timeline.world import Surroundings


class TimelineSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a simulation. The log up to now is not part of it: the rest of the log goes on where it ended."""

    loop: LoopSnapshot
    now: float
    epoch: datetime
    surroundings: Surroundings
    events: str
    """A digest of the events, to notice that others are used to go on."""
    next_event: int
    planned: int
    dues: list[tuple[float, int, AnyDue]]
    lives: list[Life]
    samples: list[Sample]
    last_messages: dict[str, str]
    last_change: float
    held: dict[str, int]
    leaving: dict[str, float]
    draining: list[str]
    controllers: controllers.Saved


_DECODER = msgspec.json.Decoder(TimelineSnapshot)


def save_timeline(timeline: Timeline) -> bytes:
    """The simulation as JSON."""
    world, history = timeline.world, timeline.history
    snapshot = TimelineSnapshot(
        loop=take_snapshot(timeline.loop),
        now=timeline.now,
        epoch=timeline.epoch,
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
        draining=sorted(world.draining),
        controllers=world.controllers.save(),
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
    """A simulation that goes on where one was saved; events and configuration must be those of the first part."""
    try:
        snapshot = _DECODER.decode(data)
    except msgspec.DecodeError as error:
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
    world.held, world.leaving, world.draining = snapshot.held, snapshot.leaving, set(snapshot.draining)
    world.controllers.restore(snapshot.controllers)
    for budget in loop.cluster.store.of(PodDisruptionBudget):
        world.watch(budget)
    return timeline


def _restore_history(timeline: Timeline, snapshot: TimelineSnapshot) -> None:
    history = timeline.history
    history.lives, history.samples = snapshot.lives, snapshot.samples
    history.last_messages, history.last_change = snapshot.last_messages, snapshot.last_change
    history.current = {life.pod: life for life in snapshot.lives if life.ended is None}
    history.running = sum(life.bound is not None for life in history.current.values())


def events_digest(events: TimelineEvents) -> str:
    """Another text for other events."""
    digest = hashlib.blake2b(digest_size=16)
    for event in events.events:
        digest.update(f"{event.time} {event.verb} {type(event.object).__name__} {event.object.key}\n".encode())
    return digest.hexdigest()
