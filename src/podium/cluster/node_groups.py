"""Groups of nodes that are alike: by the values of some labels, or by their resources.

Clusters have many nodes but few kinds of them, equally full in few ways. A plugin that reads nothing but resources
needs to look at one node of each state only.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster.change_log import ChangeLog
from podium.cluster.columns import NON_ZERO, Codes, Columns, Ints, Mask
from podium.cluster.recently_used import RecentlyUsed

Places = NDArray[np.intp]


class Groups(NamedTuple):
    """`of_row` has the number of each row's group, `first` one row of each group. Dead rows are by themselves."""

    of_row: Places
    first: Ints
    living: Ints
    """The groups of rows that have nodes."""

    def everywhere(self, marked: Mask) -> Mask:
        """What is said of the living groups as said of all: nothing is said of the others."""
        if len(self.living) == len(self.first):
            return marked
        mask = np.zeros(len(self.first), dtype=np.bool_)
        mask[self.living] = marked
        return mask

    @property
    def are_few(self) -> bool:
        """Whether working on groups saves anything over working on nodes."""
        return 4 * len(self.first) < len(self.of_row)


class LabelGroups:
    """The groups by each set of labels asked for, made anew when labels change."""

    def __init__(self, columns: Columns, labels_log: ChangeLog) -> None:
        self._columns, self._labels_log = columns, labels_log
        self._groups: dict[tuple[str, ...], tuple[int, Groups]] = {}

    def by(self, keys: tuple[str, ...]) -> Groups:
        head, groups = self._groups.get(keys, (-1, None))
        if groups is None or head != self._labels_log.head:
            groups = self._group(keys)
            self._groups[keys] = self._labels_log.head, groups
        return groups

    def _group(self, keys: tuple[str, ...]) -> Groups:
        alive = self._columns.alive[: self._columns.size]
        combined = alive.astype(np.int64)
        for key in keys:
            column = self._columns.label(key)
            combined = combined * (len(column.values) + 1) + column.codes[: self._columns.size] + 1
            combined = np.unique(combined, return_inverse=True)[1]
        _, first, of_row = np.unique(combined, return_index=True, return_inverse=True)
        return Groups(of_row, first, np.flatnonzero(alive[first]))


class Amounts(NamedTuple):
    """What a node offers and what is in use there, by resource; what is not named is 0."""

    allocatable: dict[str, int]
    requested: dict[str, int]
    free: dict[str, int]
    """What is left of the one by the other."""
    non_zero: dict[str, int]
    """What is requested, with the defaults for containers that request no cpu or no memory."""
    memo: dict[Hashable, Any]
    """What plugins worked out from the amounts, under keys of their choice."""


class ResourceStates:
    """A small integer per row, equal for two rows only if their resources are."""

    FEWEST = 1 << 12
    MOST_WAYS = 1 << 16
    MOST_AMOUNTS = 1 << 12

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._ids: dict[bytes, int] = {}
        self._of_row: Codes = np.zeros(0, dtype=np.int64)
        self._dirty: set[int] = set()
        self._after: RecentlyUsed[int] = RecentlyUsed(self.MOST_WAYS)
        """The state that a change leads to from another state, as far as it was seen."""
        self._change: tuple[int, Hashable] | None = None
        """From which state and by which change the only dirty row came to be where it is, if that is known."""
        self._amounts: RecentlyUsed[Amounts] = RecentlyUsed(self.MOST_AMOUNTS)
        self.examples: Ints = np.zeros(0, dtype=np.int64)
        """The row that was last seen in each state, whether it still is or not."""
        self.epoch = 0
        """Another number once the integers mean something else."""

    def __len__(self) -> int:
        return len(self._ids)

    def touch(self, row: int) -> None:
        """Note that the row's resources changed."""
        self._dirty.add(row)
        self._change = None

    def change(self, row: int, change: Hashable) -> None:
        """Note that the row's resources changed, in a way that leads from the same state to the same state always."""
        if self._dirty or row >= len(self._of_row):
            self.touch(row)
            return
        way = self._of_row.item(row), change
        state: int | None = self._after[way]
        if state is None:
            self._dirty.add(row)
            self._change = way
        else:
            self._of_row[row] = state
            self.examples[state] = row

    def read(self) -> Codes:
        """The state of every row; states no row is in any more are dropped from time to time."""
        if self._dirty:
            size = self._columns.size
            missing = self._columns.capacity - len(self._of_row)
            if missing:
                self._of_row = np.concatenate([self._of_row, np.zeros(missing, dtype=np.int64)])
            if len(self._ids) > max(4 * size, self.FEWEST):
                self._ids.clear()
                self._after.clear()
                self._amounts.clear()
                self._change = None
                self._dirty.update(range(size))
                self.epoch += 1
            if len(self._dirty) == 1:
                self._read_one(self._dirty.pop())
            else:
                self._read_many(np.fromiter(self._dirty, np.int64, len(self._dirty)))
                self._dirty.clear()
        return self._of_row[: self._columns.size]

    def amounts(self, row: int) -> Amounts:
        """The amounts on a row: worked out once for all rows in the same state."""
        state = self.read().item(row)
        amounts: Amounts | None = self._amounts[state]
        if amounts is None:
            amounts = self._amounts[state] = self._read_amounts(row)
        return amounts

    def _read_amounts(self, row: int) -> Amounts:
        columns, names = self._columns, self._columns.resources.values
        # A fork may know of more resources than there are here.
        allocatable = dict(zip(names, columns.allocatable[:, row].tolist(), strict=False))
        used = columns.used[:, row].tolist()
        requested = dict(zip(names, used[len(NON_ZERO) :], strict=False))
        free = {name: amount - requested[name] for name, amount in allocatable.items()}
        non_zero = dict(zip(NON_ZERO, used, strict=False))
        return Amounts(allocatable, requested, free, requested | non_zero, {})

    def _read_one(self, row: int) -> None:
        """What `_read_many` does, for the one row that the placing of a pod changes."""
        columns = self._columns
        tables = (columns.allocatable, columns.used)
        state = self._ids.setdefault(b"".join([table[:, row].tobytes() for table in tables]), len(self._ids))
        self._make_room()
        self._of_row[row] = state
        self.examples[state] = row
        if self._change is not None:
            self._after[self._change] = state

    def _read_many(self, rows: Ints) -> None:
        columns, ids = self._columns, self._ids
        tables = (columns.allocatable, columns.used)
        resources = np.concatenate([table[:, rows] for table in tables]).T
        fingerprints, length = np.ascontiguousarray(resources).tobytes(), 8 * resources.shape[1]
        states = [
            ids.setdefault(fingerprints[start : start + length], len(ids))
            for start in range(0, len(fingerprints), length)
        ]
        self._make_room()
        self._of_row[rows] = states
        self.examples[states] = rows

    def _make_room(self) -> None:
        missing = len(self._ids) - len(self.examples)
        if missing > 0:
            self.examples = np.concatenate([self.examples, np.zeros(missing + self.FEWEST, dtype=np.int64)])
