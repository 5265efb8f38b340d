"""Values kept per row until the row's node, its pods or the pods nominated to it change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from podium.cluster import Cluster
from podium.cluster.change_log import ROW_ASPECTS, ChangeLog, LogReader
from podium.cluster.trial import Trial
from podium.engine.nominations import Nominations

T = TypeVar("T")


class RowChangeLog:
    """A change log of rows whose node, pods or nominated pods changed; a change of any other object touches all rows.

    Trials are no changes: they leave the cluster as it was.
    """

    def __init__(self, cluster: Cluster, nominations: Nominations) -> None:
        self._cluster, self._nominations = cluster, nominations
        self._reader = LogReader(cluster.logs_of(ROW_ASPECTS))
        self._reader.catch_up()
        self._shared = self._shared_versions()
        self.epoch = 0
        """Another number once any row may have changed."""
        self.log = ChangeLog()

    def catch_up(self) -> None:
        """Bring the log up to date; call it before reading it."""
        shared = self._shared_versions()
        rows = self._reader.read()
        if shared != self._shared:
            rows, self._shared = None, shared
        nodes = self._nominations.take_changed()
        if rows is None:
            self.epoch += 1
            return
        nominated = (row for row in map(self._cluster.rows.get, nodes) if row is not None)
        for row in {*rows.tolist(), *nominated}:
            self.log.append(row)

    def _shared_versions(self) -> tuple[int, int]:
        return self._cluster.store.version, self._cluster.node_set_version

    @contextmanager
    def trial(self) -> Iterator[Trial]:
        """A trial on the cluster."""
        self.catch_up()
        with Trial(self._cluster) as trial:
            yield trial
        self._reader.catch_up()


class RowCache(Generic[T]):
    """One value per row, dropped when the row changes."""

    __slots__ = ("_changes", "_epoch", "_reader", "found")

    def __init__(self, changes: RowChangeLog) -> None:
        self._changes, self._reader, self._epoch = changes, LogReader([changes.log]), -1
        self.found: dict[int, T] = {}

    def forget_changed(self) -> set[int] | None:
        """Forget what was found about rows that changed since the last time; those rows, or None for all."""
        changes = self._changes
        changes.catch_up()
        rows = self._reader.read()
        if self._epoch != changes.epoch:
            rows, self._epoch = None, changes.epoch
        if rows is None:
            self.found.clear()
            return None
        changed = set(rows.tolist())
        for row in changed:
            self.found.pop(row, None)
        return changed
