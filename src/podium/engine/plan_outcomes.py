"""Merges the results of several plugins into one number per row: the weighted score, or INFEASIBLE."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes
from podium.cluster.columns import ROW_ASPECTS, ChangeLog, Codes, Ints, LogReader, Mask, is_any, lowest
from podium.cluster.nodes import ResourceStates
from podium.engine.plan_results import FEW_NODES, NO_VALUES, FilterResults, Results, ScoreResults
from podium.framework import SUCCESS, Code, ScorePlugin

INFEASIBLE = -(1 << 60)
"""Less than any total, and far enough from the int64 limit to be added up a few times."""
UNKNOWN = INFEASIBLE - 1

WeightedScores = Sequence[tuple[int, ScoreResults]]


class RowOutcomes:
    """The merged outcome of plugins that read more than resources, one per row; plans with the same parts share it."""

    def __init__(
        self,
        filters: Sequence[FilterResults],
        scores: WeightedScores,
        raw_scores: Sequence[ScoreResults],
        cluster: Cluster,
    ) -> None:
        """`raw_scores` are only kept up to date, not merged: the final scores depend on which nodes are feasible."""
        self._filters, self._scores, self._raw_scores, self._cluster = filters, scores, raw_scores, cluster
        self._results: list[Results[Any]] = [*filters, *(results for _, results in scores)]
        followed = [results.followed for results in (*self._results, *raw_scores)]
        # A row without a node is infeasible; every log contains the nodes that come and go.
        logs = [cluster.logs[Aspect.LABELS], *(log for each in followed for log in each.logs)]
        self._reader = LogReader({id(log): log for log in logs}.values())
        self._reads_images = any(each.reads_images for each in followed)
        self._reads_objects = any(each.reads_objects for each in followed)
        self._versions = (-1, -1)
        self.values: Ints = NO_VALUES
        self.generation = 0
        """Increases when all rows are merged again."""
        self.log = ChangeLog()
        """The rows that were merged again."""
        self._passing: Passing | Literal["all", "unknown"] = "unknown"
        self._uniform: frozenset[ScorePlugin] | None = None
        self.may_have_errors = self.may_be_invalid = False
        """Whether a filter has failed, or a score was outside the range."""

    def catch_up(self) -> None:
        """Bring `values` up to date with the cluster."""
        cluster, reader = self._cluster, self._reader
        images = cluster.node_set_version if self._reads_images else 0
        versions = (images, cluster.store.version if self._reads_objects else 0)
        is_known = versions == self._versions and len(self.values) == cluster.columns.size
        if is_known and not reader.is_behind:
            return
        rows = reader.unread() if is_known else None
        for results in self._results:
            results.catch_up()
        self.may_have_errors, self.may_be_invalid = _may_fail(self._filters, self._scores)
        size = cluster.columns.size
        places = slice(size) if rows is None else rows
        merged = total(
            [_marked(results.values[places]) for results in self._filters],
            [(weight, results.values[places]) for weight, results in self._scores],
            size if rows is None else len(rows),
        )
        merged[~cluster.columns.alive[places]] = INFEASIBLE
        if rows is None:
            self.values = merged
            self.generation += 1
        else:
            self.values[places] = merged
            for row in rows.tolist():
                self.log.append(row)
        self._passing, self._uniform = "unknown", None
        reader.catch_up()
        self._versions = versions

    @property
    def uniform(self) -> frozenset[ScorePlugin]:
        """The plugins that have the same raw score for all rows."""
        if self._uniform is None:
            for results in self._raw_scores:
                results.catch_up()
            self._uniform = frozenset([each.plugin for each in self._raw_scores if each.uniform is not None])
        return self._uniform

    @property
    def passing(self) -> Passing | None:
        """The rows that may be feasible, if listing them is worth while, else None."""
        if self._passing == "unknown":
            rows = np.flatnonzero(self.values > INFEASIBLE // 2)
            has_holes = self._cluster.node_count < len(self.values)
            are_most = 4 * len(rows) > 3 * len(self.values) and not has_holes
            values = self.values[rows]
            self._passing = "all" if are_most else Passing(rows, values if is_any(values != 0) else None)
        return None if isinstance(self._passing, str) else self._passing


class Passing(NamedTuple):
    """The rows that no filter rejects, and their values; None if all values are 0."""

    rows: Ints
    values: Ints | None


class StateOutcomes:
    """The merged outcome of plugins that read nothing but resources, one per resource state, of which there are few.

    The plugins evaluate one node of each state; all nodes in that state share the result.
    """

    __slots__ = (
        "_by_node",
        "_cluster",
        "_epoch",
        "_filters",
        "_known",
        "_scores",
        "may_be_invalid",
        "may_have_errors",
    )

    FEW_STATES = 256

    def __init__(
        self, filters: Sequence[FilterResults], scores: WeightedScores, cluster: Cluster, *, by_node: bool
    ) -> None:
        """`by_node` says whether all of the plugins can evaluate a single node."""
        self._filters, self._scores, self._cluster, self._by_node = filters, scores, cluster, by_node
        self._epoch = -1
        self._known: Ints = NO_VALUES
        self.may_have_errors = self.may_be_invalid = False

    def of_many(self, rows: Ints | None) -> Ints:
        """The outcome of many rows, None for all; most resource states are expected to be among them."""
        states = self._cluster.resource_states
        count = self._cluster.columns.size if rows is None else len(rows)
        if not count:
            return NO_VALUES
        # Reading the states of changed rows would only add to their number; `of` and `of_one` read them when needed.
        if 16 * len(states) < count:
            of_row = states.read()
            if 16 * len(states) < count:
                self._prepare(states)
                self._learn(states)
                return self._of(np.arange(count), of_row) if rows is None else self._of(rows, of_row[rows])
        return self._ask_all(Nodes(self._cluster, rows))

    def of(self, rows: Ints) -> Ints:
        """The outcome of a few rows."""
        states = self._cluster.resource_states
        of_row = states.read()[rows]
        self._prepare(states)
        return self._of(rows, of_row)

    def of_one(self, row: int) -> int:
        """The outcome of a single row, which is what placing a pod changes; faster than an array with one element."""
        states = self._cluster.resource_states
        state = states.read().item(row)
        self._prepare(states)
        outcome = self._known.item(state)
        return outcome if outcome != UNKNOWN else int(self.of(np.array([row]))[0])

    def _of(self, rows: Ints, of_row: Codes) -> Ints:
        outcome = self._known[of_row]
        if lowest(outcome) > UNKNOWN:
            return outcome
        alive, unknown = self._cluster.columns.alive, (outcome == UNKNOWN).nonzero()[0]
        asked = [(of_row.item(place), rows.item(place)) for place in unknown.tolist()]
        one_of_each = {state: row for state, row in asked if alive.item(row)}
        for state, answer in zip(one_of_each, self._ask([*one_of_each.values()]), strict=True):
            self._known[state] = answer
        return self._known[of_row]

    def _learn(self, states: ResourceStates) -> None:
        """Evaluate the states that are not known yet: all at once while they are few, which takes hardly longer."""
        cluster = self._cluster
        unknown = np.flatnonzero(self._known[: len(states)] == UNKNOWN)
        if len(unknown) > max(self.FEW_STATES, cluster.columns.size // 4):
            return
        examples = states.examples[unknown]
        usable = (states.read()[examples] == unknown) & cluster.columns.alive[examples]
        if usable.any():
            self._known[unknown[usable]] = self._ask(examples[usable].tolist())

    def _prepare(self, states: ResourceStates) -> None:
        """Make room for all states; start over if the states were renumbered."""
        if states.epoch != self._epoch:
            self._epoch, self._known = states.epoch, self._known[:0]
        missing = len(states) - len(self._known)
        if missing > 0:
            self._known = np.concatenate([self._known, np.full(missing + len(states), UNKNOWN)])

    def _ask(self, rows: list[int]) -> Ints | list[int]:
        if not self._by_node or len(rows) > FEW_NODES:
            return self._ask_all(Nodes(self._cluster, np.array(rows, dtype=np.int64)))
        outcome = [self._ask_one(NodeInfo(self._cluster, row)) for row in rows]
        self.may_have_errors, self.may_be_invalid = _may_fail(self._filters, self._scores)
        return outcome

    def _ask_one(self, node: NodeInfo) -> int:
        for filtered in self._filters:
            if filtered.evaluate_node(node):
                return INFEASIBLE
        outcome = 0
        for weight, scored in self._scores:
            outcome += weight * scored.evaluate_node(node)
        return outcome

    def _ask_all(self, nodes: Nodes) -> Ints:
        outcome = total(
            [results.rejected(nodes) for results in self._filters],
            [(weight, results.record(nodes)) for weight, results in self._scores],
            len(nodes),
        )
        self.may_have_errors, self.may_be_invalid = _may_fail(self._filters, self._scores)
        return outcome


class Rejections:
    """Why each row is rejected by filters with kept results: the code of the first filter, in order, that
    rejects it.
    """

    MOST_BY_ROW = 64
    """Up to this many rows are looked at one by one."""

    def __init__(self, filters: Sequence[FilterResults], rows: RowOutcomes, cluster: Cluster) -> None:
        """`rows` is the outcome of the filters that read more than resources."""
        self._filters, self._rows, self._cluster = filters, rows, cluster
        self._reader = LogReader(cluster.logs_of(ROW_ASPECTS))
        self._by_state: tuple[int, dict[int, int]] = -1, {}
        """By resource state, the code of rows that only filters of resources may reject."""
        self._versions = (-1, -1)
        self._known: dict[tuple[int, int], int] = {}
        """By the position of a filter and the filter's own code."""
        self.codes: Ints = NO_VALUES
        """The code of every row; 0 if no filter rejects it."""
        self.statuses = [SUCCESS]
        """The status for each code; the list only grows."""
        self.rows_of: dict[Code, Ints] = {}
        """The rows by status code, filled on demand; replaced when the codes change."""

    @property
    def may_have_errors(self) -> bool:
        """Whether a filter has failed."""
        return _may_fail(self._filters, ())[0]

    def catch_up(self) -> None:
        """Bring `codes` up to date with the cluster."""
        cluster = self._cluster
        versions = cluster.store.version, cluster.node_set_version
        rows = self._reader.unread() if versions == self._versions else None
        if rows is not None and not len(rows):
            return
        self._rows.catch_up()
        if rows is None or len(rows) > self.MOST_BY_ROW:
            self._find_all()
        else:
            for row in set(rows.tolist()):
                self._set(row, self._find(row))
        # Not earlier: a plugin that failed has to be evaluated again.
        self._reader.catch_up()
        self._versions = versions

    def _set(self, row: int, code: int) -> None:
        before, self.codes[row] = self.codes.item(row), code
        if self.statuses[before].code is not self.statuses[code].code:
            self.rows_of = {}

    def _find(self, row: int) -> int:
        if self._rows.values.item(row) <= INFEASIBLE // 2:
            return self._ask(row)
        states = self._cluster.resource_states
        state = states.read().item(row)
        if self._by_state[0] != states.epoch:
            self._by_state = states.epoch, {}
        known = self._by_state[1]
        if state not in known:
            known[state] = self._ask(row)
        return known[state]

    def _ask(self, row: int) -> int:
        if not self._cluster.columns.alive.item(row):
            return 0
        for place, results in enumerate(self._filters):
            results.catch_up()
            own = results.values.item(row)
            if own:
                return self._code(place, own)
        return 0

    def _find_all(self) -> None:
        for results in self._filters:
            results.catch_up()
        self.codes = np.zeros(self._cluster.columns.size, dtype=np.int64)
        self.rows_of = {}
        undecided = np.flatnonzero(self._cluster.columns.alive)
        for place, results in enumerate(self._filters):
            values = results.values[undecided]
            for own in set(values.tolist()) - {0}:
                self.codes[undecided[values == own]] = self._code(place, own)
            undecided = undecided[values == 0]

    def _code(self, place: int, own: int) -> int:
        code = self._known.get((place, own))
        if code is None:
            code = self._known[place, own] = len(self.statuses)
            results = self._filters[place]
            self.statuses.append(results.describe(own)._replace(plugin=results.plugin.name))
        return code


def _may_fail(filters: Sequence[FilterResults], scores: WeightedScores) -> tuple[bool, bool]:
    """Whether one of the filters has failed, and whether a score was outside the range."""
    have_errors = are_invalid = False
    for filtered in filters:
        have_errors |= filtered.may_have_errors
    for _, scored in scores:
        are_invalid |= scored.may_be_invalid
    return have_errors, are_invalid


def _marked(codes: Ints) -> Mask | None:
    """Whether each code rejects; None if no code does."""
    rejected = codes != 0
    return rejected if is_any(rejected) else None


def total(rejected: Iterable[Mask | None], scores: Iterable[tuple[int, Ints]], size: int) -> Ints:
    """The weighted sum of scores; INFEASIBLE where a filter rejects."""
    parts = [values if weight == 1 else weight * values for weight, values in scores]
    # A single array belongs to the plugin and must not be changed; a sum of two is a new array.
    if len(parts) > 1:
        merged = parts[0] + parts[1]
        for values in parts[2:]:
            merged += values
    else:
        merged = parts[0].copy() if parts else np.zeros(size, dtype=np.int64)
    for mask in rejected:
        if mask is not None:
            merged[mask] = INFEASIBLE
    return merged
