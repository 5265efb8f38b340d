"""Workloads of the example fleet as Kubernetes documents: the controller, what goes with it, and its pods."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from podium.example.fleet_nodes import CSI_DRIVER, GPU, ZONES
from podium.example.fleet_workloads import STORAGE_CLASS, Workload
from podium.manifests.defaults import generated_suffix, generated_uid
from podium.model.node import ZONE

Document = dict[str, Any]

REGISTRY = "registry.example"
APPS, BATCH = "apps/v1", "batch/v1"


def controllers(workload: Workload) -> Iterator[Document]:
    """The workload's controller, of a Deployment also its ReplicaSet; then its service and its budget."""
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


def _extras(workload: Workload, metadata: Document, selector: Document) -> Iterator[Document]:
    if workload.service:
        ports = [{"name": "main", "port": 80}]
        yield _document("v1", "Service", metadata, {"selector": workload.selector, "ports": ports})
    if workload.budget is not None:
        budget = _document("policy/v1", "PodDisruptionBudget", metadata, {"selector": selector, **workload.budget})
        yield {**budget, "status": {"disruptionsAllowed": _disruptions_allowed(workload)}}


def pod(workload: Workload, number: int) -> Document:
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


def volumes(workload: Workload) -> Iterator[Document]:
    """The claim of each pod and, of one that runs, the volume bound to it: in one zone after the other."""
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


def _volume(workload: Workload, name: str, claim: str, zone: str) -> Document:
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


def _claim_template(workload: Workload) -> Document:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": STORAGE_CLASS,
        "resources": {"requests": {"storage": workload.volume}},
    }
    return {"metadata": {"name": "data"}, "spec": spec}


def pod_spec(workload: Workload) -> Document:
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


def owner_name(workload: Workload) -> str:
    """The name of what owns the pods: a Deployment's ReplicaSet is named after the template."""
    return f"{workload.name}-{_hash(workload)}" if workload.kind == "Deployment" else workload.name


def _labels(workload: Workload) -> dict[str, str]:
    return {**workload.selector, **({"pod-template-hash": _hash(workload)} if workload.kind == "Deployment" else {})}


def _hash(workload: Workload) -> str:
    return generated_suffix(workload.namespace, workload.name, length=6)


def _disruptions_allowed(workload: Workload) -> int:
    """How many of the running pods may go, given that all of them are healthy."""
    budget, wanted = workload.budget or {}, workload.replicas + workload.pending
    if "maxUnavailable" in budget:
        return max(int(budget["maxUnavailable"]) - workload.pending, 0)
    least = str(budget["minAvailable"])
    needed = math.ceil(wanted * int(least[:-1]) / 100) if least.endswith("%") else int(least)
    return max(workload.replicas - needed, 0)


def _owner(api_version: str, kind: str, namespace: str, name: str) -> Document:
    """A reference to the controller. Objects of the fleet have the uids that loading gives them."""
    uid = generated_uid(kind, namespace, name)
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}


def _document(api_version: str, kind: str, metadata: Document, spec: Document) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": dict(metadata), "spec": spec}
