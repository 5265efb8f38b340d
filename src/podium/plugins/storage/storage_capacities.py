"""The capacity that CSI drivers report for volumes that they can provision, by storage class and node."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.cluster import Aspect, Cluster, Nodes
from podium.cluster.columns import Ints, Mask
from podium.model import CSIStorageCapacity
from podium.model.quantity import value
from podium.model.selectors import Selector, label_selector

NONE = -1


class _Pool(NamedTuple):
    """One CSIStorageCapacity: the largest volume and the total capacity in bytes, and the nodes it is for."""

    limit: int
    capacity: int
    nodes: Selector


def volume_limit(raw: CSIStorageCapacity) -> int | None:
    """The largest possible volume in bytes; None if the object does not say."""
    limit = raw.capacity if raw.maximum_volume_size is None else raw.maximum_volume_size
    return None if limit is None else value(limit)


def _pool(raw: CSIStorageCapacity) -> _Pool:
    capacity, limit = NONE if raw.capacity is None else value(raw.capacity), volume_limit(raw)
    return _Pool(NONE if limit is None else limit, capacity, label_selector(raw.node_topology))


def _matching(selector: Selector, nodes: Nodes) -> Mask:
    mask = np.full(len(nodes), not selector.nothing)
    for requirement in selector.requirements:
        mask &= nodes.satisfying(requirement)
    return mask


class StorageCapacities:
    """Capacities by storage class and row. It belongs to one cluster."""

    def __init__(self) -> None:
        self._version = -1
        self._labels_head = -1
        self._pools: dict[str, list[_Pool]] = {}
        self._largest: dict[str, Ints] = {}

    def largest(self, storage_class: str, cluster: Cluster) -> Ints:
        """The largest volume of a class that each row can get, in bytes; -1 if it can get none."""
        self._catch_up(cluster)
        found = self._largest.get(storage_class)
        if found is None:
            nodes = Nodes(cluster)
            found = self._largest[storage_class] = np.full(len(nodes), NONE, dtype=np.int64)
            for pool in self._pools.get(storage_class, ()):
                np.maximum(found, pool.limit, out=found, where=_matching(pool.nodes, nodes))
        return found

    def chosen(self, storage_class: str, size: int, cluster: Cluster) -> Ints:
        """The total capacity where each row finds room for a volume of `size` bytes; -1 if it finds none."""
        self._catch_up(cluster)
        nodes = Nodes(cluster)
        found, undecided = np.full(len(nodes), NONE, dtype=np.int64), np.ones(len(nodes), dtype=np.bool_)
        for pool in self._pools.get(storage_class, ()):
            if pool.limit >= size:
                here = undecided & _matching(pool.nodes, nodes)
                found[here] = pool.capacity
                undecided &= ~here
        return found

    def _catch_up(self, cluster: Cluster) -> None:
        store, head = cluster.store, cluster.logs[Aspect.LABELS].head
        if head != self._labels_head:
            self._labels_head = head
            self._largest.clear()
        if store.version == self._version:
            return
        changed = store.since(self._version)
        self._version = store.version
        if changed is not None and not any(isinstance(item, CSIStorageCapacity) for item in changed):
            return
        self._largest.clear()
        self._pools.clear()
        for raw in store.of(CSIStorageCapacity):
            self._pools.setdefault(raw.storage_class_name, []).append(_pool(raw))
