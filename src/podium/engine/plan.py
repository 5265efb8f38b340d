"""What is known about one kind of pod on a cluster: which plugins run, and what they said of every node so far.

A plugin that says what it reads gives a `Part`: its outcome for one key, shared by all pods with that key. Pods whose
plugins all have the same parts share a `Plan`, which merges the parts into one mask and one total per node. Deciding a
pod then means catching up on the nodes that changed since the last one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from podium.cluster import Aspect, Cluster, PodInfo
from podium.cluster.columns import Ints, Mask
from podium.cluster.groups import Groups
from podium.engine.merging import INFEASIBLE, RowOutcomes, StateOutcomes
from podium.engine.results import FilterResults, ScoreResults, changed_rows
from podium.framework import (
    SUCCESS,
    Code,
    CycleState,
    FilterPlugin,
    Framework,
    Plugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
)
from podium.framework.framework import Weighted
from podium.legacy.conduct import Conduct

V = TypeVar("V")
RowOutcomesOf = Callable[[tuple[FilterResults, ...], tuple[tuple[int, ScoreResults], ...]], RowOutcomes]


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


class Part:
    """One plugin's outcome for one key: of its PreFilter and PreScore, and for every node of its Filter and Score."""

    __slots__ = ("filter", "plugin", "pre_filter", "pre_score", "score", "state")

    def __init__(self, plugin: Plugin, reads: Aspect, info: PodInfo, cluster: Cluster) -> None:
        self.plugin = plugin
        self.state = CycleState(info)
        self.pre_filter: PreFilterResult | None = None
        self.filter: FilterResults | None = None
        self.score: ScoreResults | None = None
        self.pre_score = SUCCESS
        if isinstance(plugin, PreFilterPlugin):
            self.pre_filter = plugin.pre_filter(self.state, info.pod, cluster.nodes)
        if isinstance(plugin, FilterPlugin):
            self.filter = FilterResults(cluster, reads, plugin, info.pod, self.state)
        if isinstance(plugin, PreScorePlugin):
            self.pre_score = plugin.pre_score(self.state, info.pod, cluster.nodes)
        if isinstance(plugin, ScorePlugin):
            self.score = ScoreResults(cluster, reads, plugin, info.pod, self.state)


class PreFilterStep(NamedTuple):
    """A PreFilter plugin, with its outcome if that is known beforehand."""

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

    @property
    def is_uniform(self) -> bool:
        """Whether all nodes are known to get the same score."""
        if self.results is None or not self.weighted.plugin.normalizes_by_max:
            return False
        self.results.catch_up()
        return self.results.uniform is not None


class Plan:
    """The parts of one kind of pod under one profile, merged per node.

    What depends on a node's resources changes with every pod placed, so it is kept per resource state instead of per
    node: the plugins look at one node of each state, and the others take over what they said.
    """

    def __init__(
        self,
        framework: Framework,
        parts: dict[str, Part],
        cluster: Cluster,
        conduct: Conduct,
        row_outcomes: RowOutcomesOf,
        fresh: frozenset[str] = frozenset(),
    ) -> None:
        self._cluster, self.conduct = cluster, conduct
        self.kept_by, self.fresh = frozenset(parts), fresh
        """The plugins whose results are kept; and those of which nothing was kept before this plan's first pod."""
        self.state = {key: value for part in parts.values() for key, value in part.state.items()}
        """What the parts' plugins left for their later extension points."""
        self._set_up_filters(framework, parts)
        self._set_up_scores(framework, parts)
        self._set_up_merging(row_outcomes)

    def _set_up_filters(self, framework: Framework, parts: dict[str, Part]) -> None:
        self.pre_filter = [
            PreFilterStep(plugin, parts[plugin.name].pre_filter if plugin.name in parts else None)
            for plugin in framework.pre_filter
        ]
        known = [(step.plugin.name, step.outcome) for step in self.pre_filter if step.outcome is not None]
        self.skipped = frozenset(name for name, outcome in known if outcome.status.code is Code.SKIP)
        """The plugins that are known to skip Filter."""
        self.varying_pre_filter = [step.plugin for step in self.pre_filter if step.outcome is None]
        self.narrows = any(name not in self.skipped and outcome != PreFilterResult() for name, outcome in known)
        """Whether a known outcome rejects the pod or leaves only some nodes."""
        # A plugin that rejects the pod for good need not have left anything for its Filter.
        hopeless = {name for name, outcome in known if outcome.status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE}
        self.filter = [
            FilterStep(plugin, parts[plugin.name].filter if plugin.name in parts else None)
            for plugin in framework.filter
            if plugin.name not in self.skipped | hopeless
        ]
        self.varying_filter = [step.plugin for step in self.filter if step.results is None]
        self.kept_filters = [step.results for step in self.filter if step.results is not None]

    def _set_up_scores(self, framework: Framework, parts: dict[str, Part]) -> None:
        # One that failed is asked again, when there is something to score, and may fail then.
        known = {name for name, part in parts.items() if part.pre_score.code in (Code.SUCCESS, Code.SKIP)}
        self.varying_pre_score = [plugin for plugin in framework.pre_score if plugin.name not in known]
        pre_scored = {plugin.name for plugin in framework.pre_score}
        skipped = {name for name, part in parts.items() if part.pre_score.code is Code.SKIP and name in pre_scored}
        self.score = [
            ScoreStep(weighted, parts[weighted.plugin.name].score if weighted.plugin.name in parts else None)
            for weighted in framework.score
            if weighted.plugin.name not in skipped
        ]
        self.varying_score = [step for step in self.score if not step.is_final]
        self.final_scores = [(s.weighted.weight, s.results) for s in self.score if s.is_final and s.results is not None]
        self.scores_one = not framework.score
        """Without any score plugin every node scores 1."""

    def _set_up_merging(self, row_outcomes: RowOutcomesOf) -> None:
        filters = [results for results in self.kept_filters if results.reads_only_resources]
        scores = [(w, results) for w, results in self.final_scores if results.reads_only_resources]
        self._states = StateOutcomes(filters, scores, self._cluster)
        self._rows = row_outcomes(
            tuple(results for results in self.kept_filters if not results.reads_only_resources),
            tuple((w, results) for w, results in self.final_scores if not results.reads_only_resources),
        )
        self._logs = [self._cluster.logs[Aspect.RESOURCES], *self._rows.logs]
        self._heads: list[int] = []
        self._generation = -1
        self.feasible: Mask = np.zeros(0, dtype=np.bool_)
        """Whether each row passes the filters with kept results."""
        self.total: Ints = np.zeros(0, dtype=np.int64)
        """The weighted sum of final scores per row; around INFEASIBLE where `feasible` is false."""
        self.feasible_count = 0
        self._feasible_in: dict[int, tuple[Groups, Ints]] = {}

    # -- catching up -----------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Bring the mask and the totals up to date with the cluster."""
        heads = [self._logs[0].head, *self._rows.catch_up()]
        is_known = self._generation == self._rows.generation
        if is_known and heads == self._heads:
            return
        rows = changed_rows(self._logs, self._heads) if is_known else None
        self._heads, self._generation = heads, self._rows.generation
        if rows is None or len(rows) > self._cluster.columns.size // 2:
            self._merge_all()
        elif len(rows) == 1:
            self._merge_one(rows.pop())
        else:
            self._merge(np.fromiter(rows, np.int64, len(rows)))

    def _merge_all(self) -> None:
        self.total = self._states.of_all() + self._rows.values
        self.feasible = self.total > INFEASIBLE // 2
        self.feasible_count = int(np.count_nonzero(self.feasible))
        self._feasible_in.clear()

    def _merge(self, rows: Ints) -> None:
        total = self._states.of(rows) + self._rows.values[rows]
        self.total[rows] = total
        passing = total > INFEASIBLE // 2
        if (passing != self.feasible[rows]).any():
            self.feasible_count += int(np.count_nonzero(passing)) - int(np.count_nonzero(self.feasible[rows]))
            self.feasible[rows] = passing
            self._feasible_in.clear()

    def _merge_one(self, row: int) -> None:
        total = self._states.of_one(row) + self._rows.values.item(row)
        self.total[row] = total
        passing = total > INFEASIBLE // 2
        if passing != self.feasible.item(row):
            self.feasible_count += 1 if passing else -1
            self.feasible[row] = passing
            self._feasible_in.clear()

    def feasible_in(self, groups: Groups) -> Ints:
        """How many feasible rows there are in each group."""
        known = self._feasible_in.get(id(groups))
        if known is None:
            counts = np.bincount(groups.of_row[self.feasible], minlength=len(groups.first))
            known = self._feasible_in[id(groups)] = groups, counts
        return known[1]


class Plans:
    """The plans of one profile on one cluster."""

    MOST_CELLS = 1 << 22
    """Bounds memory: plans times nodes."""

    def __init__(self, framework: Framework, cluster: Cluster, conduct: Conduct, *, keep: bool = True) -> None:
        self._framework, self._cluster, self._conduct = framework, cluster, conduct
        most = min(max(self.MOST_CELLS // max(cluster.columns.size, 1), 64), 4096)
        self._by_signature: LeastRecentlyUsed[Plan] = LeastRecentlyUsed(most)
        self._plans: LeastRecentlyUsed[Plan] = LeastRecentlyUsed(most)
        self._parts: LeastRecentlyUsed[Part] = LeastRecentlyUsed(4 * most)
        self._row_outcomes: LeastRecentlyUsed[RowOutcomes] = LeastRecentlyUsed(most)
        plugins = framework.plugins.values() if keep else ()
        self._keeping = [(plugin, plugin.reads) for plugin in plugins if plugin.reads is not None]

    def of(self, info: PodInfo) -> Plan:
        return self._by_signature.get_or_make(info.signature, lambda: self._plan(info))

    def _plan(self, info: PodInfo) -> Plan:
        keys = tuple([plugin.key(info) for plugin, _ in self._keeping])
        return self._plans.get_or_make(keys, lambda: self._make_plan(keys, info))

    def _merged(self, filters: tuple[FilterResults, ...], scores: tuple[tuple[int, ScoreResults], ...]) -> RowOutcomes:
        """The row outcomes of these results, the same for all plans that have them."""
        return self._row_outcomes.get_or_make((filters, scores), lambda: RowOutcomes(filters, scores, self._cluster))

    def _make_plan(self, keys: tuple[Hashable, ...], info: PodInfo) -> Plan:
        named = [(plugin.name, key) for (plugin, _), key in zip(self._keeping, keys, strict=True)]
        fresh = frozenset(name for name, key in named if (name, key) not in self._parts)
        parts = self._make_parts(keys, info)
        return Plan(self._framework, parts, self._cluster, self._conduct, self._merged, fresh)

    def _make_parts(self, keys: tuple[Hashable, ...], info: PodInfo) -> dict[str, Part]:
        return {
            plugin.name: self._parts.get_or_make((plugin.name, key), partial(Part, plugin, reads, info, self._cluster))
            for (plugin, reads), key in zip(self._keeping, keys, strict=True)
        }
