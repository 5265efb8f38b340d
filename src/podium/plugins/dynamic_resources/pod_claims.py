"""The claims of a pod: which ones they are, and whether those that have devices can be used."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime

from podium.cluster.store import Store
from podium.model import Pod, ResourceClaim
from podium.model.devices import AllocatedDeviceStatus, DeviceRequestAllocationResult
from podium.model.pod import PodResourceClaim
from podium.plugins.dynamic_resources.requests import shape_of

TRUE = "True"


class ClaimError(Exception):
    """Why a pod cannot be decided for now: one of its claims is not what it should be."""


def claims_of(pod: Pod, store: Store) -> list[ResourceClaim]:
    """The pod's claims in its order, less those it turned out not to need; ClaimError if one is not there yet."""
    claims = []
    for reference in pod.spec.resource_claims:
        name = claim_name(pod, reference)
        if name is None:
            continue
        claim = store.of(ResourceClaim).get(name, pod.namespace)
        if claim is None:
            raise ClaimError(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimError(f'resourceclaim "{name}" is being deleted')
        if reference.resource_claim_name is None and not _is_owned(claim, pod):
            raise ClaimError(f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)")
        claims.append(claim)
    return claims


def claims_key(pod: Pod, store: Store) -> Hashable:
    """What of a pod's claims a decision depends on, None without claims: pods of one spec and key fare alike."""
    if not pod.spec.resource_claims:
        return None
    try:
        claims = claims_of(pod, store)
    except ClaimError as error:
        return str(error)
    return tuple(
        shape_of(claim.spec) if claim.status.allocation is None else (claim.namespace, claim.name) for claim in claims
    )


def claim_name(pod: Pod, reference: PodResourceClaim) -> str | None:
    """The name of the claim that an entry of spec.resourceClaims stands for; None if no claim is needed for it."""
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name
    if reference.resource_claim_template_name is None:
        raise ClaimError(
            f'pod "{pod.key}", spec.resourceClaim "{reference.name}": none of the supported fields are set'
        )
    for status in pod.status.resource_claim_statuses:
        if status.name == reference.name:
            return status.resource_claim_name
    raise ClaimError(f'pod "{pod.key}": ResourceClaim not created yet')


def _is_owned(claim: ResourceClaim, pod: Pod) -> bool:
    owner = claim.metadata.controller
    return owner is not None and owner.uid == pod.metadata.uid


# -- binding conditions --------------------------------------------------------------------------------------------


def is_unusable(claim: ResourceClaim, now: float, binding_timeout: float) -> bool:
    """Whether the devices of an allocated claim failed to get ready, or did not in time (seconds)."""
    allocation = claim.status.allocation
    conditional = [each for each in allocation.devices.results if each.binding_conditions] if allocation else []
    for result in conditional:
        status = _status_of(claim, result)
        if status is None:
            return _is_late(claim, now, binding_timeout)
        true = {each.type for each in status.conditions if each.status == TRUE}
        if not true.isdisjoint(result.binding_failure_conditions):
            return True
        if not true.issuperset(result.binding_conditions or ()):
            return _is_late(claim, now, binding_timeout)
    return False


def _status_of(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    device = result.driver, result.pool, result.device
    return next((each for each in claim.status.devices if (each.driver, each.pool, each.device) == device), None)


def _is_late(claim: ResourceClaim, now: float, binding_timeout: float) -> bool:
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    try:
        since = datetime.fromisoformat(allocation.allocation_timestamp).timestamp()
    except ValueError:
        return False
    return since + binding_timeout < now
