"""The events of a timeline, read from JSON lines (docs/timeline.md), and the virtual clock that orders them."""

from __future__ import annotations

import heapq
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import msgspec

from podium.config.fields import LONGEST, seconds_of
from podium.errors import InputError
from podium.manifests.checks import check
from podium.manifests.decode import decode, entries, full_name, type_of
from podium.manifests.defaults import default_object
from podium.manifests.files import Document, read_bytes
from podium.model import Node, Object, Pod, ReplicaSet
from podium.model.objects import WORKLOADS

STDIN = "-"
STDIN_NAME = "stdin"
FIRST_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)
LIFETIME = "podium/lifetime"
"""The annotation of a pod that sets how long it runs."""


class Verb(StrEnum):
    """What happens to an object; the verbs after `delete` apply to nodes only."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"
    FAIL = "fail"
    CORDON = "cordon"
    UNCORDON = "uncordon"
    DRAIN = "drain"


NODE_VERBS = frozenset((Verb.FAIL, Verb.CORDON, Verb.UNCORDON, Verb.DRAIN))


class TimedEvent(NamedTuple):
    """Something happens to an object, `time` seconds after the beginning. A pod runs for `lifetime` seconds."""

    time: float
    verb: Verb
    object: Object
    lifetime: float | None = None
    where: str = ""
    """The file and the line of the event."""
    says_lifetime: bool = False
    """Whether the lifetime is given by the event and not by the pod's annotation."""


class TimelineEvents(NamedTuple):
    """Events in the order of their time."""

    events: tuple[TimedEvent, ...]
    epoch: datetime | None = None
    """The calendar time of second 0, if the events have dates."""
    is_record: bool = False
    """Whether kube-scheduler-simulator recorded them; they then include what controllers did."""
    ignored: Mapping[str, int] = MappingProxyType({})
    """By kind that scheduling does not read, the number of ignored events."""


NOTHING = msgspec.Raw(b"")


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    time: float | str
    event: str
    object: msgspec.Raw = NOTHING
    resource: msgspec.Raw = NOTHING
    lifetime: float | str | None = None


_LINES = msgspec.json.Decoder(_Line)
_FIELDS = ("time", "event", "object", "lifetime")
_UNKNOWN_FIELD = re.compile("unknown field `(.*)`")


class _Raw(NamedTuple):
    """An event whose time is not yet relative to the beginning."""

    where: str
    time: float | datetime
    verb: Verb
    object: Object
    lifetime: float | None
    says_lifetime: bool


def read_timeline(source: str | Iterable[Mapping[str, Any]]) -> TimelineEvents:
    """Read events from a file of JSON lines, plain or gzip, from stdin (`-`), or from dicts.

    Raises an InputError that names the line that is wrong.
    """
    found: list[_Raw] = []
    ignored: Counter[str] = Counter()
    is_record: bool | None = None
    for where, line in _lines(source):
        raw = _decoded(line, where)
        event = _event(raw, where)
        if is_record is (not _is_there(raw.resource)):
            raise InputError("some lines have a `resource`, others an `object`; use one of the two", where)
        is_record = _is_there(raw.resource)
        if isinstance(event, str):
            ignored[event] += 1
        else:
            found.append(event)
    # A file without events is a timeline in which nothing happens; without any input, something went wrong before.
    if not found and (ignored or not isinstance(source, str) or not os.path.isfile(source)):
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(ignored.items()))
        about = f"no events about objects that scheduling reads, only {kinds}" if kinds else "no events in it"
        raise InputError(about, _name(source) if isinstance(source, str) else "input")
    epoch = _epoch(found)
    events = [
        TimedEvent(_seconds(raw, epoch), raw.verb, raw.object, raw.lifetime, raw.where, raw.says_lifetime)
        for raw in found
    ]
    events.sort(key=lambda event: event.time)
    return TimelineEvents(tuple(events), epoch, bool(is_record), ignored)


def _name(source: str) -> str:
    return STDIN_NAME if source == STDIN else source


def _lines(source: str | Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, bytes]]:
    if not isinstance(source, str):
        for number, value in enumerate(source, 1):
            yield f"event {number}", msgspec.json.encode(value)
        return
    name = _name(source)
    for number, line in enumerate(read_bytes(source).split(b"\n"), 1):
        if line.strip():
            yield f"{name} line {number}", line


def _decoded(line: bytes, where: str) -> _Line:
    try:
        return _LINES.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        unknown = _UNKNOWN_FIELD.search(str(error))
        if unknown:
            raise InputError(f"unknown field {unknown[1]!r}; an event has {', '.join(_FIELDS)}", where) from None
        raise InputError(
            f'is not an event such as {{"time": 1, "event": "add", "object": {{}}}}: {error}', where
        ) from None


def _event(line: _Line, where: str) -> _Raw | str:
    """The event of a line; or only the kind of its object if scheduling does not read that kind."""
    if _is_there(line.object) == _is_there(line.resource):
        raise InputError("needs an `object`, or a `resource` as kube-scheduler-simulator records it", where)
    try:
        verb = Verb(line.event.lower())
    except ValueError:
        raise InputError(f"event {line.event!r} is unknown; use {', '.join(Verb)}", where) from None
    item = _object(line.object if _is_there(line.object) else line.resource, where)
    if isinstance(item, str):
        return item
    if verb in NODE_VERBS and not isinstance(item, Node):
        raise InputError(f"only a Node can {verb}, not a {type(item).__name__}", where)
    lifetime = _lifetime(line, verb, item, where)
    return _Raw(where, _time(line.time, where), verb, item, lifetime, line.lifetime is not None)


def _is_there(raw: msgspec.Raw) -> bool:
    return bytes(raw) not in (b"", b"null")


def _object(raw: msgspec.Raw, where: str) -> Object | str:
    """The object, or its kind if scheduling does not read that."""
    found = list(entries(Document(where, where, raw)))
    if len(found) != 1:
        raise InputError(f"needs one object, has {len(found)}", where)
    kind = type_of(found[0].kind, found[0].api_version)
    if kind is None:
        return found[0].kind
    item = decode(found[0], kind)
    if not item.metadata.name:
        raise InputError(f"{found[0].kind} has no metadata.name; give it one", where)
    try:
        check(item)
    except InputError as error:
        raise error.at(f"{where}: {full_name(found[0].kind, item.namespace, item.name)}") from None
    return default_object(item)


def _time(time: float | str, where: str) -> float | datetime:
    if isinstance(time, str):
        try:
            moment = datetime.fromisoformat(time)
        except ValueError:
            raise InputError(f"time {time!r} is neither seconds nor like 2026-01-31T09:30:00Z", where) from None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if not 0 <= time <= LONGEST:
        raise InputError(f"time {time} is not a number of seconds from 0 on, up to ten years", where)
    return float(time)


def _lifetime(line: _Line, verb: Verb, item: Object, where: str) -> float | None:
    given = line.lifetime
    if given is not None and not isinstance(item, Pod):
        raise InputError(
            f"lifetime is that of a Pod, not of a {type(item).__name__}; "
            f"pods of a workload get theirs from annotation {LIFETIME} in its template",
            where,
        )
    if given is not None and verb is Verb.DELETE:
        raise InputError("lifetime has no use when a Pod is deleted; say it where the Pod is added", where)
    if given is None and isinstance(item, Pod):
        return lifetime_of(item, where)
    return None if given is None else _duration(given, "lifetime", where)


def lifetime_of(pod: Pod, where: str = "") -> float | None:
    """The lifetime in a pod's annotation, in seconds; None if it has none."""
    text = pod.metadata.annotations.get(LIFETIME)
    return None if text is None else _duration(text, f"annotation {LIFETIME}", where or f"pod {pod.key}")


def _duration(given: float | str, what: str, where: str) -> float:
    try:
        return seconds_of(given)
    except ValueError as error:
        raise InputError(f"{what} {given!r} {error}", where) from None


def _epoch(found: list[_Raw]) -> datetime | None:
    moments = [raw.time for raw in found if isinstance(raw.time, datetime)]
    if moments and len(moments) < len(found):
        raise InputError("some times are seconds, others dates; use one of the two", found[0].where)
    return min(moments, default=None)


def _seconds(raw: _Raw, epoch: datetime | None) -> float:
    if isinstance(raw.time, datetime):
        assert epoch is not None
        return (raw.time - epoch).total_seconds()
    return raw.time


COMES = (Verb.ADD, Verb.UPDATE)


def check_events(
    events: Iterable[TimedEvent], objects: Iterable[Object], may_come: Callable[[str], bool] = lambda name: False
) -> None:
    """Raise an InputError for the first event that deletes or changes an object that never existed.

    `objects` exist at the beginning. An object that is gone by then is no error, nor one that a workload may have
    created, nor a node whose name `may_come` accepts.
    """
    there: set[tuple[type[Object], str]] = set()
    made_by: list[str] = []
    coming: dict[tuple[type[Object], str], float] | None = None

    def comes(item: Object) -> None:
        there.add((type(item), item.key))
        if isinstance(item, WORKLOADS):
            made_by.append(f"{item.key}-")

    for item in objects:
        comes(item)
    events = tuple(events)
    for event in events:
        item = event.object
        identity = type(item), item.key
        if event.verb in COMES:
            comes(item)
        elif identity in there or (isinstance(item, Node) and may_come(item.name)):
            continue
        elif not (isinstance(item, Pod | ReplicaSet) and item.key.startswith(tuple(made_by))):
            if coming is None:
                coming = {(type(one.object), one.object.key): one.time for one in reversed(events) if one.verb in COMES}
            raise InputError(_problem(event, coming.get(identity)), event.where)


def _problem(event: TimedEvent, comes_at: float | None) -> str:
    item = event.object
    name = full_name(type(item).__name__, item.namespace, item.name)
    if comes_at is not None:
        return f"{event.verb} at {event.time:g}s of {name}, which comes at {comes_at:g}s: change one of the times"
    return f"{event.verb} of {name}, which is neither in the cluster nor added before: check its name, or add it"


class Due(msgspec.Struct, frozen=True, tag=True):
    """Something planned for a time."""


class Finish(Due, frozen=True):
    """The lifetime of a pod is over; ignored if the pod of that name has another serial number by then."""

    pod: str
    serial: int


class Terminate(Due, frozen=True):
    """A terminating pod is gone."""

    pod: str
    serial: int


class Lose(Due, frozen=True):
    """A pod is evicted because it no longer tolerates its node's taints."""

    pod: str
    serial: int


class Create(Due, frozen=True):
    """A controller creates a pod."""

    pod: Pod
    lifetime: float | None
    replaces: str


class ContinueDrain(Due, frozen=True):
    """Evict what is left on a node that is being drained, as far as budgets allow."""

    node: str


AnyDue = Finish | Terminate | Lose | Create | ContinueDrain


class ClockEntry(msgspec.Struct, frozen=True, order=True, array_like=True):
    """Something due at a time; of several due at the same time, the one planned first comes first."""

    time: float
    number: int


D = TypeVar("D", bound=Due)


class VirtualClock:
    """The simulated time, in seconds since `epoch`, and what is planned."""

    def __init__(self, now: float = 0.0, epoch: datetime = FIRST_MOMENT) -> None:
        self.now, self.epoch = now, epoch
        self._moment = (-1, "")
        self._planned = 0
        self._heap: list[ClockEntry] = []
        self._dues: dict[int, AnyDue] = {}

    @property
    def moment(self) -> str:
        """The simulated time on the calendar, to the second."""
        second = int(self.now)
        if self._moment[0] != second:
            self._moment = second, (self.epoch + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ")
        return self._moment[1]

    @property
    def timestamp(self) -> float:
        """The simulated time in seconds since 1970."""
        return self.epoch.timestamp() + self.now

    def plan(self, after: float, due: AnyDue) -> None:
        """Plan something `after` seconds from now."""
        self._planned += 1
        self._dues[self._planned] = due
        heapq.heappush(self._heap, ClockEntry(self.now + after, self._planned))

    def next_time(self) -> float | None:
        return self._heap[0].time if self._heap else None

    def has_only(self, kind: type[Due]) -> bool:
        """Whether everything planned is of one kind; True if nothing is planned."""
        return all(isinstance(due, kind) for due in self._dues.values())

    def pending(self, kind: type[D]) -> Iterator[D]:
        """Everything of one kind that is planned."""
        return (due for due in self._dues.values() if isinstance(due, kind))

    def take_due(self) -> AnyDue | None:
        """Take out the next thing that is due by now; None if nothing is."""
        if not self._heap or self._heap[0].time > self.now:
            return None
        return self._dues.pop(heapq.heappop(self._heap).number)

    def save(self) -> list[tuple[float, int, AnyDue]]:
        """Everything that is planned, for `restore`."""
        return [(entry.time, entry.number, self._dues[entry.number]) for entry in sorted(self._heap)]

    def restore(self, saved: list[tuple[float, int, AnyDue]], planned: int) -> None:
        self._planned = planned
        self._heap = [ClockEntry(time, number) for time, number, _ in saved]
        self._dues = {number: due for _, number, due in saved}

    @property
    def planned(self) -> int:
        """How many things were planned so far."""
        return self._planned
