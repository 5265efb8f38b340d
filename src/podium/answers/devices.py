"""The devices of a cluster: which devices exist, which pods hold them, and which are free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from podium.cluster import Cluster
from podium.model import DeviceClass, ResourceClaim
from podium.model.quantity import format_quantity
from podium.plugins.dynamic_resources.inventory import Inventory, inventory_of
from podium.plugins.dynamic_resources.pools import CandidateDevice, DeviceID, PooledDevice
from podium.plugins.dynamic_resources.requests import CounterUse, SelectionError, expressions_of, selects
from podium.rules import NEWEST_RULES, Rules

MANY_NODES = "(several nodes)"
NO_CLASS = "-"


class DeviceState(StrEnum):
    """Why a device is not free for new claims; the first state that applies."""

    IN_USE = "in use"
    UNUSABLE = "unusable"
    """Its pool is incomplete, invalid or replaced, or no node can use it."""
    BLOCKED = "blocked"
    """Devices that share counters with it are in use."""
    TAINTED = "tainted"
    SHARED = "shared"
    """In use, but open for more claims."""
    FREE = "free"


class Holder(NamedTuple):
    """A claim that has a device, and the pods it is reserved for."""

    claim: str
    """namespace/name"""
    request: str
    pods: tuple[str, ...]
    consumed: dict[str, str]
    """The capacity of a shared device that it uses."""
    is_admin: bool


@dataclass(frozen=True, slots=True)
class DeviceStatus:
    """One device."""

    id: DeviceID
    node: str
    """The node that can use it; MANY_NODES for several, empty for none."""
    classes: tuple[str, ...]
    state: DeviceState
    holders: tuple[Holder, ...]
    left: dict[str, str]
    """The remaining capacity of a shared device."""
    taints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Devices:
    """All devices, ordered by node, driver, pool and name, and the pools that cannot be used."""

    devices: tuple[DeviceStatus, ...]
    problems: tuple[str, ...]
    """`resource pool driver/pool is currently invalid`"""

    def counts(self) -> dict[tuple[str, str], Counter[DeviceState]]:
        """The number of devices per state, by node and class; a device of two classes counts for both."""
        found: dict[tuple[str, str], Counter[DeviceState]] = {}
        for device in self.devices:
            for name in device.classes or (NO_CLASS,):
                found.setdefault((device.node, name), Counter())[device.state] += 1
        return found

    def to_dict(self) -> dict[str, Any]:
        """The devices as plain data."""
        return {
            "classes": [
                {"node": node or None, "class": None if name == NO_CLASS else name, "devices": counts.total()}
                | {_camel(state): counts[state] for state in DeviceState}
                for (node, name), counts in self.counts().items()
            ],
            "devices": [_document(device) for device in self.devices],
            "problems": list(self.problems),
        }


def devices(cluster: Cluster, rules: Rules = NEWEST_RULES) -> Devices:
    """The devices in the cluster, by the rules of a release."""
    inventory = inventory_of(cluster, rules)
    holders = _holders(cluster)
    candidates = dict(_candidates(inventory, cluster))
    classes = [(each.name, expressions_of(each.spec.selectors)) for each in cluster.store.of(DeviceClass)]
    found = []
    for device in (device for each in inventory.slices() for device in each.devices):
        nodes, candidate = candidates.get(device, ([], None))
        found.append(
            DeviceStatus(
                device.id,
                nodes[0] if len(nodes) == 1 else MANY_NODES if nodes else device.reach.node_name or "",
                tuple(name for name, expressions in classes if _is_of(expressions, device, rules)),
                _state(device, candidate, inventory),
                tuple(holders.get(device.id, ())),
                _left(device, inventory),
                tuple(f"{taint.key}={taint.value}:{taint.effect}" for taint in device.taints),
            )
        )
    problems = {inventory.pools_of(row).problem for row in cluster.rows.values()} - {""}
    return Devices(
        tuple(sorted(found, key=lambda each: (each.node == MANY_NODES, each.node, each.id))),
        tuple(f"resource pool {problem}" for problem in sorted(problems)),
    )


def _candidates(
    inventory: Inventory, cluster: Cluster
) -> Iterator[tuple[PooledDevice, tuple[list[str], CandidateDevice]]]:
    """Per usable device, the nodes that can use it, and one of them to look up its pool."""
    found: dict[PooledDevice, tuple[list[str], CandidateDevice]] = {}
    for name, row in sorted(cluster.rows.items()):
        for candidate in inventory.pools_of(row).candidates:
            if candidate.is_reachable:
                found.setdefault(candidate.device, ([], candidate))[0].append(name)
    return iter(found.items())


def _state(device: PooledDevice, candidate: CandidateDevice | None, inventory: Inventory) -> DeviceState:
    in_use = inventory.in_use
    if device.id in in_use.exclusively:
        return DeviceState.IN_USE
    if candidate is None:
        return DeviceState.UNUSABLE
    if in_use.is_allocated(device.id):
        return DeviceState.SHARED
    if device.counters and not CounterUse(in_use).has_enough(candidate.pool, device):
        return DeviceState.BLOCKED
    return DeviceState.TAINTED if device.taints else DeviceState.FREE


def _left(device: PooledDevice, inventory: Inventory) -> dict[str, str]:
    consumed = inventory.in_use.consumed.get(device.id, {})
    if not device.is_shared:
        return {}
    return {
        name: format_quantity(each.value.value - consumed.get(name, 0), binary=each.value.text.endswith("i"))
        for name, each in device.capacity.items()
    }


def _is_of(expressions: tuple[str, ...], device: PooledDevice, rules: Rules) -> bool:
    try:
        return selects(expressions, device, rules)
    except SelectionError:
        return False


def _holders(cluster: Cluster) -> dict[DeviceID, list[Holder]]:
    found: dict[DeviceID, list[Holder]] = {}
    for claim in cluster.store.of(ResourceClaim):
        for device, holder in _held(claim):
            found.setdefault(device, []).append(holder)
    return found


def _held(claim: ResourceClaim) -> Iterable[tuple[DeviceID, Holder]]:
    pods = tuple(each.name for each in claim.status.reserved_for if each.resource == "pods")
    for result in claim.status.allocation.devices.results if claim.status.allocation else ():
        consumed = {name: str(amount) for name, amount in (result.consumed_capacity or {}).items()}
        holder = Holder(claim.key, result.request, pods, consumed, bool(result.admin_access))
        yield DeviceID(result.driver, result.pool, result.device), holder


def _document(device: DeviceStatus) -> dict[str, Any]:
    return {
        "driver": device.id.driver,
        "pool": device.id.pool,
        "device": device.id.device,
        "node": device.node or None,
        "classes": list(device.classes),
        "state": device.state.value,
        "heldBy": [
            {
                "claim": each.claim,
                "request": each.request,
                "pods": list(each.pods),
                "consumedCapacity": each.consumed,
                "adminAccess": each.is_admin,
            }
            for each in device.holders
        ],
        "left": device.left,
        "taints": list(device.taints),
    }


def _camel(state: DeviceState) -> str:
    return "inUse" if state is DeviceState.IN_USE else state.value
