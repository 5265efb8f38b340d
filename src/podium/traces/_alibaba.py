"""Alibaba's traces: the openb GPU cluster of 2023, and cluster-trace-v2018.

openb has nodes with GPUs of several models, and tasks that share GPUs or take several. Nodes: `sn, cpu_milli,
memory_mib, gpu, model`. Tasks: `name, cpu_milli, memory_mib, num_gpu, gpu_milli` and, where the table has them,
`gpu_spec` (models joined by `|`), `creation_time`, `scheduled_time` and `deletion_time` in seconds.

The tables of cluster-trace-v2018 have no header. Machines: `machine_id, time_stamp, failure_domain_1, failure_domain_2,
cpu_num, mem_size, status`. Tasks: `task_name, instance_num, job_name, task_type, status, start_time, end_time,
plan_cpu, plan_mem`; 100 of `plan_cpu` is one cpu.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from podium.errors import InputError
from podium.model.objects import ZONE
from podium.traces.trace import (
    Advance,
    Manifest,
    TableRow,
    Trace,
    TraceEvent,
    node,
    pod,
    remarks,
    rows,
    valid_name,
)

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
        machine, given = _machine(row), row.name("machine_id")
        name = machine["metadata"]["name"]
        other, line = lines.setdefault(name, (given, row.where))
        if other != given:
            raise InputError(f"machine_id {given!r} becomes {name}, as {other!r} of {line} does", row.where)
        machines.setdefault(name, machine)
    if not machines:
        raise InputError("has no machines", machines_file)
    return Trace(machines.values(), _tasks(tasks_file, advance, assumed), assumed)


def _machine(row: TableRow) -> Manifest:
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
