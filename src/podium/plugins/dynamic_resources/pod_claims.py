"""The ResourceClaims of a pod."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from podium.cluster.store import Store, is_owned_by
from podium.model import Pod, ResourceClaim
from podium.model.pod import PodResourceClaim
from podium.plugins.dynamic_resources.kept_fields import refused_field
from podium.rules import Rules

_encode = msgspec.json.Encoder().encode


class ClaimError(Exception):
    """Why a pod cannot be decided at the moment: one of its claims is missing or invalid."""


def resource_claims_of(pod: Pod, store: Store, rules: Rules) -> list[ResourceClaim]:
    """The pod's claims in order, without those it does not need; ClaimError if a claim does not exist yet.

    A claim that the API server of the release refuses counts as missing.
    """
    claims = _named_claims(pod, store, rules)
    for claim in claims:
        field = refused_field(claim.spec, rules)
        if field:
            why = f"{rules.release} drops {field} and refuses what is left, as the feature is off"
            raise ClaimError(f'could not find ResourceClaim "{claim.key}": {why}')
    return claims


def _named_claims(pod: Pod, store: Store, rules: Rules) -> list[ResourceClaim]:
    claims = []
    for reference in pod.spec.resource_claims:
        name = resource_claim_name(pod, reference)
        if name is None:
            continue
        claim = store.of(ResourceClaim).get(name, pod.namespace)
        if claim is None:
            raise ClaimError(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimError(f'resourceclaim "{name}" is being deleted')
        if reference.resource_claim_name is None and not is_owned_by(claim, pod):
            named = pod.spec.scheduling_group if rules.pod_group_claims else None
            if named is None:
                raise ClaimError(f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)")
            if not _is_for_group(claim, named.pod_group_name):
                owners = f"neither Pod nor PodGroup {named.pod_group_name} is the owner"
                raise ClaimError(f"ResourceClaim {claim.key} was not created for Pod {pod.key} ({owners})")
        claims.append(claim)
    return claims


def _is_for_group(claim: ResourceClaim, group: str) -> bool:
    """Whether a claim was created for the PodGroup with this name."""
    owner = claim.metadata.controller
    is_group = owner is not None and owner.kind == "PodGroup" and owner.api_version.startswith("scheduling.k8s.io/")
    return is_group and owner is not None and owner.name == group


def claims_key(pod: Pod, store: Store, rules: Rules) -> Hashable:
    """The key of the parts of a pod's claims that a decision depends on; None without claims. Pods with equal spec and
    key get the same decision.
    """
    if not pod.spec.resource_claims:
        return None
    try:
        claims = _named_claims(pod, store, rules)
    except ClaimError as error:
        return str(error)
    return tuple(
        _encode(claim.spec) if claim.status.allocation is None else (claim.namespace, claim.name) for claim in claims
    )


def resource_claim_name(pod: Pod, reference: PodResourceClaim) -> str | None:
    """The name of the claim for an entry of spec.resourceClaims; None if no claim is needed for it."""
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
