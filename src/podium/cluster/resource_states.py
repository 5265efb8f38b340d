"""Which nodes are alike: the same allocatable, requested and number of pods.

Clusters have many nodes but few kinds of them, equally full in few ways. A plugin that reads nothing but resources
needs to look at one node of each state only.
"""

from __future__ import annotations

import numpy as np

from podium.cluster.columns import Codes, Columns, Ints


class ResourceStates:
    """A small integer per row, equal for two rows only if their resources are."""

    FEWEST = 1 << 12

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._ids: dict[bytes, int] = {}
        self._of_row: Codes = np.zeros(0, dtype=np.int32)
        self._dirty: set[int] = set()
        self.examples: Ints = np.zeros(0, dtype=np.int64)
        """The row that was last seen in each state, whether it still is or not."""
        self.epoch = 0
        """Another number once the integers mean something else."""

    def __len__(self) -> int:
        return len(self._ids)

    def touch(self, row: int) -> None:
        """Note that the row's resources changed."""
        self._dirty.add(row)

    def read(self) -> Codes:
        """The state of every row; states no row is in any more are dropped from time to time."""
        if self._dirty:
            size = self._columns.size
            missing = self._columns.capacity - len(self._of_row)
            if missing:
                self._of_row = np.concatenate([self._of_row, np.zeros(missing, dtype=np.int32)])
            if len(self._ids) > max(4 * size, self.FEWEST):
                self._ids.clear()
                self._dirty.update(range(size))
                self.epoch += 1
            for row in self._dirty:
                self._of_row[row] = self._state(row)
            self._dirty.clear()
        return self._of_row[: self._columns.size]

    def _state(self, row: int) -> int:
        columns = self._columns
        fingerprint = (
            columns.allocatable[:, row].tobytes()
            + columns.requested[:, row].tobytes()
            + columns.non_zero[:, row].tobytes()
        )
        state = self._ids.setdefault(fingerprint, len(self._ids))
        if state == len(self.examples):
            self.examples = np.concatenate([self.examples, np.zeros(state + self.FEWEST, dtype=np.int64)])
        self.examples[state] = row
        return state
