"""Which plugins run at which extension point for a kind of pod, and of which of them results are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from podium.cluster import Aspect
from podium.engine.node_forms import filters_by_node, scores_by_node
from podium.engine.parts import Course
from podium.framework import FilterPlugin, Framework, Plugin, PreFilterPlugin, PreScorePlugin, ReservePlugin
from podium.framework.framework import Weighted


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
    """The way of a pod through the extension points, as far as it is known beforehand.

    `courses` says what follows from PreFilter and PreScore of the plugins with kept results; `unconcerned` are those
    without, that have nothing to do with such pods.
    """

    def __init__(self, framework: Framework, courses: Mapping[str, Course], unconcerned: frozenset[str]) -> None:
        ways = {p.name: courses[p.name].pre_filter for p in framework.pre_filter if p.name in courses}
        # A filter whose PreFilter the profile leaves out fails for every pod, even for those it has nothing to do with.
        unprepared = {
            p.name for p in framework.filter if isinstance(p, PreFilterPlugin) and p not in framework.pre_filter
        }
        self.skipped = frozenset(name for name, way in ways.items() if way == "skip") | (unconcerned - unprepared)
        """The plugins that are known to skip Filter."""
        self.narrows = any(way in ("narrow", "hopeless") for way in ways.values())
        """Whether a known outcome rejects the pod or leaves only some nodes."""
        self.pre_filter: list[PreFilterPlugin] = [p for p in framework.pre_filter if p.name not in unconcerned]
        self.varying_pre_filter = [plugin for plugin in self.pre_filter if plugin.name not in courses]
        # A plugin that rejects the pod for good need not have left anything for its Filter.
        left_out = self.skipped | {name for name, way in ways.items() if way == "hopeless"}
        self.filter: list[FilterPlugin] = [plugin for plugin in framework.filter if plugin.name not in left_out]
        self.varying_filter = [plugin for plugin in self.filter if plugin.name not in courses]
        self.kept_filters = Kept.of([plugin for plugin in self.filter if plugin.name in courses])
        self._set_up_scores(framework, courses, unconcerned)
        self.reserve: list[ReservePlugin] = [plugin for plugin in framework.reserve if plugin.name not in unconcerned]

    def _set_up_scores(self, framework: Framework, courses: Mapping[str, Course], unconcerned: frozenset[str]) -> None:
        ways = {p.name: courses[p.name].pre_score for p in framework.pre_score if p.name in courses}
        asked = [plugin for plugin in framework.pre_score if plugin.name not in unconcerned]
        # One that failed is asked again, when there is something to score, and may fail then.
        self.varying_pre_score: list[PreScorePlugin] = [p for p in asked if ways.get(p.name, "fail") == "fail"]
        skipped = {name for name, way in ways.items() if way == "skip"}
        skipped.update(plugin.name for plugin in framework.pre_score if plugin.name in unconcerned)
        self.score: list[Weighted] = [each for each in framework.score if each.plugin.name not in skipped]
        # Those whose raw scores are the final ones, whichever nodes are feasible.
        final = [each for each in self.score if each.plugin.name in courses and not each.plugin.normalizes]
        self.final_scores = Kept.of([each.plugin for each in final])
        self.varying_score = [each for each in self.score if each not in final]
        kept = [each.plugin for each in self.varying_score if each.plugin.name in courses]
        self.raw_scores = Kept.of([plugin for plugin in kept if plugin.normalizes_by_max]).by_row
        """Those of them that come to nothing where all nodes have the same raw score, which is kept."""
        self.weights = {each.plugin.name: each.weight for each in self.score}
        filters = [plugin for plugin in self.filter if plugin.name in self.kept_filters.by_state]
        scores = [each.plugin for each in self.score if each.plugin.name in self.final_scores.by_state]
        self.asks_by_node = all(map(filters_by_node, filters)) and all(map(scores_by_node, scores))
        """Whether all that is kept by resource state can be asked for one node at a time."""
        self.scores_one = not framework.score
        """Without any score plugin every node scores 1."""
