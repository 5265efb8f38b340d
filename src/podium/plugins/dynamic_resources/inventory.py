"""The devices of a cluster: the pools that each node can use, and the devices in use."""

from __future__ import annotations

from collections.abc import Iterable

from podium.cluster import Aspect, Cluster
from podium.cluster.cluster import ChangedRows, PerCluster
from podium.cluster.columns import ChangeLog
from podium.model import DeviceClass, DeviceTaintRule, ResourceSlice
from podium.plugins.dynamic_resources.devices_in_use import DevicesInUse
from podium.plugins.dynamic_resources.kept_fields import kept_slice
from podium.plugins.dynamic_resources.pools import NodePools, PoolBuilder, PooledSlice, PoolID, Slices
from podium.rules import Rules


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
