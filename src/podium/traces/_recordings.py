"""Recordings of a cluster's objects: a trace of SimKube's tracer, and a recording of `kwokctl snapshot record`.

SimKube writes one msgpack map of `version`, `config`, `events` and `index`. An event has a time `ts` (seconds),
`applied_objs` and `deleted_objs`. The index says, by owning object, how long pods lived: `lifecycle: {Finished: [start,
end]}`.

kwokctl writes YAML documents, first the objects there are, then ResourcePatch actions. A ResourcePatch has a `method`
(create, patch or delete), a `target`, the time since the recording began in `durationNanosecond`, and for the first two
a `template`.
"""

from __future__ import annotations

import copy
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec
import yaml

from podium.config.fields import LONGEST
from podium.errors import InputError, os_problem
from podium.input_files import Unpacked, most_bytes, open_input, read_input
from podium.manifests import load, load_documents
from podium.manifests.decode import QUOTED
from podium.manifests.files import GZIP_MAGIC
from podium.manifests.located import is_number, line_of, located_values, path_in
from podium.timeline.timed_events import LIFETIME
from podium.traces.trace import Advance, Manifest, Trace, TraceEvent, is_text, remarks
from podium.wording import counted

OLDEST = 2
"""The first version of the format that has a version number."""


HEAD = 4096
_MAPS = frozenset([*(bytes([0x80 + size]) for size in range(16)), b"\xde", b"\xdf"])
"""The first bytes of a map in msgpack."""


def read_simkube(files: Sequence[str], advance: Advance) -> Trace:
    """Read a SimKube trace from one file."""
    (file,) = files
    trace = _decoded(file, advance)
    lifetimes = dict(_lifetimes(trace["index"], file))
    assumed = [
        "the trace has the objects that own pods; their pods are made when they are applied, as controllers do",
        "left out: objects of kinds that scheduling does not read",
    ]
    events = list(_simkube_events(trace["events"], lifetimes, file, assumed))
    if not events:
        raise InputError("events: has no objects", file)
    if lifetimes:
        assumed.append(
            f"pods of {counted(len(lifetimes), 'object')} run as long as the median of those that finished in the trace"
        )
    beginning = [event.object for event in events if event.time == 0 and event.event == "add"]
    if not any(item["kind"] == "Node" for item in beginning):
        assumed.append("the trace has no nodes: give some with -f")
    # Objects that exist from the beginning must not be added again.
    return Trace(beginning, [event for event in events if event.time or event.event != "add"], assumed)


def _decoded(file: str, advance: Advance) -> Mapping[str, Any]:
    try:
        with open_input(file) as raw:
            data = raw.read(HEAD)
            # A trace is a map. Anything else is not read further: the input may have no end.
            if data[:1] in _MAPS or data.startswith(GZIP_MAGIC):
                data += raw.read()
        size = len(data)
        trace = msgspec.msgpack.decode(_unpacked(data, file) if data.startswith(GZIP_MAGIC) else data)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"cannot be unpacked as gzip: {error}", file) from None
    except OSError as error:
        raise InputError(os_problem(error), file) from None
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"is not msgpack, as SimKube writes it: {error}", file) from None
    advance(size)
    if not isinstance(trace, Mapping):
        raise InputError(f"has no version: traces of SimKube before version {OLDEST} cannot be read", file)
    for field, kind in (("events", list), ("index", Mapping)):
        if not isinstance(trace.get(field), kind):
            raise InputError(f"{field} is missing or is not what SimKube writes", file)
    return trace


def _unpacked(data: bytes, file: str) -> bytes:
    with gzip.open(io.BytesIO(data)) as plain:
        return Unpacked(plain, file).readall() or b""


def _simkube_events(
    events: list[Any], lifetimes: Mapping[tuple[str, str], float], file: str, assumed: list[str]
) -> Iterator[TraceEvent]:
    seen: set[Key] = set()
    ever: set[Key] = set()
    unheard = 0
    for number, event in enumerate(events, 1):
        where = f"{file} event {number}"
        if not isinstance(event, Mapping) or not is_number(event.get("ts")):
            raise InputError("ts is missing or is not a time in seconds", where)
        time = float(event["ts"]) - float(events[0]["ts"])
        if not 0 <= time <= LONGEST:
            raise InputError("ts is before that of the first event, or ten years after it", where)
        for item in _listed(event, "applied_objs", where):
            key = _key(item, where)
            lifetime = lifetimes.get((key.kind, f"{key.namespace}/{key.name}" if key.namespace else key.name))
            yield TraceEvent(
                time,
                _with_lifetime(_read(item, where), lifetime),
                event="update" if key in seen else "add",
                is_first=key not in ever,
            )
            seen.add(key)
            ever.add(key)
        for item in _listed(event, "deleted_objs", where):
            key = _key(item, where)
            if key not in seen:
                unheard += 1
                continue
            seen.discard(key)
            yield TraceEvent(time, item, event="delete")
    assumed += remarks("deletion", {"left out: {} of objects that are not there": unheard})


def _listed(event: Mapping[str, Any], field: str, where: str) -> list[Any]:
    found = event.get(field) or []
    if not isinstance(found, list):
        raise InputError(f"{field} is not a list of objects", where)
    return found


class Key(NamedTuple):
    """What identifies an object."""

    kind: str
    namespace: str
    name: str


def _check_quoted(name: object, field: str, where: str) -> None:
    """Refuse a name that YAML does not read as text."""
    if isinstance(name, bool | int | float):
        raise InputError(f"{field} is {str(name).lower()}, not a text{QUOTED[type(name).__name__]}", where)


def _key(item: Any, where: str) -> Key:
    metadata = item.get("metadata") if isinstance(item, Mapping) else None
    if isinstance(metadata, Mapping):
        _check_quoted(metadata.get("name"), "metadata.name", where)
    if not isinstance(metadata, Mapping) or not is_text(item.get("kind")) or not is_text(metadata.get("name")):
        raise InputError("has an object without kind or metadata.name", where)
    namespace = metadata.get("namespace") or ""
    if not isinstance(namespace, str):
        raise InputError(f"has an object whose metadata.namespace is {namespace!r}", where)
    return Key(item["kind"], namespace, metadata["name"])


def _read(item: Manifest, where: str) -> Manifest:
    """Check that every command can read the object, and return it."""
    try:
        load([item])
    except InputError as error:
        raise InputError(error.message, f"{where} {item['kind']} {item['metadata']['name']}") from None
    return item


def _lifetimes(index: Mapping[str, Any], file: str) -> Iterator[tuple[tuple[str, str], float]]:
    """How long the pods of an owner lived, by its kind and name."""
    for kind, owners in index.items():
        for name, pods in owners.items() if isinstance(owners, Mapping) else ():
            lived = []
            for start, end in _finished(pods):
                if not 0 <= end - start <= LONGEST:
                    raise InputError(f"index {kind} {name}: Finished [{start:g}, {end:g}] is no lifetime", file)
                lived.append(end - start)
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
    """The object with the lifetime annotation on its pods."""
    if seconds is None:
        return item
    changed: dict[str, Any] = copy.deepcopy(dict(item))
    place = changed if changed["kind"] == "Pod" else (changed.get("spec") or {}).get("template")
    if isinstance(place, dict):
        metadata = place.setdefault("metadata", {})
        metadata["annotations"] = {
            **(metadata.get("annotations") or {}),
            LIFETIME: f"{seconds:.3f}".rstrip("0").rstrip(".") + "s",
        }
    return changed


PATCH = "ResourcePatch"
NANOSECONDS = 1_000_000_000
MERGE_KEYS = ("name", "type", "key", "ip", "uid")
"""The fields that identify entries of a list, if the object and the patch have them."""


def read_kwok_record(files: Sequence[str], advance: Advance) -> Trace:
    """Read a kwokctl recording from one file."""
    (file,) = files
    try:
        return _kwok_record(file, advance)
    except InputError as error:
        raise _with_line(error, file) from None


def _with_line(error: InputError, file: str) -> InputError:
    """An error about a document of a file with the line of what is wrong in it."""
    place = re.match(r" document (\d+)(?! line)", error.where.removeprefix(file))
    if place is None or not Path(file).is_file():
        return error
    path = path_in(error.message) or (error.message.partition(" ")[0],)
    lines: dict[tuple[str | int, ...], int] = {}
    with suppress(yaml.YAMLError):
        lines = {v.path: v.line for v in located_values(read_input(file, most_bytes())) if v.document == int(place[1])}
    if not lines:
        return error
    # A template is an object: what is wrong in it is named from there, and the place ends with its name.
    is_of_object = error.where != f"{file}{place[0]}"
    line = line_of(("template", *path) if is_of_object and ("template",) in lines else path, lines)
    return InputError(error.message, error.where.replace(place[0], f"{place[0]} line {line}", 1))


def _kwok_record(file: str, advance: Advance) -> Trace:
    beginning: dict[Key, Manifest] = {}
    actions: list[tuple[str, Mapping[str, Any]]] = []
    for where, document in load_documents(file):
        if not isinstance(document, Mapping) or not is_text(document.get("kind")):
            raise InputError("is not an object with a kind", where)
        if document["kind"] == PATCH:
            actions.append((where, document))
        else:
            listed = document.get("items") if document["kind"].endswith("List") else None
            for item in listed if isinstance(listed, list) else [document]:
                key = _key(item, where)
                beginning[key._replace(kind=key.kind.lower())] = _read(item, where)
    if not beginning and not actions:
        raise InputError("no objects in it", file)
    advance(Path(file).stat().st_size)
    assumed = [
        "pods that were pending or came later are scheduled by the simulation: the node they had is left out",
        f"patches are merged; entries of lists are told apart by {', '.join(MERGE_KEYS)}, other lists are replaced",
        "left out: actions on objects that the recording does not have",
    ]
    events = list(_kwok_events(actions, dict(beginning)))
    return Trace(list(beginning.values()), events, assumed, is_record=True)


def _kwok_events(actions: Sequence[tuple[str, Mapping[str, Any]]], there: dict[Key, Manifest]) -> Iterator[TraceEvent]:
    ever = set(there)
    for where, action in actions:
        time, key = _time(action, where), _target(action, where)
        known = there.get(key)
        match action.get("method"):
            case "create":
                template = _template(action, where)
                _key(template, where)
                there[key] = _read(_unbound(template), where)
                event = "update" if known is not None else "add"
                yield TraceEvent(time, there[key], event=event, is_first=key not in ever)
                ever.add(key)
            case "patch" if known is not None:
                there[key] = _read(_merged(known, _unbound(_template(action, where))), where)
                yield TraceEvent(time, there[key], event="update")
            case "delete" if known is not None:
                yield TraceEvent(time, there.pop(key), event="delete")
            case "patch" | "delete":
                continue
            case method:
                raise InputError(f"method {method!r} is unknown; it is create, patch or delete", where)


def _template(action: Mapping[str, Any], where: str) -> Manifest:
    template = action.get("template")
    if not isinstance(template, Mapping):
        raise InputError(f"template is missing; {action.get('method')} needs one", where)
    return template


def _time(action: Mapping[str, Any], where: str) -> float:
    """Seconds since the recording began."""
    nanoseconds = action.get("durationNanosecond", 0)
    if not is_number(nanoseconds) or not 0 <= nanoseconds <= LONGEST * NANOSECONDS:
        raise InputError(f"durationNanosecond is {nanoseconds!r}; it needs a number from 0 on, up to ten years", where)
    return float(nanoseconds / NANOSECONDS)


def _target(action: Mapping[str, Any], where: str) -> Key:
    """The object that an action changes, with its kind in lower case."""
    for field, needed in (("resource", "resource"), ("target", "name")):
        given = action.get(field)
        if isinstance(given, Mapping):
            _check_quoted(given.get(needed), f"{field}.{needed}", where)
        if not isinstance(given, Mapping) or not is_text(given.get(needed)):
            raise InputError(f"{field}: a ResourcePatch is not complete: it needs {field}.{needed}", where)
    target = action["target"]
    return Key(_singular(action["resource"]["resource"]), str(target.get("namespace") or ""), target["name"])


def _singular(resource: str) -> str:
    """The kind, in lower case, of a resource: pods, priorityclasses, networkpolicies."""
    if resource.endswith("ies"):
        return f"{resource[:-3]}y"
    return resource[:-2] if resource.endswith("sses") else resource.removesuffix("s")


def _unbound(item: Manifest) -> Manifest:
    """A pod without its node name; other objects unchanged."""
    spec = item.get("spec")
    if isinstance(spec, Mapping) and "nodeName" in spec:
        return {**item, "spec": {name: value for name, value in spec.items() if name != "nodeName"}}
    return item


def _merged(value: Any, patch: Any) -> Any:
    """Merge a patch into a value; null removes a field."""
    if isinstance(value, Mapping) and isinstance(patch, Mapping):
        merged = dict(value)
        for name, inner in patch.items():
            if inner is None:
                merged.pop(name, None)
            elif not name.startswith("$"):
                merged[name] = _merged(merged.get(name), inner)
        return merged
    if isinstance(value, list) and isinstance(patch, list):
        return _merged_lists(value, patch)
    return copy.deepcopy(patch)


def _merged_lists(value: list[Any], patch: list[Any]) -> list[Any]:
    both = [each for each in (*value, *patch) if isinstance(each, Mapping)]
    key = next((key for key in MERGE_KEYS if both and all(is_text(each.get(key)) for each in both)), None)
    if key is None or len(both) < len(value) + len(patch):
        return copy.deepcopy(patch)
    merged = {each[key]: each for each in value}
    for each in patch:
        merged[each[key]] = _merged(merged.get(each[key], {}), each)
    return list(merged.values())
