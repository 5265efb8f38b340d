"""Alibaba's cluster-trace-v2018: machines and batch tasks, as its schema describes them; the tables have no header.

Machines: `machine_id, time_stamp, failure_domain_1, failure_domain_2, cpu_num, mem_size, status`. Tasks: `task_name,
instance_num, job_name, task_type, status, start_time, end_time, plan_cpu, plan_mem`; 100 of `plan_cpu` is one cpu.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podium.errors import InputError
from podium.model.objects import ZONE
from podium.traces.trace import Advance, Manifest, Row, Trace, TraceEvent, node, pod, rows, valid_name

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
"""Memory is a share of the largest machine's, from 0 to 100: one of that is taken for 1 GiB."""
PODS = "1000"
MOST_INSTANCES = 1_000_000
"""Of one task; the trace has at most about a hundred thousand."""


def read(files: Sequence[str], advance: Advance) -> Trace:
    """The trace of machine_meta.csv and batch_task.csv."""
    machines_file, tasks_file = files
    assumed = [
        "memory is normalised in the trace: 1 of 100 is taken for 1Gi",
        f"failure_domain_1 is taken for the zone; a machine takes {PODS} pods",
        "a task runs from its start_time for as long as it did; that it waits for tasks of its job is in these times",
        "left out: containers, usage, and what happened to machines later",
    ]
    machines: dict[str, Manifest] = {}
    for row in rows(machines_file, (), advance, MACHINE_COLUMNS):
        machines.setdefault(row.name("machine_id"), _machine(row))
    if not machines:
        raise InputError("has no machines", machines_file)
    return Trace(machines.values(), _tasks(tasks_file, advance, assumed), assumed)


def _machine(row: Row) -> Manifest:
    memory = round(row.amount("mem_size") * MIB_PER_UNIT)
    allocatable = {"cpu": str(row.number("cpu_num")), "memory": f"{memory}Mi", "pods": PODS}
    return node(valid_name(row.name("machine_id")), allocatable, {ZONE: row.text("failure_domain_1")})


def _tasks(file: str, advance: Advance, assumed: list[str]) -> Iterator[TraceEvent]:
    unplanned = unended = 0
    for row in rows(file, (), advance, TASK_COLUMNS):
        if "plan_cpu" not in row or "start_time" not in row:
            unplanned += 1
            continue
        start, end = row.number("start_time"), row.number("end_time", 0)
        unended += end < start
        requests = {"cpu": f"{round(row.amount('plan_cpu') * 10)}m"}
        if "plan_mem" in row:
            requests["memory"] = f"{round(row.amount('plan_mem') * MIB_PER_UNIT)}Mi"
        labels = {"job": valid_name(row.name("job_name"))}
        for number in range(row.number("instance_num", most=MOST_INSTANCES)):
            name = valid_name(f"{row.name('job_name')}-{row.name('task_name')}-{number}")
            yield TraceEvent(start, pod(name, requests, labels=labels, spec={}), None if end < start else end - start)
    if unplanned:
        assumed.append(f"left out: {unplanned} tasks without plan_cpu or start_time")
    if unended:
        assumed.append(f"{unended} tasks have no end_time: they run on")
