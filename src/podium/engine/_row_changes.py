"""Which rows changed, and values per row that are dropped when the row changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from podium.cluster import Cluster
from podium.cluster.cluster import PodTrial
from podium.cluster.columns import ROW_ASPECTS, ChangeLog, LogReader
from podium.engine._nominations import Nominations

T = TypeVar("T")


class RowChangeLog:
    """A change log of rows whose node, pods or nominated pods changed; a change of any other object touches all rows.

    Trials are not logged: they leave the cluster as it was.
    """

    def __init__(self, cluster: Cluster, nominations: Nominations) -> None:
        self._cluster, self._nominations = cluster, nominations
        self._reader = LogReader(cluster.logs_of(ROW_ASPECTS))
        self._reader.catch_up()
        self._shared = self._shared_versions()
        self.epoch = 0
        """Changes whenever any row may have changed."""
        self.log = ChangeLog()

    def catch_up(self) -> None:
        """Bring the log up to date; call it before reading it."""
        rows, shared = self._reader.read(), self._shared_versions()
        if shared != self._shared:
            rows, self._shared = None, shared
        nodes = self._nominations.take_changed() if self._nominations.have_changed else ()
        if rows is None:
            self.epoch += 1
            return
        changed = set(rows.tolist())
        if nodes:
            changed.update(row for row in map(self._cluster.rows.get, nodes) if row is not None)
        for row in changed:
            self.log.append(row)

    def _shared_versions(self) -> tuple[int, int]:
        return self._cluster.store.version, self._cluster.node_set_version

    @contextmanager
    def trial(self) -> Iterator[PodTrial]:
        """A trial on the cluster."""
        self.catch_up()
        with PodTrial(self._cluster) as trial:
            yield trial
        self._reader.catch_up()


class RowChangeReader:
    """Reads which rows changed since the last read; the first read returns all rows."""

    __slots__ = ("_changes", "_cursor", "_epoch")

    def __init__(self, changes: RowChangeLog) -> None:
        self._changes, self._cursor, self._epoch = changes, -1, -1

    def read(self) -> set[int] | None:
        """The rows that changed since the last read; None for all."""
        changes = self._changes
        changes.catch_up()
        rows = changes.log.since(self._cursor) if self._epoch == changes.epoch else None
        self._cursor, self._epoch = changes.log.head, changes.epoch
        return None if rows is None else set(rows.tolist())


class RowCache(Generic[T]):
    """One value per row, dropped when the row changes."""

    __slots__ = ("_changed", "found")

    def __init__(self, changes: RowChangeLog) -> None:
        self._changed = RowChangeReader(changes)
        self.found: dict[int, T] = {}

    def forget_changed(self) -> set[int] | None:
        """Drop the values of rows that changed since the last call, and return those rows; None for all."""
        changed = self._changed.read()
        if changed is None:
            self.found.clear()
        else:
            for row in changed:
                self.found.pop(row, None)
        return changed


class LowestPriorities:
    """The lowest priority of the pods on each row, shared by all searches."""

    def __init__(self, cluster: Cluster, changes: RowChangeLog) -> None:
        self._cluster, self._known = cluster, RowCache[float](changes)

    def catch_up(self) -> None:
        """Drop the values of changed rows; call it before reading."""
        self._known.forget_changed()

    def of(self, row: int) -> float:
        """Infinity for a row without pods."""
        found: float | None = self._known.found.get(row)
        if found is None:
            found = min(
                [self._cluster.as_victim(pod).priority for pod in self._cluster.pods_on(row)], default=float("inf")
            )
            self._known.found[row] = found
        return found
