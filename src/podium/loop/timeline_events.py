"""What happens to a simulated cluster and when, as JSON lines. The format is described in docs/timeline.md."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from podium.config.durations import SECOND, parse_duration
from podium.errors import InputError
from podium.load.checks import check
from podium.load.decode import decode, entries
from podium.load.defaults import default_object
from podium.load.kinds import full_name, type_of
from podium.load.read import Document
from podium.objects import Node, Object, Pod

STDIN = "-"
LIFETIME = "podium/lifetime"
LONGEST = 10 * 366 * 86_400
"""The last second there can be: samples are taken all the time until then."""
"""The annotation that says how long a pod runs."""

_GZIP_MAGIC = b"\x1f\x8b"


class Verb(StrEnum):
    """What happens to an object. Those after `delete` happen to nodes."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"
    FAIL = "fail"
    CORDON = "cordon"
    UNCORDON = "uncordon"
    DRAIN = "drain"


NODE_VERBS = frozenset((Verb.FAIL, Verb.CORDON, Verb.UNCORDON, Verb.DRAIN))


class TimedEvent(NamedTuple):
    """Something happens to an object, `time` seconds after the beginning; `lifetime` is that of a pod, in seconds."""

    time: float
    verb: Verb
    object: Object
    lifetime: float | None = None


class TimelineEvents(NamedTuple):
    """Events in the order of their time."""

    events: tuple[TimedEvent, ...]
    epoch: datetime | None = None
    """What second 0 is on the calendar, where the events say so."""
    is_record: bool = False
    """Whether kube-scheduler-simulator recorded them: then they say themselves what controllers did."""


NOTHING = msgspec.Raw(b"")


class _Line(msgspec.Struct, frozen=True):
    time: float | str
    event: str
    object: msgspec.Raw = NOTHING
    resource: msgspec.Raw = NOTHING
    lifetime: float | str | None = None


_LINES = msgspec.json.Decoder(_Line)


class _Raw(NamedTuple):
    """An event before its time is counted from the beginning."""

    where: str
    time: float | datetime
    verb: Verb
    object: Object
    lifetime: float | None


def read_timeline(source: str | Iterable[Mapping[str, Any]]) -> TimelineEvents:
    """The events of a file of JSON lines, plain or gzip, of stdin (`-`), or of dicts.

    InputError, one line, that names the line for anything that cannot be used.
    """
    found: list[_Raw] = []
    records = 0
    for where, line in _lines(source):
        raw = _decoded(line, where)
        records += _is_there(raw.resource)
        event = _event(raw, where)
        if event is not None:
            found.append(event)
    if not found:
        raise InputError("no events in it", source if isinstance(source, str) else "input")
    if 0 < records < len(found):
        raise InputError("some lines have a `resource`, others an `object`; use one of the two", found[0].where)
    epoch = _epoch(found)
    events = [TimedEvent(_seconds(raw, epoch), *raw[2:]) for raw in found]
    events.sort(key=lambda event: event.time)
    return TimelineEvents(tuple(events), epoch, records > 0)


def _lines(source: str | Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, bytes]]:
    if not isinstance(source, str):
        for number, value in enumerate(source, 1):
            yield f"event {number}", msgspec.json.encode(value)
        return
    name = "stdin" if source == STDIN else source
    for number, line in enumerate(_bytes(source, name).split(b"\n"), 1):
        if line.strip():
            yield f"{name} line {number}", line


def _bytes(source: str, name: str) -> bytes:
    try:
        if source == STDIN:
            data = sys.stdin.buffer.read()
        else:
            with open(source, "rb") as file:
                data = file.read()
        return gzip.decompress(data) if data[:2] == _GZIP_MAGIC else data
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"cannot be unpacked as gzip: {error}", name) from None
    except OSError as error:
        raise InputError((error.strerror or str(error)).lower(), name) from None


def _decoded(line: bytes, where: str) -> _Line:
    try:
        return _LINES.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f'is not an event such as {{"time": 1, "event": "add", "object": {{}}}}: {error}', where
        ) from None


def _event(line: _Line, where: str) -> _Raw | None:
    """The event of a line; None if it is about an object that scheduling does not read."""
    if _is_there(line.object) == _is_there(line.resource):
        raise InputError("needs an `object`, or a `resource` as kube-scheduler-simulator records it", where)
    try:
        verb = Verb(line.event.lower())
    except ValueError:
        raise InputError(f"event {line.event!r} is unknown; use {', '.join(Verb)}", where) from None
    item = _object(line.object if _is_there(line.object) else line.resource, where)
    if item is None:
        return None
    if verb in NODE_VERBS and not isinstance(item, Node):
        raise InputError(f"only a Node can {verb}, not a {type(item).__name__}", where)
    return _Raw(where, _time(line.time, where), verb, item, _lifetime(line, item, where))


def _is_there(raw: msgspec.Raw) -> bool:
    return bytes(raw) not in (b"", b"null")


def _object(raw: msgspec.Raw, where: str) -> Object | None:
    found = list(entries(Document(where, where, raw)))
    if len(found) != 1:
        raise InputError(f"needs one object, has {len(found)}", where)
    kind = type_of(found[0].kind, found[0].api_version)
    if kind is None:
        return None
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


def _lifetime(line: _Line, item: Object, where: str) -> float | None:
    given = line.lifetime
    if given is None and isinstance(item, Pod):
        return lifetime_of(item, where)
    return None if given is None else _duration(given, "lifetime", where)


def lifetime_of(pod: Pod, where: str = "") -> float | None:
    """How long a pod says it runs, in seconds; None for one that does not."""
    text = pod.metadata.annotations.get(LIFETIME)
    return None if text is None else _duration(text, f"annotation {LIFETIME}", where or f"pod {pod.key}")


def _duration(given: float | str, what: str, where: str) -> float:
    try:
        seconds = parse_duration(given) / SECOND if isinstance(given, str) else float(given)
    except ValueError:
        raise InputError(f"{what} {given!r} is not a duration such as 300s or 1h30m", where) from None
    if not 0 <= seconds < float("inf"):
        raise InputError(f"{what} {given!r} is not a duration from 0 on", where)
    return seconds


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
