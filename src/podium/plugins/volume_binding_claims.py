"""VolumeBinding, first step: a pod's claims, sorted by whether they are bound."""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.cluster.store import Store
from podium.framework.status import Status
from podium.objects import PersistentVolumeClaim, Pod, StorageClass, Volume
from podium.plugins.claims import (
    WAIT_FOR_FIRST_CONSUMER,
    claim_name,
    claim_not_found,
    class_of_claim,
    is_fully_bound,
    not_owned,
)

REASON_UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


@dataclass(frozen=True, slots=True)
class PodClaims:
    """A pod's claims, in the order of its volumes; a claim used twice is there twice."""

    bound: list[PersistentVolumeClaim] = field(default_factory=list)
    waiting: list[PersistentVolumeClaim] = field(default_factory=list)
    """Unbound claims that wait for their first pod."""


def claims_of(pod: Pod, store: Store) -> PodClaims | Status:
    """The pod's claims, or why it cannot go anywhere yet."""
    claims = []
    for volume in pod.spec.volumes:
        found = _usable_claim(pod, volume, store)
        if isinstance(found, Status):
            return found
        if found is not None:
            claims.append(found)
    sorted_claims = PodClaims()
    for claim in claims:
        if is_fully_bound(claim):
            sorted_claims.bound.append(claim)
        elif not claim.spec.volume_name and _waits(claim, store):
            sorted_claims.waiting.append(claim)
        else:
            # The volume controller should have bound it by now, and will.
            return Status.unresolvable(REASON_UNBOUND_IMMEDIATE)
    return sorted_claims


def _usable_claim(pod: Pod, volume: Volume, store: Store) -> PersistentVolumeClaim | Status | None:
    """The claim of a volume; None for a volume without one, a status for one that cannot be used."""
    name = claim_name(pod, volume)
    if name is None:
        return None
    is_ephemeral = volume.persistent_volume_claim is None
    claim = store.of(PersistentVolumeClaim).get(name, pod.namespace)
    if claim is None:
        if is_ephemeral:
            missing = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            return Status.unresolvable(missing)
        return Status.unresolvable(claim_not_found(name))
    if claim.status.phase == "Lost":
        lost = f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
        return Status.unresolvable(lost)
    if claim.metadata.deletion_timestamp is not None:
        return Status.unresolvable(f'persistentvolumeclaim "{name}" is being deleted')
    problem = not_owned(claim, pod) if is_ephemeral else ""
    return Status.unresolvable(problem) if problem else claim


def _waits(claim: PersistentVolumeClaim, store: Store) -> bool:
    """Whether the claim's class binds it only when a pod needs it; a class that is not there does not."""
    name = class_of_claim(claim)
    storage_class = store.of(StorageClass).get(name) if name else None
    return storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
