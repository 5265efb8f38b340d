"""Searches devices for the claims of a pod on one node, in the order in which kube-scheduler's allocator tries them."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from podium.model import DeviceClass
from podium.model.selectors import any_tolerates
from podium.plugins.dynamic_resources.constraints import Constraint, constraints_of
from podium.plugins.dynamic_resources.device_selectors import (
    LONGEST_EVALUATION,
    SelectionError,
    SelectionTimeoutError,
    selects,
    work_of,
)
from podium.plugins.dynamic_resources.devices_in_use import DevicesInUse
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
from podium.plugins.dynamic_resources.requests import ClaimShape, Option, Shapes, expressions_of
from podium.plugins.dynamic_resources.shared_counters import CounterUse
from podium.rules import Rules

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
        self._classes, self._most_steps = classes, most_steps
        self.steps = 0
        """The work so far: devices tried, choices made or taken back, and what expressions took."""
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
            if self.steps >= self._most_steps:
                raise SearchTimeoutError(TIMED_OUT)
            self.steps += 1
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
            self.steps += 1
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

    def _is_in_use(self, number: int, option: Option, device: PooledDevice) -> bool:
        """Whether a device is in use; for admin access it counts as free, unless the claim already has it."""
        if option.is_admin:
            return number in self._taken.get(device, ())
        return device.id in self._in_use.exclusively or bool(self._taken.get(device))

    def _selects(self, number: int, option: Option, candidate: CandidateDevice) -> bool:
        try:
            if not self._matches(expressions_of(self._classes[option.class_name].spec.selectors), candidate.device):
                return False
        except SelectionError as error:
            raise AllocationError(f"class {option.class_name}: {error}") from None
        try:
            return self._matches(option.expressions, candidate.device) and candidate.is_reachable
        except SelectionError as error:
            raise AllocationError(str(error), number, is_of_claim=True) from None

    def _matches(self, expressions: tuple[str, ...], device: PooledDevice) -> bool:
        """Whether expressions select a device; their work counts as steps."""
        try:
            found = selects(expressions, device, self._rules, self._most_steps - self.steps)
        except SelectionTimeoutError:
            self.steps += LONGEST_EVALUATION
            raise SearchTimeoutError(TIMED_OUT) from None
        self.steps += work_of(expressions, device)
        return found

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


FOUND, NOT_FOUND, INVALID_POOLS, TIMEOUT, FAILED = range(5)
