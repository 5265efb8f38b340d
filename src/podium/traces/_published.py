"""Traces that companies published: Alibaba's openb GPU cluster of 2023 and cluster-trace-v2018, and Google's
cluster-usage traces v3 of 2019.

openb has nodes with GPUs of several models, and tasks that share GPUs or take several. Nodes: `sn, cpu_milli,
memory_mib, gpu, model`. Tasks: `name, cpu_milli, memory_mib, num_gpu, gpu_milli` and, where the table has them,
`gpu_spec` (models joined by `|`), `creation_time`, `scheduled_time` and `deletion_time` in seconds.

The tables of cluster-trace-v2018 have no header. Machines: `machine_id, time_stamp, failure_domain_1, failure_domain_2,
cpu_num, mem_size, status`. Tasks: `task_name, instance_num, job_name, task_type, status, start_time, end_time,
plan_cpu, plan_mem`; 100 of `plan_cpu` is one cpu.

Google's traces are machine events and instance events, each as JSON lines. Their fields are those of
`clusterdata_trace_format_v3.proto`. Times are microseconds from 600 seconds before the trace begins; enumerations are
numbers or their names; numbers of 64 bits may be texts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from podium.config.fields import LONGEST
from podium.errors import InputError
from podium.model.objects import ZONE
from podium.traces.trace import (
    LONGEST_SHOWN,
    STEP,
    Advance,
    Manifest,
    TableRow,
    Trace,
    TraceEvent,
    node,
    opened,
    pod,
    remarks,
    rows,
    valid_name,
)

# -- Alibaba -----------------------------------------------------------------------------------------------------------


GPU_MILLI = "alibabacloud.com/gpu-milli"
"""The resource: thousandths of GPUs; a node has 1000 for each of its GPUs."""
GPU_MODEL = "alibabacloud.com/gpu-card-model"
"""The label of a node that names the model of its GPUs."""
WHOLE = 1000
OPENB_PODS = "1001"
"""The allocatable pods of a node. The trace does not have it; no node ran as many."""

OPENB_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
OPENB_POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")


def read_openb(files: Sequence[str], advance: Advance) -> Trace:
    """Read a trace from a table of nodes and a table of tasks."""
    nodes_file, pods_file = files
    assumed = [
        f"a task's GPUs are a request for {GPU_MILLI}: less than 1000 is a share of one GPU, more are whole GPUs",
        f"the GPU models a task names are a required node affinity to label {GPU_MODEL}",
        f"a node takes {OPENB_PODS} pods",
        "left out: qos, pod_phase",
    ]
    lines: dict[str, str] = {}
    nodes = [_openb_node(row, lines) for row in rows(nodes_file, OPENB_NODE_COLUMNS, advance)]
    if not nodes:
        raise InputError("has no nodes", nodes_file)
    tasks = list(_openb_tasks(pods_file, advance, assumed))
    if not tasks:
        raise InputError("has no tasks", pods_file)
    return Trace(nodes, tasks, assumed)


def _openb_node(row: TableRow, lines: dict[str, str]) -> Manifest:
    gpus, model = row.number("gpu"), row.label_value(row.text("model"), "model")
    if gpus and not model:
        raise InputError("model is empty, but gpu is not 0", row.where)
    allocatable = {"cpu": f"{row.number('cpu_milli')}m", "memory": f"{row.number('memory_mib')}Mi", "pods": OPENB_PODS}
    if gpus:
        allocatable[GPU_MILLI] = str(gpus * WHOLE)
    return node(row.new_name("sn", lines), allocatable, {GPU_MODEL: model} if model else {})


def _openb_tasks(file: str, advance: Advance, assumed: list[str]) -> Iterator[TraceEvent]:
    untimed = unscheduled = unended = 0
    lines: dict[str, str] = {}
    for row in rows(file, OPENB_POD_COLUMNS, advance):
        time, lifetime = row.time("creation_time", 0), None
        untimed += "creation_time" not in row
        if "deletion_time" in row:
            # The lifetime counts from when the task was scheduled, which may be another time in a simulation.
            since = row.time("scheduled_time", time)
            unscheduled += "scheduled_time" not in row
            lifetime = max(row.time("deletion_time") - since, 0)
        else:
            unended += 1
        yield TraceEvent(time, _openb_pod(row, lines), lifetime)
    counts = {
        "{} without creation_time: taken to come at second 0": untimed,
        "{} without scheduled_time: taken to run from creation_time on": unscheduled,
        "{} without deletion_time: taken to run on": unended,
    }
    assumed += remarks("task", counts)


def _openb_pod(row: TableRow, lines: dict[str, str]) -> Manifest:
    requests = {"cpu": f"{row.number('cpu_milli')}m", "memory": f"{row.number('memory_mib')}Mi"}
    gpus, milli = row.number("num_gpu"), row.number("gpu_milli", 0)
    spec: dict[str, Any] = {}
    if gpus:
        if not 0 < milli <= WHOLE or (gpus > 1 and milli < WHOLE):
            raise InputError(
                f"gpu_milli {milli} with num_gpu {gpus}: it is 1 to {WHOLE} for one GPU, {WHOLE} for several", row.where
            )
        requests[GPU_MILLI] = str(gpus * milli)
        models = [row.label_value(model, "gpu_spec") for model in row.text("gpu_spec").split("|") if model]
        if models:
            spec["affinity"] = _on_models(models)
    return pod(row.new_name("name", lines), requests, labels={}, spec=spec)


def _on_models(models: list[str]) -> Manifest:
    term = {"matchExpressions": [{"key": GPU_MODEL, "operator": "In", "values": models}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


MACHINE_COLUMNS = (
    "machine_id",
    "time_stamp",
    "failure_domain_1",
    "failure_domain_2",
    "cpu_num",
    "mem_size",
    "status",
)
TASK_COLUMNS = (
    "task_name",
    "instance_num",
    "job_name",
    "task_type",
    "status",
    "start_time",
    "end_time",
    "plan_cpu",
    "plan_mem",
)
MIB_PER_UNIT = 1024
"""MiB per unit of memory. The trace has shares of the largest machine, from 0 to 100; one is assumed to be 1 GiB."""
MACHINE_PODS = "1000"
MOST_INSTANCES = 1_000_000
"""The most instances of one task; the trace has at most about a hundred thousand."""


def read_alibaba_2018(files: Sequence[str], advance: Advance) -> Trace:
    """Read a trace from machine_meta.csv and batch_task.csv."""
    machines_file, tasks_file = files
    assumed = [
        "memory is normalised in the trace: 1 of 100 is taken for 1Gi",
        f"failure_domain_1 is taken for the zone; a machine takes {MACHINE_PODS} pods",
        "a task runs from its start_time for as long as it did; that it waits for tasks of its job is in these times",
        "left out: containers, usage, and what happened to machines later",
    ]
    machines: dict[str, Manifest] = {}
    lines: dict[str, tuple[str, str]] = {}
    for row in rows(machines_file, (), advance, MACHINE_COLUMNS):
        machine, given = _alibaba_machine(row), row.name("machine_id")
        name = machine["metadata"]["name"]
        other, line = lines.setdefault(name, (given, row.where))
        if other != given:
            raise InputError(f"machine_id {given!r} becomes {name}, as {other!r} of {line} does", row.where)
        machines.setdefault(name, machine)
    if not machines:
        raise InputError("has no machines", machines_file)
    return Trace(machines.values(), _tasks(tasks_file, advance, assumed), assumed)


def _alibaba_machine(row: TableRow) -> Manifest:
    memory = round(row.amount("mem_size") * MIB_PER_UNIT)
    allocatable = {"cpu": str(row.number("cpu_num")), "memory": f"{memory}Mi", "pods": MACHINE_PODS}
    name = valid_name(row.name("machine_id"))
    row.check_name(name, "machine_id")
    return node(name, allocatable, {ZONE: row.label_value(row.text("failure_domain_1"), "failure_domain_1")})


def _tasks(file: str, advance: Advance, assumed: list[str]) -> Iterator[TraceEvent]:
    unplanned = unended = repeated = empty = 0
    seen: set[int] = set()
    for row in rows(file, (), advance, TASK_COLUMNS):
        if "plan_cpu" not in row or "start_time" not in row:
            unplanned += 1
            continue
        task = f"{row.name('job_name')}-{row.name('task_name')}"
        # Hashes, because the trace has millions of names.
        key = hash(valid_name(f"{task}-0"))
        if key in seen:
            repeated += 1
            continue
        seen.add(key)
        start, end = row.time("start_time"), row.time("end_time", 0)
        instances = row.number("instance_num", most=MOST_INSTANCES)
        row.check_name(valid_name(f"{task}-{instances}"), "job_name and task_name")
        empty += not instances
        unended += end < start
        requests = {"cpu": f"{round(row.amount('plan_cpu') * 10)}m"}
        if "plan_mem" in row:
            requests["memory"] = f"{round(row.amount('plan_mem') * MIB_PER_UNIT)}Mi"
        labels = {"job": row.label_value(valid_name(row.name("job_name")), "job_name")}
        for number in range(instances):
            name = valid_name(f"{task}-{number}")
            yield TraceEvent(start, pod(name, requests, labels=labels, spec={}), None if end < start else end - start)
    if len(seen) == empty:
        raise InputError("has no task with instance_num, plan_cpu and start_time", file)
    counts = {
        "left out: {} with instance_num 0": empty,
        "left out: {} without plan_cpu or start_time": unplanned,
        "left out: {} with the job_name and task_name of an earlier one": repeated,
        "{} without end_time after start_time: taken to run on": unended,
    }
    assumed += remarks("task", counts)


# -- Google ------------------------------------------------------------------------------------------------------------


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
            yield time, kind, name, _google_machine(name, line, where)


def _google_machine(name: str, line: Mapping[str, Any], where: str) -> Manifest | None:
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
                except (msgspec.DecodeError, RecursionError) as error:
                    raise InputError(f"is not a JSON object: {error}", f"{file} line {number}") from None
            if number % STEP == 0:
                advance(raw.tell() - told)
                told = raw.tell()
        advance(raw.tell() - told)
