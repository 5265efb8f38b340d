"""Claims, volumes and classes as the volume predicates of the old releases look them up."""

from __future__ import annotations

from collections.abc import Iterator

from podium.cluster import Cluster
from podium.objects import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from podium.objects.volumes import Volume

BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


class ClaimError(Exception):
    """What a claim refers to is not there, or not as it has to be; the pod cannot be decided."""


def claims(pod: Pod) -> Iterator[str]:
    """The names of the claims the pod's volumes use; a volume without a claim has none."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield claim_name(volume)


def claim_name(volume: Volume) -> str:
    source = volume.persistent_volume_claim
    if source is None or not source.claim_name:
        raise ClaimError("PersistentVolumeClaim had no name")
    return source.claim_name


def find_claim(cluster: Cluster, namespace: str, name: str) -> PersistentVolumeClaim:
    found = cluster.store.of(PersistentVolumeClaim).get(name, namespace)
    if found is None:
        raise ClaimError(f'persistentvolumeclaim "{name}" not found')
    return found


def find_volume(cluster: Cluster, name: str) -> PersistentVolume:
    found = cluster.store.of(PersistentVolume).get(name)
    if found is None:
        raise ClaimError(f'persistentvolume "{name}" not found')
    return found


def class_of(item: PersistentVolumeClaim | PersistentVolume) -> str:
    """The storage class an object names: by its old annotation, or else in its spec."""
    annotated = item.metadata.annotations.get(BETA_STORAGE_CLASS)
    return annotated if annotated is not None else item.spec.storage_class_name or ""


def waits_for_consumer(cluster: Cluster, claim: PersistentVolumeClaim) -> bool:
    """Whether the claim is to be bound only once its pod has a node."""
    found = cluster.store.of(StorageClass).get(class_of(claim))
    return found is not None and found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
