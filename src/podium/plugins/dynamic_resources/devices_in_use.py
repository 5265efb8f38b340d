"""The devices in use by claims, or by decisions not yet written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from podium.cluster.store import Store
from podium.model import Object
from podium.model.devices import AllocationResult, DeviceRequestAllocationResult, ResourceClaim
from podium.model.quantity import parse_quantity
from podium.plugins.dynamic_resources.kept_fields import refused_field
from podium.plugins.dynamic_resources.pools import DeviceID, PoolID
from podium.rules import Rules

Results = list[DeviceRequestAllocationResult]
_Key = tuple[type[Object], str, str]
NONE: Results = []


class PendingAllocation(Object, frozen=True):
    """Reserve's decision for a claim, under the claim's namespace and name; removed once the claim itself
    contains it.
    """

    claim: ResourceClaim = ResourceClaim()
    """The claim before; a claim for extended resources is not in the cluster yet."""
    allocation: AllocationResult = AllocationResult()
    sharers: int = 1
    """How many pods of a group reserved it."""


class DevicesInUse:
    """The devices that claims use, kept up to date claim by claim."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._as_of = -1
        self._held: dict[_Key, Results] = {}
        self.exclusively: Counter[DeviceID] = Counter()
        """Devices that no other claim may use."""
        self.shares: Counter[DeviceID] = Counter()
        """The number of shares of devices that allow several allocations."""
        self.consumed: dict[DeviceID, dict[str, Fraction]] = {}
        """The used capacity of these devices."""
        self.versions: Counter[PoolID] = Counter()
        """Per pool, increases whenever one of its devices is taken or released."""

    def is_allocated(self, device: DeviceID) -> bool:
        return device in self.exclusively or device in self.shares or device in self.consumed

    def catch_up(self, store: Store) -> set[PoolID]:
        """Read changes from the cluster; returns the pools whose devices were taken or released."""
        if store.version == self._as_of:
            return set()
        changed = store.since(self._as_of) if self._as_of >= 0 else None
        keys = (
            self._all_keys(store)
            if changed is None
            else {
                (type(item), item.namespace, item.name)
                for item in changed
                if type(item) is ResourceClaim or type(item) is PendingAllocation
            }
        )
        touched: set[PoolID] = set()
        for key in keys:
            touched |= self._replace(key, self._results(store, key))
        self._as_of = store.version
        self.versions.update(touched)
        return touched

    def _all_keys(self, store: Store) -> Iterable[_Key]:
        keys = self._held.keys() | {(ResourceClaim, each.namespace, each.name) for each in store.of(ResourceClaim)}
        return keys | {(PendingAllocation, each.namespace, each.name) for each in store.of(PendingAllocation)}

    def _results(self, store: Store, key: _Key) -> Results:
        kind, namespace, name = key
        item = store.of(kind).get(name, namespace)
        allocation: AllocationResult | None = None
        if isinstance(item, PendingAllocation):
            allocation = item.allocation
        elif isinstance(item, ResourceClaim) and not refused_field(item.spec, self._rules):
            allocation = item.status.allocation
        return NONE if allocation is None else allocation.devices.results

    def _replace(self, key: _Key, results: Results) -> set[PoolID]:
        before = self._held.pop(key, NONE)
        if results:
            self._held[key] = results
        if before is results:
            return set()
        for result in before:
            self._count(result, -1)
        for result in results:
            self._count(result, 1)
        return {PoolID(result.driver, result.pool) for result in (*before, *results)}

    def _count(self, result: DeviceRequestAllocationResult, amount: int) -> None:
        """Count a device as taken (1) or released (-1); devices for admin access do not count."""
        if result.admin_access and self._rules.device_admin_access:
            return
        device = DeviceID(result.driver, result.pool, result.device)
        if result.share_id is None or not self._rules.device_capacity:
            _add(self.exclusively, device, amount)
            return
        _add(self.shares, device, amount)
        if result.consumed_capacity is not None:
            consumed = self.consumed.setdefault(device, {})
            for name, quantity in result.consumed_capacity.items():
                consumed[name] = consumed.get(name, Fraction(0)) + amount * parse_quantity(quantity)
            if amount < 0 and not any(consumed.values()):
                del self.consumed[device]


def _add(counts: Counter[DeviceID], device: DeviceID, amount: int) -> None:
    counts[device] += amount
    if not counts[device]:
        del counts[device]
