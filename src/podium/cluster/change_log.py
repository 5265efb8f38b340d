"""What changed in a cluster, so that cached results can catch up instead of starting over.

A change touches one *aspect*. Row aspects belong to single nodes and are logged row by row; shared aspects belong to
the cluster as a whole and only count versions.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntFlag

import numpy as np

from podium.cluster.columns import Ints


class Aspect(IntFlag):
    """What a plugin's result for a node may depend on."""

    RESOURCES = 1
    """The node's allocatable, requested and number of pods."""
    PORTS = 2
    """The host ports in use on the node."""
    LABELS = 4
    """The node's labels and name."""
    TAINTS = 8
    """The node's taints and whether it is cordoned."""
    PODS = 16
    """Which pods are on the node."""
    IMAGES = 32
    """Which images the nodes have, and how many nodes there are."""
    OBJECTS = 64
    """Namespaces, services, owners, volumes and every other object that is neither node nor pod."""


ROW_ASPECTS = Aspect.RESOURCES | Aspect.PORTS | Aspect.LABELS | Aspect.TAINTS | Aspect.PODS
SHARED_ASPECTS = Aspect.IMAGES | Aspect.OBJECTS


class ChangeLog:
    """The rows one aspect changed on, in order. Readers keep a cursor and ask for what came after it."""

    __slots__ = ("_dropped", "_rows", "head")

    LIMIT = 1 << 16

    def __init__(self) -> None:
        self._rows: Ints = np.zeros(2, dtype=np.int64)
        self._dropped = 0
        self.head = 0
        """The cursor of a reader that has seen everything."""

    def append(self, row: int) -> None:
        if self.head - self._dropped == len(self._rows):
            self._make_room()
        self._rows[self.head - self._dropped] = row
        self.head += 1

    def _make_room(self) -> None:
        """Room for as many again; what is old is dropped once there are many."""
        kept = self._rows if len(self._rows) < self.LIMIT else self._rows[len(self._rows) // 2 :]
        self._dropped += len(self._rows) - len(kept)
        self._rows = np.concatenate([kept, np.zeros_like(kept)])

    def since(self, cursor: int) -> Ints | None:
        """Rows changed after `cursor`, possibly repeated; None when the log no longer reaches back that far."""
        start = cursor - self._dropped
        return self._rows[start : self.head - self._dropped] if start >= 0 else None


NO_ROWS: Ints = np.zeros(0, dtype=np.int64)


class LogReader:
    """Reads some change logs together, from where it stopped the last time; at first, everything is unread."""

    __slots__ = ("_cursors", "_logs")

    def __init__(self, logs: Iterable[ChangeLog]) -> None:
        self._logs = list(logs)
        self._cursors = [-1] * len(self._logs)

    @property
    def is_behind(self) -> bool:
        """Whether there are changes that were not read."""
        return [log.head for log in self._logs] != self._cursors

    def unread(self) -> Ints | None:
        """The rows with unread changes, possibly repeated; None when that is not known, so it may be any row."""
        rows = NO_ROWS
        for log, cursor in zip(self._logs, self._cursors, strict=True):
            if log.head != cursor:
                changed = log.since(cursor)
                if changed is None:
                    return None
                rows = np.concatenate([rows, changed]) if len(rows) else changed
        return rows

    def catch_up(self) -> None:
        """Take all changes so far as read."""
        self._cursors = [log.head for log in self._logs]

    def read(self) -> Ints | None:
        """What `unread` gives, read from now on."""
        rows = self.unread()
        self.catch_up()
        return rows


def once(rows: Ints) -> Ints:
    """Each of the rows once."""
    return np.array([*set(rows.tolist())], dtype=np.int64)
