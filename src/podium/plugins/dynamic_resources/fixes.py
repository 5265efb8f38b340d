"""What a user can do about a node without devices for a pod: evict the pods that have them."""

from __future__ import annotations

from collections.abc import Iterator

from podium.cluster import Cluster
from podium.framework.suggested_change import Change, RejectedPod, evict, evictable
from podium.model import Pod, ResourceClaim
from podium.model.devices import AllocationResult
from podium.plugins.dynamic_resources.devices import DeviceID
from podium.plugins.dynamic_resources.inventory import inventory_of
from podium.rules import Rules


def device_fixes(rejected: RejectedPod, rules: Rules) -> Iterator[Change]:
    """Evict a pod that holds devices of the node."""
    return (evict([pod]) for pod in _holders(rejected.cluster, rules, rejected.node))


def _holders(cluster: Cluster, rules: Rules, node: str) -> list[Pod]:
    """The pods that may be evicted and whose claims have devices that the node can use."""
    candidates = inventory_of(cluster, rules).pools_of(cluster.rows[node]).candidates
    usable = {candidate.device.id for candidate in candidates}
    consumers = {
        consumer.uid
        for claim in cluster.store.of(ResourceClaim)
        if claim.status.allocation is not None and not usable.isdisjoint(_devices(claim.status.allocation))
        for consumer in claim.status.reserved_for
    }
    return [pod for pod in evictable(cluster, node) if pod.metadata.uid in consumers]


def _devices(allocation: AllocationResult) -> Iterator[DeviceID]:
    return (DeviceID(each.driver, each.pool, each.device) for each in allocation.devices.results)
