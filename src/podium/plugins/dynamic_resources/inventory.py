"""The devices of a cluster: the pools that each node can use, and the devices in use by claims or by decisions not yet
written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from msgspec.structs import replace

from podium.cluster import Aspect, Cluster
from podium.cluster.cluster import ChangedRows, PerCluster
from podium.cluster.columns import ChangeLog
from podium.cluster.store import Store
from podium.model import DeviceClass, DeviceTaintRule, Object, ResourceSlice
from podium.model.devices import (
    AllocationResult,
    Device,
    DeviceCapacity,
    DeviceRequest,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceSliceSpec,
)
from podium.model.quantity import parse_quantity
from podium.plugins.dynamic_resources.pools import DeviceID, NodePools, PoolBuilder, PooledSlice, PoolID, Slices
from podium.rules import Rules

# -- what the API server keeps -------------------------------------------------------------------------------------


_UNSAID = Device()


def _fields_of_devices(rules: Rules) -> dict[str, Any]:
    """The fields of devices that belong to disabled features, with their default values."""
    by_feature = (
        (rules.device_taints, ("taints",)),
        (rules.device_counters, ("consumes_counters", "node_name", "node_selector", "all_nodes")),
        (rules.device_binding_conditions, ("binding_conditions", "binding_failure_conditions", "binds_to_node")),
        (rules.device_capacity, ("allow_multiple_allocations",)),
    )
    return {name: getattr(_UNSAID, name) for is_on, names in by_feature if not is_on for name in names}


def kept_slice(spec: ResourceSliceSpec, rules: Rules) -> ResourceSliceSpec | None:
    """A slice as the API server of a release stores it: without the fields of disabled features.

    None for a slice that it refuses, because no remaining field says which nodes it is for.
    """
    dropped = _fields_of_devices(rules)
    if not dropped:
        return spec
    devices = [replace(device, **dropped) for device in spec.devices]
    if not rules.device_capacity:
        devices = [replace(device, capacity=_without_policies(device)) for device in devices]
    if rules.device_counters:
        return replace(spec, devices=devices)
    if spec.per_device_node_selection:
        return None
    return replace(spec, devices=devices, shared_counters=[])


def _without_policies(device: Device) -> dict[str, DeviceCapacity]:
    return {name: replace(each, request_policy=None) for name, each in device.capacity.items()}


def kept_requests(spec: ResourceClaimSpec, rules: Rules) -> list[DeviceRequest]:
    """The requests of a claim as the API server of a release stores them: without the fields of disabled features.

    Tolerations stay: with taints disabled there is nothing to tolerate.
    """
    requests = spec.devices.requests
    dropped = {} if rules.device_capacity else {"capacity": None}
    dropped_from_exact = dropped if rules.device_admin_access else {**dropped, "admin_access": None}
    if not dropped_from_exact:
        return requests
    return [
        replace(
            request,
            exactly=None if request.exactly is None else replace(request.exactly, **dropped_from_exact),
            first_available=[replace(each, **dropped) for each in request.first_available],
        )
        for request in requests
    ]


def refused_field(spec: ResourceClaimSpec, rules: Rules) -> str:
    """A required field that the API server of a release drops, so that it refuses the claim; empty if there is none."""
    if not rules.device_alternatives:
        for request in spec.devices.requests:
            if request.first_available:
                return f"firstAvailable of request {request.name}"
    if not rules.device_capacity and rules.distinct_attribute_is_dropped:
        for place, constraint in enumerate(spec.devices.constraints):
            if constraint.distinct_attribute is not None:
                return f"distinctAttribute of constraint {place}"
    return ""


# -- what is in use ------------------------------------------------------------------------------------------------


class PendingAllocation(Object, frozen=True):
    """Reserve's decision for a claim, under the claim's namespace and name; removed once the claim itself
    contains it.
    """

    claim: ResourceClaim = ResourceClaim()
    """The claim before; a claim for extended resources is not in the cluster yet."""
    allocation: AllocationResult = AllocationResult()


Results = list[DeviceRequestAllocationResult]
_Key = tuple[type[Object], str, str]
NONE: Results = []


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


class Inventory:
    """The cluster data that the search needs, kept up to date by its changes."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.in_use = DevicesInUse(rules)
        self.log = ChangeLog()
        """The rows whose devices changed, or the use of these devices."""
        self.epoch = 0
        """Increases with changes that affect all rows."""
        self._as_of = -1
        self._taint_rules: list[DeviceTaintRule] = []
        self._slices: dict[str, tuple[ResourceSlice, PooledSlice]] = {}
        self._by_pool: dict[PoolID, Slices] = {}
        self._by_node: dict[str, list[PooledSlice]] = {}
        self._for_many: list[PooledSlice] = []
        self._builder = PoolBuilder(rules)
        self._changed_nodes = ChangedRows(Aspect.LABELS)
        self._pools: list[NodePools | None] = []
        self._rows_of: dict[PoolID, set[int]] = {}

    def catch_up(self, cluster: Cluster) -> None:
        """Read changes from the cluster."""
        slices_changed = self._read_objects(cluster)
        rows = list(self._changed_nodes.take(cluster))
        if slices_changed:
            rows = list(range(cluster.columns.size))
        self._pools += [None] * (cluster.columns.size - len(self._pools))
        for row in rows:
            self._gather(row, cluster)
        for pool_id in self.in_use.catch_up(cluster.store):
            for row in self._rows_of.get(pool_id, ()):
                self.log.append(row)

    def pools_of(self, row: int) -> NodePools:
        """The pools that the node of a row can use; the row must be alive."""
        pools = self._pools[row]
        assert pools is not None
        return pools

    def rows_of(self, pool_id: PoolID) -> set[int]:
        """The rows whose nodes can use devices of a pool."""
        return self._rows_of.get(pool_id, set())

    def slices_near(self, node_name: str) -> Iterable[PooledSlice]:
        """The slices that may be for a node; slices for this node alone come first."""
        return (*self._by_node.get(node_name, ()), *self._for_many)

    def slices(self) -> list[PooledSlice]:
        """All slices, by name."""
        return [self._slices[name][1] for name in sorted(self._slices)]

    # -- reading ---------------------------------------------------------------------------------------------------

    def _read_objects(self, cluster: Cluster) -> bool:
        """Compile the slices that changed; returns whether any did."""
        store = cluster.store
        if store.version == self._as_of:
            return False
        changed = store.since(self._as_of) if self._as_of >= 0 else None
        self._as_of = store.version
        kinds = None if changed is None else {type(item) for item in changed}
        if kinds is None or DeviceClass in kinds:
            self.epoch += 1
        rules_changed = kinds is None or DeviceTaintRule in kinds
        if rules_changed and self.rules.device_taint_rules:
            self._taint_rules = list(store.of(DeviceTaintRule))
            self._slices.clear()
        elif kinds is not None and ResourceSlice not in kinds:
            return False
        return self._compile({each.name: each for each in store.of(ResourceSlice)})

    def _compile(self, slices: dict[str, ResourceSlice]) -> bool:
        touched = {old.pool_id for name, (_, old) in self._slices.items() if name not in slices}
        before, self._slices = self._slices, {}
        for name, each in slices.items():
            known = before.get(name)
            if known is None or known[0] is not each:
                touched |= {known[1].pool_id} if known else set()
                spec = kept_slice(each.spec, self.rules)
                if spec is None:
                    continue
                known = each, PooledSlice(name, spec, self._taint_rules)
                touched.add(known[1].pool_id)
            self._slices[name] = known
        self._index()
        for pool_id in touched:
            self._builder.forget(pool_id)
        return True

    def _index(self) -> None:
        by_pool: dict[PoolID, list[PooledSlice]] = {}
        self._by_node, self._for_many = {}, []
        for _, each in self._slices.values():
            by_pool.setdefault(each.pool_id, []).append(each)
            node_name = each.reach.node_name
            if node_name and (not each.counter_sets or self.rules.counter_slices_are_for_their_nodes):
                self._by_node.setdefault(node_name, []).append(each)
            else:
                self._for_many.append(each)
        self._by_pool = {pool_id: tuple(slices) for pool_id, slices in by_pool.items()}

    def _gather(self, row: int, cluster: Cluster) -> None:
        """Determine the pools of a row again, and note whether they changed."""
        before, pools = self._pools[row], None
        name = cluster.names[row]
        if name:
            labels = cluster.node(name).metadata.labels
            pools = self._builder.pools_for(name, labels, self.slices_near(name), self._by_pool)
        if before is not None and pools is not None and before.is_same(pools):
            return
        for pool_id in before.pool_ids() if before else ():
            self._rows_of[pool_id].discard(row)
        for pool_id in pools.pool_ids() if pools else ():
            self._rows_of.setdefault(pool_id, set()).add(row)
        self._pools[row] = pools
        self.log.append(row)


_INVENTORIES: PerCluster[dict[Rules, Inventory]] = PerCluster(dict)


def inventory_of(cluster: Cluster, rules: Rules) -> Inventory:
    """The devices of a cluster by the rules of a release, up to date."""
    by_rules = _INVENTORIES.of(cluster)
    found = by_rules.get(rules)
    if found is None:
        found = by_rules[rules] = Inventory(rules)
    found.catch_up(cluster)
    return found
