"""Volumes, claims and their kin for tests, in few words; fields of a spec are written as in YAML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from builders import expression, make_pod
from podium.manifests import load
from podium.model import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Object,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    VolumeAttachment,
)

Fields = dict[str, Any]

BIND_COMPLETED = {"pv.kubernetes.io/bind-completed": "yes"}
SELECTED_NODE = "volume.kubernetes.io/selected-node"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
DRIVER = "csi.example.com"


def _make(kind: str, name: str, fields: Fields, metadata: Fields) -> Object:
    group = "v1" if kind.startswith("Persistent") else "storage.k8s.io/v1"
    (made,) = load({"apiVersion": group, "kind": kind, "metadata": {"name": name, **metadata}, **fields})
    return made


def make_volume(
    name: str,
    size: str = "1Gi",
    *,
    storage_class: str = "",
    claim: PersistentVolumeClaim | Fields | None = None,
    nodes: Iterable[Fields] | None = None,
    modes: Iterable[str] = ("ReadWriteOnce",),
    phase: str = "Available",
    labels: Mapping[str, str] | None = None,
    metadata: Fields | None = None,
    **spec: Any,
) -> PersistentVolume:
    """A PersistentVolume of a CSI driver, or of the source that `spec` has; `nodes` are its affinity's expressions."""
    fields: Fields = {"capacity": {"storage": size}, "accessModes": list(modes), "storageClassName": storage_class}
    if isinstance(claim, PersistentVolumeClaim):
        claim = {"namespace": claim.namespace, "name": claim.name, "uid": claim.metadata.uid}
    if claim is not None:
        fields["claimRef"] = claim
    if nodes is not None:
        fields["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": list(nodes)}]}}
    source = {} if spec else {"csi": {"driver": DRIVER, "volumeHandle": name}}
    made = _make(
        "PersistentVolume",
        name,
        {"spec": {**fields, **source, **spec}, "status": {"phase": phase}},
        {"labels": dict(labels or {}), **(metadata or {})},
    )
    assert isinstance(made, PersistentVolume)
    return made


def make_claim(
    name: str,
    size: str = "1Gi",
    *,
    storage_class: str | None = "",
    volume: str = "",
    modes: Iterable[str] = ("ReadWriteOnce",),
    namespace: str = "default",
    owner: Pod | None = None,
    phase: str = "Pending",
    annotations: Mapping[str, str] | None = None,
    metadata: Fields | None = None,
    **spec: Any,
) -> PersistentVolumeClaim:
    """A claim, fully bound if it names a volume; `owner` is the pod whose ephemeral volume it is for."""
    fields: Fields = {"accessModes": list(modes), "resources": {"requests": {"storage": size}}, "volumeName": volume}
    if storage_class is not None:
        fields["storageClassName"] = storage_class
    notes = dict(annotations) if annotations is not None else dict(BIND_COMPLETED) if volume else {}
    owners: Fields = {}
    if owner is not None:
        reference = {"apiVersion": "v1", "kind": "Pod", "name": owner.name, "uid": owner.metadata.uid}
        owners = {"ownerReferences": [{**reference, "controller": True}]}
    made = _make(
        "PersistentVolumeClaim",
        name,
        {"spec": {**fields, **spec}, "status": {"phase": phase}},
        {"namespace": namespace, "uid": f"uid of {name}", "annotations": notes, **owners, **(metadata or {})},
    )
    assert isinstance(made, PersistentVolumeClaim)
    return made


def bound(name: str = "data", **volume: Any) -> list[Object]:
    """A claim and the volume it is bound to."""
    claim = make_claim(name, volume=f"{name}-volume", phase="Bound")
    return [claim, make_volume(f"{name}-volume", claim=claim, phase="Bound", **volume)]


def make_class(name: str, provisioner: str = DRIVER, *, waits: bool = True, **fields: Any) -> StorageClass:
    """A storage class that waits for the first pod, or, without `waits`, binds at once."""
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    made = _make("StorageClass", name, {"provisioner": provisioner, "volumeBindingMode": mode, **fields}, {})
    assert isinstance(made, StorageClass)
    return made


def make_csi_node(name: str, limits: Mapping[str, int | None], migrated: Iterable[str] = ()) -> CSINode:
    """A CSINode: how many volumes of each driver the node can attach, None for a driver without limit."""
    drivers = [
        {
            "name": driver,
            "nodeID": name,
            "topologyKeys": [],
            **({} if count is None else {"allocatable": {"count": count}}),
        }
        for driver, count in limits.items()
    ]
    annotations = {"annotations": {MIGRATED_PLUGINS: ",".join(migrated)}} if migrated else {}
    made = _make("CSINode", name, {"spec": {"drivers": drivers}}, annotations)
    assert isinstance(made, CSINode)
    return made


def make_driver(name: str = DRIVER, *, reports_capacity: bool) -> CSIDriver:
    made = _make("CSIDriver", name, {"spec": {"storageCapacity": reports_capacity}}, {})
    assert isinstance(made, CSIDriver)
    return made


def make_capacity(name: str, storage_class: str, topology: Fields | None, **amounts: str) -> CSIStorageCapacity:
    """How much of a class there is for the nodes that `topology`, a label selector, selects."""
    fields: Fields = {"storageClassName": storage_class, **amounts}
    if topology is not None:
        fields["nodeTopology"] = topology
    made = _make("CSIStorageCapacity", name, fields, {"namespace": "kube-system"})
    assert isinstance(made, CSIStorageCapacity)
    return made


def make_attachment(name: str, node: str, volume: str | None, attacher: str = DRIVER) -> VolumeAttachment:
    source = {} if volume is None else {"persistentVolumeName": volume}
    made = _make("VolumeAttachment", name, {"spec": {"attacher": attacher, "nodeName": node, "source": source}}, {})
    assert isinstance(made, VolumeAttachment)
    return made


def uses(*claims: str) -> list[Fields]:
    """Volumes of a pod that uses these claims."""
    return [{"name": f"v{place}", "persistentVolumeClaim": {"claimName": name}} for place, name in enumerate(claims)]


def ephemeral(*names: str) -> list[Fields]:
    """Generic ephemeral volumes of a pod."""
    return [{"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": {}}}} for name in names]


def inline(*sources: Fields) -> list[Fields]:
    """Volumes of a pod that name their source, such as an in-tree disk."""
    return [{"name": f"v{place}", **source} for place, source in enumerate(sources)]


def pod_with(volumes: list[Fields], name: str = "pod", **fields: Any) -> Pod:
    return make_pod(name, volumes=volumes, **fields)


def on_label(key: str, *values: str) -> list[Fields]:
    """The affinity of a volume that can be used from nodes with one of these values of a label."""
    return [expression(key, "In", *values)]
