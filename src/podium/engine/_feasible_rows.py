"""The rows a pod fits on, how they rank, and why the other nodes were rejected.

The rows are listed only when the list is needed. Thousands of nodes share a few statuses, so rejections are kept as
codes and turned into text on demand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from podium.cluster import Cluster, Nodes
from podium.cluster.columns import Ints, Mask, highest, is_any, lowest
from podium.cluster.nodes import FoundNodes, Groups, Representatives
from podium.engine.plan import Plan
from podium.engine.plan_outcomes import INFEASIBLE
from podium.errors import PluginError
from podium.framework import Code, Status


class RowScores(NamedTuple):
    """One plugin's scores: one per feasible row, or one per group of nodes that share some labels."""

    plugin: str
    weight: int
    raw: Ints
    normalized: Ints
    groups: Groups | None = None
    are_equal: bool = False
    """Whether all scores are known to be the same, so that the choice does not depend on them."""

    def of(self, rows: Ints | None) -> RowScores:
        """The scores per feasible row; `rows` None means all rows."""
        if self.groups is None:
            return self
        places = self.groups.of_row if rows is None else self.groups.of_row[rows]
        return RowScores(self.plugin, self.weight, self.raw[places], self.normalized[places])


class Ranking:
    """How the feasible nodes of one pod compare: the highest value is the best."""

    __slots__ = ("_feasible", "_values", "rows", "scores")

    def __init__(
        self,
        rows: Ints | None,
        scores: list[RowScores],
        values: Ints | None = None,
        feasible: FeasibleRows | None = None,
    ) -> None:
        """`values` has one value per row; without it, the values are the plan's totals of the `feasible` rows."""
        self._values, self._feasible = values, feasible
        self.rows = rows
        """The feasible rows; None for all rows of the cluster, in which case infeasible rows have the lowest values."""
        self.scores = scores
        """The scores that were computed for this pod alone."""

    @property
    def values(self) -> Ints:
        """One per row of `rows`."""
        if self._values is None:
            assert self._feasible is not None, "one of the two is given"
            self._values = self._feasible.rank([])
        return self._values

    @property
    def first_best(self) -> int:
        """The first row with the highest value."""
        if self._values is None and self._feasible is not None:
            return self._feasible.first_best()
        place = int(self.values.argmax())
        return place if self.rows is None else int(self.rows[place])

    @property
    def best(self) -> Ints:
        """The rows with the highest value."""
        ties: Ints = (self.values == highest(self.values)).nonzero()[0]
        return ties if self.rows is None else self.rows[ties]


class BestRows(NamedTuple):
    """The rows that share the highest score, any of which may be chosen, and how many rows fit."""

    rows: Ints
    feasible_count: int


class ScoredRows(NamedTuple):
    """The rows that fit a pod, every plugin's scores, the totals, and the best rows."""

    rows: Ints
    scores: list[RowScores]
    totals: Ints
    """Per row of `rows`, including the extenders' scores."""
    best: Ints

    def place_of(self, row: int) -> int | None:
        """The position of a row in `rows`; None if the pod does not fit there."""
        found: Ints = (self.rows == row).nonzero()[0]
        return int(found[0]) if len(found) else None

    def points(self, place: int) -> dict[str, int]:
        """The weighted score of each plugin at a position in `rows`."""
        return {each.plugin: each.normalized.item(place) * each.weight for each in self.scores}


def check_scores(plugin: str, scores: Ints, bounds: tuple[int, int]) -> bool:
    """Raise unless all scores are within the bounds, as kube-scheduler does after normalising.

    True if all scores are the same.
    """
    ends = lowest(scores), highest(scores)
    for score in ends if len(scores) else ():
        if not bounds[0] <= score <= bounds[1]:
            raise PluginError(
                plugin,
                f"returns an invalid score {score}, it should in the range of "
                f"[{bounds[0]}, {bounds[1]}] after normalizing",
            )
    return ends[0] == ends[1]


class FeasibleRows:
    """The rows that pass the plan's filters, minus those rejected by filters that ran for this pod alone."""

    __slots__ = ("_allowed", "_cluster", "_left_out", "_listed", "_plan")

    def __init__(self, plan: Plan, cluster: Cluster) -> None:
        self._plan, self._cluster = plan, cluster
        self._listed: Ints | None = None
        """The list of rows once it is made; until then, the rows follow from the plan and the fields below."""
        self._allowed: tuple[Groups, Mask] | None = None
        self._left_out: Ints | None = None

    @property
    def are_listed(self) -> bool:
        """Whether the rows are kept as a list, rather than as a rule."""
        return self._listed is not None

    def keep(self, rows: Ints) -> None:
        """Keep these rows, in ascending order, and drop all others."""
        self._listed = rows

    @property
    def are_the_plans(self) -> bool:
        """Whether no filter that ran for this pod alone rejected a row."""
        return self._listed is None and self._allowed is None and self._left_out is None

    @property
    def are_everywhere(self) -> bool:
        """Whether every row of the cluster is feasible."""
        return self.are_the_plans and self._plan.feasible_count == self._cluster.columns.size

    @property
    def count(self) -> int:
        if self._listed is not None:
            return len(self._listed)
        if self._allowed is not None:
            groups, allowed = self._allowed
            return int(self._plan.feasible_in(groups).counts[allowed].sum())
        return self._plan.feasible_count - (0 if self._left_out is None else len(self._left_out))

    @property
    def rows(self) -> Ints:
        if self._listed is not None:
            return self._listed
        rows = self._plan.feasible_rows
        if self._allowed is not None:
            groups, allowed = self._allowed
            rows = rows[allowed[groups.of_row[rows]]]
        elif self._left_out is not None:
            mask = self._plan.feasible.copy()
            mask[self._left_out] = False
            rows = np.flatnonzero(mask)
        return rows

    def has(self, row: int) -> bool:
        """Whether a row is feasible."""
        if self.are_the_plans:
            return self._plan.feasible.item(row)
        return row in self.rows

    @property
    def nodes(self) -> Nodes:
        """The feasible nodes; makes no list of rows when all are feasible."""
        return FoundNodes(self._cluster, None if self.are_everywhere else lambda: self.rows, self.represent)

    def represent(self, groups: Groups) -> Representatives:
        """The feasible rows by group."""
        if self._listed is None:
            feasible = self._plan.feasible_in(groups)
            if self.are_the_plans:
                return feasible
            if self._allowed is not None and self._allowed[0] is groups:
                return feasible.within(self._allowed[1])
        counts = np.bincount(groups.of_row[self.rows], minlength=len(groups.first))
        return Representatives(self._cluster, groups, counts)

    def drop(self, rejected: Mask, nodes: Nodes) -> None:
        """Drop the marked ones of these nodes, which are the feasible ones so far."""
        rows = nodes.rows_where(rejected)
        if len(rows) and self.are_the_plans:
            self._left_out = rows
        elif len(rows):
            self._listed = nodes.rows_where(~rejected)

    def drop_groups(self, rejected: Mask, groups: Groups) -> None:
        """Drop the rows of the marked groups."""
        if not is_any(rejected):
            return
        if self.are_the_plans:
            self._allowed = groups, ~rejected
        else:
            rows = self.rows
            self._listed = rows[~rejected[groups.of_row[rows]]]

    def first_best(self) -> int:
        """The first row with the highest of the plan's totals; only while the rows are not listed."""
        if self._left_out is not None:
            return int(self.rank([]).argmax())
        return self._plan.first_best(self._allowed)

    def rank(self, by_groups: list[tuple[Groups, Ints]]) -> Ints:
        """The plan's total of every row of the cluster plus its groups' scores; only while the rows are not listed.

        Infeasible rows rank below all others.
        """
        ranking = self._plan.total
        if self.are_the_plans and not by_groups:
            return ranking
        if self._left_out is not None:
            ranking = ranking.copy()
            ranking[self._left_out] = INFEASIBLE
        if self._allowed is not None:
            groups, allowed = self._allowed
            by_groups = [*by_groups, (groups, np.where(allowed, 0, INFEASIBLE))]
        tables: dict[int, tuple[Groups, Ints]] = {}
        for groups, table in by_groups:
            known = tables.get(id(groups))
            tables[id(groups)] = groups, table if known is None else known[1] + table
        for groups, table in tables.values():
            added = table.take(groups.of_row)
            added += ranking
            ranking = added
        return ranking


class NodeStatuses(Mapping[str, Status]):
    """The status of each rejected node by name, sorted; kept as a code per row."""

    __slots__ = ("_by_name", "_codes", "_count", "_names", "_rows_of", "_statuses")

    def __init__(
        self,
        codes: Ints,
        statuses: Sequence[Status],
        names: tuple[str, ...],
        rows_of: dict[Code, Ints] | None = None,
    ) -> None:
        """Code k of a row stands for `statuses[k]`, 0 for a row that was not rejected; `names` has the names of all
        rows.

        The method `rows_of` caches its results in the dict `rows_of`, which mappings with the same codes can share.
        Nobody may change the codes afterwards, nor an existing status.
        """
        self._codes, self._statuses, self._names = codes, statuses, names
        self._count = int(np.count_nonzero(codes))
        self._rows_of: dict[Code, Ints] = {} if rows_of is None else rows_of
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
        counts: dict[Status, int] = {}
        for code, number in enumerate(np.bincount(self._codes).tolist()):
            if code and number:
                # Several calls of filters may give the same status, which then has several codes.
                counts[self._statuses[code]] = counts.get(self._statuses[code], 0) + number
        return counts

    def rows_of(self, code: Code) -> Ints:
        """The rows whose status has this code, in ascending order."""
        found = self._rows_of.get(code)
        if found is None:
            has_code = np.array([status.code is code for status in self._statuses])
            found = self._rows_of[code] = np.flatnonzero(has_code[self._codes])
        return found


def status_counts(statuses: Mapping[str, Status]) -> Mapping[Status, int]:
    """How many nodes have each status."""
    return statuses.counts if isinstance(statuses, NodeStatuses) else Counter(statuses.values())
