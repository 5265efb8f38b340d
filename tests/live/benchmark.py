"""Podium and kube-scheduler on the same machine, one after the other: pods bound per second, from the start.

usage: make live-bench                          both shapes, and a large cluster
       python -m live.benchmark [SHAPE ...]     in tests/, after `make live-binaries`; the ratio is of pods per second
       python -m live.benchmark large [NODES]   Podium alone on a large cluster: its start, its memory, and at rest
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from live.cluster_objects import ZONE
from live.control_plane import ControlPlane, Process, control_plane
from live.many_objects import create_all, wait_for_bound
from live.schedulers import KubeScheduler, Podium, configuration

NODES, PODS = 1000, 5000
GREEN = {"matchLabels": {"color": "green"}}
SPREAD = {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": GREEN}
SHAPES: dict[str, dict[str, Any]] = {"basic": {}, "spread": {"topologySpreadConstraints": [SPREAD]}}


class Figure(NamedTuple):
    """Seconds from the start until the first and the last pod was bound, and of the scheduler's own processor time."""

    first: float
    last: float
    processor: float
    memory: float
    """In MB."""


def nodes(count: int) -> list[dict[str, Any]]:
    resources = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return [
        {
            "metadata": {"name": f"node-{k}", "labels": {ZONE: f"zone{k % 3}", "kubernetes.io/hostname": f"node-{k}"}},
            "status": {"allocatable": resources, "capacity": resources},
        }
        for k in range(count)
    ]


def pods(count: int, shape: str, scheduler: str) -> list[dict[str, Any]]:
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}}}
    spec = {"schedulerName": scheduler, "containers": [container], **SHAPES[shape]}
    return [{"metadata": {"name": f"pod-{k}", "labels": {"color": "green"}}, "spec": spec} for k in range(count)]


def start(scheduler: str, plane: ControlPlane) -> Process:
    config = configuration(plane, scheduler)
    return Podium(plane, config=config) if scheduler == "podium" else KubeScheduler(plane, config)


def measure(scheduler: str, shape: str) -> Figure:
    with control_plane() as plane:
        create_all(plane, "/api/v1/nodes", nodes(NODES))
        create_all(plane, "/api/v1/namespaces/default/pods", pods(PODS, shape, scheduler))
        begin = time.monotonic()
        process = start(scheduler, plane)
        try:
            times = wait_for_bound(plane, PODS, 600)
            used, memory = usage(process)
        finally:
            process.stop()
        return Figure(min(times) - begin, max(times) - begin, used, memory)


def measure_large(nodes_there: int) -> None:
    """Podium on a cluster with ten pods a node that run, and a hundred that wait: its start, then a minute of rest."""
    with control_plane() as plane:
        create_all(plane, "/api/v1/nodes", nodes(nodes_there))
        running = pods(10 * nodes_there, "basic", "other")
        for number, each in enumerate(running):
            each["metadata"]["name"] = f"running-{number}"
            each["spec"] = {**each["spec"], "nodeName": f"node-{number % nodes_there}"}
        create_all(plane, "/api/v1/namespaces/default/pods", running)
        create_all(plane, "/api/v1/namespaces/default/pods", pods(100, "basic", "podium"))
        begin = time.monotonic()
        process = start("podium", plane)
        try:
            times = wait_for_bound(plane, 100, 600, of=b'"schedulerName":"podium"')
            started, memory = usage(process)
            time.sleep(10)
            before, at = usage(process)[0], time.monotonic()
            time.sleep(60)
            rest = (usage(process)[0] - before) / (time.monotonic() - at)
        finally:
            process.stop()
    first, last = min(times) - begin, max(times) - begin
    print(
        f"{nodes_there:,} nodes: first {first:.1f} s  last {last:.1f} s  processor {started:.1f} s  {memory:.0f} MB  "
        f"at rest {rest:.2%} of a processor"
    )


def usage(process: Process) -> tuple[float, float]:
    """Processor seconds and most memory in MB of a process that runs."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    status = Path(f"/proc/{process.pid}/status").read_text()
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return ticks / 100, int(peak) / 1024


def main() -> None:
    """Measure one shape after the other, and print a table of them."""
    if sys.argv[1:2] == ["large"]:
        measure_large(int((sys.argv[2:] or ["5000"])[0]))
        return
    print(f"{NODES:,} nodes, {PODS:,} pods; seconds from the start of the scheduler")
    print(f"{'shape':8} {'scheduler':15} {'first':>6} {'last':>6} {'pods/s':>7} {'cpu s':>6} {'MB':>5} {'ratio':>6}")
    for shape in sys.argv[1:] or SHAPES:
        theirs = measure("kube-scheduler", shape)
        ours = measure("podium", shape)
        for name, figure in {"kube-scheduler": theirs, "podium": ours}.items():
            print(
                f"{shape:8} {name:15} {figure.first:6.1f} {figure.last:6.1f} {PODS / figure.last:7.0f} "
                f"{figure.processor:6.1f} {figure.memory:5.0f} {theirs.last / figure.last:6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
