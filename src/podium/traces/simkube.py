"""A trace of SimKube's tracer: one msgpack map of `version`, `config`, `events` and `index`.

An event has a time `ts` (seconds), `applied_objs` and `deleted_objs`. The index says, by owning object, how long pods
lived: `lifecycle: {Finished: [start, end]}`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import msgspec

from podium.errors import InputError
from podium.timeline.events import LIFETIME
from podium.traces.trace import Advance, Manifest, Trace, TraceEvent, is_text

OLDEST = 2
"""The first version of the format that says which one it is."""


HEAD = 4096
_MAPS = frozenset([*(bytes([0x80 + size]) for size in range(16)), b"\xde", b"\xdf"])
"""How a map begins in msgpack."""


def read(files: Sequence[str], advance: Advance) -> Trace:
    """The trace of one file."""
    (file,) = files
    trace = _decoded(file, advance)
    lifetimes = dict(_lifetimes(trace["index"]))
    assumed = [
        "the trace has the objects that own pods; their pods are made when they are applied, as controllers do",
        "left out: objects of kinds that scheduling does not read",
    ]
    events = list(_events(trace["events"], lifetimes, file))
    if lifetimes:
        assumed.append(
            f"pods of {len(lifetimes)} objects run as long as the median of those that finished in the trace"
        )
    beginning = [event.object for event in events if event.time == 0 and event.event == "add"]
    if not any(item["kind"] == "Node" for item in beginning):
        assumed.append("the trace has no nodes: give some with -f")
    # Whatever is there from the beginning must not be added once more.
    return Trace(beginning, [event for event in events if event.time or event.event != "add"], assumed)


def _decoded(file: str, advance: Advance) -> Mapping[str, Any]:
    try:
        with open(file, "rb") as raw:
            data = raw.read(HEAD)
            # A trace is a map; nothing else is read to its end, which need not be there.
            if data[:1] in _MAPS:
                data += raw.read()
        trace = msgspec.msgpack.decode(data)
    except OSError as error:
        raise InputError((error.strerror or str(error)).lower(), file) from None
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"is not msgpack, as SimKube writes it: {error}", file) from None
    advance(len(data))
    if not isinstance(trace, Mapping):
        raise InputError(f"has no version: traces of SimKube before version {OLDEST} cannot be read", file)
    for field, kind in (("events", list), ("index", Mapping)):
        if not isinstance(trace.get(field), kind):
            raise InputError(f"{field} is missing or is not what SimKube writes", file)
    return trace


def _events(events: list[Any], lifetimes: Mapping[tuple[str, str], float], file: str) -> Iterator[TraceEvent]:
    seen: set[tuple[str, str]] = set()
    for number, event in enumerate(events, 1):
        where = f"{file} event {number}"
        if not isinstance(event, Mapping) or not isinstance(event.get("ts"), int | float):
            raise InputError("ts is missing or is not a time in seconds", where)
        time = float(event["ts"]) - float(events[0]["ts"])
        if time < 0:
            raise InputError("ts is before that of the first event", where)
        for item in _listed(event, "applied_objs", where):
            key = _key(item, where)
            yield TraceEvent(time, _with_lifetime(item, lifetimes.get(key)), event="update" if key in seen else "add")
            seen.add(key)
        for item in _listed(event, "deleted_objs", where):
            seen.discard(_key(item, where))
            yield TraceEvent(time, item, event="delete")


def _listed(event: Mapping[str, Any], field: str, where: str) -> list[Any]:
    found = event.get(field) or []
    if not isinstance(found, list):
        raise InputError(f"{field} is not a list of objects", where)
    return found


def _key(item: Any, where: str) -> tuple[str, str]:
    """The kind and the namespaced name of an object."""
    metadata = item.get("metadata") if isinstance(item, Mapping) else None
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not isinstance(metadata, Mapping) or not is_text(item.get("kind")) or not is_text(name):
        raise InputError("has an object without kind or metadata.name", where)
    return str(item["kind"]), f"{metadata['namespace']}/{name}" if metadata.get("namespace") else str(name)


def _lifetimes(index: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], float]]:
    """How long the pods of an owner lived, by its kind and name."""
    for kind, owners in index.items():
        for name, pods in owners.items() if isinstance(owners, Mapping) else ():
            lived = [end - start for start, end in _finished(pods)]
            if lived:
                yield (kind.rpartition(".")[2], name), float(median(lived))


def _finished(found: Any) -> Iterator[tuple[float, float]]:
    """Every `Finished: [start, end]` anywhere inside."""
    if isinstance(found, Mapping):
        ends = found.get("Finished")
        if isinstance(ends, list) and len(ends) == 2 and all(isinstance(end, int | float) for end in ends):
            yield float(ends[0]), float(ends[1])
        else:
            for inner in found.values():
                yield from _finished(inner)
    elif isinstance(found, list):
        for inner in found:
            yield from _finished(inner)


def _with_lifetime(item: Manifest, seconds: float | None) -> Manifest:
    """The object whose pods say how long they run."""
    if seconds is None:
        return item
    changed: dict[str, Any] = copy.deepcopy(dict(item))
    place = changed if changed["kind"] == "Pod" else changed.get("spec", {}).get("template")
    if isinstance(place, dict):
        metadata = place.setdefault("metadata", {})
        metadata["annotations"] = {**(metadata.get("annotations") or {}), LIFETIME: f"{seconds:g}s"}
    return changed
