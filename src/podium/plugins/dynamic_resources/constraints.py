"""What limits a choice of devices: attributes they must share or not share, and counters that partitions share."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from podium.model.devices import DeviceAttribute, DeviceConstraint
from podium.plugins.dynamic_resources.inventory import DevicesInUse
from podium.plugins.dynamic_resources.pools import Counters, Pool, PooledDevice, PoolID
from podium.plugins.dynamic_resources.requests import Option


class Constraint(Protocol):
    """Told of every device that is about to be taken, and of those that are given back, last first."""

    def add(self, option: Option, device: PooledDevice) -> bool:
        """Whether the device may be taken; if so it counts from now on."""

    def remove(self, option: Option) -> None:
        """Forget the device that was taken last."""


def constraints_of(constraints: Iterable[DeviceConstraint], *, compare_all: bool) -> list[Constraint]:
    """The constraints of a claim, with no device taken yet."""
    made: list[Constraint] = []
    for each in constraints:
        requests = frozenset(each.requests)
        if each.match_attribute is not None:
            made.append(_SameValue(each.match_attribute, requests))
        elif each.distinct_attribute is not None and not compare_all:
            made.append(_DistinctByRequest(each.distinct_attribute, requests))
        elif each.distinct_attribute is not None:
            made.append(_DistinctValues(each.distinct_attribute, requests))
    return made


class _OnAttribute:
    """What constraints have in common: an attribute, and the requests they are about."""

    __slots__ = ("_attribute", "_requests")

    def __init__(self, attribute: str, requests: frozenset[str]) -> None:
        self._attribute, self._requests = attribute, requests

    def _concerns(self, option: Option) -> bool:
        requests = self._requests
        return not requests or option.request_name in requests or option.name in requests


def _is_among(value: DeviceAttribute, others: Collection[DeviceAttribute]) -> bool:
    """Whether another device has the value; a list counts as the same as anything."""
    return bool(others) and (not value.is_single or value in others)


class _SameValue(_OnAttribute):
    """All devices have one value of the attribute."""

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
    """What v1.36 makes of it: one value is remembered for each request, that of the device it took last.

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


class CounterUse:
    """The counters of the pools in the course of one search."""

    def __init__(self, in_use: DevicesInUse) -> None:
        self._in_use = in_use
        self._left: dict[PoolID, Counters] = {}

    def has_enough(self, pool: Pool, device: PooledDevice) -> bool:
        """Whether there is enough for one more device.

        All counters of the pool count: one that is overdrawn keeps back every device that takes from any.
        """
        needed = device.counters
        return all(amount >= needed.get(counter, 0) for counter, amount in self._of(pool).items())

    def take(self, pool: Pool, device: PooledDevice) -> None:
        left = self._of(pool)
        for counter, amount in device.counters.items():
            left[counter] -= amount

    def give_back(self, pool: Pool, device: PooledDevice) -> None:
        left = self._of(pool)
        for counter, amount in device.counters.items():
            left[counter] += amount

    def _of(self, pool: Pool) -> Counters:
        left = self._left.get(pool.id)
        if left is None:
            left = self._left[pool.id] = available_counters(pool, self._in_use).copy()
        return left


def available_counters(pool: Pool, in_use: DevicesInUse) -> Counters:
    """What claims leave of a pool's counters; kept with it until one of its devices is taken or released."""
    version = in_use.versions[pool.id]
    if pool.available is None or pool.available[0] != version:
        left = pool.counters.copy()
        for device in (*pool.devices, *pool.elsewhere):
            if device.counters and in_use.is_allocated(device.id):
                for counter, amount in device.counters.items():
                    left[counter] -= amount
        pool.available = version, left
    return pool.available[1]
