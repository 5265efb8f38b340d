"""The pools of devices that a node can use, gathered from the slices that are for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from podium.model.quantity import parse_quantity
from podium.model.selectors import Labels
from podium.plugins.dynamic_resources.devices import Counters, PooledDevice, PooledSlice, PoolID
from podium.rules import Rules

Slices = tuple[PooledSlice, ...]


class Pool:
    """A pool as the nodes see it that see the same slices of it."""

    __slots__ = ("available", "counter_sets", "counters", "devices", "elsewhere", "id", "problem")

    def __init__(self, pool_id: PoolID, problem: str = "") -> None:
        self.id = pool_id
        self.problem = problem
        """Why none of its devices can be used: `currently being updated` or `currently invalid`."""
        self.devices: list[PooledDevice] = []
        self.elsewhere: list[PooledDevice] = []
        """Devices of the pool that are for other nodes, which may hold counters."""
        self.counter_sets: set[str] = set()
        self.counters: Counters = {}
        """What its counter sets hold."""
        self.available: tuple[int, Counters] | None = None
        """What claims leave of the counters, and as of which version of their use."""

    @property
    def is_invalid(self) -> bool:
        return self.problem == INVALID

    @property
    def has_binding_conditions(self) -> bool:
        return any(device.device.binding_conditions is not None for device in self.devices)


UPDATING, INVALID = "currently being updated", "currently invalid"


class Candidate(NamedTuple):
    """A device that a node might give, and the pool it comes from."""

    device: PooledDevice
    pool: Pool
    is_reachable: bool
    """False for a device of a slice that is for the node, while the device itself is for others."""


class NodePools:
    """What a node can use: the devices of its pools in the order in which they are tried."""

    __slots__ = ("candidates", "has_invalid", "pools", "problem")

    def __init__(self, pools: list[Pool], node_name: str, labels: Labels) -> None:
        self.pools = pools
        self.candidates = [
            Candidate(device, pool, not device.slice.per_device or device.reach.includes(node_name, labels))
            for pool in pools
            for device in pool.devices
        ]
        self.problem = next((f"{pool.id} is {pool.problem}" for pool in pools if pool.problem), "")
        """Why nobody knows what all devices are, if so."""
        self.has_invalid = any(pool.is_invalid for pool in pools)

    def is_same(self, other: NodePools) -> bool:
        """Whether another look at the slices found the same."""
        return self.pools == other.pools and self.candidates == other.candidates

    def pool_ids(self) -> set[PoolID]:
        """The pools whose use decides what the node can give."""
        return {candidate.pool.id for candidate in self.candidates}


class PoolBuilder:
    """Builds pools from slices; nodes that see the same slices of a pool share it."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._built: dict[PoolID, dict[Slices, Pool | None]] = {}

    def forget(self, pool_id: PoolID) -> None:
        """Build a pool anew from now on, because its slices changed."""
        self._built.pop(pool_id, None)

    def pools_for(
        self, node_name: str, labels: Labels, slices: Iterable[PooledSlice], everywhere: Mapping[PoolID, Slices]
    ) -> NodePools:
        """The pools of a node, given the slices that may be for it and all slices of every pool."""
        seen: dict[PoolID, list[PooledSlice]] = {}
        for each in slices:
            if self._is_for(each, node_name, labels):
                _add(seen.setdefault(each.pool_id, []), each)
        pools = [pool for pool_id in sorted(seen) if (pool := self._pool(pool_id, tuple(seen[pool_id]), everywhere))]
        # Devices that are ready at once come first.
        pools.sort(key=lambda pool: pool.has_binding_conditions)
        return NodePools(pools, node_name, labels)

    def _is_for(self, each: PooledSlice, node_name: str, labels: Labels) -> bool:
        rules = self._rules
        if not rules.device_counters and (each.per_device or each.counter_sets):
            return False
        return each.reaches(node_name, labels, counters_everywhere=not rules.counter_slices_are_for_their_nodes)

    def _pool(self, pool_id: PoolID, seen: Slices, everywhere: Mapping[PoolID, Slices]) -> Pool | None:
        """The pool of the slices that a node sees; None if a newer generation replaces it."""
        built = self._built.setdefault(pool_id, {})
        if seen not in built:
            built[seen] = self._build(pool_id, seen, everywhere[pool_id])
        return built[seen]

    def _build(self, pool_id: PoolID, seen: Slices, everywhere: Slices) -> Pool | None:
        generation, wanted = seen[0].generation, seen[0].spec.pool.resource_slice_count
        others: list[PooledSlice] = []
        if len(seen) != wanted:
            if any(each.generation > generation for each in everywhere):
                return None
            current = [each for each in everywhere if each.generation == generation]
            if len(current) != wanted:
                return Pool(pool_id, UPDATING)
            others = [each for each in current if each not in seen]
        return self._filled(pool_id, sorted(seen, key=lambda each: each.name), others)

    def _filled(self, pool_id: PoolID, seen: list[PooledSlice], others: list[PooledSlice]) -> Pool:
        pool = Pool(pool_id)
        pool.devices = [*_devices(each for each in seen if not each.counter_sets)]
        if len({device.id for device in pool.devices}) < len(pool.devices):
            return Pool(pool_id, INVALID)
        providers = [each for each in seen if each.counter_sets]
        if self._rules.counter_slices_are_for_their_nodes:
            providers += [each for each in others if each.counter_sets]
            others = [each for each in others if not each.counter_sets]
        for provider in providers:
            for each in provider.counter_sets:
                if each.name in pool.counter_sets:
                    return Pool(pool_id, INVALID)
                pool.counter_sets.add(each.name)
                amounts = {(each.name, name): parse_quantity(one.value) for name, one in each.counters.items()}
                pool.counters.update(amounts)
        pool.elsewhere = [*_devices(others)]
        needs_counters = self._rules.device_counters
        if needs_counters and not all(_has_counters(pool, each) for each in (*pool.devices, *pool.elsewhere)):
            return Pool(pool_id, INVALID)
        return pool


def _add(of_pool: list[PooledSlice], each: PooledSlice) -> None:
    """Keep the slices of the newest generation among those a node sees."""
    if of_pool and each.generation > of_pool[0].generation:
        of_pool.clear()
    if not of_pool or each.generation == of_pool[0].generation:
        of_pool.append(each)


def _devices(slices: Iterable[PooledSlice]) -> Iterator[PooledDevice]:
    return (device for each in slices for device in each.devices)


def _has_counters(pool: Pool, device: PooledDevice) -> bool:
    """Whether every counter that a device takes from is there."""
    return device.counter_sets <= pool.counter_sets and device.counters.keys() <= pool.counters.keys()
