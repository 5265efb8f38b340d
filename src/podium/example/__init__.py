"""The example fleet: 63 nodes in three zones and the workloads of a company, as Kubernetes documents."""

from __future__ import annotations

import json as json_format
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

import yaml
from msgspec.structs import replace

from podium.cluster import Cluster
from podium.engine.scheduler import Scheduler
from podium.example._fleet_objects import (
    CSI_DRIVER,
    DAEMONS,
    GPU,
    NAMESPACES,
    PRIORITIES,
    STORAGE_CLASS,
    WAITING,
    WORKLOADS,
    ZONES,
    Document,
    FleetWorkload,
    csi_nodes,
    happened_to,
    nodes,
)
from podium.manifests import load
from podium.manifests.defaults import generated_suffix, generated_uid
from podium.model import DaemonSet, Node, Pod
from podium.model.objects import ZONE
from podium.workloads.daemon_sets import should_run

REGISTRY = "registry.example"
APPS, BATCH = "apps/v1", "batch/v1"


def controllers(workload: FleetWorkload) -> Iterator[Document]:
    """The controller of a workload, for a Deployment also its ReplicaSet, then its Service and its budget."""
    wanted = workload.replicas + workload.pending
    template = {"metadata": {"labels": _labels(workload)}, "spec": pod_spec(workload)}
    selector = {"matchLabels": workload.selector}
    metadata = {"name": workload.name, "namespace": workload.namespace, "labels": workload.selector}
    match workload.kind:
        case "DaemonSet":
            yield _document(APPS, "DaemonSet", metadata, {"selector": selector, "template": template})
        case "StatefulSet":
            spec = {"replicas": wanted, "serviceName": workload.name, "selector": selector, "template": template}
            claims = {"volumeClaimTemplates": [_claim_template(workload)]}
            yield _document(APPS, "StatefulSet", metadata, {**spec, **claims})
        case "Job":
            yield _document(
                BATCH, "Job", metadata, {"parallelism": wanted, "completions": wanted, "template": template}
            )
        case _:
            plain = {"metadata": {"labels": workload.selector}, "spec": pod_spec(workload)}
            yield _document(APPS, "Deployment", metadata, {"replicas": wanted, "selector": selector, "template": plain})
            owner = _owner(APPS, "Deployment", workload.namespace, workload.name)
            owned = {"name": owner_name(workload), "labels": _labels(workload), "ownerReferences": [owner]}
            spec = {"replicas": wanted, "selector": {"matchLabels": _labels(workload)}, "template": template}
            yield _document(APPS, "ReplicaSet", {**metadata, **owned}, spec)
    yield from _extras(workload, metadata, selector)


def _extras(workload: FleetWorkload, metadata: Document, selector: Document) -> Iterator[Document]:
    if workload.service:
        ports = [{"name": "main", "port": 80}]
        yield _document("v1", "Service", metadata, {"selector": workload.selector, "ports": ports})
    if workload.budget is not None:
        budget = _document("policy/v1", "PodDisruptionBudget", metadata, {"selector": selector, **workload.budget})
        yield {**budget, "status": {"disruptionsAllowed": _disruptions_allowed(workload)}}


def pod(workload: FleetWorkload, number: int) -> Document:
    """One of the workload's pods, without a node."""
    name = f"{workload.name}-{number}"
    if workload.kind != "StatefulSet":
        name = f"{owner_name(workload)}-{generated_suffix(workload.namespace, workload.name, number)}"
    kind = "ReplicaSet" if workload.kind == "Deployment" else workload.kind
    owner = _owner(BATCH if kind == "Job" else APPS, kind, workload.namespace, owner_name(workload))
    labels = _labels(workload)
    spec = pod_spec(workload)
    if workload.volume:
        labels = {**labels, "statefulset.kubernetes.io/pod-name": name}
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}]
    metadata = {
        "name": name,
        "namespace": workload.namespace,
        "labels": labels,
        "ownerReferences": [owner],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def volumes(workload: FleetWorkload) -> Iterator[Document]:
    """The claim of each pod and, if the pod runs, its bound volume; the volumes take the zones in turn."""
    for number in range(workload.replicas + workload.pending):
        claim, volume = f"data-{workload.name}-{number}", f"pv-{workload.namespace}-{workload.name}-{number}"
        bound = number < workload.replicas
        spec = {**_claim_template(workload)["spec"], **({"volumeName": volume} if bound else {})}
        document = _document("v1", "PersistentVolumeClaim", {"name": claim, "namespace": workload.namespace}, spec)
        notes = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
        if bound:
            document["metadata"]["annotations"] = notes
        yield {**document, "status": {"phase": "Bound" if bound else "Pending"}}
        if bound:
            yield _volume(workload, volume, claim, ZONES[number % len(ZONES)])


def _volume(workload: FleetWorkload, name: str, claim: str, zone: str) -> Document:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    uid = generated_uid("PersistentVolumeClaim", workload.namespace, claim)
    spec = {
        "capacity": {"storage": workload.volume},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": STORAGE_CLASS,
        "claimRef": {"kind": "PersistentVolumeClaim", "namespace": workload.namespace, "name": claim, "uid": uid},
        "csi": {"driver": CSI_DRIVER, "volumeHandle": f"disk-{workload.name}-{claim[-1]}"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    return {**_document("v1", "PersistentVolume", {"name": name}, spec), "status": {"phase": "Bound"}}


def _claim_template(workload: FleetWorkload) -> Document:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": STORAGE_CLASS,
        "resources": {"requests": {"storage": workload.volume}},
    }
    return {"metadata": {"name": "data"}, "spec": spec}


def pod_spec(workload: FleetWorkload) -> Document:
    resources: Document = {"requests": {"cpu": workload.cpu, "memory": workload.memory}}
    if workload.gpus:
        resources["requests"][GPU] = resources.setdefault("limits", {})[GPU] = str(workload.gpus)
    image = workload.image or f"{workload.namespace}/{workload.name}:1.0"
    container: Document = {"name": "main", "image": f"{REGISTRY}/{image}", "resources": resources}
    if workload.host_port:
        container["ports"] = [{"containerPort": workload.host_port, "hostPort": workload.host_port}]
    spec: Document = {**workload.spec, "containers": [container]}
    if workload.priority:
        spec["priorityClassName"] = workload.priority
    return spec


def owner_name(workload: FleetWorkload) -> str:
    """The name of the pods' owner; for a Deployment, that of its ReplicaSet."""
    return f"{workload.name}-{_hash(workload)}" if workload.kind == "Deployment" else workload.name


def _labels(workload: FleetWorkload) -> dict[str, str]:
    return {**workload.selector, **({"pod-template-hash": _hash(workload)} if workload.kind == "Deployment" else {})}


def _hash(workload: FleetWorkload) -> str:
    return generated_suffix(workload.namespace, workload.name, length=6)


def _disruptions_allowed(workload: FleetWorkload) -> int:
    """How many pods the budget allows to disrupt if all are healthy."""
    budget, wanted = workload.budget or {}, workload.replicas + workload.pending
    if "maxUnavailable" in budget:
        return max(int(budget["maxUnavailable"]) - workload.pending, 0)
    least = str(budget["minAvailable"])
    needed = math.ceil(wanted * int(least[:-1]) / 100) if least.endswith("%") else int(least)
    return max(workload.replicas - needed, 0)


def _owner(api_version: str, kind: str, namespace: str, name: str) -> Document:
    """A reference to the controller, with the uid that loading gives to objects without one."""
    uid = generated_uid(kind, namespace, name)
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}


def _document(api_version: str, kind: str, metadata: Document, spec: Document) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": dict(metadata), "spec": spec}


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
    """The running pods, each on the node that the scheduler chose for it."""
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


def _stayed(workload: FleetWorkload) -> set[int]:
    """The numbers of a workload's pods that still run; those that ended are spread over the whole range."""
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
    """Give every pod a creation time, some minutes after the one before it."""
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
    """Writes YAML without anchors: an object that occurs twice is written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def fleet_text(*, json: bool = False) -> str:
    """The fleet: see `podium.example`."""
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
