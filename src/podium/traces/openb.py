"""Alibaba's openb GPU cluster trace of 2023: nodes with GPUs of several models, tasks that share GPUs or take several.

Nodes: `sn, cpu_milli, memory_mib, gpu, model`. Tasks: `name, cpu_milli, memory_mib, num_gpu, gpu_milli` and, where the
table has them, `gpu_spec` (models joined by `|`), `creation_time`, `scheduled_time` and `deletion_time` in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from podium.errors import InputError
from podium.model.meta import label_value_errors
from podium.traces.trace import LONGEST_SHOWN, Advance, Manifest, Row, Trace, TraceEvent, node, pod, rows

GPU_MILLI = "alibabacloud.com/gpu-milli"
"""The resource: thousandths of GPUs; a node has 1000 for each of its GPUs."""
GPU_MODEL = "alibabacloud.com/gpu-card-model"
"""The label of a node that names the model of its GPUs."""
WHOLE = 1000
PODS = "1001"
"""How many pods a node takes: the trace does not say, and no node of it ran as many."""

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")


def read(files: Sequence[str], advance: Advance) -> Trace:
    """The trace of a table of nodes and a table of tasks."""
    nodes_file, pods_file = files
    assumed = [
        f"a task's GPUs are a request for {GPU_MILLI}: less than 1000 is a share of one GPU, more are whole GPUs",
        f"the GPU models a task names are a required node affinity to label {GPU_MODEL}",
        f"a node takes {PODS} pods",
        "left out: qos, pod_phase",
    ]
    lines: dict[str, str] = {}
    nodes = [_node(row, lines) for row in rows(nodes_file, NODE_COLUMNS, advance)]
    if not nodes:
        raise InputError("has no nodes", nodes_file)
    return Trace(nodes, list(_tasks(pods_file, advance, assumed)), assumed)


def _node(row: Row, lines: dict[str, str]) -> Manifest:
    gpus, model = row.number("gpu"), _model(row.text("model"), "model", row)
    if gpus and not model:
        raise InputError("model is empty, but gpu is not 0", row.where)
    allocatable = {"cpu": f"{row.number('cpu_milli')}m", "memory": f"{row.number('memory_mib')}Mi", "pods": PODS}
    if gpus:
        allocatable[GPU_MILLI] = str(gpus * WHOLE)
    return node(row.new_name("sn", lines), allocatable, {GPU_MODEL: model} if model else {})


def _tasks(file: str, advance: Advance, assumed: list[str]) -> Iterator[TraceEvent]:
    untimed = unended = 0
    lines: dict[str, str] = {}
    for row in rows(file, POD_COLUMNS, advance):
        time, lifetime = row.number("creation_time", 0), None
        untimed += "creation_time" not in row
        if "deletion_time" in row:
            # Its lifetime counts from when it is scheduled, which may be another time in a simulation.
            since = row.number("scheduled_time", time)
            lifetime = max(row.number("deletion_time") - since, 0)
        else:
            unended += 1
        yield TraceEvent(time, _pod(row, lines), lifetime)
    if untimed:
        assumed.append(f"{untimed} tasks have no creation_time: they come at second 0")
    if unended:
        assumed.append(f"{unended} tasks have no deletion_time: they run on")


def _model(text: str, field: str, row: Row) -> str:
    problem = next(iter(label_value_errors(text)), "")
    if problem:
        raise InputError(f"{field} {text[:LONGEST_SHOWN]!r} cannot be the value of a label: it {problem}", row.where)
    return text


def _pod(row: Row, lines: dict[str, str]) -> Manifest:
    requests = {"cpu": f"{row.number('cpu_milli')}m", "memory": f"{row.number('memory_mib')}Mi"}
    gpus, milli = row.number("num_gpu"), row.number("gpu_milli", 0)
    spec: dict[str, Any] = {}
    if gpus:
        if not 0 < milli <= WHOLE or (gpus > 1 and milli < WHOLE):
            raise InputError(
                f"gpu_milli {milli} with num_gpu {gpus}: it is 1 to {WHOLE} for one GPU, {WHOLE} for several", row.where
            )
        requests[GPU_MILLI] = str(gpus * milli)
        models = [_model(model, "gpu_spec", row) for model in row.text("gpu_spec").split("|") if model]
        if models:
            spec["affinity"] = _on_models(models)
    return pod(row.new_name("name", lines), requests, labels={}, spec=spec)


def _on_models(models: list[str]) -> Manifest:
    term = {"matchExpressions": [{"key": GPU_MODEL, "operator": "In", "values": models}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
