"""Shared counters: what partitions of one device have left for each other."""

from __future__ import annotations

from podium.plugins.dynamic_resources.devices import Counters, PooledDevice, PoolID
from podium.plugins.dynamic_resources.pools import Pool
from podium.plugins.dynamic_resources.usage import DevicesInUse


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
