"""A pod's claims: their names, their owners, their storage classes, and whether they are bound."""

from __future__ import annotations

from podium.framework.events import WaitingPod
from podium.model import PersistentVolume, PersistentVolumeClaim, Pod, Volume

BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
STORAGE = "storage"

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """The name of the claim a volume stands for; None for a volume without one.

    The claim of a generic ephemeral volume is named after the pod and the volume.
    """
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else None


def uses_claims(pod: Pod) -> bool:
    return any(v.persistent_volume_claim is not None or v.ephemeral is not None for v in pod.spec.volumes)


def names_claim(waiting: WaitingPod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    """The hint for claims that the waiting pod names itself, not as a generic ephemeral volume."""
    return waiting.pod.namespace == new.namespace and new.name in claims_named(waiting.pod)


def uses_claim(waiting: WaitingPod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    """The hint for claims that the waiting pod uses, also as a generic ephemeral volume."""
    pod = waiting.pod
    return pod.namespace == new.namespace and any(claim_name(pod, v) == new.name for v in pod.spec.volumes)


def claims_named(pod: Pod) -> set[str]:
    """The claims that the pod's volumes name; claims of generic ephemeral volumes are left out."""
    claims = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return {claim.claim_name for claim in claims if claim is not None}


def not_owned(claim: PersistentVolumeClaim, pod: Pod) -> str:
    """What is wrong with the claim of an ephemeral volume that is not the pod's own; empty if it is."""
    owner = claim.metadata.controller
    if owner is not None and owner.uid == pod.metadata.uid:
        return ""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """The storage class a claim asks for, "" for none; the old annotation comes first."""
    return claim.metadata.annotations.get(BETA_STORAGE_CLASS, claim.spec.storage_class_name or "")


def class_of_volume(volume: PersistentVolume) -> str:
    return volume.metadata.annotations.get(BETA_STORAGE_CLASS, volume.spec.storage_class_name)


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim names its volume, and the binding is complete from both sides."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is reserved for this very claim; a reservation without uid holds for any of its name."""
    reference = volume.spec.claim_ref
    if reference is None or (reference.namespace, reference.name) != (claim.namespace, claim.name):
        return False
    return reference.uid in ("", claim.metadata.uid)


def claim_not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    return f'persistentvolume "{name}" not found'


def class_not_found(name: str) -> str:
    return f'storageclass.storage.k8s.io "{name}" not found'
