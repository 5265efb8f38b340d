"""Slices and their devices, compiled: what the search looks at for every candidate."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from podium import cel
from podium.model import DeviceTaintRule, NodeSelector, ResourceSlice
from podium.model.devices import Device, DeviceAttribute, DeviceCounterConsumption
from podium.model.quantity import parse_quantity
from podium.model.selectors import Labels, NodeTerm, node_terms, repels
from podium.plugins.dynamic_resources.capacity import Capacity

Counters = dict[tuple[str, str], Fraction]
"""How much there is, or is taken, of each counter, by the names of its set and its own."""


class PoolID(NamedTuple):
    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceID(NamedTuple):
    driver: str
    pool: str
    device: str

    @property
    def pool_id(self) -> PoolID:
        return PoolID(self.driver, self.pool)

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class Reach:
    """The nodes that a slice or a device is for: one by its name, all, or those that a selector matches."""

    __slots__ = ("_terms", "all_nodes", "node_name", "selector")

    def __init__(self, node_name: str | None, all_nodes: bool, selector: NodeSelector | None) -> None:
        self.node_name, self.all_nodes, self.selector = node_name, all_nodes, selector
        self._terms: tuple[NodeTerm, ...] = () if selector is None else node_terms(selector)

    @property
    def is_given(self) -> bool:
        return bool(self.node_name) or self.all_nodes or self.selector is not None

    def includes(self, name: str, labels: Labels) -> bool:
        if self.node_name:
            return self.node_name == name
        return self.all_nodes or any(term.matches(labels, name) for term in self._terms)


class PooledDevice:
    """A device of a slice. What CEL says of it is kept: it can change only with the slice."""

    __slots__ = (
        "capacity",
        "counter_sets",
        "counters",
        "device",
        "driver",
        "id",
        "matches",
        "reach",
        "seen_by_cel",
        "slice",
        "taints",
    )

    def __init__(self, device: Device, of: PooledSlice, rules: Iterable[DeviceTaintRule]) -> None:
        self.id = DeviceID(of.pool_id.driver, of.pool_id.pool, device.name)
        self.device, self.driver, self.slice = device, of.pool_id.driver, of
        self.capacity = {name: Capacity(each) for name, each in device.capacity.items()}
        self.counters = _consumed(device.consumes_counters)
        """What it takes of its pool's counters, by set and counter."""
        self.counter_sets = {each.counter_set for each in device.consumes_counters}
        added = [rule.spec.taint for rule in rules if _concerns(rule, self.id)]
        self.taints = [taint for taint in (*device.taints, *added) if repels(taint)]
        """Those that keep requests off that do not tolerate them."""
        self.reach = Reach(device.node_name, device.all_nodes, device.node_selector) if of.per_device else of.reach
        self.matches: dict[str, bool] = {}
        """What the CEL expressions that were tried say of it."""
        self.seen_by_cel: cel.Device | None = None
        """What expressions look at, once one did."""

    @property
    def is_shared(self) -> bool:
        """Whether several claims may have it at a time."""
        return bool(self.device.allow_multiple_allocations)

    def attribute(self, name: str) -> DeviceAttribute | None:
        """The attribute of a fully qualified name; one of the driver's own domain may be there by its bare name."""
        found = self.device.attributes.get(name)
        if found is None:
            domain, slash, bare = name.partition("/")
            if slash and domain == self.driver:
                found = self.device.attributes.get(bare)
        return found


class PooledSlice:
    """A slice of a pool with its devices."""

    __slots__ = ("counter_sets", "devices", "name", "per_device", "pool_id", "reach", "spec")

    def __init__(self, resource_slice: ResourceSlice, rules: Iterable[DeviceTaintRule]) -> None:
        spec = resource_slice.spec
        self.name, self.spec = resource_slice.name, spec
        self.pool_id = PoolID(spec.driver, spec.pool.name)
        self.per_device = spec.per_device_node_selection
        self.reach = Reach(spec.node_name, spec.all_nodes, spec.node_selector)
        rules = [rule for rule in rules if _may_concern(rule, self.pool_id)]
        self.devices = [PooledDevice(device, self, rules) for device in spec.devices]
        self.counter_sets = spec.shared_counters

    @property
    def generation(self) -> int:
        return self.spec.pool.generation

    def reaches(self, node_name: str, labels: Labels, *, counters_everywhere: bool) -> bool:
        """Whether the slice is looked at for a node."""
        if counters_everywhere and self.counter_sets:
            return True
        if self.reach.is_given:
            return self.reach.includes(node_name, labels)
        return self.per_device and any(device.reach.includes(node_name, labels) for device in self.devices)


def _consumed(consumption: Iterable[DeviceCounterConsumption]) -> Counters:
    taken: Counters = {}
    for each in consumption:
        for name, counter in each.counters.items():
            key = each.counter_set, name
            taken[key] = taken.get(key, Fraction(0)) + parse_quantity(counter.value)
    return taken


def _may_concern(rule: DeviceTaintRule, pool: PoolID) -> bool:
    """Whether a rule taints devices of a pool; one without a selector taints none."""
    selector = rule.spec.device_selector
    return selector is not None and selector.driver in (None, pool.driver) and selector.pool in (None, pool.pool)


def _concerns(rule: DeviceTaintRule, device: DeviceID) -> bool:
    selector = rule.spec.device_selector
    return selector is not None and selector.device in (None, device.device)
