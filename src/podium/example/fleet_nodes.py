"""The nodes of the example fleet: six pools in three zones, and the volumes they can attach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from podium.model.node import HOSTNAME, REGION, ZONE

Document = dict[str, Any]

ZONES = ("eu-1a", "eu-1b", "eu-1c")
GPU = "nvidia.com/gpu"
CSI_DRIVER = "disk.csi.example.com"

CORDONED = "general-b5"
"""Being repaired: cordoned, its pods not moved yet."""
UNDER_PRESSURE = "general-c2"
"""Its disk is nearly full: no new pods for now."""


class Pool(NamedTuple):
    """Nodes of one kind: so many in each zone."""

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
    Pool(
        "control",
        1,
        "std-4",
        "3800m",
        "14Gi",
        taints=({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},),
    ),
    Pool("general", 9, "std-8", "7800m", "29Gi", images=("shop/web:7.3", "shop/catalog:4.1")),
    Pool("compute", 3, "cpu-16", "15700m", "28Gi", images=("search/query:2.9",)),
    Pool(
        "data",
        3,
        "mem-8",
        "7800m",
        "60Gi",
        labels={"disktype": "ssd"},
        taints=({"key": "dedicated", "value": "data", "effect": "NoSchedule"},),
        volumes=8,
    ),
    Pool(
        "spot",
        3,
        "std-16",
        "15700m",
        "60Gi",
        labels={"lifecycle": "spot"},
        taints=({"key": "spot", "value": "true", "effect": "PreferNoSchedule"},),
    ),
    Pool(
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
    """Every node, pool by pool and zone by zone, as it was before anything happened to it."""
    for pool in POOLS:
        for zone in ZONES:
            for number in range(1, pool.per_zone + 1):
                yield _node(pool, zone, f"{pool.name}-{zone[-1]}{number}")


def csi_nodes() -> Iterator[Document]:
    """How many volumes each node can attach."""
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


def _node(pool: Pool, zone: str, name: str) -> Document:
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
    """The node as it is today: one is cordoned, one is short of disk."""
    name = node["metadata"]["name"]
    if name == CORDONED:
        taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        return {**node, "spec": {"unschedulable": True, "taints": [taint]}}
    if name == UNDER_PRESSURE:
        return {**node, "spec": {"taints": [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]}}
    return node
