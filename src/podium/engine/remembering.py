"""What was found out about single nodes, remembered until they change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from podium.cluster import Cluster
from podium.cluster.trial import Trial
from podium.engine.nominations import Nominations
from podium.engine.plan import LeastRecentlyUsed
from podium.engine.results import changed_rows

T = TypeVar("T")
Stamp = tuple[int, int, int]


class RowStamps:
    """A stamp per row: another one whenever the node, its pods, the pods nominated to it or any object changed.

    Trials leave the stamps alone, because they leave the cluster as it was.
    """

    def __init__(self, cluster: Cluster, nominations: Nominations) -> None:
        self._cluster, self._nominations = cluster, nominations
        self._logs = list(cluster.logs.values())
        self._cursors = [log.head for log in self._logs]
        self._shared = self._shared_versions()
        self._epoch = 0
        self._changes: Counter[int] = Counter()

    def of(self, row: int) -> Stamp:
        return self._epoch, self._changes[row], self._nominations.stamp(self._cluster.names[row])

    def catch_up(self) -> None:
        """Note what changed since the last time; call it before reading stamps."""
        shared = self._shared_versions()
        rows = changed_rows(self._logs, self._cursors) if shared == self._shared else None
        self._cursors, self._shared = [log.head for log in self._logs], shared
        if rows is None:
            self._epoch += 1
            self._changes.clear()
        else:
            self._changes.update(rows)

    def _shared_versions(self) -> tuple[int, int]:
        return self._cluster.store.version, self._cluster.node_set_version

    @contextmanager
    def trial(self) -> Iterator[Trial]:
        """A trial on the cluster."""
        self.catch_up()
        with Trial(self._cluster) as trial:
            yield trial
        self._cursors = [log.head for log in self._logs]


class RowMemory(Generic[T]):
    """One finding per row and kind of question; a finding about a row that changed since is forgotten."""

    MOST_KINDS = 256

    def __init__(self, stamps: RowStamps) -> None:
        self._stamps = stamps
        self._kinds: LeastRecentlyUsed[dict[int, tuple[Stamp, T]]] = LeastRecentlyUsed(self.MOST_KINDS)

    def get(self, kind: Hashable, row: int) -> T | None:
        found = self._kinds.get_or_make(kind, dict).get(row)
        return None if found is None or found[0] != self._stamps.of(row) else found[1]

    def put(self, kind: Hashable, row: int, finding: T) -> None:
        self._kinds.get_or_make(kind, dict)[row] = self._stamps.of(row), finding
