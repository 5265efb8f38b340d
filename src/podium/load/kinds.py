"""Which kinds scheduling reads: their API groups, and whether they live in a namespace."""

from __future__ import annotations

from functools import lru_cache

from podium.objects import KINDS, Object

DEFAULT_NAMESPACE = "default"

GROUPS: dict[str, tuple[str, ...]] = {
    "apps": ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "batch": ("CronJob", "Job"),
    "extensions": ("DaemonSet", "Deployment", "ReplicaSet"),
    "policy": ("PodDisruptionBudget",),
    "resource.k8s.io": (
        "DeviceClass",
        "DeviceTaintRule",
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourceSlice",
    ),
    "scheduling.k8s.io": ("PriorityClass",),
    "storage.k8s.io": ("CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment"),
}
"""The kinds outside the core group. The same names in other groups are other things."""

CLUSTER_SCOPED = frozenset(
    (
        "CSIDriver",
        "CSINode",
        "DeviceClass",
        "DeviceTaintRule",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "ResourceSlice",
        "StorageClass",
        "VolumeAttachment",
    )
)


@lru_cache(maxsize=1024)
def type_of(kind: str, api_version: str) -> type[Object] | None:
    """The type of a kind that scheduling reads, or None; without an API group the kind alone decides."""
    group = api_version.rpartition("/")[0]
    return KINDS[kind] if kind in (GROUPS.get(group, ()) if group else KINDS) else None


def effective_namespace(kind: str, namespace: str) -> str:
    """The namespace an object of this kind is in: none, the one it names, or the default one."""
    return "" if kind in CLUSTER_SCOPED else namespace or DEFAULT_NAMESPACE


def full_name(kind: str, namespace: str, name: str) -> str:
    """`Pod default/web`, `Node n1`."""
    namespace = effective_namespace(kind, namespace)
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
