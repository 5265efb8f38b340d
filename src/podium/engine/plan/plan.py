"""What is known about one kind of pod on a cluster: which plugins run, and what they said of every node so far.

A plugin that says what it reads gives a `Part`: its outcome for one key, shared by all pods with that key. Pods whose
plugins all have the same parts share a `Plan`, which merges the parts into one mask and one total per node. Deciding a
pod then means catching up on the nodes that changed since the last one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.cluster import Aspect, Cluster
from podium.cluster.change_log import LogReader, once
from podium.cluster.columns import Ints, Mask, is_any, lowest
from podium.cluster.node_groups import Groups
from podium.cluster.nodes import Representatives
from podium.engine.plan.outcomes import INFEASIBLE, RowOutcomes, StateOutcomes, WeightedScores
from podium.engine.plan.outline import Outline, Part
from podium.engine.plan.results import NO_VALUES, FilterResults, ScoreResults
from podium.engine.release import Conduct
from podium.framework import Plugin
from podium.framework.registry import Weighted

NOWHERE: Mask = np.zeros(0, dtype=np.bool_)


class Plan:
    """The parts of one kind of pod under one profile, merged per node.

    What depends on a node's resources changes with every pod placed, so it is kept per resource state instead of per
    node: the plugins look at one node of each state, and the others take over what they said.
    """

    def __init__(
        self,
        outline: Outline,
        parts: dict[str, Part],
        state: dict[str, Any],
        cluster: Cluster,
        conduct: Conduct,
        rows: RowOutcomes,
    ) -> None:
        self.outline, self.parts, self._cluster, self.conduct = outline, parts, cluster, conduct
        self.fresh = frozenset([name for name, part in parts.items() if part.is_fresh])
        """The plugins of which nothing was kept before this plan's first pod."""
        self.state = state
        """What the parts' plugins left for their later extension points."""
        self._rows = rows
        self._states = StateOutcomes(
            filters_of(parts, outline.kept_filters.by_state),
            scores_of(parts, outline.final_scores.by_state, outline.weights),
            cluster,
            by_node=outline.asks_by_node,
        )
        self._resources_log = cluster.logs[Aspect.RESOURCES]
        self._resources_head = -1
        self._rows_reader = LogReader(rows.logs)
        self._rows_version = self._generation = -1
        self.feasible: Mask = NOWHERE
        """Whether each row passes the filters with kept results."""
        self.total: Ints = NO_VALUES
        """The weighted sum of final scores per row; around INFEASIBLE where `feasible` is false."""
        self.feasible_count = 0
        self._feasible_in: dict[int, Representatives] = {}
        self._feasible_rows: Ints | None = None
        self._varying_scores: list[Weighted] | None = None

    def filter_results(self, plugin: Plugin) -> FilterResults | None:
        """What is kept of a plugin's Filter; None if it runs for every pod."""
        part = self.parts.get(plugin.name)
        return None if part is None else part.filter

    def score_results(self, plugin: Plugin) -> ScoreResults | None:
        """What is kept of a plugin's raw scores; None if it runs for every pod."""
        part = self.parts.get(plugin.name)
        return None if part is None else part.score

    def final_scores(self) -> list[ScoreResults]:
        """The kept scores that no other node can change."""
        kept = self.outline.final_scores
        return [results for _, results in scores_of(self.parts, kept.by_state + kept.by_row, self.outline.weights)]

    @property
    def varying_scores(self) -> list[Weighted]:
        """The scores to be worked out for every pod, less those that are known to be the same for all nodes."""
        if self._varying_scores is None:
            uniform = self._rows.uniform
            self._varying_scores = [each for each in self.outline.varying_score if each.plugin not in uniform]
        return self._varying_scores

    def forget_fresh(self) -> None:
        """Note that a pod was decided: what was said of it is known from now on."""
        self.fresh = frozenset()
        for part in self.parts.values():
            part.is_fresh = False

    @property
    def may_have_errors(self) -> bool:
        """Whether a filter with kept results was seen to fail."""
        return self._states.may_have_errors or self._rows.may_have_errors

    @property
    def may_be_invalid(self) -> bool:
        """Whether a final score outside the range was seen; it matters only on a feasible node."""
        return self._states.may_be_invalid or self._rows.may_be_invalid

    # -- catching up -----------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Bring the mask and the totals up to date with the cluster."""
        kept, log = self._rows, self._resources_log
        kept.catch_up()
        rows = log.since(self._resources_head) if self._generation == kept.generation else None
        if kept.version != self._rows_version:
            self._varying_scores = None
            if rows is not None:
                others = self._rows_reader.unread()
                rows = None if others is None else np.concatenate([rows, others])
        if rows is None or len(rows) > self._cluster.columns.size // 2:
            self._merge_all()
        elif len(rows) == 1:
            self._merge_one(rows.item(0))
        elif len(rows):
            self._merge(rows)
        # Not before: a plugin that fails is to be asked again.
        if kept.version != self._rows_version:
            self._rows_reader.catch_up()
            self._rows_version, self._generation = kept.version, kept.generation
        self._resources_head = log.head

    def _merge_all(self) -> None:
        passing = self._rows.passing
        if passing is None:
            self.total = self._states.of_many(None)
            self.total += self._rows.values
        else:
            self.total = self._rows.values.copy()
            self.total[passing] += self._states.of_many(passing)
        self.feasible = self.total > INFEASIBLE // 2
        self.feasible_count = int(np.count_nonzero(self.feasible))
        self._forget_feasible()

    def _merge(self, rows: Ints) -> None:
        total = self._states.of(rows)
        total += self._rows.values[rows]
        self.total[rows] = total
        if self.feasible_count == len(self.total) and lowest(total) > INFEASIBLE // 2:
            return
        passing = total > INFEASIBLE // 2
        if is_any(passing != self.feasible[rows]):
            rows = once(rows)
            before = np.count_nonzero(self.feasible[rows])
            self.feasible[rows] = self.total[rows] > INFEASIBLE // 2
            self.feasible_count += int(np.count_nonzero(self.feasible[rows]) - before)
            self._forget_feasible()

    def _merge_one(self, row: int) -> None:
        total = self._states.of_one(row) + self._rows.values.item(row)
        self.total[row] = total
        passing = total > INFEASIBLE // 2
        if passing != self.feasible.item(row):
            self.feasible_count += 1 if passing else -1
            self.feasible[row] = passing
            self._forget_feasible()

    def _forget_feasible(self) -> None:
        self._feasible_in.clear()
        self._feasible_rows = None

    @property
    def feasible_rows(self) -> Ints:
        """The rows that pass the filters with kept results."""
        if self._feasible_rows is None:
            self._feasible_rows = np.flatnonzero(self.feasible)
        return self._feasible_rows

    def feasible_in(self, groups: Groups) -> Representatives:
        """The feasible rows by group."""
        known = self._feasible_in.get(id(groups))
        if known is None:
            counts = np.bincount(groups.of_row[self.feasible], minlength=len(groups.first))
            known = self._feasible_in[id(groups)] = Representatives(self._cluster, groups, counts)
        return known


def filters_of(parts: dict[str, Part], names: tuple[str, ...]) -> tuple[FilterResults, ...]:
    """The kept results of these filters."""
    return tuple([results for name in names if (results := parts[name].filter) is not None])


def scores_of(parts: dict[str, Part], names: tuple[str, ...], weights: dict[str, int]) -> WeightedScores:
    """The kept raw scores of these plugins, each with its weight."""
    return tuple([(weights[name], results) for name in names if (results := parts[name].score) is not None])
