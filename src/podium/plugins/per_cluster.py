"""What plugins derive from a cluster and keep up to date, instead of working it out for every pod."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from podium.cluster import Aspect, Cluster

T = TypeVar("T")


class PerCluster(Generic[T]):
    """One T for each cluster, made when first asked for. A T must not hold its cluster, or neither is ever freed."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[Cluster, T] = WeakKeyDictionary()

    def of(self, cluster: Cluster) -> T:
        found = self._made.get(cluster)
        if found is None:
            found = self._made[cluster] = self._make()
        return found


class ChangedRows:
    """A reader of a cluster's log of one aspect."""

    def __init__(self, aspect: Aspect) -> None:
        self._aspect = aspect
        self._cursor = -1

    def take(self, cluster: Cluster) -> Iterable[int]:
        """The rows that changed since the last time, each once; all rows the first time."""
        log = cluster.logs[self._aspect]
        if log.head == self._cursor:
            return ()
        changed = log.since(self._cursor) if self._cursor >= 0 else None
        self._cursor = log.head
        return range(cluster.columns.size) if changed is None else set(changed.tolist())
