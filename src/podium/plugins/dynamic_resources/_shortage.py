"""Why a node cannot give a pod its devices: counts them by obstacle, and says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from podium.cluster import Cluster
from podium.model import DeviceClass
from podium.model.selectors import any_tolerates
from podium.plugins.dynamic_resources.device_selectors import SelectionError, selects
from podium.plugins.dynamic_resources.inventory import Inventory, inventory_of
from podium.plugins.dynamic_resources.pools import CandidateDevice, CapacityError, consumed_amounts, has_room
from podium.plugins.dynamic_resources.requests import ClaimShape, Option, Shapes, expressions_of
from podium.plugins.dynamic_resources.shared_counters import CounterUse
from podium.rules import Rules
from podium.wording import counted


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
