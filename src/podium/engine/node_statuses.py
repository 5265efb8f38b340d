"""Why nodes were rejected: thousands of them share a handful of statuses, and are told apart when somebody looks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from podium.cluster.columns import Ints
from podium.framework import Code, Status


class NodeStatuses(Mapping[str, Status]):
    """The status of each node by name, sorted; kept as the rows that have each status."""

    __slots__ = ("_by_name", "_by_status", "_names")

    def __init__(self, by_status: Sequence[tuple[Status, Ints]], names: Sequence[str]) -> None:
        """Each row has one status; `names` has the names of all rows."""
        self._by_status, self._names = by_status, tuple(names)
        self._by_name: dict[str, Status] | None = None

    def _read(self) -> dict[str, Status]:
        if self._by_name is None:
            names = self._names
            found = {names[row]: status for status, rows in self._by_status for row in rows.tolist()}
            self._by_name = {name: found[name] for name in sorted(found)}
        return self._by_name

    def __getitem__(self, name: str) -> Status:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return sum([len(rows) for _, rows in self._by_status])

    def __repr__(self) -> str:
        return repr(self._read())

    @property
    def counts(self) -> dict[Status, int]:
        """How many nodes have each status."""
        counts: dict[Status, int] = {}
        for status, rows in self._by_status:
            counts[status] = counts.get(status, 0) + len(rows)
        return counts

    def rows_of(self, code: Code) -> Ints:
        """The rows whose status has a code, in ascending order."""
        found = [rows for status, rows in self._by_status if status.code is code]
        return np.sort(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)


def status_counts(statuses: Mapping[str, Status]) -> Mapping[Status, int]:
    """How many nodes have each status."""
    return statuses.counts if isinstance(statuses, NodeStatuses) else Counter(statuses.values())
