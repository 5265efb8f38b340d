"""Volumes, claims, and pods that use them, for tests, in few words; fields of a spec are written as in YAML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from builders import Fields, expression, make_object, make_pod
from csi_objects import DRIVER
from podium.model import Object, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass

BIND_COMPLETED = {"pv.kubernetes.io/bind-completed": "yes"}


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
    made = make_object(
        "PersistentVolume",
        name,
        labels=dict(labels or {}),
        metadata=metadata,
        spec={**fields, **source, **spec},
        status={"phase": phase},
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
    made = make_object(
        "PersistentVolumeClaim",
        name,
        metadata={"namespace": namespace, "uid": f"uid of {name}", "annotations": notes, **owners, **(metadata or {})},
        spec={**fields, **spec},
        status={"phase": phase},
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
    made = make_object("StorageClass", name, provisioner=provisioner, volumeBindingMode=mode, **fields)
    assert isinstance(made, StorageClass)
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
