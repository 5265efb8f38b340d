"""What becomes of the claims of pods that end: nobody needs their devices any more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from podium.cluster.store import Store
from podium.model import Pod, ResourceClaim
from podium.model.devices import ResourceClaimStatus

EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of a claim that the scheduler makes for extended resources of a pod."""


def extended_claim_name(pod: Pod) -> str:
    """The name of the claim that stands for a pod's extended resources."""
    status = pod.status.extended_resource_claim_status
    return f"{pod.name}-extended-resources" if status is None else status.resource_claim_name


def claim_names(pod: Pod) -> Iterator[str]:
    """The names of the claims that a pod uses, or might: those that it says itself and those that were made for it."""
    for reference in pod.spec.resource_claims:
        if reference.resource_claim_name is not None:
            yield reference.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        if status.resource_claim_name is not None:
            yield status.resource_claim_name
    yield extended_claim_name(pod)


def is_owned_by(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a claim was made for a pod, and goes with it."""
    owner = claim.metadata.controller
    return owner is not None and owner.uid == pod.metadata.uid


class Release(NamedTuple):
    """What becomes of a claim when a pod that used it ends."""

    before: ResourceClaim
    after: ResourceClaim
    """Without the pod; and without devices, if nobody else has it."""


def releases(pod: Pod, store: Store) -> list[Release]:
    """What becomes of the claims that a pod held."""
    found = []
    for name in claim_names(pod):
        claim = store.of(ResourceClaim).get(name, pod.namespace)
        if claim is None:
            continue
        others = [each for each in claim.status.reserved_for if each.uid != pod.metadata.uid]
        was_reserved = len(others) < len(claim.status.reserved_for)
        is_alone = not others and (was_reserved or is_owned_by(claim, pod))
        if is_alone and claim.status != ResourceClaimStatus():
            found.append(Release(claim, replace(claim, status=ResourceClaimStatus())))
        elif was_reserved:
            found.append(Release(claim, replace(claim, status=replace(claim.status, reserved_for=others))))
    return found
