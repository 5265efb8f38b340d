"""Shared by scoring plugins: Go's integer arithmetic, and values per node that are kept up to date."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Aspect, Cluster
from podium.cluster.columns import Ints, Mask, lowest


def halved(numbers: Ints) -> Ints:
    """Half of each number, truncated toward zero as Go's integer division does."""
    half = numbers >> 1
    if lowest(half) < 0:
        # Shifting rounds down, so a negative odd number comes out one too small.
        half += (numbers < 0) & (numbers & 1 != 0)
    return half


def divisors(capacity: Ints | int) -> tuple[Ints | int, Mask | bool]:
    """Divisors that are never zero, and which nodes have any capacity: True for all, False for none."""
    if isinstance(capacity, int):
        return (capacity, True) if capacity else (1, False)
    present = capacity != 0
    return (capacity, True) if present.all() else (np.maximum(capacity, 1), present)


def round_half_away(numbers: NDArray[np.float64]) -> Ints:
    """Round to the nearest integer, halves away from zero, as Go's math.Round does; NumPy's rounds halves to even."""
    whole = np.trunc(numbers)
    rounded: NDArray[np.float64] = whole + np.where(np.abs(numbers - whole) >= 0.5, np.sign(numbers), 0.0)
    return rounded.astype(np.int64)


def rounded(number: float) -> int:
    """The same as `round_half_away`, for one number."""
    whole = math.trunc(number)
    if abs(number - whole) < 0.5:
        return whole
    return whole + 1 if number > 0 else whole - 1


T = TypeVar("T")


class PerCluster(Generic[T]):
    """One T per cluster, created on first use. A T must not refer to its cluster, or neither is ever freed."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[Cluster, T] = WeakKeyDictionary()

    def of(self, cluster: Cluster) -> T:
        found = self._made.get(cluster)
        if found is None:
            found = self._made[cluster] = self._make()
        return found


class ChangedRows:
    """Reads a cluster's change log of one aspect."""

    def __init__(self, aspect: Aspect) -> None:
        self._aspect = aspect
        self._cursor = -1

    def take(self, cluster: Cluster) -> Collection[int]:
        """The rows that changed since the last call, without repetition; all rows on the first call."""
        log = cluster.logs[self._aspect]
        if log.head == self._cursor:
            return ()
        changed = log.since(self._cursor) if self._cursor >= 0 else None
        self._cursor = log.head
        return range(cluster.columns.size) if changed is None else set(changed.tolist())
