"""Allocations that were decided and are not written to their claims yet."""

from __future__ import annotations

from podium.model import Object
from podium.model.devices import AllocationResult, ResourceClaim


class PendingAllocation(Object, frozen=True):
    """What Reserve decided for a claim; it has the claim's namespace and name, and is gone once the claim says it."""

    claim: ResourceClaim = ResourceClaim()
    """The claim as it was; one made for extended resources is not in the cluster yet."""
    allocation: AllocationResult = AllocationResult()
