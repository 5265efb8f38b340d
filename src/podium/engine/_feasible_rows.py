"""The rows a pod fits on, listed only when the list is needed, how they rank, and why the other nodes were rejected.

Thousands of nodes share a few statuses, so rejections are kept as codes, and text is made when somebody asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from podium.cluster import Cluster, Nodes
from podium.cluster.columns import Ints, Mask, highest, is_any, lowest
from podium.cluster.nodes import FoundNodes, Groups, Representatives
from podium.engine.plan.outcomes import INFEASIBLE
from podium.engine.plan.plan import Plan
from podium.errors import PluginError
from podium.framework import Code, Status


class RowScores(NamedTuple):
    """One plugin's scores: of every feasible row, or of every group of nodes that share some labels."""

    plugin: str
    weight: int
    raw: Ints
    normalized: Ints
    groups: Groups | None = None
    are_equal: bool = False
    """Whether they are known to be the same for all, so that the choice does not depend on them."""

    def of(self, rows: Ints | None) -> RowScores:
        """The same scores of every one of the feasible rows, None for all there are."""
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
        """Without `values`, one for each of the rows, the values are the totals of the plan of the `feasible` rows."""
        self._values, self._feasible = values, feasible
        self.rows = rows
        """The feasible rows; None for all rows of the cluster, of which those not feasible have the lowest values."""
        self.scores = scores
        """The scores that were worked out for this pod alone."""

    @property
    def values(self) -> Ints:
        """One per row of `rows`."""
        if self._values is None:
            assert self._feasible is not None, "one of the two is given"
            self._values = self._feasible.rank([])
        return self._values

    @property
    def first_best(self) -> int:
        """The first of the rows with the highest value."""
        if self._values is None and self._feasible is not None:
            return self._feasible.first_best()
        place = int(self.values.argmax())
        return place if self.rows is None else int(self.rows[place])

    @property
    def best(self) -> Ints:
        """The rows with the highest value."""
        ties: Ints = (self.values == highest(self.values)).nonzero()[0]
        return ties if self.rows is None else self.rows[ties]


class ScoredRows(NamedTuple):
    """The rows that fit a pod, every plugin's scores of them, what all scores come to, and the best rows."""

    rows: Ints
    scores: list[RowScores]
    totals: Ints
    """Per row of `rows`; scores of extenders are in them."""
    best: Ints


def check_scores(plugin: str, scores: Ints, bounds: tuple[int, int]) -> bool:
    """Raise unless all scores are within the bounds, as kube-scheduler demands after normalising.

    True if they are all the same.
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
    """The rows that pass the plan's filters, less those that a filter rejected which ran for this pod alone."""

    __slots__ = ("_allowed", "_cluster", "_left_out", "_listed", "_plan")

    def __init__(self, plan: Plan, cluster: Cluster) -> None:
        self._plan, self._cluster = plan, cluster
        self._listed: Ints | None = None
        """The rows, once they are listed; until then, the plan's, less what one of the following says."""
        self._allowed: tuple[Groups, Mask] | None = None
        self._left_out: Ints | None = None

    @property
    def are_listed(self) -> bool:
        """Whether there is a list of the rows, rather than a rule that gives them."""
        return self._listed is not None

    def keep(self, rows: Ints) -> None:
        """Keep these rows, in ascending order, and no others."""
        self._listed = rows

    @property
    def are_the_plans(self) -> bool:
        """Whether no filter for this pod alone rejected any."""
        return self._listed is None and self._allowed is None and self._left_out is None

    @property
    def are_everywhere(self) -> bool:
        """Whether every row of the cluster is one."""
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
        """Whether a row is one of them."""
        if self.are_the_plans:
            return self._plan.feasible.item(row)
        return row in self.rows

    @property
    def nodes(self) -> Nodes:
        """The nodes; without looking for them when that is all of them."""
        return FoundNodes(self._cluster, None if self.are_everywhere else lambda: self.rows, self.represent)

    def represent(self, groups: Groups) -> Representatives:
        """The rows by group."""
        if self._listed is None:
            feasible = self._plan.feasible_in(groups)
            if self.are_the_plans:
                return feasible
            if self._allowed is not None and self._allowed[0] is groups:
                return feasible.within(self._allowed[1])
        counts = np.bincount(groups.of_row[self.rows], minlength=len(groups.first))
        return Representatives(self._cluster, groups, counts)

    def drop(self, rejected: Mask, nodes: Nodes) -> None:
        """Drop what is marked of the nodes there were so far."""
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
        """The first row with the highest of the plan's totals; while they are not listed."""
        if self._left_out is not None:
            return int(self.rank([]).argmax())
        return self._plan.first_best(self._allowed)

    def rank(self, by_groups: list[tuple[Groups, Ints]]) -> Ints:
        """The plan's total of every row of the cluster, plus what each group adds to it; while they are not listed.

        Rows that are not feasible rank below all others.
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
        """Code k of a row stands for `statuses[k]`, 0 for a row that was not rejected; `names` has those of all rows.

        `rows_of` is where `rows_of` keeps what it found, for other mappings whose rows have the same codes of statuses.
        Nobody may change the codes afterwards, nor any status that is there already.
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
                # Filters may give rows the same status in several goes: it has several codes then.
                counts[self._statuses[code]] = counts.get(self._statuses[code], 0) + number
        return counts

    def rows_of(self, code: Code) -> Ints:
        """The rows whose status has a code, in ascending order."""
        found = self._rows_of.get(code)
        if found is None:
            has_code = np.array([status.code is code for status in self._statuses])
            found = self._rows_of[code] = np.flatnonzero(has_code[self._codes])
        return found


def status_counts(statuses: Mapping[str, Status]) -> Mapping[Status, int]:
    """How many nodes have each status."""
    return statuses.counts if isinstance(statuses, NodeStatuses) else Counter(statuses.values())
