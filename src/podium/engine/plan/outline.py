"""Which plugins run at which extension point for a kind of pod, and of which of them results are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from podium.cluster import Aspect, PodInfo
from podium.engine.plan.results import FilterResults, ReadAspects, ScoreResults, filters_by_node, scores_by_node
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
    ReservePlugin,
    ScorePlugin,
    Status,
)
from podium.framework.fast_paths import ForSomePods, NormalizesByMax
from podium.framework.registry import Weighted


class PreOutcome(NamedTuple):
    """What a plugin's PreFilter and PreScore came to: whether its Filter and Score run."""

    pre_filter: Literal["pass", "skip", "narrow", "unresolvable"]
    """"narrow": rejected, or only some nodes are left; "unresolvable": rejected, and evictions cannot help."""
    pre_score: Literal["pass", "skip", "fail"]


PASSED = PreFilterResult()
ORDINARY = PreOutcome("pass", "pass")


class Part:
    """One plugin's outcome for one key: of its PreFilter and PreScore, and for every node of its Filter and Score."""

    __slots__ = ("filter", "is_fresh", "pre_filter", "pre_outcome", "score", "state")

    def __init__(self, plugin: Plugin, followed: ReadAspects, info: PodInfo) -> None:
        nodes = followed.cluster.nodes
        self.is_fresh = True
        """Whether no pod was decided with it yet."""
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
    # Of most pods most plugins say just this.
    if pre_filter == PASSED and pre_score is SUCCESS:
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
    """Those that read nothing but resources, which are kept per resource state."""
    by_row: tuple[str, ...]

    @classmethod
    def of(cls, plugins: list[Plugin]) -> Kept:
        by_state = tuple(plugin.name for plugin in plugins if plugin.reads == Aspect.RESOURCES)
        return cls(by_state, tuple(plugin.name for plugin in plugins if plugin.reads != Aspect.RESOURCES))


class Outline:
    """Which plugins run at each extension point for one kind of pod, as far as that is known before it is evaluated.

    `pre_outcomes` has what PreFilter and PreScore of the plugins with kept results came to; `unconcerned` are the other
    plugins that have nothing to do with such pods.
    """

    def __init__(
        self, framework: Framework, pre_outcomes: Mapping[str, PreOutcome], unconcerned: frozenset[str]
    ) -> None:
        ways = {p.name: pre_outcomes[p.name].pre_filter for p in framework.pre_filter if p.name in pre_outcomes}
        # A filter whose PreFilter the profile leaves out fails for every pod, even for those it has nothing to do with.
        unprepared = {
            p.name for p in framework.filter if isinstance(p, PreFilterPlugin) and p not in framework.pre_filter
        }
        self.skipped = frozenset(name for name, way in ways.items() if way == "skip") | (unconcerned - unprepared)
        """The plugins that are known to skip Filter."""
        self.narrows = any(way in ("narrow", "unresolvable") for way in ways.values())
        """Whether a known outcome rejects the pod or leaves only some nodes."""
        self.pre_filter: list[PreFilterPlugin] = [p for p in framework.pre_filter if p.name not in unconcerned]
        self.varying_pre_filter = [plugin for plugin in self.pre_filter if plugin.name not in pre_outcomes]
        # A plugin that rejects the pod for good need not have left anything for its Filter.
        left_out = self.skipped | {name for name, way in ways.items() if way == "unresolvable"}
        self.filter: list[FilterPlugin] = [plugin for plugin in framework.filter if plugin.name not in left_out]
        self.varying_filter = [plugin for plugin in self.filter if plugin.name not in pre_outcomes]
        self.kept_filters = Kept.of([plugin for plugin in self.filter if plugin.name in pre_outcomes])
        self._set_up_scores(framework, pre_outcomes, unconcerned)
        self.reserve: list[ReservePlugin] = [plugin for plugin in framework.reserve if plugin.name not in unconcerned]

    def _set_up_scores(
        self, framework: Framework, pre_outcomes: Mapping[str, PreOutcome], unconcerned: frozenset[str]
    ) -> None:
        ways = {p.name: pre_outcomes[p.name].pre_score for p in framework.pre_score if p.name in pre_outcomes}
        asked = [plugin for plugin in framework.pre_score if plugin.name not in unconcerned]
        # One that failed is asked again, when there is something to score, and may fail then.
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
        # Those whose raw scores are the final ones, whichever nodes are feasible.
        final = [each for each in self.score if each.plugin.name in pre_outcomes and not each.plugin.normalizes]
        self.final_scores = Kept.of([each.plugin for each in final])
        self.varying_score = [each for each in self.score if each not in final]
        kept = [each.plugin for each in self.varying_score if each.plugin.name in pre_outcomes]
        self.raw_scores = Kept.of([plugin for plugin in kept if isinstance(plugin, NormalizesByMax)]).by_row
        """Those of them that come to nothing where all nodes have the same raw score, which is kept."""
        self.weights = {each.plugin.name: each.weight for each in self.score}
        filters = [plugin for plugin in self.filter if plugin.name in self.kept_filters.by_state]
        scores = [each.plugin for each in self.score if each.plugin.name in self.final_scores.by_state]
        self.asks_by_node = all(map(filters_by_node, filters)) and all(map(scores_by_node, scores))
        """Whether all that is kept by resource state can be asked for one node at a time."""
        self.scores_one = not framework.score
        """Without any score plugin every node scores 1."""
