"""The results of the search on every node, kept until something changes there; the allocations made from them; and why
a node has too few devices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import NAMESPACE_OID, uuid5

import numpy as np

from podium.cluster import Cluster
from podium.cluster.columns import Ints, Mask
from podium.model import DeviceClass, NodeSelector, NodeSelectorTerm, SelectorRequirement
from podium.model.devices import AllocationResult, DeviceAllocationResult, DeviceRequestAllocationResult
from podium.model.selectors import any_tolerates
from podium.plugins.dynamic_resources._device_search import (
    TIMED_OUT,
    AllocationError,
    DeviceSearch,
    SearchTimeoutError,
    Solution,
    Taken,
)
from podium.plugins.dynamic_resources.inventory import Inventory, inventory_of
from podium.plugins.dynamic_resources.pools import CandidateDevice, CapacityError, consumed_amounts, has_room
from podium.plugins.dynamic_resources.requests import (
    ClaimShape,
    CounterUse,
    Option,
    SelectionError,
    Shapes,
    expressions_of,
    selects,
)
from podium.rules import Rules
from podium.wording import counted

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
