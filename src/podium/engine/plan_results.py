"""Which plugins run for a kind of pod, and each plugin's results per node. Only changed nodes are evaluated again."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes, PodInfo
from podium.cluster.columns import NO_ROWS, ROW_ASPECTS, Ints, LogReader, Mask, highest, is_any, lowest, once
from podium.framework import (
    SUCCESS,
    Code,
    CycleState,
    FilterPlugin,
    Framework,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
    Status,
    Verdict,
)
from podium.framework.fast_paths import ForSomePods, NormalizesByMax
from podium.framework.plugin import MAX_NODE_SCORE
from podium.framework.registry import Weighted
from podium.framework.status import (
    PASSED,
    PreFilterResult,
    checked_number,
    checked_numbers,
    checked_status,
    checked_verdict,
)
from podium.model import Pod

FEW_NODES = 16
"""Up to this many nodes are evaluated one by one, which is faster than short arrays."""


def filters_by_node(plugin: FilterPlugin) -> bool:
    return _has_node_form(type(plugin).__mro__, FilterPlugin, "filter_node", "filter")


def scores_by_node(plugin: ScorePlugin) -> bool:
    return _has_node_form(type(plugin).__mro__, ScorePlugin, "score_node", "score")


@lru_cache
def _has_node_form(lineage: tuple[type, ...], point: type, single: str, array: str) -> bool:
    """Whether the form for one node may be used in place of the form with arrays.

    It may if the same class defines both, or if there is no array form. If a class overrides only one form, the other
    one, inherited, is out of date.
    """
    latest = next(each for each in lineage if single in vars(each) or array in vars(each))
    is_alone = getattr(lineage[0], array) is getattr(point, array)
    return latest is not point and single in vars(latest) and (array in vars(latest) or is_alone)


NO_VALUES = NO_ROWS


class ReadAspects:
    """The aspects of a cluster that a plugin reads, and their change logs."""

    __slots__ = ("cluster", "logs", "reads_images", "reads_objects")

    def __init__(self, cluster: Cluster, reads: Aspect) -> None:
        self.cluster = cluster
        self.reads_images, self.reads_objects = bool(reads & Aspect.IMAGES), bool(reads & Aspect.OBJECTS)
        # Every log contains the rows that come and go, so at least one is followed.
        self.logs = cluster.logs_of(reads & ROW_ASPECTS or Aspect.LABELS)
        """The logs of changes per row."""

    def versions(self) -> tuple[int, int]:
        """The versions of data shared by all rows, if the plugin reads it: a change affects every row."""
        cluster = self.cluster
        return (
            cluster.node_set_version if self.reads_images else 0,
            cluster.store.version if self.reads_objects else 0,
        )


P = TypeVar("P", bound=Plugin)


class Results(Generic[P]):
    """One integer per row from one plugin for one kind of pod."""

    # Defaults of fields that only results kept by row need: many kinds of pods are seen once and never set them.
    _reader: LogReader | None = None
    _versions = (-1, -1)
    values: Ints = NO_VALUES
    _uniform: int | Literal["unknown"] | None = "unknown"

    def __init__(self, followed: ReadAspects, plugin: P, pod: Pod, state: CycleState) -> None:
        self.followed, self.plugin, self._pod, self._state = followed, plugin, pod, state

    @property
    def uniform(self) -> int | None:
        """The value of all rows if they have the same one, else None."""
        if self._uniform == "unknown":
            least = lowest(self.values)
            self._uniform = least if least == highest(self.values) else None
        return self._uniform

    def evaluate_node(self, node: NodeInfo) -> int:
        """Evaluate the plugin on one node; much faster than arrays with one element."""
        raise NotImplementedError

    @property
    def by_node(self) -> bool:
        """Whether the plugin can evaluate a single node."""
        raise NotImplementedError

    def record(self, nodes: Nodes) -> Ints:
        """Evaluate the plugin for values that can be kept next to those from other calls."""
        raise NotImplementedError

    def record_node(self, node: NodeInfo) -> int:
        """The same as `record`, for one node."""
        return self.evaluate_node(node)

    def catch_up(self) -> None:
        """Bring `values` up to date with the cluster."""
        versions, reader = self.followed.versions(), self._reader
        if reader is None:
            # Created on first use: results kept by resource state are seldom needed row by row.
            reader = self._reader = LogReader(self.followed.logs)
        if versions == self._versions and not reader.is_behind:
            return
        changed = reader.unread() if versions == self._versions else None
        if changed is None:
            nodes = self.followed.cluster.nodes
            self.values = np.zeros(self.followed.cluster.columns.size, dtype=np.int64)
            self.values[nodes.rows] = self.record(nodes)
        else:
            self._record_changed(once(changed))
        # Not earlier: a plugin that failed has to be evaluated again.
        reader.catch_up()
        self._versions, self._uniform = versions, "unknown"

    def _record_changed(self, rows: Ints) -> None:
        missing = self.followed.cluster.columns.size - len(self.values)
        if missing:
            self.values = np.concatenate([self.values, np.zeros(missing, dtype=np.int64)])
        rows = rows[self.followed.cluster.columns.alive[rows]]
        if self.by_node and len(rows) <= FEW_NODES:
            for row in rows.tolist():
                self.values[row] = self.record_node(NodeInfo(self.followed.cluster, row))
        elif len(rows):
            self.values[rows] = self.record(Nodes(self.followed.cluster, rows))


class FilterResults(Results[FilterPlugin]):
    """A filter's code per row: 0 passes."""

    may_have_errors = False
    _statuses: dict[Status, int] | None = None

    def rejected(self, nodes: Nodes) -> Mask | None:
        """Whether the plugin rejects each node; None if it rejects none."""
        verdict = self._ask(nodes)
        if verdict.accepted is not None:
            return None
        rejected = verdict.rejected
        return rejected if is_any(rejected) else None

    @property
    def by_node(self) -> bool:
        return filters_by_node(self.plugin)

    def evaluate_node(self, node: NodeInfo) -> int:
        return int(self._ask_node(node) != SUCCESS)

    def _ask_node(self, node: NodeInfo) -> Status:
        status = self.plugin.filter_node(self._state, self._pod, node)
        if status is not SUCCESS:
            status = checked_status(self.plugin.name, status)
            self.may_have_errors = self.may_have_errors or status.code is Code.ERROR
        return status

    def record_node(self, node: NodeInfo) -> int:
        status = self._ask_node(node)
        if status == SUCCESS:
            return 0
        own = self._code_of(status)
        return -own if status.code is Code.ERROR else own

    def record(self, nodes: Nodes) -> Ints:
        # A code is valid within one verdict only, so kept codes are translated to codes of our own.
        verdict = self._ask(nodes)
        codes = np.zeros_like(verdict.codes)
        for code in set(verdict.codes.tolist()) - {0}:
            own = self._code_of(verdict.describe(code))
            codes[verdict.codes == code] = own if code > 0 else -own
        return codes

    def _code_of(self, status: Status) -> int:
        if self._statuses is None:
            self._statuses = {}
        return self._statuses.setdefault(status, len(self._statuses) + 1)

    def _ask(self, nodes: Nodes) -> Verdict:
        found = self.plugin.filter(self._state, self._pod, nodes)
        verdict = checked_verdict(self.plugin.name, found, len(nodes))
        if not self.may_have_errors and verdict.accepted is None:
            self.may_have_errors = lowest(verdict.codes) < 0
        return verdict

    def describe(self, code: int) -> Status:
        """The status for a kept code."""
        return next(status for status, known in (self._statuses or {}).items() if known == abs(code))


class ScoreResults(Results[ScorePlugin]):
    """A plugin's raw score per row."""

    may_be_invalid = False
    """Whether a score outside 0..100 was seen; it matters only on a feasible node."""

    def record(self, nodes: Nodes) -> Ints:
        found = self.plugin.score(self._state, self._pod, nodes)
        raw = checked_numbers(self.plugin.name, "score", found, len(nodes))
        if not self.may_be_invalid:
            # Viewed as unsigned, a negative score is a large one.
            self.may_be_invalid = highest(raw.view(np.uint64)) > MAX_NODE_SCORE
        return raw

    @property
    def by_node(self) -> bool:
        return scores_by_node(self.plugin)

    def evaluate_node(self, node: NodeInfo) -> int:
        score = self.plugin.score_node(self._state, self._pod, node)
        if type(score) is not int:
            score = checked_number(self.plugin.name, score)
        if not 0 <= score <= MAX_NODE_SCORE:
            self.may_be_invalid = True
        return score


class PreOutcome(NamedTuple):
    """The outcome of a plugin's PreFilter and PreScore: whether its Filter and Score run."""

    pre_filter: Literal["pass", "skip", "narrow", "unresolvable"]
    """"narrow": rejected, or only some nodes are left; "unresolvable": rejected, and evictions cannot help."""
    pre_score: Literal["pass", "skip", "fail"]


ORDINARY = PreOutcome("pass", "pass")


class Part:
    """One plugin's outcome for one key: of PreFilter and PreScore, and of Filter and Score for every node."""

    __slots__ = ("filter", "is_fresh", "pre_filter", "pre_outcome", "score", "state")

    def __init__(self, plugin: Plugin, followed: ReadAspects, info: PodInfo) -> None:
        nodes = followed.cluster.nodes
        self.is_fresh = True
        """Whether no pod has been decided with this part yet."""
        self.state = CycleState(info)
        self.pre_filter = PASSED
        self.filter: FilterResults | None = None
        self.score: ScoreResults | None = None
        pre_score = SUCCESS
        if isinstance(plugin, PreFilterPlugin):
            self.pre_filter = plugin.pre_filter(self.state, info.pod, nodes)
        if isinstance(plugin, FilterPlugin):
            self.filter = FilterResults(followed, plugin, info.pod, self.state)
        if isinstance(plugin, PreScorePlugin):
            pre_score = plugin.pre_score(self.state, info.pod, nodes)
        if isinstance(plugin, ScorePlugin):
            self.score = ScoreResults(followed, plugin, info.pod, self.state)
        self.pre_outcome = _pre_outcome(self.pre_filter, pre_score)


def _pre_outcome(pre_filter: PreFilterResult, pre_score: Status) -> PreOutcome:
    # The most common outcome.
    if pre_score is SUCCESS and (pre_filter is PASSED or pre_filter == PASSED):
        return ORDINARY
    scoring: Literal["pass", "skip", "fail"] = "pass"
    if pre_score.code is not Code.SUCCESS:
        scoring = "skip" if pre_score.code is Code.SKIP else "fail"
    code = pre_filter.status.code
    if code is Code.SUCCESS and pre_filter.node_names is None:
        return PreOutcome("pass", scoring)
    if code is Code.SKIP:
        return PreOutcome("skip", scoring)
    return PreOutcome("unresolvable" if code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE else "narrow", scoring)


class Kept(NamedTuple):
    """Plugins whose results are kept, by what they depend on."""

    by_state: tuple[str, ...]
    """Those that read nothing but resources; their results are kept per resource state."""
    by_row: tuple[str, ...]

    @classmethod
    def of(cls, plugins: list[Plugin]) -> Kept:
        by_state = tuple(plugin.name for plugin in plugins if plugin.reads == Aspect.RESOURCES)
        return cls(by_state, tuple(plugin.name for plugin in plugins if plugin.reads != Aspect.RESOURCES))


class Outline:
    """Which plugins run at each extension point for one kind of pod, if that is known before evaluation.

    `pre_outcomes` are the PreFilter and PreScore outcomes of the plugins with kept results; `unconcerned` are the other
    plugins that these pods do not concern.
    """

    def __init__(
        self, framework: Framework, pre_outcomes: Mapping[str, PreOutcome], unconcerned: frozenset[str]
    ) -> None:
        ways = {p.name: pre_outcomes[p.name].pre_filter for p in framework.pre_filter if p.name in pre_outcomes}
        # A filter whose PreFilter is disabled in the profile fails for every pod, even for pods that do not concern it.
        unprepared = {
            p.name for p in framework.filter if isinstance(p, PreFilterPlugin) and p not in framework.pre_filter
        }
        self.skipped = frozenset(name for name, way in ways.items() if way == "skip") | (unconcerned - unprepared)
        """The plugins that are known to skip Filter."""
        self.narrows = any(way in ("narrow", "unresolvable") for way in ways.values())
        """Whether a known outcome rejects the pod or leaves only some nodes."""
        self.pre_filter: list[PreFilterPlugin] = [p for p in framework.pre_filter if p.name not in unconcerned]
        self.varying_pre_filter = [plugin for plugin in self.pre_filter if plugin.name not in pre_outcomes]
        # A plugin that rejects the pod as unresolvable may have left no state for its Filter.
        left_out = self.skipped | {name for name, way in ways.items() if way == "unresolvable"}
        self.filter: list[FilterPlugin] = [plugin for plugin in framework.filter if plugin.name not in left_out]
        self.varying_filter = [plugin for plugin in self.filter if plugin.name not in pre_outcomes]
        self.kept_filters = Kept.of([plugin for plugin in self.filter if plugin.name in pre_outcomes])
        self._set_up_scores(framework, pre_outcomes, unconcerned)
        # A plugin for some pods that skips Filter reserves nothing.
        idle = {p.name for p in framework.reserve if isinstance(p, ForSomePods) and ways.get(p.name) == "skip"}
        self.reserve: list[ReservePlugin] = [p for p in framework.reserve if p.name not in unconcerned | idle]

    def _set_up_scores(
        self, framework: Framework, pre_outcomes: Mapping[str, PreOutcome], unconcerned: frozenset[str]
    ) -> None:
        ways = {p.name: pre_outcomes[p.name].pre_score for p in framework.pre_score if p.name in pre_outcomes}
        self.pre_score = asked = [plugin for plugin in framework.pre_score if plugin.name not in unconcerned]
        # A PreScore that failed runs again when there are nodes to score, and may fail then.
        self.varying_pre_score: list[PreScorePlugin] = [p for p in asked if ways.get(p.name, "fail") == "fail"]
        skipped = {name for name, way in ways.items() if way == "skip"}
        skipped.update(plugin.name for plugin in framework.pre_score if plugin.name in unconcerned)
        others = [each.plugin for each in framework.score if each.plugin.name in unconcerned]
        self.zero_scores = {p.name for p in others if isinstance(p, ForSomePods) and p.scores_other_pods}
        """The plugins whose score is known to be 0 on every node."""
        left_out = skipped | self.zero_scores
        self.score: list[Weighted] = [each for each in framework.score if each.plugin.name not in left_out]
        self.listed_scores = [each for each in framework.score if each.plugin.name not in skipped - self.zero_scores]
        """`score`, and those whose score is known to be 0."""
        # The plugins whose raw scores are final, whichever nodes are feasible.
        final = [each for each in self.score if each.plugin.name in pre_outcomes and not each.plugin.normalizes]
        self.final_scores = Kept.of([each.plugin for each in final])
        self.varying_score = [each for each in self.score if each not in final]
        kept = [each.plugin for each in self.varying_score if each.plugin.name in pre_outcomes]
        self.raw_scores = Kept.of([plugin for plugin in kept if isinstance(plugin, NormalizesByMax)]).by_row
        """The kept raw scores that normalise to 0 everywhere if all nodes have the same one."""
        self.weights = {each.plugin.name: each.weight for each in self.score}
        filters = [plugin for plugin in self.filter if plugin.name in self.kept_filters.by_state]
        scores = [each.plugin for each in self.score if each.plugin.name in self.final_scores.by_state]
        self.asks_by_node = all(map(filters_by_node, filters)) and all(map(scores_by_node, scores))
        """Whether all plugins kept by resource state can evaluate a single node."""
        self.scores_one = not framework.score
        """Without any score plugin every node scores 1."""
