"""The events that may help a pod that DynamicResources rejected."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from podium.framework import Action, EventHint, WaitingPod
from podium.model import Pod, ResourceClaim
from podium.plugins.dynamic_resources.pod_claims import ClaimError, resource_claims_of
from podium.rules import Rules

ADD, UPDATE, DELETE = Action.ADD, Action.UPDATE, Action.DELETE


def claim_changed(rules: Rules, waiting: WaitingPod, old: ResourceClaim | None, new: ResourceClaim | None) -> bool:
    """Whether a claim of the pod was added or changed its status, or some claim released its devices."""
    if new is None:
        return old is not None and old.status.allocation is not None
    try:
        claims = resource_claims_of(waiting.pod, waiting.cluster.store, rules)
    except ClaimError:
        return False
    if old is not None and old.status.allocation is not None and new.status.allocation is None:
        return True
    if all(claim.metadata.uid != new.metadata.uid for claim in claims):
        return False
    return old is None or old.status != new.status


def claims_are_there(rules: Rules, waiting: WaitingPod, old: Pod | None, new: Pod | None) -> bool:
    """Whether the waiting pod's status names the claims made for it, and they exist."""
    if new is None or not waiting.is_same(new):
        return False
    try:
        resource_claims_of(new, waiting.cluster.store, rules)
    except ClaimError:
        return False
    return True


def events(rules: Rules) -> Sequence[EventHint]:
    """The events of a release; a taint rule counts as a change of the slices whose devices it taints."""
    of_claims = ADD | UPDATE | (DELETE if rules.deleted_claims_free_devices else Action(0))
    return (
        EventHint("Node", ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
        EventHint("ResourceClaim", of_claims, partial(claim_changed, rules)),
        EventHint("Pod", Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, partial(claims_are_there, rules)),
        EventHint("DeviceClass", ADD | UPDATE),
        EventHint("ResourceSlice", ADD | UPDATE),
        EventHint("DeviceTaintRule", ADD | UPDATE | DELETE),
    )
