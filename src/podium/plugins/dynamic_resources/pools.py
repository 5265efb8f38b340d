"""Slices, their devices with consumable capacity, and the pools of devices that a node can use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from podium.model import DeviceTaintRule, NodeSelector, Quantity
from podium.model.devices import (
    CapacityRequestPolicyRange,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    ResourceSliceSpec,
)
from podium.model.quantity import (
    MAX_INT64,
    canonical_quantity,
    format_quantity,
    is_binary_quantity,
    parse_quantity,
    value,
)
from podium.model.selectors import Labels, NodeTerm, node_terms, repels
from podium.rules import Rules

if TYPE_CHECKING:
    from podium import cel

NOTHING_IN_USE: Mapping[str, Fraction] = {}


class CapacityError(Exception):
    """An amount that is invalid for every device."""


class Amount(NamedTuple):
    """A quantity: the number, and how Kubernetes writes it."""

    value: Fraction
    text: str

    @classmethod
    def of(cls, quantity: Quantity) -> Amount:
        return cls(parse_quantity(quantity), canonical_quantity(quantity))


Amounts = dict[str, Amount]


class ConsumableCapacity:
    """One capacity of a device, and the policy for requests of it."""

    __slots__ = ("_default", "_range", "_valid", "value")

    def __init__(self, capacity: DeviceCapacity) -> None:
        self.value = Amount.of(capacity.value)
        policy = capacity.request_policy
        self._default = None if policy is None or policy.default is None else Amount.of(policy.default)
        self._valid = [] if policy is None else [Amount.of(each) for each in policy.valid_values]
        self._range = None if policy is None else policy.valid_range

    def consumed(self, asked: Amount | None, *, keeps_format: bool) -> Amount:
        """The amount that a request takes: the default or all if it has none, else rounded up to a valid amount."""
        if asked is None:
            return self._default or self.value
        if self._range is not None and self._range.min is not None:
            return _rounded_up(asked, self._range, keeps_format)
        return next((valid for valid in self._valid if asked.value <= valid.value), asked)

    def refuses(self, amount: Amount) -> bool:
        """Whether the policy does not allow this amount."""
        if amount == self._default:
            return False
        if self._range is not None:
            return _is_off(amount, self._range)
        return bool(self._valid) and all(amount.value != valid.value for valid in self._valid)


def consumed_amounts(
    capacity: Mapping[str, ConsumableCapacity], asked: Mapping[str, Amount], *, keeps_format: bool
) -> Amounts | None:
    """The amounts that a request takes of every capacity of a device; None if the device does not fit.

    CapacityError if the release fails for amounts that it cannot represent.
    """
    if not asked.keys() <= capacity.keys():
        return None
    amounts: Amounts = {}
    for name, each in capacity.items():
        try:
            amounts[name] = each.consumed(asked.get(name), keeps_format=keeps_format)
        except CapacityError as error:
            raise CapacityError(f'capacity "{name}": {error}') from None
        if keeps_format and amounts[name].value < 0:
            raise CapacityError(f'capacity "{name}": capacity value is negative')
    return None if any(each.refuses(amounts[name]) for name, each in capacity.items()) else amounts


def has_room(
    capacity: Mapping[str, ConsumableCapacity],
    amounts: Amounts,
    in_use: Mapping[str, Fraction] = NOTHING_IN_USE,
    taken: Mapping[str, Fraction] = NOTHING_IN_USE,
) -> bool:
    """Whether these amounts fit in addition to those of claims and of this attempt."""
    return all(
        in_use.get(name, 0) + taken.get(name, 0) + amounts[name].value <= each.value.value
        for name, each in capacity.items()
    )


def _rounded_up(asked: Amount, valid: CapacityRequestPolicyRange, keeps_format: bool) -> Amount:
    """The amount rounded up: at least the minimum, and a whole number of steps above it."""
    assert valid.min is not None
    if asked.value < parse_quantity(valid.min):
        return Amount.of(valid.min)
    if valid.step is None:
        return asked
    if asked.value > MAX_INT64 and keeps_format:
        raise CapacityError("capacity request cannot be represented in the device's range arithmetic")
    least, step = value(valid.min), value(valid.step)
    added = value(asked.value) - least
    # Go's division truncates, also for a negative number, which an amount beyond int64 may become.
    steps = abs(added) // step if added >= 0 else -(abs(added) // step)
    rounded = least + step * (steps + (added % step != 0))
    if rounded > MAX_INT64 and keeps_format:
        raise CapacityError("capacity request cannot be represented in the device's range arithmetic")
    rounded = (rounded + 2**63) % 2**64 - 2**63
    is_binary = not keeps_format or is_binary_quantity(valid.step)
    return Amount(Fraction(rounded), format_quantity(rounded, binary=is_binary))


def _is_off(amount: Amount, valid: CapacityRequestPolicyRange) -> bool:
    """Whether an amount is above the maximum or between two steps."""
    if valid.max is not None and amount.value > parse_quantity(valid.max):
        return True
    if valid.step is None or valid.min is None:
        return False
    return (value(amount.value) - value(valid.min)) % value(valid.step) != 0


Counters = dict[tuple[str, str], Fraction]
"""The amount of each counter, by the names of its set and of the counter."""


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
    """The nodes that a slice or a device is for: one by name, all, or those that a selector matches."""

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
    """A device of a slice. CEL results are cached with it: they can change only with the slice."""

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
        "work",
    )

    def __init__(self, device: Device, of: PooledSlice, rules: Iterable[DeviceTaintRule]) -> None:
        self.id = DeviceID(of.pool_id.driver, of.pool_id.pool, device.name)
        self.device, self.driver, self.slice = device, of.pool_id.driver, of
        self.capacity = {name: ConsumableCapacity(each) for name, each in device.capacity.items()}
        self.counters = _consumed(device.consumes_counters)
        """The amounts it takes of its pool's counters, by set and counter."""
        self.counter_sets = {each.counter_set for each in device.consumes_counters}
        added = [rule.spec.taint for rule in rules if _concerns(rule, self.id)]
        self.taints = [taint for taint in (*device.taints, *added) if repels(taint)]
        """The taints that exclude requests without a toleration."""
        self.reach = Reach(device.node_name, device.all_nodes, device.node_selector) if of.per_device else of.reach
        self.matches: dict[str, bool] = {}
        self.work: dict[str, int] = {}
        """Per expression that takes long, its work on this device."""
        """The results of the CEL expressions that were evaluated for it."""
        self.seen_by_cel: cel.Device | None = None
        """The device as CEL expressions see it, created on first use."""

    @property
    def is_shared(self) -> bool:
        """Whether several claims may use it at the same time."""
        return bool(self.device.allow_multiple_allocations)

    def attribute(self, name: str) -> DeviceAttribute | None:
        """The attribute with a fully qualified name; attributes of the driver's own domain may use the bare name."""
        found = self.device.attributes.get(name)
        if found is None:
            domain, slash, bare = name.partition("/")
            if slash and domain == self.driver:
                found = self.device.attributes.get(bare)
        return found


class PooledSlice:
    """A slice of a pool with its devices."""

    __slots__ = (
        "counter_sets",
        "devices",
        "has_compatibility_groups",
        "name",
        "per_device",
        "pool_id",
        "reach",
        "spec",
    )

    def __init__(self, name: str, spec: ResourceSliceSpec, rules: Iterable[DeviceTaintRule]) -> None:
        self.name, self.spec = name, spec
        self.pool_id = PoolID(spec.driver, spec.pool.name)
        self.per_device = spec.per_device_node_selection
        self.reach = Reach(spec.node_name, spec.all_nodes, spec.node_selector)
        rules = [rule for rule in rules if _may_concern(rule, self.pool_id)]
        self.devices = [PooledDevice(device, self, rules) for device in spec.devices]
        self.counter_sets = spec.shared_counters
        self.has_compatibility_groups = any(
            each.compatibility_groups for device in spec.devices for each in device.consumes_counters
        )

    @property
    def generation(self) -> int:
        return self.spec.pool.generation

    def reaches(self, node_name: str, labels: Labels, *, counters_everywhere: bool) -> bool:
        """Whether the slice counts for a node."""
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
    """Whether a rule taints devices of a pool; a rule without a selector taints none."""
    selector = rule.spec.device_selector
    return selector is not None and selector.driver in (None, pool.driver) and selector.pool in (None, pool.pool)


def _concerns(rule: DeviceTaintRule, device: DeviceID) -> bool:
    selector = rule.spec.device_selector
    return selector is not None and selector.device in (None, device.device)


Slices = tuple[PooledSlice, ...]


class Pool:
    """A pool, shared by the nodes that see the same slices of it."""

    __slots__ = ("available", "counter_sets", "counters", "devices", "elsewhere", "id", "problem", "reason")

    def __init__(self, pool_id: PoolID, problem: str = "", reason: str = "") -> None:
        self.id = pool_id
        self.problem = problem
        """Why its devices are incomplete: `currently being updated` or `currently invalid`; empty if they are
        complete.
        """
        self.reason = reason
        """Why it is invalid."""
        self.devices: list[PooledDevice] = []
        self.elsewhere: list[PooledDevice] = []
        """Devices of the pool for other nodes; they may use counters."""
        self.counter_sets: set[str] = set()
        self.counters: Counters = {}
        """The amounts in its counter sets."""
        self.available: tuple[int, Counters] | None = None
        """The counters that claims leave over, with the version of use for which they are valid."""

    @property
    def is_invalid(self) -> bool:
        return self.problem == INVALID

    @property
    def has_binding_conditions(self) -> bool:
        return any(device.device.binding_conditions is not None for device in self.devices)


UPDATING, INVALID = "currently being updated", "currently invalid"


class CandidateDevice(NamedTuple):
    """A device that a node might provide, and its pool."""

    device: PooledDevice
    pool: Pool
    is_reachable: bool
    """False if the slice is for the node, but the device itself is for other nodes."""


class NodePools:
    """The devices of a node's pools, in the order in which they are tried."""

    __slots__ = ("candidates", "has_invalid", "invalid", "invalid_at", "pools", "problem")

    def __init__(self, pools: list[Pool], node_name: str, labels: Labels) -> None:
        self.pools = pools
        self.candidates = [
            CandidateDevice(device, pool, not device.slice.per_device or device.reach.includes(node_name, labels))
            for pool in pools
            for device in pool.devices
        ]
        self.problem = next((f"{pool.id} is {pool.problem}" for pool in pools if pool.problem), "")
        """Why the devices are incomplete, if they are."""
        self.has_invalid = any(pool.is_invalid for pool in pools)
        self.invalid_at: int | None = None
        """The index of the first candidate after an invalid pool that no search gets past; None if there is no
        such pool.
        """
        self.invalid = ""
        """The error of a search there."""

    def stop_at_invalid(self) -> None:
        """Let no search get past the first invalid pool."""
        for number, pool in enumerate(self.pools):
            if pool.is_invalid:
                self.invalid_at = sum(len(each.devices) for each in self.pools[:number])
                self.invalid = f"pool {pool.id.pool} is invalid: {pool.reason}"
                return

    def is_same(self, other: NodePools) -> bool:
        """Whether both consist of the same pools."""
        return self.pools == other.pools and self.candidates == other.candidates

    def pool_ids(self) -> set[PoolID]:
        """The pools whose use affects what the node can provide."""
        return {candidate.pool.id for candidate in self.candidates}


class PoolBuilder:
    """Builds pools from slices; nodes that see the same slices of a pool share it."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._built: dict[PoolID, dict[Slices, Pool | None]] = {}

    def forget(self, pool_id: PoolID) -> None:
        """Build a pool again from now on, because its slices changed."""
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
        found = NodePools(pools, node_name, labels)
        if not self._rules.device_pools_look_beyond_the_node:
            found.stop_at_invalid()
        return found

    def _is_for(self, each: PooledSlice, node_name: str, labels: Labels) -> bool:
        if self._is_ignored(each):
            return False
        everywhere = not self._rules.counter_slices_are_for_their_nodes
        return each.reaches(node_name, labels, counters_everywhere=everywhere)

    def _is_ignored(self, each: PooledSlice) -> bool:
        return each.has_compatibility_groups and self._rules.device_alpha_fields_are_refused

    def _pool(self, pool_id: PoolID, seen: Slices, everywhere: Mapping[PoolID, Slices]) -> Pool | None:
        """The pool of the slices that a node sees; None if a newer generation replaces it."""
        built = self._built.setdefault(pool_id, {})
        if seen not in built:
            built[seen] = self._build(pool_id, seen, everywhere[pool_id])
        return built[seen]

    def _build(self, pool_id: PoolID, seen: Slices, everywhere: Slices) -> Pool | None:
        generation, wanted = seen[0].generation, seen[0].spec.pool.resource_slice_count
        others: list[PooledSlice] = []
        by_name = sorted(seen, key=lambda each: each.name)
        if len(seen) != wanted and not self._rules.device_pools_look_beyond_the_node:
            pool = self._filled(pool_id, by_name, [])
            pool.problem = pool.problem or UPDATING
            return pool
        if len(seen) != wanted:
            if any(each.generation > generation for each in everywhere):
                return None
            current = [each for each in everywhere if each.generation == generation and not self._is_ignored(each)]
            if len(current) != wanted:
                return Pool(pool_id, UPDATING)
            others = [each for each in current if each not in seen]
        return self._filled(pool_id, by_name, others)

    def _filled(self, pool_id: PoolID, seen: list[PooledSlice], others: list[PooledSlice]) -> Pool:
        pool = Pool(pool_id)
        pool.devices = [*_devices(each for each in seen if not each.counter_sets)]
        names = Counter(device.id.device for device in pool.devices)
        if len(names) < len(pool.devices):
            return Pool(pool_id, INVALID, f"duplicate device name {names.most_common(1)[0][0]}")
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
        if not all(_has_counters(pool, each) for each in (*pool.devices, *pool.elsewhere)):
            return Pool(pool_id, INVALID)
        return pool


def _add(of_pool: list[PooledSlice], each: PooledSlice) -> None:
    """Keep the slices of the newest generation among those that a node sees."""
    if of_pool and each.generation > of_pool[0].generation:
        of_pool.clear()
    if not of_pool or each.generation == of_pool[0].generation:
        of_pool.append(each)


def _devices(slices: Iterable[PooledSlice]) -> Iterator[PooledDevice]:
    return (device for each in slices for device in each.devices)


def _has_counters(pool: Pool, device: PooledDevice) -> bool:
    """Whether all counters exist that a device takes from."""
    return device.counter_sets <= pool.counter_sets and device.counters.keys() <= pool.counters.keys()
