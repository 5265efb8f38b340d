"""What one plugin says of one kind of pod: a `Part`, shared by all pods that are the same to the plugin."""

from __future__ import annotations

from typing import Literal, NamedTuple

from podium.cluster import PodInfo
from podium.engine.results import FilterResults, Followed, ScoreResults
from podium.framework import (
    SUCCESS,
    Code,
    CycleState,
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    Status,
)


class Course(NamedTuple):
    """What follows from a plugin's PreFilter and PreScore for its later extension points."""

    pre_filter: Literal["pass", "skip", "narrow", "hopeless"]
    """"narrow" where the pod is rejected or only some nodes are left; "hopeless" where nothing can be done about it."""
    pre_score: Literal["pass", "skip", "fail"]


PASSED = PreFilterResult()
ORDINARY = Course("pass", "pass")


class Part:
    """One plugin's outcome for one key: of its PreFilter and PreScore, and for every node of its Filter and Score."""

    __slots__ = ("course", "filter", "is_fresh", "pre_filter", "score", "state")

    def __init__(self, plugin: Plugin, followed: Followed, info: PodInfo) -> None:
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
        self.course = _course(self.pre_filter, pre_score)


def _course(pre_filter: PreFilterResult, pre_score: Status) -> Course:
    # Of most pods most plugins say just this.
    if pre_filter == PASSED and pre_score is SUCCESS:
        return ORDINARY
    scoring: Literal["pass", "skip", "fail"] = "pass"
    if pre_score.code is not Code.SUCCESS:
        scoring = "skip" if pre_score.code is Code.SKIP else "fail"
    code = pre_filter.status.code
    if code is Code.SUCCESS and pre_filter.node_names is None:
        return Course("pass", scoring)
    if code is Code.SKIP:
        return Course("skip", scoring)
    return Course("hopeless" if code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE else "narrow", scoring)
