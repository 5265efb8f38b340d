"""Why a node cannot give the devices that a pod asks for: its devices, counted by what is in their way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from podium.cluster import Cluster
from podium.model import DeviceClass
from podium.model.selectors import any_tolerates
from podium.plugins.dynamic_resources.capacity import CapacityError, consumed_amounts, has_room
from podium.plugins.dynamic_resources.counters import CounterUse
from podium.plugins.dynamic_resources.inventory import Inventory, inventory_of
from podium.plugins.dynamic_resources.pools import Candidate
from podium.plugins.dynamic_resources.requests import ClaimShape, Option, Shapes, expressions_of
from podium.plugins.dynamic_resources.selection import SelectionError, selects
from podium.rules import Rules


@dataclass(slots=True)
class Tally:
    """One request on one node: every device that the class selects counts once, under the first thing in its way."""

    option: Option
    there: int = 0
    """How many devices of the class there are."""
    in_use: int = 0
    unselected: int = 0
    """Those that the request's own selectors leave out."""
    full: int = 0
    """Those without the capacity that is asked for, or without counters left for them."""
    tainted: int = 0
    left: int = 0

    @property
    def is_enough(self) -> bool:
        if self.option.is_all:
            return self.there > 0 and self.left == self.there - self.unselected
        return self.left >= self.option.count


@dataclass(slots=True)
class Shortage:
    """What keeps a node from giving a pod its devices."""

    tallies: list[Tally]
    """The options of the first request that cannot be met even alone; of all requests if each could be met alone."""
    is_together: bool
    """Whether it is the requests together, or a constraint, that cannot be met."""
    problem: str
    """The pool that cannot be used for now, and why; empty for none."""
    constraints: tuple[str, ...]
    """The attributes that the claims' constraints are about."""


def shortage_on(cluster: Cluster, rules: Rules, shapes: Shapes, row: int) -> Shortage:
    """Why the search found nothing on a row."""
    inventory = inventory_of(cluster, rules)
    everything: list[Tally] = []
    problem = inventory.pools_of(row).problem
    for shape in shapes:
        for tallies in _tallies(inventory, cluster, shape, row):
            if not any(tally.is_enough for tally in tallies):
                return Shortage(tallies, False, problem, ())
            everything += tallies
    names = [each.match_attribute or each.distinct_attribute or "" for shape in shapes for each in shape.constraints]
    return Shortage(everything, True, problem, tuple(dict.fromkeys(names)))


def _tallies(inventory: Inventory, cluster: Cluster, shape: ClaimShape, row: int) -> Iterator[list[Tally]]:
    classes = cluster.store.of(DeviceClass)
    for request in shape.requests:
        tallies = []
        for option in request.options:
            tally = Tally(option)
            found = classes.get(option.class_name)
            for candidate in inventory.pools_of(row).candidates if found is not None else ():
                _count(tally, candidate, expressions_of(found.spec.selectors) if found else (), inventory)
            tallies.append(tally)
        yield tallies


def _count(tally: Tally, candidate: Candidate, of_class: tuple[str, ...], inventory: Inventory) -> None:
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
    elif rules.device_taints and any(not any_tolerates(option.tolerations, taint) for taint in device.taints):
        tally.tainted += 1
    else:
        tally.left += 1


def _has_room(option: Option, candidate: Candidate, inventory: Inventory) -> bool:
    device, rules, in_use = candidate.device, inventory.rules, inventory.in_use
    if rules.device_capacity:
        try:
            amounts = consumed_amounts(
                device.capacity, option.capacity, keeps_format=rules.capacity_steps_keep_their_format
            )
        except CapacityError:
            return False
        if amounts is None or not has_room(device.capacity, amounts, in_use.consumed.get(device.id, {})):
            return False
    return not device.counters or CounterUse(in_use).has_enough(candidate.pool, device)
