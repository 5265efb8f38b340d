"""Random clusters with everything on: volumes, devices, budgets, priorities, spread, affinity and owners.

`random_cluster(seed)` is the same for the same seed. Its running pods are where the scheduler put them.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from podium.answers.simulation import place_in_order
from podium.cluster import Cluster
from podium.manifests import Objects, load
from podium.model import Object, Pod
from podium.workloads import expand_workloads

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
Document = dict[str, Any]

seeds = st.integers(0, 2**32)


@dataclass(frozen=True)
class RandomCluster:
    """A cluster with running pods, and workloads whose pods are still to be scheduled."""

    running: list[Object]
    """Nodes, running pods and everything else."""
    new: list[Document]
    """Workloads that come later, as documents."""

    @property
    def with_new(self) -> list[Object]:
        """The cluster with the pods of the new workloads, pending."""
        return list(expand_workloads(Objects([*self.running, *load(_listed(self.new))])))


def random_cluster(seed: int) -> RandomCluster:
    draw = Random(seed)
    names = [f"n{number}" for number in range(draw.randint(2, 5))]
    zones = {name: draw.choice("abc"[: draw.randint(1, 3)]) for name in names}
    documents = [_node(draw, name, zones[name]) for name in names]
    documents += [_slice(draw, name) for name in names if draw.random() < 0.4]
    documents += [_priority("low", -5), _priority("high", 100), _storage_class(), _device_class(), _claim_template()]
    documents += [_csi_node(name) for name in names]
    old = [workload for number in range(draw.randint(1, 4)) for workload in _workload(draw, f"old{number}")]
    new = [workload for number in range(draw.randint(1, 3)) for workload in _workload(draw, f"new{number}")]
    objects = expand_workloads(load(_listed([*documents, *old])))
    placed = place_in_order(Cluster.from_objects(objects), tie_break="first", messages=False)
    return RandomCluster(objects_of(placed.cluster, pending=False), new)


def objects_of(cluster: Cluster, *, pending: bool = True) -> list[Object]:
    """The objects of a cluster, with its pods where they are."""
    pods = [_running(pod, node) for pod, node in cluster.placed()]
    waiting = list(cluster.pending.values()) if pending else []
    return [*(cluster.node(name) for name in cluster.rows), *cluster.store, *pods, *waiting]


def _running(pod: Pod, node: str) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node), status=replace(pod.status, phase="Running"))


def _listed(documents: list[Document]) -> Document:
    return {"apiVersion": "v1", "kind": "List", "items": documents}


def _object(kind: str, name: str, group: str = "v1", **fields: Any) -> Document:
    labels, namespace = fields.pop("labels", {}), fields.pop("namespace", None)
    metadata = {"name": name, "labels": labels, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": group, "kind": kind, "metadata": metadata, **fields}


def _node(draw: Random, name: str, zone: str) -> Document:
    labels = {HOSTNAME: name, ZONE: zone, "disk": draw.choice(("ssd", "hdd"))}
    taints = [{"key": "team", "value": "a", "effect": "NoSchedule"}] if draw.random() < 0.15 else []
    allocatable = {
        "cpu": str(draw.randint(2, 6)),
        "memory": f"{draw.randint(4, 12)}Gi",
        "pods": str(draw.randint(3, 9)),
    }
    return _object("Node", name, labels=labels, spec={"taints": taints}, status={"allocatable": allocatable})


def _slice(draw: Random, node: str) -> Document:
    devices = [{"name": f"gpu{number}"} for number in range(draw.randint(1, 2))]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "pool": pool, "nodeName": node, "devices": devices}
    return _object("ResourceSlice", f"{node}-gpus", "resource.k8s.io/v1", spec=spec)


def _device_class() -> Document:
    return _object("DeviceClass", "gpu", "resource.k8s.io/v1", spec={})


def _claim_template() -> Document:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    spec = {"spec": {"devices": {"requests": [{"name": "one", "exactly": exactly}]}}}
    return _object("ResourceClaimTemplate", "one-gpu", "resource.k8s.io/v1", namespace="default", spec=spec)


def _priority(name: str, value: int) -> Document:
    return _object("PriorityClass", name, "scheduling.k8s.io/v1", value=value)


def _storage_class() -> Document:
    fields = {"provisioner": "disk.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
    return _object("StorageClass", "zonal", "storage.k8s.io/v1", **fields)


def _csi_node(name: str) -> Document:
    driver = {"name": "disk.example.com", "nodeID": name, "topologyKeys": [ZONE], "allocatable": {"count": 3}}
    return _object("CSINode", name, "storage.k8s.io/v1", spec={"drivers": [driver]})


def _workload(draw: Random, name: str) -> list[Document]:
    """A ReplicaSet or a StatefulSet, perhaps with a budget, or a pod without a controller."""
    labels = {"app": name, "tier": draw.choice(("front", "back"))}
    kind = draw.choice(("ReplicaSet", "ReplicaSet", "Deployment", "StatefulSet", "Pod"))
    spec = _pod_spec(draw, labels)
    if kind == "Pod":
        return [_object("Pod", name, namespace="default", labels=labels, spec=spec)]
    wanted: Document = {
        "replicas": draw.randint(1, 4),
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": labels}, "spec": spec},
    }
    if kind == "StatefulSet" and draw.random() < 0.5:
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        wanted["volumeClaimTemplates"] = [
            {"metadata": {"name": "data"}, "spec": {**claim, "storageClassName": "zonal"}}
        ]
    made = [_object(kind, name, "apps/v1", namespace="default", spec=wanted)]
    if draw.random() < 0.4:
        bound = draw.choice(({"minAvailable": draw.randint(0, 3)}, {"maxUnavailable": draw.randint(0, 1)}))
        budget = {"selector": {"matchLabels": {"app": name}}, **bound}
        made.append(_object("PodDisruptionBudget", name, "policy/v1", namespace="default", spec=budget))
    return made


def _pod_spec(draw: Random, labels: dict[str, str]) -> Document:
    requests = {"cpu": f"{draw.choice((250, 500, 1000, 2000))}m", "memory": f"{draw.choice((256, 512, 2048))}Mi"}
    container: Document = {"name": "main", "image": "app", "resources": {"requests": requests}}
    spec: Document = {"containers": [container]}
    if draw.random() < 0.5:
        spec["priorityClassName"] = draw.choice(("low", "high"))
    if draw.random() < 0.15:
        spec["nodeSelector"] = {"disk": draw.choice(("ssd", "hdd"))}
    if draw.random() < 0.2:
        spec["tolerations"] = [{"key": "team", "operator": "Exists"}]
    if draw.random() < 0.15:
        container["resources"]["claims"] = [{"name": "gpu"}]
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    if draw.random() < 0.1:
        container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    about = draw.choice(({"app": labels["app"]}, {"tier": draw.choice(("front", "back"))}))
    selector = {"labelSelector": {"matchLabels": about}}
    if draw.random() < 0.3:
        action = draw.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"))
        key = draw.choice((ZONE, HOSTNAME))
        spread = {"maxSkew": draw.randint(1, 2), "topologyKey": key, "whenUnsatisfiable": action, **selector}
        spec["topologySpreadConstraints"] = [spread]
    if draw.random() < 0.25:
        term = {"topologyKey": draw.choice((ZONE, HOSTNAME)), **selector}
        kind = draw.choice(("podAffinity", "podAntiAffinity", "podAntiAffinity"))
        spec["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return spec
