"""What is known about one kind of pod on a cluster: which plugins run, and what they said of every node so far.

A plugin that says what it reads gives a `Part`: its outcome for one key, shared by all pods with that key. Pods whose
plugins all have the same parts share a `Plan`, which merges the parts into one mask and one total per node. Deciding a
pod then means catching up on the nodes that changed since the last one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from podium.cluster import Aspect, Cluster, Nodes, PodInfo
from podium.cluster.columns import Ints, Mask
from podium.cluster.groups import Groups
from podium.engine.results import FilterResults, Results, ScoreResults, changed_rows
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

INFEASIBLE = -(1 << 60)
"""Less than any total, and small enough to be added up a few times."""
UNKNOWN = INFEASIBLE - 1
UNCHANGED: set[int] = set()
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
        fresh: frozenset[str] = frozenset(),
    ) -> None:
        self._cluster, self.conduct = cluster, conduct
        self.kept_by, self.fresh = frozenset(parts), fresh
        """The plugins whose results are kept; and those of which nothing was kept before this plan's first pod."""
        self.state = {key: value for part in parts.values() for key, value in part.state.items()}
        """What the parts' plugins left for their later extension points."""
        self._set_up_filters(framework, parts)
        self._set_up_scores(framework, parts)
        self._set_up_merging()

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

    def _set_up_merging(self) -> None:
        self._resource_filters = [results for results in self.kept_filters if results.reads_only_resources]
        self._other_filters = [results for results in self.kept_filters if not results.reads_only_resources]
        self._resource_scores = [(w, results) for w, results in self.final_scores if results.reads_only_resources]
        self._other_scores = [(w, results) for w, results in self.final_scores if not results.reads_only_resources]
        self._resource_log, self._cursor = self._cluster.logs[Aspect.RESOURCES], -1
        self._others: list[Results] = [*self._other_filters, *(results for _, results in self._other_scores)]
        # Whether there is a node on a row counts among the others; its coming and going is in every log.
        logs = [self._cluster.logs[Aspect.LABELS], *(log for results in self._others for log in results.logs)]
        self._other_logs = list({id(log): log for log in logs}.values())
        self._other_heads = [-1] * len(self._other_logs)
        self._shared = [results for results in self._others if results.is_shared]
        self._other_versions: list[tuple[int, int]] = []
        self._states = StateOutcomes()
        self._other: Ints = np.zeros(0, dtype=np.int64)
        self.feasible: Mask = np.zeros(0, dtype=np.bool_)
        """Whether each row passes the filters with kept results."""
        self.total: Ints = np.zeros(0, dtype=np.int64)
        """The weighted sum of final scores per row; around INFEASIBLE where `feasible` is false."""
        self.feasible_count = 0
        self._feasible_in: dict[int, tuple[Groups, Ints]] = {}

    # -- catching up -----------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Bring the mask and the totals up to date with the cluster."""
        rows = self._catch_up_others()
        log, size = self._resource_log, self._cluster.columns.size
        if rows is UNCHANGED and log.head == self._cursor:
            return
        changed = log.since(self._cursor)
        self._cursor = log.head
        if rows is None or changed is None or len(changed) > size:
            self.feasible = np.zeros(size, dtype=np.bool_)
            self.total = np.full(size, INFEASIBLE, dtype=np.int64)
            self.feasible_count = 0
            self._feasible_in.clear()
            self._merge(np.arange(size))
        else:
            merged = rows.union(changed)
            if len(merged) == 1:
                self._merge_one(merged.pop())
            else:
                self._merge(np.fromiter(merged, np.int64, len(merged)))

    def _catch_up_others(self) -> set[int] | None:
        """Merge what does not depend on resources; the rows that changed, None for all."""
        heads = [log.head for log in self._other_logs]
        versions = [results.versions() for results in self._shared]
        is_known = versions == self._other_versions and len(self._other) == self._cluster.columns.size
        if is_known and heads == self._other_heads:
            return UNCHANGED
        rows = changed_rows(self._other_logs, self._other_heads) if is_known else None
        self._other_heads, self._other_versions = heads, versions
        for results in self._others:
            results.catch_up()
        places = np.arange(self._cluster.columns.size) if rows is None else np.fromiter(rows, np.int64, len(rows))
        if rows is None:
            self._other = np.zeros(len(places), dtype=np.int64)
        passing = _all_pass((f.values[places] for f in self._other_filters), self._cluster.columns.alive[places])
        scores = ((weight, results.values[places]) for weight, results in self._other_scores)
        self._other[places] = _total(scores, passing)
        return rows

    def _merge(self, rows: Ints) -> None:
        """Merge what the resources of some rows say with the rest."""
        states = self._cluster.resource_states
        of_row = states.read()[rows]
        self._states.prepare(states.epoch, len(states))
        outcome = self._states.outcome[of_row]
        if (outcome == UNKNOWN).any():
            unknown = np.flatnonzero((outcome == UNKNOWN) & self._cluster.columns.alive[rows])
            asked, first = np.unique(of_row[unknown], return_index=True)
            self._states.outcome[asked] = self._ask(rows[unknown[first]])
            outcome = self._states.outcome[of_row]
        total = outcome + self._other[rows]
        self.total[rows] = total
        passing = total > INFEASIBLE // 2
        if (passing != self.feasible[rows]).any():
            self.feasible_count += int(np.count_nonzero(passing)) - int(np.count_nonzero(self.feasible[rows]))
            self.feasible[rows] = passing
            self._feasible_in.clear()

    def _merge_one(self, row: int) -> None:
        """The same for a single row, which is what the placing of a pod changes: arrays of one element take longer."""
        states = self._cluster.resource_states
        state = states.read().item(row)
        self._states.prepare(states.epoch, len(states))
        outcome = self._states.outcome.item(state)
        if outcome == UNKNOWN:
            self._merge(np.array([row]))
            return
        total = outcome + self._other.item(row)
        self.total[row] = total
        passing = total > INFEASIBLE // 2
        if passing != self.feasible.item(row):
            self.feasible_count += 1 if passing else -1
            self.feasible[row] = passing
            self._feasible_in.clear()

    def _ask(self, rows: Ints) -> Ints:
        """What the plugins that read resources say of some rows: the total score, INFEASIBLE if one rejects them."""
        nodes = Nodes(self._cluster, rows)
        every = np.ones(len(rows), dtype=np.bool_)
        passing = _all_pass((results.evaluate(nodes) for results in self._resource_filters), every)
        return _total(((weight, results.evaluate(nodes)) for weight, results in self._resource_scores), passing)

    def feasible_in(self, groups: Groups) -> Ints:
        """How many feasible rows there are in each group."""
        known = self._feasible_in.get(id(groups))
        if known is None:
            counts = np.bincount(groups.of_row[self.feasible], minlength=len(groups.first))
            known = self._feasible_in[id(groups)] = groups, counts
        return known[1]


class StateOutcomes:
    """What the plugins that read resources said of each resource state; UNKNOWN where they were not asked."""

    __slots__ = ("_epoch", "outcome")

    def __init__(self) -> None:
        self._epoch = -1
        self.outcome: Ints = np.zeros(0, dtype=np.int64)

    def prepare(self, epoch: int, count: int) -> None:
        """Make room for all states there are; start over when they mean something else."""
        if epoch != self._epoch:
            self._epoch, self.outcome = epoch, self.outcome[:0]
        if len(self.outcome) < count:
            self.outcome = np.concatenate([self.outcome, np.full(2 * count - len(self.outcome), UNKNOWN)])


def _total(scores: Iterable[tuple[int, Ints]], passing: Mask) -> Ints:
    """The weighted sum of scores; INFEASIBLE where a filter rejects."""
    total = np.zeros(len(passing), dtype=np.int64)
    for weight, values in scores:
        total += weight * values
    total[~passing] = INFEASIBLE
    return total


def _all_pass(codes: Iterable[Ints], start: Mask) -> Mask:
    """Whether each row passes all filters."""
    passing = start.copy()
    for values in codes:
        passing &= values == 0
    return passing


class Plans:
    """The plans of one profile on one cluster."""

    MOST_CELLS = 1 << 25
    """Bounds memory: kept results times nodes."""

    def __init__(self, framework: Framework, cluster: Cluster, conduct: Conduct, *, keep: bool = True) -> None:
        self._framework, self._cluster, self._conduct = framework, cluster, conduct
        most = min(max(self.MOST_CELLS // max(cluster.columns.size, 1), 64), 4096)
        self._plans: LeastRecentlyUsed[Plan] = LeastRecentlyUsed(most)
        self._parts: LeastRecentlyUsed[Part] = LeastRecentlyUsed(4 * most)
        self._by_signature: LeastRecentlyUsed[Plan] = LeastRecentlyUsed(1 << 16)
        plugins = framework.plugins.values() if keep else ()
        self._keeping = [(plugin, plugin.reads) for plugin in plugins if plugin.reads is not None]

    def of(self, info: PodInfo) -> Plan:
        return self._by_signature.get_or_make(info.signature, lambda: self._plan(info))

    def _plan(self, info: PodInfo) -> Plan:
        keys = tuple(plugin.key(info) for plugin, _ in self._keeping)
        return self._plans.get_or_make(keys, lambda: self._make_plan(keys, info))

    def _make_plan(self, keys: tuple[Hashable, ...], info: PodInfo) -> Plan:
        named = [(plugin.name, key) for (plugin, _), key in zip(self._keeping, keys, strict=True)]
        fresh = frozenset(name for name, key in named if (name, key) not in self._parts)
        return Plan(self._framework, self._make_parts(keys, info), self._cluster, self._conduct, fresh)

    def _make_parts(self, keys: tuple[Hashable, ...], info: PodInfo) -> dict[str, Part]:
        return {
            plugin.name: self._parts.get_or_make(
                (plugin.name, key), partial(Part, plugin, reads, info, self._cluster)
            )
            for (plugin, reads), key in zip(self._keeping, keys, strict=True)
        }
