"""What DynamicResources does for a group that could not be placed: claims give back devices that are in the way."""

from __future__ import annotations

from msgspec.structs import replace

from podium.framework.pod_group_points import FailedGroup, PodGroupPostFilterResult
from podium.framework.status import ObjectChange, Status
from podium.model import PodGroup, ResourceClaim
from podium.model.devices import ResourceClaimStatus
from podium.model.pod import PodResourceClaim
from podium.plugins.dynamic_resources.pod_devices import POD_GROUPS, PodDevices
from podium.rules import Rules

DONE = "deallocation and deletion of ResourceClaims completed"
DEALLOCATED = "deallocation of PodGroup ResourceClaim completed"
UNRESERVED = "ResourceClaim unreserved for PodGroup"


def give_back_devices(plugin: str, failed: FailedGroup, rules: Rules) -> PodGroupPostFilterResult:
    """Do for each pod of the group what PostFilter does for a pod alone; if that frees nothing for one of them, free a
    claim of the group.
    """
    changes: list[ObjectChange] = []
    frees_nothing = False
    for pod in failed.pods:
        if pod.key not in failed.states:
            continue
        devices: PodDevices | None = failed.states[pod.key].get(plugin)
        claim = None if devices is None else devices.to_deallocate()
        if claim is not None:
            changes += _deallocated(claim)
        elif devices is not None and devices.left_over is not None:
            changes.append(ObjectChange(devices.left_over, None))
        else:
            frees_nothing = True
    is_unused = not failed.cluster.members.scheduled_count(failed.group.key)
    if frees_nothing and rules.pod_group_claims and is_unused:
        result = _free_group_claim(plugin, failed)
        if result is not None:
            return result._replace(changes=(*changes, *result.changes))
    return PodGroupPostFilterResult(Status.unschedulable(DONE), changes=tuple(changes))


def _deallocated(claim: ResourceClaim) -> list[ObjectChange]:
    """The claim without its devices; nothing for a claim that has none yet, for which the write changes nothing."""
    if claim.status == ResourceClaimStatus():
        return []
    return [ObjectChange(claim, replace(claim, status=ResourceClaimStatus()))]


def _free_group_claim(plugin: str, failed: FailedGroup) -> PodGroupPostFilterResult | None:
    """Free a claim that only the group uses, or take the group out of its reservations; None if there is none."""
    group, uid = failed.group, failed.group.metadata.uid
    for state in failed.states.values():
        devices: PodDevices | None = state.get(plugin)
        for claim in devices.in_the_way() if devices is not None else ():
            reserved = claim.status.reserved_for
            if not reserved or (len(reserved) == 1 and reserved[0].uid == uid):
                return PodGroupPostFilterResult(Status.unschedulable(DEALLOCATED), changes=tuple(_deallocated(claim)))
    for listed in group.spec.resource_claims:
        name = _claim_name(group, listed)
        if name is None:
            continue
        named = failed.cluster.store.of(ResourceClaim).get(name, group.namespace)
        if named is None:
            return PodGroupPostFilterResult(Status.error(f'could not find ResourceClaim "{group.namespace}/{name}"'))
        reserved = named.status.reserved_for
        others = [each for each in reserved if each.resource != POD_GROUPS or each.name != group.name]
        if named.status.allocation is not None and len(others) < len(reserved):
            after = replace(named, status=replace(named.status, reserved_for=others))
            return PodGroupPostFilterResult(Status.unschedulable(UNRESERVED), changes=(ObjectChange(named, after),))
    return None


def _claim_name(group: PodGroup, listed: PodResourceClaim) -> str | None:
    """The name of a claim that the group lists, or that was generated for it; None if none is needed."""
    if listed.resource_claim_name is not None:
        return listed.resource_claim_name
    generated = {each.name: each.resource_claim_name for each in group.status.resource_claim_statuses}
    return generated.get(listed.name)
