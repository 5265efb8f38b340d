"""Which events may help pods that DynamicResources rejected."""

from __future__ import annotations

from podium.framework.events import Action, EventHint, WaitingPod
from podium.model import Pod, ResourceClaim
from podium.plugins.dynamic_resources.pod_claims import ClaimError, claims_of

ADD, UPDATE, DELETE = Action.ADD, Action.UPDATE, Action.DELETE


def claim_changed(waiting: WaitingPod, old: ResourceClaim | None, new: ResourceClaim | None) -> bool:
    """A claim of the pod came or changed its status, or some claim gave back its devices."""
    if new is None:
        return old is not None and old.status.allocation is not None
    try:
        claims = claims_of(waiting.pod, waiting.cluster.store)
    except ClaimError:
        return False
    if old is not None and old.status.allocation is not None and new.status.allocation is None:
        return True
    if all(claim.metadata.uid != new.metadata.uid for claim in claims):
        return False
    return old is None or old.status != new.status


def claims_are_there(waiting: WaitingPod, old: Pod | None, new: Pod | None) -> bool:
    """The waiting pod itself says which claims were made for it, and they are there."""
    if new is None or not waiting.is_same(new):
        return False
    try:
        claims_of(new, waiting.cluster.store)
    except ClaimError:
        return False
    return True


EVENTS = (
    EventHint("Node", ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
    EventHint("ResourceClaim", ADD | UPDATE | DELETE, claim_changed),
    EventHint("Pod", Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, claims_are_there),
    EventHint("DeviceClass", ADD | UPDATE),
    EventHint("ResourceSlice", ADD | UPDATE),
    EventHint("DeviceTaintRule", ADD | UPDATE | DELETE),
)
"""A taint rule counts as a change of the slices whose devices it taints. Claims give back their devices before they are
deleted, so that the releases that do not hear of deletions miss nothing."""
