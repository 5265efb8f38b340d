"""Devices that have to become ready before a pod is bound."""

from __future__ import annotations

from datetime import datetime

from podium.model import ResourceClaim
from podium.model.devices import AllocatedDeviceStatus, DeviceRequestAllocationResult

TRUE = "True"


def is_unusable(claim: ResourceClaim, now: float, binding_timeout: float) -> bool:
    """Whether the devices of an allocated claim failed to become ready, or did not in time (seconds)."""
    allocation = claim.status.allocation
    conditional = [each for each in allocation.devices.results if each.binding_conditions] if allocation else []
    for result in conditional:
        status = status_of(claim, result)
        if status is None:
            return _is_late(claim, now, binding_timeout)
        true = {each.type for each in status.conditions if each.status == TRUE}
        if not true.isdisjoint(result.binding_failure_conditions):
            return True
        if not true.issuperset(result.binding_conditions or ()):
            return _is_late(claim, now, binding_timeout)
    return False


def status_of(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    """The driver's status for one device of a claim."""
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
