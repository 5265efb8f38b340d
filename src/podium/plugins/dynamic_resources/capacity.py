"""Consumable capacity: how much of a device's capacity a request takes, and whether that much is left."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from podium.model import Quantity
from podium.model.devices import CapacityRequestPolicyRange, DeviceCapacity
from podium.model.quantity import (
    MAX_INT64,
    canonical_quantity,
    format_quantity,
    is_binary_quantity,
    parse_quantity,
    value,
)

NOTHING_IN_USE: Mapping[str, Fraction] = {}


class CapacityError(Exception):
    """An amount that cannot be worked with, whichever device it is asked of."""


class Amount(NamedTuple):
    """A quantity: how much, and how Kubernetes would write it."""

    value: Fraction
    text: str

    @classmethod
    def of(cls, quantity: Quantity) -> Amount:
        return cls(parse_quantity(quantity), canonical_quantity(quantity))


Amounts = dict[str, Amount]


class Capacity:
    """One capacity of a device, and what may be asked of it."""

    __slots__ = ("_default", "_range", "_valid", "value")

    def __init__(self, capacity: DeviceCapacity) -> None:
        self.value = Amount.of(capacity.value)
        policy = capacity.request_policy
        self._default = None if policy is None or policy.default is None else Amount.of(policy.default)
        self._valid = [] if policy is None else [Amount.of(each) for each in policy.valid_values]
        self._range = None if policy is None else policy.valid_range

    def consumed(self, asked: Amount | None, *, keeps_format: bool) -> Amount:
        """What a request takes: the default or all where it does not say, else rounded up to what is valid."""
        if asked is None:
            return self._default or self.value
        if self._range is not None and self._range.min is not None:
            return _rounded_up(asked, self._range, keeps_format)
        return next((valid for valid in self._valid if asked.value <= valid.value), asked)

    def refuses(self, amount: Amount) -> bool:
        """Whether the policy does not allow to take so much."""
        if amount == self._default:
            return False
        if self._range is not None:
            return _is_off(amount, self._range)
        return bool(self._valid) and all(amount.value != valid.value for valid in self._valid)


def consumed_amounts(
    capacity: Mapping[str, Capacity], asked: Mapping[str, Amount], *, keeps_format: bool
) -> Amounts | None:
    """What a request takes of every capacity of a device; None if the device does not do.

    CapacityError where the release fails for amounts that it cannot represent.
    """
    if not asked.keys() <= capacity.keys():
        return None
    amounts = {name: each.consumed(asked.get(name), keeps_format=keeps_format) for name, each in capacity.items()}
    if keeps_format and any(amount.value < 0 for amount in amounts.values()):
        raise CapacityError("capacity value is negative")
    return None if any(each.refuses(amounts[name]) for name, each in capacity.items()) else amounts


def has_room(
    capacity: Mapping[str, Capacity],
    amounts: Amounts,
    in_use: Mapping[str, Fraction] = NOTHING_IN_USE,
    taken: Mapping[str, Fraction] = NOTHING_IN_USE,
) -> bool:
    """Whether so much more fits beside what claims hold and what was taken in this attempt."""
    return all(
        in_use.get(name, 0) + taken.get(name, 0) + amounts[name].value <= each.value.value
        for name, each in capacity.items()
    )


def _rounded_up(asked: Amount, valid: CapacityRequestPolicyRange, keeps_format: bool) -> Amount:
    """The amount itself, at least the minimum, and a whole number of steps above it."""
    assert valid.min is not None
    if asked.value < parse_quantity(valid.min):
        return Amount.of(valid.min)
    if valid.step is None:
        return asked
    if asked.value > MAX_INT64 and keeps_format:
        raise CapacityError("capacity request cannot be represented in the device's range arithmetic")
    least, step = value(valid.min), value(valid.step)
    added = value(asked.value) - least
    # Go's division drops the fraction, also of a negative number, which is what an amount beyond int64 may come to.
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
