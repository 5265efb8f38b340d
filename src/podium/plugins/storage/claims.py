"""The claims of a pod: which they are, whether they are bound, and the plugins for pods that have some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podium.cluster import Cluster
from podium.cluster.store import Store, is_owned_by
from podium.framework import PodView
from podium.framework.events import WaitingPod
from podium.framework.fast_paths import ForSomePods
from podium.framework.obstacle import Obstacle, RejectedNodes, SpecPart
from podium.framework.plugin import FilterPlugin
from podium.model import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from podium.model.objects import BIND_COMPLETED, storage_class_of
from podium.model.pod import claim_name

STORAGE = "storage"

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


class ForPodsWithVolumes(ForSomePods):
    """A plugin that does not concern pods without volumes."""

    constraint = SpecPart.VOLUME

    def concerns(self, pod: PodView, cluster: Cluster) -> bool:
        return bool(pod.spec.volumes)


class StorageFilter(ForPodsWithVolumes, FilterPlugin):
    """A filter for volumes that names the claim, the volume and the rule behind its message."""

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        from podium.plugins.storage.storage_detail import storage_obstacles  # loaded when somebody asks

        return storage_obstacles(self, rejected)


def uses_claims(pod: Pod) -> bool:
    return any(v.persistent_volume_claim is not None or v.ephemeral is not None for v in pod.spec.volumes)


def names_claim(waiting: WaitingPod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    """The hint for claims that the waiting pod names itself; generic ephemeral volumes are ignored."""
    return waiting.pod.namespace == new.namespace and new.name in claims_named(waiting.pod)


def uses_claim(waiting: WaitingPod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    """The hint for claims that the waiting pod uses, including those of generic ephemeral volumes."""
    pod = waiting.pod
    return pod.namespace == new.namespace and any(claim_name(pod, v) == new.name for v in pod.spec.volumes)


def claims_named(pod: Pod) -> set[str]:
    """The claims that the pod's volumes name, without those of generic ephemeral volumes."""
    claims = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return {claim.claim_name for claim in claims if claim is not None}


def not_owned(claim: PersistentVolumeClaim, pod: Pod) -> str:
    """The error if the claim of an ephemeral volume is not owned by the pod; empty if it is."""
    if is_owned_by(claim, pod):
        return ""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim names its volume, and the binding is complete on both sides."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def waits_for_consumer(claim: PersistentVolumeClaim, store: Store) -> bool:
    """Whether the claim's class delays binding until a pod needs it; False if the class does not exist."""
    name = storage_class_of(claim)
    storage_class = store.of(StorageClass).get(name) if name else None
    return storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is reserved for this claim; a reservation without uid holds for any claim with the name."""
    reference = volume.spec.claim_ref
    if reference is None or (reference.namespace, reference.name) != (claim.namespace, claim.name):
        return False
    return reference.uid in ("", claim.metadata.uid)


def claim_not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def ephemeral_claim_not_found(name: str) -> str:
    return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'


def volume_not_found(name: str) -> str:
    return f'persistentvolume "{name}" not found'


def class_not_found(name: str) -> str:
    return f'storageclass.storage.k8s.io "{name}" not found'


REASON_UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
REASON_NO_CLASS_NAME = "PersistentVolumeClaim had no pv name and storageClass name"
REASON_NO_VOLUME_NAME = "PersistentVolume had no name"
