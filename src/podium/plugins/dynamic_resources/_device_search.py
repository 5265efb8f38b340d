"""The search for devices on one node: depth first; the first complete solution wins.

Claims are tried in the order of the pod, requests in the order of the claim, devices in the order of the pools. Within
a request only ascending positions are tried, since the order of its devices makes no difference. The steps are
generators on a stack of our own, because a pod may request more devices than Python can nest calls.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple
from uuid import NAMESPACE_OID, uuid5

import numpy as np

from podium.cluster import Cluster
from podium.cluster.columns import Ints, Mask
from podium.model import DeviceClass, NodeSelector, NodeSelectorTerm, SelectorRequirement
from podium.model.devices import AllocationResult, DeviceAllocationResult, DeviceRequestAllocationResult
from podium.model.selectors import any_tolerates
from podium.plugins.dynamic_resources.inventory import DevicesInUse, Inventory, inventory_of
from podium.plugins.dynamic_resources.pools import (
    NOTHING_IN_USE,
    Amounts,
    CandidateDevice,
    CapacityError,
    NodePools,
    PooledDevice,
    consumed_amounts,
    has_room,
)
from podium.plugins.dynamic_resources.requests import (
    ClaimShape,
    Constraint,
    CounterUse,
    Option,
    SelectionError,
    Shapes,
    constraints_of,
    expressions_of,
    selects,
)
from podium.rules import Rules
from podium.wording import counted

ALLOCATION_RESULTS_MAX_SIZE = 32
"""The maximum number of devices of one claim."""
TIMED_OUT = "timed out trying to allocate devices"


class Taken(NamedTuple):
    """A device allocated to an option, and how much of its capacity."""

    option: Option
    candidate: CandidateDevice
    consumed: Amounts | None
    """None if the device is not shared."""
    takes_counters: bool


Solution = list[list[Taken]]
"""Per claim, the allocated devices in order."""


class AllocationError(Exception):
    """The search failed with an error, as opposed to finding nothing. It names the claim by its position, the class by
    its name.
    """

    def __init__(self, message: str, claim: int | None = None, *, is_of_claim: bool = False) -> None:
        super().__init__(message)
        self.message, self.claim = message, claim
        self.is_of_claim = is_of_claim
        """Whether the claim as a whole is wrong, and not one of its requests."""


class SearchTimeoutError(AllocationError):
    """The search exceeded the filter's timeout."""


class _TooManyError(Exception):
    """The claim would exceed the maximum number of devices."""


Step = Generator["Step | None", None, None]
"""A step of the search: yields the next step for each choice, or None at a complete solution."""


class DeviceSearch:
    """Searches one node's devices for a pod's claims."""

    def __init__(
        self,
        shapes: Shapes,
        pools: NodePools,
        in_use: DevicesInUse,
        classes: Mapping[str, DeviceClass],
        rules: Rules,
        most_steps: float,
    ) -> None:
        self._shapes, self._pools, self._in_use, self._rules = shapes, pools, in_use, rules
        self._classes, self._steps_left = classes, most_steps
        self._counters = CounterUse(in_use)
        self._solution: Solution = [[] for _ in shapes]
        self._constraints: list[list[Constraint]] = []
        self._all: dict[Option, list[CandidateDevice]] = {}
        self._taken: dict[PooledDevice, list[int]] = {}
        """Per device taken exclusively, the claims it was taken for."""
        self._capacity: dict[PooledDevice, list[Amounts]] = {}
        """Per shared device, the amounts taken each time."""
        self._amounts: dict[tuple[Option, PooledDevice], Amounts | None] = {}
        self._usable: dict[Option, list[bool | None]] = {}
        """Per option and candidate, whether it can be used at all; None if that is not known yet."""

    def run(self) -> Solution | None:
        """The first solution, or None if there is none; AllocationError if the scheduler would give up with an
        error.
        """
        for number, shape in enumerate(self._shapes):
            self._prepare(number, shape)
        stack, too_many = [self._request(0, 0)], False
        while stack:
            if self._steps_left <= 0:
                raise SearchTimeoutError(TIMED_OUT)
            self._steps_left -= 1
            try:
                step = stack[-1].throw(_TooManyError) if too_many else next(stack[-1])
            except StopIteration:
                stack.pop()
                too_many = False
            except _TooManyError:
                stack.pop()
                too_many = True
            else:
                if step is None:
                    return self._solution
                stack.append(step)
                too_many = False
        return None

    # -- preparing -------------------------------------------------------------------------------------------------

    def _prepare(self, number: int, shape: ClaimShape) -> None:
        """Determine the minimum number of devices for the claim, and the devices themselves where it wants all."""
        least = 0
        for request in shape.requests:
            for option in request.options:
                self._check_features(number, option)
                if option.is_all:
                    self._all[option] = self._everything(number, option)
            more = min(self._count(option) for option in request.options)
            if self._rules.device_errors_say_more and least + more > ALLOCATION_RESULTS_MAX_SIZE:
                raise AllocationError(
                    f"request {request.name}: adding {more} devices exceeds the claim limit of "
                    f"{ALLOCATION_RESULTS_MAX_SIZE}, with {least} already accounted for",
                    number,
                )
            least += more
        if least > ALLOCATION_RESULTS_MAX_SIZE:
            reason = f"number of requested devices {least} exceeds the claim limit of {ALLOCATION_RESULTS_MAX_SIZE}"
            raise AllocationError(reason, number, is_of_claim=True)
        self._constraints.append(constraints_of(shape.constraints, self._rules))

    def _check_features(self, number: int, option: Option) -> None:
        if option.derives_attributes and self._rules.device_alpha_fields_are_refused:
            reason = "cannot handle request with derived attributes, the feature is disabled"
            raise AllocationError(f"request {option.own_name}: {reason}", number)

    def _count(self, option: Option) -> int:
        return len(self._all[option]) if option.is_all else option.count

    def _everything(self, number: int, option: Option) -> list[CandidateDevice]:
        """The devices for a request of all devices."""
        if self._pools.problem:
            raise AllocationError(
                f"request {option.own_name}: asks for all devices, but resource pool {self._pools.problem}", number
            )
        found = []
        for candidate in self._pools.candidates:
            if self._selects(number, option, candidate):
                amounts = self._amounts_of(number, option, candidate.device)
                # Some releases leave out devices without enough capacity left, others fail for them later.
                in_use = not self._rules.all_devices_includes_full_ones
                if amounts is not None and self._has_room(candidate.device, amounts, count_use=in_use):
                    found.append(candidate)
        return found

    # -- the steps -------------------------------------------------------------------------------------------------

    def _request(self, number: int, place: int) -> Step:
        """Satisfy one request of a claim, then the following ones."""
        if number == len(self._shapes):
            yield None
            return
        requests = self._shapes[number].requests
        if place == len(requests):
            try:
                yield self._request(number + 1, 0)
            except _TooManyError:
                # Another choice for this claim may leave room for a smaller alternative of the next.
                return
            return
        request = requests[place]
        if not request.is_list:
            yield self._option(number, place, request.options[0], 0, 0)
            return
        exceeded = True
        for option in request.options:
            try:
                yield self._option(number, place, option, 0, 0)
            except _TooManyError:
                continue
            exceeded = False
        if exceeded:
            raise _TooManyError

    def _option(self, number: int, place: int, option: Option, index: int, start: int) -> Step:
        """Take one more device for an option, starting at a position in the list of candidates."""
        wanted = self._count(option)
        if option.is_all and not wanted:
            return
        if index >= wanted:
            yield self._request(number, place + 1)
            return
        if len(self._solution[number]) + wanted - index > ALLOCATION_RESULTS_MAX_SIZE:
            raise _TooManyError
        if option.is_all:
            # All of these devices are needed, in any order: there is nothing to choose.
            yield from self._try(number, place, option, index, self._all[option][index], 0)
            return
        candidates, invalid_at = self._pools.candidates, self._pools.invalid_at
        usable = self._usable.setdefault(option, [None] * len(candidates))
        for at in range(start, len(candidates)):
            if at == invalid_at:
                break
            is_usable = usable[at]
            if is_usable is None:
                is_usable = usable[at] = self._is_usable(number, option, candidates[at])
            if is_usable:
                yield from self._try(number, place, option, index, candidates[at], at + 1)
        if invalid_at is not None:
            raise AllocationError(self._pools.invalid)

    def _try(self, number: int, place: int, option: Option, index: int, candidate: CandidateDevice, start: int) -> Step:
        """Take a device if possible, and continue with the next one."""
        if self._take(number, option, candidate):
            then = option
            if option.is_all and not self._rules.device_alternatives_may_take_all:
                then = self._shapes[number].requests[place].options[0]
            try:
                yield self._option(number, place, then, index + 1, start)
            except _TooManyError:
                self._give_back(number)
                raise
            self._give_back(number)

    def _is_usable(self, number: int, option: Option, candidate: CandidateDevice) -> bool | None:
        """Whether a device can be used, judged by claims, selectors and its capacity.

        None if it is in use only because of this attempt. Selectors are not evaluated for devices in use.
        """
        device = candidate.device
        if not option.is_admin and device.id in self._in_use.exclusively:
            return False
        if self._is_in_use(number, option, device):
            return None
        return self._selects(number, option, candidate) and self._amounts_of(number, option, device) is not None

    # -- one device ------------------------------------------------------------------------------------------------

    def _is_in_use(self, number: int, option: Option, device: PooledDevice) -> bool:
        """Whether a device is in use; for admin access it counts as free, unless the claim already has it."""
        if option.is_admin:
            return number in self._taken.get(device, ())
        return device.id in self._in_use.exclusively or bool(self._taken.get(device))

    def _selects(self, number: int, option: Option, candidate: CandidateDevice) -> bool:
        device = candidate.device
        device_class = self._classes[option.class_name]
        try:
            if not selects(expressions_of(device_class.spec.selectors), device, self._rules):
                return False
        except SelectionError as error:
            raise AllocationError(f"class {option.class_name}: {error}") from None
        try:
            return selects(option.expressions, device, self._rules) and candidate.is_reachable
        except SelectionError as error:
            raise AllocationError(str(error), number, is_of_claim=True) from None

    def _amounts_of(self, number: int, option: Option, device: PooledDevice) -> Amounts | None:
        """The amounts of a device's capacity that an option takes; None if that is not possible."""
        key = option, device
        if key not in self._amounts:
            try:
                self._amounts[key] = consumed_amounts(
                    device.capacity, option.capacity, keeps_format=self._rules.capacity_steps_keep_their_format
                )
            except CapacityError as error:
                raise AllocationError(
                    f"request {option.own_name}: checking capacity for device {device.id}: {error}", number
                ) from None
        return self._amounts[key]

    def _has_room(self, device: PooledDevice, amounts: Amounts, *, count_use: bool = True) -> bool:
        if not device.capacity:
            return True
        if not count_use:
            return has_room(device.capacity, amounts)
        in_use = self._in_use.consumed.get(device.id, NOTHING_IN_USE)
        return has_room(device.capacity, amounts, in_use, _sum(self._capacity.get(device, [])))

    def _take(self, number: int, option: Option, candidate: CandidateDevice) -> bool:
        """Take a device if nothing prevents it; a constraint that prevents a request for all devices is an error."""
        device, pool, _ = candidate
        if self._is_in_use(number, option, device):
            return False
        amounts = self._amounts_of(number, option, device)
        if amounts is None or (not option.is_all and not self._has_room(device, amounts)):
            return False
        # Another share of a device in use takes no more counters.
        takes_counters = bool(device.counters) and not (device.is_shared and self._is_paid_for(device))
        if takes_counters and not self._counters.has_enough(pool, device):
            return False
        if any(not any_tolerates(option.tolerations, each) for each in device.taints):
            return False
        if not self._meets_constraints(number, option, device):
            if option.is_all:
                reason = "because a claim constraint would not be satisfied"
                raise AllocationError(f"request {option.own_name}: cannot add device {device.id} {reason}", number)
            return False
        if option.is_all and not self._has_room(device, amounts):
            # Checked last: a violated constraint is an error, so it is reported first.
            self._lift_constraints(number, option, len(self._constraints[number]))
            return False
        if takes_counters:
            self._counters.take(pool, device)
        if device.is_shared:
            self._capacity.setdefault(device, []).append(amounts)
        else:
            self._taken.setdefault(device, []).append(number)
        self._solution[number].append(Taken(option, candidate, amounts if device.is_shared else None, takes_counters))
        return True

    def _give_back(self, number: int) -> None:
        """Give back the device that was last taken for a claim."""
        option, (device, pool, _), amounts, takes_counters = self._solution[number].pop()
        by_device: dict[PooledDevice, list[Any]] = self._taken if amounts is None else self._capacity
        by_device[device].pop()
        if not by_device[device]:
            del by_device[device]
        self._lift_constraints(number, option, len(self._constraints[number]))
        if takes_counters:
            self._counters.give_back(pool, device)

    def _is_paid_for(self, device: PooledDevice) -> bool:
        """Whether a shared device is in use, so that its counters are taken already."""
        if device.id in self._in_use.consumed or device in self._capacity:
            return True
        return self._rules.shares_pay_counters_once and device.id in self._in_use.shares

    def _meets_constraints(self, number: int, option: Option, device: PooledDevice) -> bool:
        for place, constraint in enumerate(self._constraints[number]):
            if not constraint.add(option, device):
                self._lift_constraints(number, option, place)
                return False
        return True

    def _lift_constraints(self, number: int, option: Option, count: int) -> None:
        """Remove the last added device from the first `count` constraints of a claim."""
        for constraint in reversed(self._constraints[number][:count]):
            constraint.remove(option)


def _sum(amounts: list[Amounts]) -> Mapping[str, Fraction]:
    total: dict[str, Fraction] = {}
    for each in amounts:
        for name, amount in each.items():
            total[name] = total.get(name, Fraction(0)) + amount.value
    return total


# -- results on every node ---------------------------------------------------------------------------------------------


NODE_NAME_FIELD = "metadata.name"


def allocation_of(taken: list[Taken], node_name: str, claim_uid: str) -> AllocationResult:
    """The allocation of one claim; share ids are the same in every run."""
    results = [_result(each, f"{claim_uid}/{number}") for number, each in enumerate(taken)]
    return AllocationResult(
        devices=DeviceAllocationResult(results=results), node_selector=node_selector_of(taken, node_name)
    )


def _result(taken: Taken, share: str) -> DeviceRequestAllocationResult:
    device = taken.candidate.device
    consumed = {name: amount.text for name, amount in (taken.consumed or {}).items()}
    return DeviceRequestAllocationResult(
        request=taken.option.name,
        driver=device.id.driver,
        pool=device.id.pool,
        device=device.id.device,
        admin_access=True if taken.option.is_admin else None,
        tolerations=taken.option.tolerations,
        binding_conditions=device.device.binding_conditions,
        binding_failure_conditions=device.device.binding_failure_conditions,
        share_id=None if taken.consumed is None else str(uuid5(NAMESPACE_OID, share)),
        consumed_capacity=dict(consumed) or None,
    )


def node_selector_of(taken: list[Taken], node_name: str) -> NodeSelector | None:
    """The nodes that can use the devices: this node, the nodes that all selectors match, or None for all nodes."""
    fields: list[SelectorRequirement] = []
    expressions: list[SelectorRequirement] = []
    for each in taken:
        device = each.candidate.device
        if device.reach.node_name is not None or device.device.binds_to_node:
            requirement = SelectorRequirement(key=NODE_NAME_FIELD, operator="In", values=[node_name])
            return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[requirement])])
        terms = device.reach.selector.node_selector_terms if device.reach.selector else []
        if len(terms) > 1:
            raise AllocationError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        for term in terms:
            _add_new(fields, term.match_fields)
            _add_new(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=fields, match_expressions=expressions)])


def _add_new(known: list[SelectorRequirement], more: list[SelectorRequirement]) -> None:
    """Add the requirements that are not in the list yet; the order of their values does not matter."""
    for requirement in more:
        if not any(_are_same(requirement, other) for other in known):
            known.append(requirement)


def _are_same(one: SelectorRequirement, other: SelectorRequirement) -> bool:
    return (one.key, one.operator, set(one.values)) == (other.key, other.operator, set(other.values))


FOUND, NOT_FOUND, INVALID_POOLS, TIMEOUT, FAILED = range(5)


class SearchResults:
    """The results on each row for one list of claim shapes."""

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self.codes: Ints = np.zeros(0, dtype=np.int64)
        """FOUND, NOT_FOUND, INVALID_POOLS, TIMEOUT or FAILED."""
        self.ranks: Ints = np.zeros(0, dtype=np.int64)
        """The rank of the alternatives that were found, as computed by `ClaimShape.rank`."""
        self.solutions: dict[int, Solution] = {}
        self.errors: dict[int, AllocationError] = {}
        self._stale: Mask = np.zeros(0, dtype=np.bool_)
        self._cursor = -1
        self._epoch = -1

    def look_at(self, rows: Ints, cluster: Cluster, inventory: Inventory, most_steps: float) -> None:
        """Bring the results of these rows up to date; stops at the first row that fails, which fails the pod as
        a whole.
        """
        self._catch_up(cluster, inventory)
        stale = rows[self._stale[rows]]
        if len(stale):
            names = {option for shape in self.shapes for _, option in shape.classes()}
            known = cluster.store.of(DeviceClass)
            classes = {name: found for name in names if (found := known.get(name)) is not None}
            for row in stale.tolist():
                self._search(row, cluster.names[row], inventory, classes, most_steps)
                self._stale[row] = False
                if self.codes[row] == FAILED:
                    return

    def _catch_up(self, cluster: Cluster, inventory: Inventory) -> None:
        missing = cluster.columns.size - len(self.codes)
        if missing:
            more = np.zeros(missing, dtype=np.int64)
            self.codes, self.ranks = np.concatenate([self.codes, more]), np.concatenate([self.ranks, more])
            self._stale = np.concatenate([self._stale, np.ones(missing, dtype=np.bool_)])
        changed = inventory.log.since(self._cursor) if self._epoch == inventory.epoch and self._cursor >= 0 else None
        self._stale[slice(None) if changed is None else changed] = True
        self._cursor, self._epoch = inventory.log.head, inventory.epoch

    def _search(
        self, row: int, node_name: str, inventory: Inventory, classes: dict[str, DeviceClass], most_steps: float
    ) -> None:
        pools = inventory.pools_of(row)
        self.solutions.pop(row, None)
        self.errors.pop(row, None)
        try:
            found = DeviceSearch(self.shapes, pools, inventory.in_use, classes, inventory.rules, most_steps).run()
            for taken in found or ():
                node_selector_of(taken, node_name)
        except SearchTimeoutError:
            if inventory.rules.device_timeout_is_an_error:
                self.codes[row], self.errors[row] = FAILED, AllocationError(f"node {node_name}: {TIMED_OUT}")
            else:
                self.codes[row] = TIMEOUT
            return
        except AllocationError as error:
            self.codes[row], self.errors[row] = FAILED, error
            return
        if found is None:
            self.codes[row] = INVALID_POOLS if pools.has_invalid else NOT_FOUND
            return
        self.codes[row], self.solutions[row] = FOUND, found
        self.ranks[row] = sum(
            shape.rank(each.option.name for each in taken) for shape, taken in zip(self.shapes, found, strict=True)
        )


class KnownSearches:
    """The results for recently searched claims."""

    MOST_REMEMBERED_SEARCHES = 256

    def __init__(self) -> None:
        self._by_shapes: dict[tuple[Shapes, float], SearchResults] = {}

    def of(self, shapes: Shapes, most_steps: float) -> SearchResults:
        key = shapes, most_steps
        found = self._by_shapes.pop(key, None) or SearchResults(shapes)
        self._by_shapes[key] = found
        if len(self._by_shapes) > self.MOST_REMEMBERED_SEARCHES:
            del self._by_shapes[next(iter(self._by_shapes))]
        return found


@dataclass(slots=True)
class DeviceTally:
    """One request on one node: every device of the class counts once, under the first obstacle."""

    option: Option
    there: int = 0
    """The number of devices of the class."""
    in_use: int = 0
    unselected: int = 0
    """Devices that the request's own selectors exclude."""
    full: int = 0
    """Devices without the requested capacity, or without counters left for them."""
    tainted: int = 0
    left: int = 0

    @property
    def is_enough(self) -> bool:
        if self.option.is_all:
            return self.there > 0 and self.left == self.there - self.unselected
        return self.left >= self.option.count


@dataclass(slots=True)
class Shortage:
    """Why a node cannot give a pod its devices."""

    tallies: list[DeviceTally]
    """The options of the first request that cannot be met even alone; of all requests if each could be met alone."""
    is_together: bool
    """Whether the requests together, or a constraint, cannot be met."""
    problem: str
    """The pool that cannot be used at the moment, and why; empty if there is none."""
    constraints: tuple[str, ...]
    """The attributes in the claims' constraints."""


def shortage_on(cluster: Cluster, rules: Rules, shapes: Shapes, row: int) -> Shortage:
    """Why the search found nothing on a row."""
    inventory = inventory_of(cluster, rules)
    everything: list[DeviceTally] = []
    problem = inventory.pools_of(row).problem
    for shape in shapes:
        for tallies in tallies_of(inventory, cluster, shape, row):
            if not any(tally.is_enough for tally in tallies):
                return Shortage(tallies, False, problem, ())
            everything += tallies
    names = [each.match_attribute or each.distinct_attribute or "" for shape in shapes for each in shape.constraints]
    return Shortage(everything, True, problem, tuple(dict.fromkeys(names)))


def tallies_of(inventory: Inventory, cluster: Cluster, shape: ClaimShape, row: int) -> Iterator[list[DeviceTally]]:
    """Per request of a claim, the devices of a row counted for each of its options."""
    classes = cluster.store.of(DeviceClass)
    for request in shape.requests:
        tallies = []
        for option in request.options:
            tally = DeviceTally(option)
            found = classes.get(option.class_name)
            for candidate in inventory.pools_of(row).candidates if found is not None else ():
                _count(tally, candidate, expressions_of(found.spec.selectors) if found else (), inventory)
            tallies.append(tally)
        yield tallies


def is_of_class(candidate: CandidateDevice, class_name: str, inventory: Inventory, cluster: Cluster) -> bool:
    """Whether a class selects a device of a node; False if one of its expressions fails."""
    found = cluster.store.of(DeviceClass).get(class_name)
    try:
        return (
            found is not None
            and candidate.is_reachable
            and selects(expressions_of(found.spec.selectors), candidate.device, inventory.rules)
        )
    except SelectionError:
        return False


def _count(tally: DeviceTally, candidate: CandidateDevice, of_class: tuple[str, ...], inventory: Inventory) -> None:
    option, device, rules = tally.option, candidate.device, inventory.rules
    try:
        if not candidate.is_reachable or not selects(of_class, device, rules):
            return
        is_selected = selects(option.expressions, device, rules)
    except SelectionError:
        return
    tally.there += 1
    if not is_selected:
        tally.unselected += 1
    elif not option.is_admin and device.id in inventory.in_use.exclusively:
        tally.in_use += 1
    elif not _has_room(option, candidate, inventory):
        tally.full += 1
    elif any(not any_tolerates(option.tolerations, taint) for taint in device.taints):
        tally.tainted += 1
    else:
        tally.left += 1


def _has_room(option: Option, candidate: CandidateDevice, inventory: Inventory) -> bool:
    device, rules, in_use = candidate.device, inventory.rules, inventory.in_use
    try:
        amounts = consumed_amounts(
            device.capacity, option.capacity, keeps_format=rules.capacity_steps_keep_their_format
        )
    except CapacityError:
        return False
    if amounts is None or not has_room(device.capacity, amounts, in_use.consumed.get(device.id, {})):
        return False
    return not device.counters or CounterUse(in_use).has_enough(candidate.pool, device)


_ATTRIBUTE_IS = re.compile(r'\s*device\.attributes\["[^"]*"\]\.(\w+)\s*==\s*("[^"]*"|\w+)\s*')
_LONGEST = 60


def shortage_text(shortage: Shortage, node: str) -> str:
    """`r0 wants 2 of class gpu with model h100: 8 devices on gpu-b1, 5 in use, 2 other model, 1 left`."""
    if shortage.is_together:
        wanted = ", ".join(_wants(tally.option) for tally in shortage.tallies)
        about = f" with the constraints on {', '.join(shortage.constraints)}" if shortage.constraints else ""
        return f"{wanted}: each request fits alone on {node}, but not all together{about}"
    sentence = "; ".join(f"{_wants(tally.option)}: {_numbers(tally, node)}" for tally in shortage.tallies)
    return f"{sentence}; resource pool {shortage.problem}" if shortage.problem else sentence


def _wants(option: Option) -> str:
    number = "all" if option.is_all else str(option.count)
    such = [_condition(expression) for expression in option.expressions]
    such += [f"{amount.text} of {name}" for name, amount in option.capacity.items()]
    with_such = f" with {' and '.join(such)}" if such else ""
    return f"{option.name} wants {number} of class {option.class_name}{with_such}"


def _condition(expression: str) -> str:
    found = _ATTRIBUTE_IS.fullmatch(expression)
    if found:
        return f"{found[1]} {found[2].strip(chr(34))}"
    short = " ".join(expression.split())
    return short if len(short) <= _LONGEST else f"{short[: _LONGEST - 3]}..."


def _numbers(tally: DeviceTally, node: str) -> str:
    if not tally.there:
        return f"no devices of that class on {node}"
    attributes = [found[1] for each in tally.option.expressions if (found := _ATTRIBUTE_IS.fullmatch(each))]
    other = f"other {' or '.join(dict.fromkeys(attributes))}" if attributes else "not selected"
    parts = ((tally.in_use, "in use"), (tally.unselected, other), (tally.full, "full"), (tally.tainted, "tainted"))
    said = [f"{number} {what}" for number, what in parts if number]
    return ", ".join([f"{counted(tally.there, 'device')} on {node}", *said, f"{tally.left} left"])
