"""The plan for one kind of pod: which plugins run for it, and what they said of every node so far.

Pods with equal specs share a plan. What depends on single nodes only is kept in `Results` and merged here into one
mask and one total per node; deciding a pod then means catching up on the nodes that changed since the last one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import NamedTuple, TypeVar

import numpy as np

from podium.cluster import Cluster, PodInfo
from podium.cluster.changes import ROW_ASPECTS
from podium.cluster.columns import Ints, Mask
from podium.engine.results import FilterResults, Results, ScoreResults
from podium.errors import PluginError
from podium.framework import Code, CycleState, FilterPlugin, Framework, PreFilterPlugin, PreFilterResult, PreScorePlugin
from podium.framework.framework import Weighted
from podium.framework.plugin import MAX_NODE_SCORE, MIN_NODE_SCORE

INFEASIBLE = np.iinfo(np.int64).min
V = TypeVar("V")


class LeastRecentlyUsed(OrderedDict[Hashable, V]):
    """A dictionary that forgets what was not asked for longest."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def get_or_make(self, key: Hashable, make: Callable[[], V]) -> V:
        found = self.get(key)
        if found is None:
            found = self[key] = make()
            if len(self) > self._most:
                self.popitem(last=False)
        else:
            self.move_to_end(key)
        return found


class PreFilterStep(NamedTuple):
    """A PreFilter plugin, with its outcome if that is the same for every pod of the plan."""

    plugin: PreFilterPlugin
    outcome: PreFilterResult | None


class FilterStep(NamedTuple):
    """A Filter plugin, with its results if they are kept; otherwise it runs for every pod."""

    plugin: FilterPlugin
    results: FilterResults | None


class ScoreStep(NamedTuple):
    """A Score plugin, with its raw scores if they are kept; otherwise it runs for every pod."""

    weighted: Weighted
    results: ScoreResults | None

    @property
    def is_final(self) -> bool:
        """Whether the raw scores are the final ones, whichever nodes are feasible."""
        return self.results is not None and not self.weighted.plugin.normalizes


class Plan:
    """What is known about one kind of pod on one cluster under one profile."""

    def __init__(self, info: PodInfo, framework: Framework, cluster: Cluster, kept: LeastRecentlyUsed[Results]) -> None:
        self.info = info
        self.state = CycleState(info)
        """What plugins with kept results left for their later extension points."""
        self._cluster = cluster
        self._pod = info.pod
        self._kept = kept
        self.pre_filter = [PreFilterStep(plugin, self._pre_filter(plugin)) for plugin in framework.pre_filter]
        skipped = {s.plugin.name for s in self.pre_filter if s.outcome and s.outcome.status.code is Code.SKIP}
        self.filter = [FilterStep(p, self._filter_results(p)) for p in framework.filter if p.name not in skipped]
        skipped = {plugin.name for plugin in framework.pre_score if self._skips_score(plugin)}
        self.pre_score = [p for p in framework.pre_score if p.reads is None]
        self.score = [ScoreStep(w, self._score_results(w)) for w in framework.score if w.plugin.name not in skipped]
        self.scores_one = not framework.score
        """Without any score plugin every node scores 1."""
        self.filters = [step.results for step in self.filter if step.results is not None]
        self.final_scores = [(s.weighted.weight, s.results) for s in self.score if s.results is not None and s.is_final]
        self.varying_scores = [step for step in self.score if not step.is_final]
        self.varying_filters = [step.plugin for step in self.filter if step.results is None]
        self.varying_pre_filters = any(step.outcome is None for step in self.pre_filter)
        self._logs = [log for aspect, log in cluster.logs.items() if aspect & ROW_ASPECTS]
        self._cursors = [-1] * len(self._logs)
        self._generations: list[int] = []
        self.feasible: Mask = np.zeros(0, dtype=np.bool_)
        """Whether each row passes the filters with kept results."""
        self.total: Ints = np.zeros(0, dtype=np.int64)
        """The weighted sum of final scores per row; INFEASIBLE where `feasible` is false."""
        self.feasible_count = 0

    # -- setting up ------------------------------------------------------------------------------------------------

    def _pre_filter(self, plugin: PreFilterPlugin) -> PreFilterResult | None:
        return None if plugin.reads is None else plugin.pre_filter(self.state, self._pod, self._cluster.nodes)

    def _skips_score(self, plugin: PreScorePlugin) -> bool:
        if plugin.reads is None:
            return False
        return plugin.pre_score(self.state, self._pod, self._cluster.nodes).code is Code.SKIP

    def _filter_results(self, plugin: FilterPlugin) -> FilterResults | None:
        if plugin.reads is None:
            return None
        reads = plugin.reads
        found = self._kept.get_or_make(
            ("filter", plugin, plugin.key(self.info)),
            lambda: FilterResults(self._cluster, reads, plugin, self._pod, self.state),
        )
        assert isinstance(found, FilterResults)
        return found

    def _score_results(self, weighted: Weighted) -> ScoreResults | None:
        plugin, reads = weighted.plugin, weighted.plugin.reads
        if reads is None:
            return None
        found = self._kept.get_or_make(
            ("score", plugin, plugin.key(self.info)),
            lambda: ScoreResults(self._cluster, reads, plugin, self._pod, self.state),
        )
        assert isinstance(found, ScoreResults)
        return found

    # -- catching up -----------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Bring the mask and the totals up to date with the cluster."""
        for results in self.filters:
            results.catch_up()
        for step in self.score:
            if step.results is not None:
                step.results.catch_up()
        generations = [results.generation for results in self.filters]
        generations += [results.generation for _, results in self.final_scores]
        rows: set[int] | None = set() if generations == self._generations else None
        for place, log in enumerate(self._logs):
            changed = log.since(self._cursors[place])
            rows = None if changed is None or rows is None else rows | set(changed)
            self._cursors[place] = log.head
        self._generations = generations
        if rows is None:
            self._merge_all()
        elif rows:
            self._merge(np.fromiter(rows, np.int64, len(rows)))

    def _merge_all(self) -> None:
        size = self._cluster.columns.size
        self.feasible = np.zeros(size, dtype=np.bool_)
        self.total = np.full(size, INFEASIBLE, dtype=np.int64)
        self.feasible_count = 0
        self._merge(np.arange(size))

    def _merge(self, rows: Ints) -> None:
        missing = self._cluster.columns.size - len(self.feasible)
        if missing:
            self.feasible = np.concatenate([self.feasible, np.zeros(missing, dtype=np.bool_)])
            self.total = np.concatenate([self.total, np.full(missing, INFEASIBLE)])
        passing = self._cluster.columns.alive[rows]
        for results in self.filters:
            passing &= results.values[rows] == 0
        total = np.zeros(len(rows), dtype=np.int64)
        for weight, scores in self.final_scores:
            raw = scores.values[rows]
            check_scores(scores.plugin.name, raw[passing])
            total += weight * raw
        self.feasible_count += int(np.count_nonzero(passing)) - int(np.count_nonzero(self.feasible[rows]))
        self.feasible[rows] = passing
        self.total[rows] = np.where(passing, total, INFEASIBLE)


def check_scores(plugin: str, scores: Ints) -> None:
    """Raise unless all scores are in 0..100, as kube-scheduler demands after normalising."""
    if len(scores):
        for score in (int(scores.min()), int(scores.max())):
            if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
                raise PluginError(
                    plugin,
                    f"returns an invalid score {score}, it should in the range of "
                    f"[{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing",
                )


class Plans:
    """The plans of one profile on one cluster, by pod signature."""

    MOST_CELLS = 1 << 25
    """Bounds memory: kept results times nodes."""

    def __init__(self, framework: Framework, cluster: Cluster) -> None:
        self.framework, self._cluster = framework, cluster
        most = min(max(self.MOST_CELLS // max(cluster.columns.size, 1), 64), 4096)
        self._plans: LeastRecentlyUsed[Plan] = LeastRecentlyUsed(most)
        self._kept: LeastRecentlyUsed[Results] = LeastRecentlyUsed(most)

    def of(self, info: PodInfo) -> Plan:
        return self._plans.get_or_make(info.signature, lambda: Plan(info, self.framework, self._cluster, self._kept))
