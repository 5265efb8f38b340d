"""The nodes of the example fleet, six pools in three zones, and its workloads: shop, payments, search, data, batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from podium.model.objects import HOSTNAME, REGION, ZONE

Document = dict[str, Any]

ZONES = ("eu-1a", "eu-1b", "eu-1c")
GPU = "nvidia.com/gpu"
CSI_DRIVER = "disk.csi.example.com"

CORDONED = "general-b5"
"""A node that is being repaired: cordoned, with its pods still on it."""
UNDER_PRESSURE = "general-c2"
"""A node whose disk is nearly full, so that it takes no new pods."""


class NodePool(NamedTuple):
    """A pool of equal nodes, with the same number in each zone."""

    name: str
    per_zone: int
    instance: str
    cpu: str
    memory: str
    labels: dict[str, str] = {}
    taints: tuple[Document, ...] = ()
    gpus: int = 0
    volumes: int = 24
    images: tuple[str, ...] = ()


POOLS = (
    NodePool(
        "control",
        1,
        "std-4",
        "3800m",
        "14Gi",
        taints=({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},),
    ),
    NodePool("general", 9, "std-8", "7800m", "29Gi", images=("shop/web:7.3", "shop/catalog:4.1")),
    NodePool("compute", 3, "cpu-16", "15700m", "28Gi", images=("search/query:2.9",)),
    NodePool(
        "data",
        3,
        "mem-8",
        "7800m",
        "60Gi",
        labels={"disktype": "ssd"},
        taints=({"key": "dedicated", "value": "data", "effect": "NoSchedule"},),
        volumes=8,
    ),
    NodePool(
        "spot",
        3,
        "std-16",
        "15700m",
        "60Gi",
        labels={"lifecycle": "spot"},
        taints=({"key": "spot", "value": "true", "effect": "PreferNoSchedule"},),
    ),
    NodePool(
        "gpu",
        2,
        "gpu-32",
        "31600m",
        "120Gi",
        labels={"accelerator": "a100"},
        taints=({"key": GPU, "value": "present", "effect": "NoSchedule"},),
        gpus=4,
        images=("ml/serve:12",),
    ),
)

IMAGE_SIZES = {
    "shop/web:7.3": 410_000_000,
    "shop/catalog:4.1": 280_000_000,
    "search/query:2.9": 690_000_000,
    "ml/serve:12": 4_200_000_000,
}


def nodes() -> Iterator[Document]:
    """Every node, pool by pool and zone by zone, before `happened_to` changes some."""
    for pool in POOLS:
        for zone in ZONES:
            for number in range(1, pool.per_zone + 1):
                yield _node(pool, zone, f"{pool.name}-{zone[-1]}{number}")


def csi_nodes() -> Iterator[Document]:
    """The CSINodes: how many volumes each node can attach."""
    volumes = {pool.name: pool.volumes for pool in POOLS}
    for node in nodes():
        name = node["metadata"]["name"]
        driver = {
            "name": CSI_DRIVER,
            "nodeID": name,
            "topologyKeys": [ZONE],
            "allocatable": {"count": volumes[name.partition("-")[0]]},
        }
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": name},
            "spec": {"drivers": [driver]},
        }


def _node(pool: NodePool, zone: str, name: str) -> Document:
    labels = {
        HOSTNAME: name,
        ZONE: zone,
        REGION: "eu-1",
        "node.kubernetes.io/instance-type": pool.instance,
        "kubernetes.io/arch": "amd64",
        "pool": pool.name,
        **pool.labels,
    }
    allocatable = {"cpu": pool.cpu, "memory": pool.memory, "pods": "60"}
    if pool.gpus:
        allocatable[GPU] = str(pool.gpus)
    document: Document = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": allocatable},
    }
    if pool.taints:
        document["spec"] = {"taints": [dict(taint) for taint in pool.taints]}
    if pool.images:
        images = [f"registry.example/{image}" for image in pool.images]
        sizes = [IMAGE_SIZES[image] for image in pool.images]
        document["status"]["images"] = [
            {"names": [image], "sizeBytes": size} for image, size in zip(images, sizes, strict=True)
        ]
    return document


def happened_to(node: Document) -> Document:
    """The node as it is today: `CORDONED` is cordoned, `UNDER_PRESSURE` has disk pressure."""
    name = node["metadata"]["name"]
    if name == CORDONED:
        taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        return {**node, "spec": {"unschedulable": True, "taints": [taint]}}
    if name == UNDER_PRESSURE:
        return {**node, "spec": {"taints": [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]}}
    return node


NAMESPACES = {
    "shop": "web",
    "payments": "web",
    "search": "search",
    "data": "platform",
    "ml": "research",
    "batch": "platform",
    "monitoring": "platform",
    "kube-system": "platform",
}
"""The team of each namespace."""

PRIORITIES = {"production": 1000, "batch": -10}

STORAGE_CLASS = "zonal-ssd"


@dataclass(frozen=True, kw_only=True)
class FleetWorkload:
    """A workload: `replicas` pods run, there were once `peak`, and `pending` more wait for a node."""

    kind: str
    namespace: str
    name: str
    replicas: int = 0
    cpu: str
    memory: str
    image: str = ""
    peak: int = 0
    pending: int = 0
    priority: str = ""
    gpus: int = 0
    host_port: int = 0
    spec: Document = field(default_factory=dict)
    """Other fields of the pod's spec."""
    service: bool = False
    budget: Document | None = None
    """The spec of its PodDisruptionBudget: `minAvailable` or `maxUnavailable`."""
    volume: str = ""
    """The size of each pod's zonal volume, for a StatefulSet."""

    @property
    def selector(self) -> dict[str, str]:
        return {"app": self.name}


def _spread(app: str, key: str, *, hard: bool, skew: int = 1) -> Document:
    return {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}},
    }


def _apart(app: str, key: str = HOSTNAME) -> Document:
    """Required anti-affinity: no two pods of the app in one topology domain."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _near(app: str, weight: int, namespace: str = "data") -> Document:
    """Preferred affinity: in a zone with a pod of the app."""
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}, "namespaces": [namespace]}
    weighted = {"weight": weight, "podAffinityTerm": term}
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}


def _in_pools(*pools: str) -> Document:
    expression = {"key": "pool", "operator": "In", "values": list(pools)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _rather_in(pool: str, weight: int) -> Document:
    preference = {"matchExpressions": [{"key": "pool", "operator": "In", "values": [pool]}]}
    weighted = {"weight": weight, "preference": preference}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}


ANYTHING: Document = {"operator": "Exists"}
DATA: Document = {"key": "dedicated", "value": "data", "effect": "NoSchedule"}
SPOT: Document = {"key": "spot", "operator": "Exists"}
ON_GPUS: Document = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}


def _on_data_nodes(app: str, key: str = HOSTNAME) -> Document:
    return {"tolerations": [DATA], "nodeSelector": {"pool": "data"}, "affinity": _apart(app, key)}


DAEMONS = (
    FleetWorkload(
        kind="DaemonSet",
        namespace="kube-system",
        name="cni",
        cpu="150m",
        memory="128Mi",
        priority="system-node-critical",
        spec={"tolerations": [ANYTHING], "hostNetwork": True},
    ),
    FleetWorkload(
        kind="DaemonSet",
        namespace="monitoring",
        name="node-exporter",
        cpu="100m",
        memory="64Mi",
        host_port=9100,
        spec={"tolerations": [ANYTHING]},
    ),
    FleetWorkload(
        kind="DaemonSet",
        namespace="kube-system",
        name="gpu-plugin",
        cpu="100m",
        memory="128Mi",
        priority="system-node-critical",
        spec={"tolerations": [ON_GPUS], "nodeSelector": {"pool": "gpu"}},
    ),
)
"""The DaemonSets: on every node, or on every node of some pools."""

WORKLOADS = (
    FleetWorkload(
        kind="Deployment",
        namespace="kube-system",
        name="dns",
        replicas=6,
        cpu="250m",
        memory="256Mi",
        priority="system-cluster-critical",
        service=True,
        budget={"maxUnavailable": 1},
        spec={"topologySpreadConstraints": [_spread("dns", ZONE, hard=True)]},
    ),
    FleetWorkload(
        kind="Deployment",
        namespace="kube-system",
        name="ingress",
        replicas=9,
        cpu="1",
        memory="1Gi",
        host_port=443,
        priority="production",
        service=True,
        budget={"minAvailable": 7},
        spec={"affinity": _in_pools("general"), "topologySpreadConstraints": [_spread("ingress", ZONE, hard=True)]},
    ),
    FleetWorkload(
        kind="StatefulSet",
        namespace="data",
        name="kafka",
        replicas=6,
        cpu="3",
        memory="16Gi",
        volume="500Gi",
        priority="production",
        service=True,
        budget={"maxUnavailable": 1},
        spec=_on_data_nodes("kafka"),
    ),
    FleetWorkload(
        kind="StatefulSet",
        namespace="payments",
        name="ledger",
        replicas=3,
        cpu="2",
        memory="12Gi",
        volume="200Gi",
        priority="production",
        service=True,
        budget={"minAvailable": 2},
        spec=_on_data_nodes("ledger", ZONE),
    ),
    FleetWorkload(
        kind="StatefulSet",
        namespace="search",
        name="index",
        replicas=9,
        pending=1,
        cpu="2",
        memory="14Gi",
        volume="300Gi",
        service=True,
        budget={"maxUnavailable": 1},
        spec=_on_data_nodes("index"),
    ),
    FleetWorkload(
        kind="StatefulSet",
        namespace="data",
        name="redis",
        replicas=3,
        cpu="1",
        memory="6Gi",
        volume="20Gi",
        priority="production",
        service=True,
        spec={"topologySpreadConstraints": [_spread("redis", ZONE, hard=True)]},
    ),
    FleetWorkload(
        kind="Job",
        namespace="batch",
        name="report",
        replicas=24,
        peak=44,
        cpu="1500m",
        memory="5Gi",
        priority="batch",
        spec={"tolerations": [SPOT], "affinity": _rather_in("spot", 80)},
    ),
    FleetWorkload(
        kind="Deployment",
        namespace="shop",
        name="web",
        replicas=34,
        peak=45,
        pending=2,
        cpu="1200m",
        memory="2Gi",
        image="shop/web:7.3",
        priority="production",
        service=True,
        budget={"minAvailable": "80%"},
        spec={"topologySpreadConstraints": [_spread("web", ZONE, hard=True), _spread("web", HOSTNAME, hard=False)]},
    ),
    FleetWorkload(
        kind="Deployment",
        namespace="shop",
        name="catalog",
        replicas=24,
        cpu="800m",
        memory="3Gi",
        image="shop/catalog:4.1",
        service=True,
    ),
    FleetWorkload(
        kind="Deployment",
        namespace="shop",
        name="cart",
        replicas=18,
        cpu="500m",
        memory="1Gi",
        service=True,
        spec={"affinity": _near("redis", 60)},
    ),
    FleetWorkload(
        kind="Deployment",
        namespace="shop",
        name="checkout",
        replicas=12,
        cpu="1",
        memory="2Gi",
        priority="production",
        service=True,
        budget={"maxUnavailable": 1},
        spec={"affinity": _apart("checkout")},
    ),
    FleetWorkload(
        kind="Deployment",
        namespace="payments",
        name="api",
        replicas=9,
        peak=15,
        cpu="1500m",
        memory="3Gi",
        priority="production",
        service=True,
        budget={"minAvailable": 6},
        spec={
            "affinity": {**_in_pools("general", "compute"), **_near("ledger", 100, "payments")},
            "topologySpreadConstraints": [_spread("api", ZONE, hard=False)],
        },
    ),
    FleetWorkload(
        kind="Deployment",
        namespace="search",
        name="query",
        replicas=30,
        cpu="2200m",
        memory="4Gi",
        image="search/query:2.9",
        priority="production",
        service=True,
        budget={"minAvailable": "75%"},
        spec={"affinity": _rather_in("compute", 100)},
    ),
    FleetWorkload(
        kind="Deployment",
        namespace="data",
        name="stream",
        replicas=33,
        peak=40,
        cpu="1",
        memory="5Gi",
        service=True,
        spec={"affinity": _near("kafka", 30)},
    ),
    FleetWorkload(
        kind="Deployment",
        namespace="ml",
        name="serve",
        replicas=9,
        cpu="4",
        memory="20Gi",
        gpus=1,
        image="ml/serve:12",
        priority="production",
        service=True,
        budget={"minAvailable": 6},
        spec={"tolerations": [ON_GPUS], "topologySpreadConstraints": [_spread("serve", ZONE, hard=True)]},
    ),
    FleetWorkload(
        kind="Job",
        namespace="ml",
        name="train",
        replicas=5,
        cpu="8",
        memory="40Gi",
        gpus=2,
        priority="batch",
        spec={"tolerations": [ON_GPUS]},
    ),
    FleetWorkload(
        kind="StatefulSet",
        namespace="monitoring",
        name="prometheus",
        replicas=2,
        cpu="3",
        memory="20Gi",
        volume="400Gi",
        service=True,
        spec={"affinity": _apart("prometheus", ZONE)},
    ),
    FleetWorkload(kind="Deployment", namespace="monitoring", name="grafana", replicas=2, cpu="500m", memory="1Gi"),
    FleetWorkload(
        kind="Job",
        namespace="batch",
        name="thumbnails",
        replicas=36,
        peak=50,
        cpu="500m",
        memory="1536Mi",
        priority="batch",
        spec={"tolerations": [SPOT]},
    ),
)
"""The workloads, in the order in which they were created."""

WAITING = (
    FleetWorkload(
        kind="Job",
        namespace="ml",
        name="train-xl",
        pending=2,
        cpu="16",
        memory="80Gi",
        gpus=4,
        spec={"tolerations": [ON_GPUS]},
    ),
    FleetWorkload(
        kind="Deployment",
        namespace="payments",
        name="audit",
        pending=1,
        cpu="1",
        memory="4Gi",
        priority="production",
        spec={"nodeSelector": {"disktype": "nvme"}, "affinity": _in_pools("general", "compute")},
    ),
    FleetWorkload(
        kind="Job",
        namespace="batch",
        name="reindex",
        pending=4,
        cpu="3",
        memory="10Gi",
        priority="batch",
        spec={"tolerations": [SPOT], "affinity": _rather_in("spot", 50)},
    ),
)
"""The workloads created just now: none of their pods runs yet."""
