"""Why nodes were rejected, as codes: thousands of nodes share a few statuses, and text is made when somebody asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from podium.cluster.columns import Ints
from podium.framework import Code, Status


class NodeStatuses(Mapping[str, Status]):
    """The status of each rejected node by name, sorted; kept as a code per row."""

    __slots__ = ("_by_name", "_codes", "_count", "_names", "_statuses")

    def __init__(self, codes: Ints, statuses: Sequence[Status], names: Sequence[str]) -> None:
        """Code k of a row stands for `statuses[k]`, 0 for a row that was not rejected; `names` has those of all rows.

        Nobody may change the codes afterwards, nor any status that is there already.
        """
        self._codes, self._statuses, self._names = codes, statuses, tuple(names)
        self._count = int(np.count_nonzero(codes))
        self._by_name: dict[str, Status] | None = None

    def _read(self) -> dict[str, Status]:
        if self._by_name is None:
            names, codes, statuses = self._names, self._codes.tolist(), self._statuses
            rejected = sorted([(names[row], code) for row, code in enumerate(codes) if code])
            self._by_name = {name: statuses[code] for name, code in rejected}
        return self._by_name

    def __getitem__(self, name: str) -> Status:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return repr(self._read())

    @property
    def counts(self) -> dict[Status, int]:
        """How many nodes have each status."""
        numbers = np.bincount(self._codes).tolist()
        return {self._statuses[code]: number for code, number in enumerate(numbers) if code and number}

    def rows_of(self, code: Code) -> Ints:
        """The rows whose status has a code, in ascending order."""
        has_code = np.array([status.code is code for status in self._statuses])
        return np.flatnonzero(has_code[self._codes])


def status_counts(statuses: Mapping[str, Status]) -> Mapping[Status, int]:
    """How many nodes have each status."""
    return statuses.counts if isinstance(statuses, NodeStatuses) else Counter(statuses.values())
