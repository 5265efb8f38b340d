"""Counters that the devices of a pool share."""

from __future__ import annotations

from podium.plugins.dynamic_resources.devices_in_use import DevicesInUse
from podium.plugins.dynamic_resources.pools import Counters, Pool, PooledDevice, PoolID


class CounterUse:
    """The pools' counters during one search."""

    def __init__(self, in_use: DevicesInUse) -> None:
        self._in_use = in_use
        self._left: dict[PoolID, Counters] = {}

    def has_enough(self, pool: Pool, device: PooledDevice) -> bool:
        """Whether there is enough for one more device.

        All counters of the pool count: one that is overdrawn blocks every device that takes from any.
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
    """The counters that claims leave over in a pool, cached until one of its devices is taken or released."""
    version = in_use.versions[pool.id]
    if pool.available is None or pool.available[0] != version:
        left = pool.counters.copy()
        for device in (*pool.devices, *pool.elsewhere):
            if device.counters and in_use.is_allocated(device.id):
                for counter, amount in device.counters.items():
                    left[counter] -= amount
        pool.available = version, left
    return pool.available[1]
