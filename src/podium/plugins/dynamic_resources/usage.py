"""Which devices are in use, and how much of their capacity: what claims hold, and what was decided for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from podium.cluster.store import Store
from podium.model import Object
from podium.model.devices import AllocationResult, DeviceRequestAllocationResult, ResourceClaim
from podium.model.quantity import parse_quantity
from podium.plugins.dynamic_resources.devices import DeviceID, PoolID
from podium.plugins.dynamic_resources.pending import PendingAllocation

Results = list[DeviceRequestAllocationResult]
_Key = tuple[type[Object], str, str]
NONE: Results = []


class DevicesInUse:
    """The devices that claims have, kept up to date claim by claim."""

    def __init__(self, *, consumable_capacity: bool) -> None:
        self._consumable_capacity = consumable_capacity
        self._as_of = -1
        self._held: dict[_Key, Results] = {}
        self.exclusively: Counter[DeviceID] = Counter()
        """Devices that nobody else may have."""
        self.shares: Counter[DeviceID] = Counter()
        """How many shares there are of devices that may be had several times."""
        self.consumed: dict[DeviceID, dict[str, Fraction]] = {}
        """How much of their capacity is in use."""
        self.versions: Counter[PoolID] = Counter()
        """Another number for a pool whenever a device of it is taken or released."""

    def is_allocated(self, device: DeviceID) -> bool:
        return device in self.exclusively or device in self.shares or device in self.consumed

    def catch_up(self, store: Store) -> set[PoolID]:
        """Read what changed in the cluster; the pools of which devices were taken or released."""
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
            touched |= self._replace(key, _held(store, key))
        self._as_of = store.version
        self.versions.update(touched)
        return touched

    def _all_keys(self, store: Store) -> Iterable[_Key]:
        keys = self._held.keys() | {(ResourceClaim, each.namespace, each.name) for each in store.of(ResourceClaim)}
        return keys | {(PendingAllocation, each.namespace, each.name) for each in store.of(PendingAllocation)}

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
        """Let a device count as taken (1) or no longer (-1); one taken for administration does not count."""
        if result.admin_access:
            return
        device = DeviceID(result.driver, result.pool, result.device)
        if result.share_id is None or not self._consumable_capacity:
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


def _held(store: Store, key: _Key) -> Results:
    kind, namespace, name = key
    item = store.of(kind).get(name, namespace)
    allocation: AllocationResult | None = None
    if isinstance(item, PendingAllocation):
        allocation = item.allocation
    elif isinstance(item, ResourceClaim):
        allocation = item.status.allocation
    return NONE if allocation is None else allocation.devices.results
