"""Google's cluster-usage traces v3 of 2019: machine events and instance events, each as JSON lines.

The fields are those of `clusterdata_trace_format_v3.proto`. Times are microseconds from 600 seconds before the trace
begins; enumerations are numbers or their names; numbers of 64 bits may be texts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from podium.config.fields import LONGEST
from podium.errors import InputError
from podium.traces.trace import LONGEST_SHOWN, STEP, Advance, Manifest, Trace, TraceEvent, node, opened, pod, remarks

CPUS, MEMORY_MIB = 64_000, 262_144
"""The assumed size of the largest machine, which is one normalised unit, in milli-cpu and MiB."""
PODS = "1000"
MICROSECONDS = 1_000_000
LATEST = 2**63 - 1
"""The value of a time after the end of the trace."""
SUBMIT, SCHEDULE = 0, 3
ENDS = {4: "EVICT", 5: "FAIL", 6: "FINISH", 7: "KILL", 8: "LOST"}
EVENT_TYPES = {"SUBMIT": 0, "QUEUE": 1, "ENABLE": 2, "SCHEDULE": 3, "UPDATE_PENDING": 9, "UPDATE_RUNNING": 10} | {
    name: number for number, name in ENDS.items()
}
MOST_SHARE = 1000
"""The largest accepted share of the largest machine. Shares should be at most 1, but some requests are larger."""
MOST_PRIORITY = 1_000_000_000
"""The highest priority that Kubernetes allows to users."""
MACHINE_TYPES = {"ADD": 1, "REMOVE": 2, "UPDATE": 3}
COLLECTION_TYPES = {"JOB": 0, "ALLOC_SET": 1}


Instance = tuple[int, int]
"""The collection and the index in it."""


class _Waiting(NamedTuple):
    """An instance that was submitted and has not ended."""

    submitted: float
    manifest: Manifest
    scheduled: float | None = None

    def until(self, time: float) -> Iterator[TraceEvent]:
        """The events of an instance that ends at a time."""
        if self.scheduled is not None:
            yield TraceEvent(self.submitted, self.manifest, max(time - self.scheduled, 0))
        else:
            yield TraceEvent(self.submitted, self.manifest)
            yield TraceEvent(max(time, self.submitted), self.manifest, event="delete")


def read_google_2019(files: Sequence[str], advance: Advance) -> Trace:
    """Read a trace from the machine_events and instance_events of one cell."""
    machines_file, instances_file = files
    assumed = [
        f"cpu and memory are normalised in the trace: 1 is taken for {CPUS // 1000} cpus and {MEMORY_MIB // 1024}Gi",
        f"a machine takes {PODS} pods",
        "an instance that was evicted or failed and was submitted again is another pod",
        "left out: alloc sets, instances inside of them, constraints, changes of requests, usage",
    ]
    beginning, later = _machines(machines_file, advance, assumed)
    if not beginning:
        raise InputError("has no machine that is there at the beginning", machines_file)
    return Trace(beginning, _all_events(later, instances_file, advance, assumed), assumed)


def _machines(file: str, advance: Advance, assumed: list[str]) -> tuple[list[Manifest], list[TraceEvent]]:
    """The machines at the beginning, and what happens to machines later."""
    beginning: dict[str, Manifest] = {}
    later: list[TraceEvent] = []
    there: set[str] = set()
    strange = vague = unheard = 0
    for time, kind, name, machine in sorted(_machine_events(file, advance), key=lambda event: event[0]):
        if kind not in MACHINE_TYPES.values():
            strange += 1
        elif kind == MACHINE_TYPES["REMOVE"]:
            gone = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
            if name in there:
                later.append(TraceEvent(time, gone, event="delete"))
            unheard += name not in there
            there.discard(name)
        elif machine is None:
            vague += 1
        else:
            if time == 0:
                beginning[name] = machine
            else:
                later.append(TraceEvent(time, machine, event="update" if name in there else "add"))
            there.add(name)
    counts = {
        "left out: {} of an unknown type": strange,
        "left out: {} without capacity": vague,
        "left out: {} for the removal of a machine that is not there": unheard,
    }
    assumed += remarks("machine event", counts)
    return list(beginning.values()), later


def _machine_events(file: str, advance: Advance) -> Iterator[tuple[float, int, str, Manifest | None]]:
    """Each event's time, its type, the machine's name, and the machine unless the event has no capacity."""
    for where, line in _lines(file, advance):
        kind, time = _type(line, MACHINE_TYPES, where), _time(line, where)
        if time is not None:
            name = f"m-{_whole(line, 'machine_id', where)}"
            yield time, kind, name, _machine(name, line, where)


def _machine(name: str, line: Mapping[str, Any], where: str) -> Manifest | None:
    capacity = line.get("capacity")
    if not isinstance(capacity, Mapping):
        return None
    amounts = _amounts(capacity, "capacity", where)
    return node(name, amounts | {"pods": PODS}, {"google.com/platform": str(line.get("platform_id") or "unknown")[:60]})


def _all_events(machines: list[TraceEvent], file: str, advance: Advance, assumed: list[str]) -> Iterator[TraceEvent]:
    yield from machines
    waiting: dict[Instance, _Waiting] = {}
    again: Counter[Instance] = Counter()
    vague: set[Instance] = set()
    strange = unended = 0
    for where, line in _lines(file, advance):
        if _is_inside(line, where):
            continue
        kind, time = _type(line, EVENT_TYPES, where), _time(line, where)
        if time is None:
            continue
        key = _whole(line, "collection_id", where), _whole(line, "instance_index", where)
        strange += kind not in EVENT_TYPES.values()
        if kind == SUBMIT or (kind == SCHEDULE and key not in waiting):
            if not isinstance(line.get("resource_request"), Mapping):
                vague.add(key)
                continue
            if key in waiting:
                unended += 1
                yield from waiting.pop(key).until(time)
            again[key] += 1
            waiting[key] = _Waiting(time, _pod(key, again[key], line, where), time if kind == SCHEDULE else None)
        elif kind == SCHEDULE:
            waiting[key] = waiting[key]._replace(scheduled=time)
        elif kind in ENDS and key in waiting:
            yield from waiting.pop(key).until(time)
    for submitted, manifest, _ in waiting.values():
        yield TraceEvent(submitted, manifest)
    if not again:
        raise InputError("has no instance that was submitted with a resource_request", file)
    counts = {
        "{} submitted again without an end: taken to end then": unended,
        "{} without an end: taken to run on": len(waiting),
        "left out: {} without resource_request": len(vague),
    }
    assumed += remarks("instance", counts)
    assumed += remarks("instance event", {"left out: {} of an unknown type": strange})


def _is_inside(line: Mapping[str, Any], where: str) -> bool:
    """Whether an instance is an alloc set's, or runs inside of one."""
    if _type(line, COLLECTION_TYPES, where, "collection_type"):
        return True
    return line.get("alloc_collection_id") is not None and _whole(line, "alloc_collection_id", where) != 0


def _pod(key: Instance, time: int, line: Mapping[str, Any], where: str) -> Manifest:
    requests = _amounts(line["resource_request"], "resource_request", where)
    name = f"c-{key[0]}-{key[1]}" + (f"-{time}" if time > 1 else "")
    priority = _whole({**line, "priority": line.get("priority") or 0}, "priority", where)
    if not 0 <= priority <= MOST_PRIORITY:
        raise InputError(f"priority {priority} is not one from 0 to {MOST_PRIORITY:,}", where)
    return pod(name, requests, labels={"collection": str(key[0])}, spec={"priority": priority})


def _amounts(given: Mapping[str, Any], field: str, where: str) -> dict[str, str]:
    cpus, memory = (_share(given.get(name) or 0, f"{field}.{name}", where) for name in ("cpus", "memory"))
    return {"cpu": f"{round(cpus * CPUS)}m", "memory": f"{round(memory * MEMORY_MIB)}Mi"}


def _share(value: Any, field: str, where: str) -> float:
    """Read a request or a capacity, as a share of the largest machine."""
    share = _number(value, field, where)
    if not 0 <= share <= MOST_SHARE:
        raise InputError(f"{field} {value!r} is not a share of the largest machine", where)
    return share


def _time(line: Mapping[str, Any], where: str) -> float | None:
    """The time of an event in seconds; None if it is after the end of the trace."""
    time = _whole(line, "time", where)
    if LONGEST * MICROSECONDS < time < LATEST:
        raise InputError(f"time {time} is later than ten years, in microseconds", where)
    return None if time >= LATEST else max(time, 0) / MICROSECONDS


def _type(line: Mapping[str, Any], names: Mapping[str, int], where: str, field: str = "type") -> int:
    """The number of an enumeration, which may be given by name."""
    given = line.get(field, 0)
    if isinstance(given, str) and given in names:
        return names[given]
    if isinstance(given, str) and given.isidentifier():
        raise InputError(f"{field} {given[:LONGEST_SHOWN]!r} is unknown; use {', '.join(names)}", where)
    return int(_number(given, field, where))


def _whole(line: Mapping[str, Any], field: str, where: str) -> int:
    if line.get(field) is None:
        raise InputError(f"has no {field}", where)
    number = _number(line[field], field, where)
    if number != int(number) or abs(number) > LATEST:
        raise InputError(f"{field} {str(line[field])[:LONGEST_SHOWN]!r} is not a whole number of 64 bits", where)
    return int(number)


def _number(value: Any, field: str, where: str) -> float:
    try:
        number = int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(number, float) and not math.isfinite(number):
        raise InputError(f"{field} {value!r} is not a number", where)
    return number


def _lines(file: str, advance: Advance) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The lines of a file, each an object."""
    decode, told = msgspec.json.Decoder(dict[str, Any]).decode, 0
    with opened(file) as (raw, text):
        for number, line in enumerate(text, 1):
            if line.strip():
                try:
                    yield f"{file} line {number}", decode(line)
                except msgspec.DecodeError as error:
                    raise InputError(f"is not a JSON object: {error}", f"{file} line {number}") from None
            if number % STEP == 0:
                advance(raw.tell() - told)
                told = raw.tell()
        advance(raw.tell() - told)
