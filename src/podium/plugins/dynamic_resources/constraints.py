"""Constraints of a claim on the attributes of its devices."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from podium.model.devices import DeviceAttribute, DeviceConstraint
from podium.plugins.dynamic_resources.pools import PooledDevice
from podium.plugins.dynamic_resources.requests import Option
from podium.rules import Rules


class Constraint(Protocol):
    """Checks every device before it is taken, and is told when devices are given back, last first."""

    def add(self, option: Option, device: PooledDevice) -> bool:
        """Whether the device may be taken; if so, it counts from now on."""

    def remove(self, option: Option) -> None:
        """Forget the last device that was taken."""


def constraints_of(constraints: Iterable[DeviceConstraint], rules: Rules) -> list[Constraint]:
    """The constraints of a claim, without any device taken."""
    distinct: type[_DistinctValues | _DistinctByRequest | _AnyValue] = _DistinctValues
    if not rules.distinct_attribute_compares_all:
        distinct = _DistinctByRequest if rules.distinct_attribute_is_dropped else _AnyValue
    made: list[Constraint] = []
    for each in constraints:
        requests = frozenset(each.requests)
        if each.match_attribute is not None:
            made.append(_SameValue(each.match_attribute, requests))
        elif each.distinct_attribute is not None:
            made.append(distinct(each.distinct_attribute, requests))
    return made


class _OnAttribute:
    """A constraint on an attribute, and the requests that it applies to."""

    __slots__ = ("_attribute", "_requests")

    def __init__(self, attribute: str, requests: frozenset[str]) -> None:
        self._attribute, self._requests = attribute, requests

    def _concerns(self, option: Option) -> bool:
        requests = self._requests
        return not requests or option.request_name in requests or option.name in requests


def _is_among(value: DeviceAttribute, others: Collection[DeviceAttribute]) -> bool:
    """Whether one of the other devices has the value; a list counts as equal to anything."""
    return bool(others) and (not value.is_single or value in others)


class _SameValue(_OnAttribute):
    """All devices have the same value of the attribute."""

    __slots__ = ("_count", "_value")

    def __init__(self, attribute: str, requests: frozenset[str]) -> None:
        super().__init__(attribute, requests)
        self._value: DeviceAttribute | None = None
        self._count = 0

    def add(self, option: Option, device: PooledDevice) -> bool:
        if not self._concerns(option):
            return True
        value = device.attribute(self._attribute)
        if value is None or (self._count and (value != self._value or not value.is_single)):
            return False
        self._value = value
        self._count += 1
        return True

    def remove(self, option: Option) -> None:
        if self._concerns(option):
            self._count -= 1


class _DistinctValues(_OnAttribute):
    """No two devices have the same value of the attribute."""

    __slots__ = ("_values",)

    def __init__(self, attribute: str, requests: frozenset[str]) -> None:
        super().__init__(attribute, requests)
        self._values: list[DeviceAttribute] = []

    def add(self, option: Option, device: PooledDevice) -> bool:
        if not self._concerns(option):
            return True
        value = device.attribute(self._attribute)
        if value is None or _is_among(value, self._values):
            return False
        self._values.append(value)
        return True

    def remove(self, option: Option) -> None:
        if self._concerns(option):
            self._values.pop()


class _DistinctByRequest(_OnAttribute):
    """Distinct values as v1.36 checks them: one value is remembered per request, that of the device it took last.

    Giving a device back forgets the value of its request altogether. The first device is never compared.
    """

    __slots__ = ("_count", "_values")

    def __init__(self, attribute: str, requests: frozenset[str]) -> None:
        super().__init__(attribute, requests)
        self._values: dict[str, DeviceAttribute] = {}
        self._count = 0

    def add(self, option: Option, device: PooledDevice) -> bool:
        if not self._concerns(option):
            return True
        value = device.attribute(self._attribute)
        if value is None or (self._count and _is_among(value, self._values.values())):
            return False
        self._values[option.request_name] = value
        self._count += 1
        return True

    def remove(self, option: Option) -> None:
        if self._concerns(option):
            self._values.pop(option.request_name, None)
            self._count -= 1


class _AnyValue(_OnAttribute):
    """Distinct values as v1.34 checks them: every device must have the attribute, but values are not compared."""

    def add(self, option: Option, device: PooledDevice) -> bool:
        return not self._concerns(option) or device.attribute(self._attribute) is not None

    def remove(self, option: Option) -> None:
        """There is nothing to forget."""
