"""The example fleet: 63 nodes in three zones with what a company runs on them, grown over a while.

Everything comes from the tables in `fleet_nodes` and `fleet_workloads`. Pods came in the order of those tables and went
where the scheduler put them; then the busiest workloads shrank again, one node was cordoned and one ran out of disk. So
the fleet is as uneven as a real one, and the same in every run.
"""

from __future__ import annotations

import json as json_format
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

import yaml
from msgspec.structs import replace

from podium.cluster import Cluster
from podium.engine.scheduler import Scheduler
from podium.example.fleet_documents import controllers, pod, volumes
from podium.example.fleet_nodes import CSI_DRIVER, csi_nodes, happened_to, nodes
from podium.example.fleet_workloads import (
    DAEMONS,
    NAMESPACES,
    PRIORITIES,
    STORAGE_CLASS,
    WAITING,
    WORKLOADS,
    Workload,
)
from podium.manifests import load
from podium.manifests.defaults import generated_suffix
from podium.manifests.workloads import should_run
from podium.model import DaemonSet, Node, Pod

Document = dict[str, Any]

SEED = 7
_FIRST_CREATED = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
_BETWEEN_PODS = timedelta(minutes=3)


def fleet() -> list[Document]:
    """Every object of the fleet as a Kubernetes document; pending pods come last."""
    surroundings = [*_cluster_scoped(), *_namespaced()]
    running = _run([*nodes(), *surroundings])
    documents = [*map(happened_to, nodes()), *surroundings, *running, *_pending()]
    return _with_times(documents)


def _cluster_scoped() -> Iterator[Document]:
    for name, team in NAMESPACES.items():
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": team}}}
    for name, value in PRIORITIES.items():
        policy = {"preemptionPolicy": "Never"} if value < 0 else {}
        group = "scheduling.k8s.io/v1"
        yield {"apiVersion": group, "kind": "PriorityClass", "metadata": {"name": name}, "value": value, **policy}
    yield {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": STORAGE_CLASS},
        "provisioner": CSI_DRIVER,
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    yield {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": CSI_DRIVER},
        "spec": {"attachRequired": True},
    }
    yield from csi_nodes()


def _namespaced() -> Iterator[Document]:
    for workload in (*DAEMONS, *WORKLOADS, *WAITING):
        yield from controllers(workload)
        if workload.volume:
            yield from volumes(workload)


def _run(documents: list[Document]) -> list[Document]:
    """The running pods, each on the node the scheduler chose when it came."""
    objects = load(documents)
    cluster = Cluster.from_objects(objects)
    running = [*_daemon_pods(objects.of(DaemonSet), objects.of(Node))]
    for daemon in load(documents, running).of(Pod):
        cluster.add(daemon)
    scheduler = Scheduler(cluster, tie_break="random", seed=SEED)
    for workload in WORKLOADS:
        stayed = _stayed(workload)
        for number in range(max(workload.peak, workload.replicas)):
            placed = _placed(scheduler, pod(workload, number))
            running += [placed] if number in stayed else []
    return running


def _stayed(workload: Workload) -> set[int]:
    """Which of a workload's pods still run: those that went again came among the others."""
    order = sorted(range(workload.peak), key=lambda number: generated_suffix("went", workload.name, number))
    return set(order[: workload.replicas] or range(workload.replicas))


def _placed(scheduler: Scheduler, document: Document) -> Document:
    (item,) = load([document]).of(Pod)
    node = scheduler.schedule(replace(item, status=replace(item.status, phase="")))
    if node is None:
        raise AssertionError(f"the example fleet has no room for {item.key}")
    return _on(document, node)


def _daemon_pods(daemon_sets: list[DaemonSet], on: list[Node]) -> Iterator[Document]:
    """A pod of every DaemonSet on every node it is meant for."""
    by_name = {workload.name: workload for workload in DAEMONS}
    for daemon_set in daemon_sets:
        workload = by_name[daemon_set.name]
        eligible = [node for node in on if should_run(daemon_set.spec.template, node)]
        for number, node in enumerate(eligible):
            yield _on(pod(workload, number), node.name)


def _on(document: Document, node: str) -> Document:
    return {**document, "spec": {**document["spec"], "nodeName": node}, "status": {"phase": "Running"}}


def _pending() -> Iterator[Document]:
    for workload in (*WORKLOADS, *WAITING):
        first = max(workload.peak, workload.replicas)
        for number in range(first, first + workload.pending):
            yield pod(workload, number)


def _with_times(documents: list[Document]) -> list[Document]:
    """Every pod created some minutes after the one before it."""
    created = _FIRST_CREATED
    for document in documents:
        if document["kind"] == "Pod":
            created += _BETWEEN_PODS
            text = created.strftime("%Y-%m-%dT%H:%M:%SZ")
            document["metadata"] = {**document["metadata"], "creationTimestamp": text}
            if "nodeName" in document["spec"]:
                document["status"] = {**document["status"], "startTime": text}
    return documents


class _Plain(yaml.CSafeDumper):
    """Writes what occurs twice twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def fleet_text(*, json: bool = False) -> str:
    """The fleet: see `podium.example.fleet`."""
    return _text({"apiVersion": "v1", "kind": "List", "items": fleet()}, json)


def shop_text(*, json: bool = False) -> str:
    """The small cluster that `podium demo` explains."""
    return _text_of_file("cluster.yaml", json)


def gpus_text(*, json: bool = False) -> str:
    """A small cluster with devices: GPUs, some in partitions, some tainted, and a network card that pods share."""
    return _text_of_file("gpus.yaml", json)


def _text_of_file(name: str, json: bool) -> str:
    text = (files("podium.example") / name).read_text()
    return _text(yaml.load(text, yaml.CSafeLoader), json) if json else text


def _text(document: dict[str, Any], json: bool) -> str:
    if json:
        return json_format.dumps(document, indent=1) + "\n"
    return yaml.dump(document, Dumper=_Plain, sort_keys=False, default_flow_style=None, width=160)
