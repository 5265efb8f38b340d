"""How each plugin comes to the score of a node: its own lines, with the numbers of this pod and this node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster import Cluster, NodeInfo, Nodes
from podium.engine import Decision, Scheduler
from podium.engine.decision import PluginScores
from podium.framework.plugin import (
    PLUGIN_FAULTS,
    CycleState,
    FilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    explains_normalizing,
    explains_score,
)
from podium.framework.status import SUCCESS
from podium.model import Pod

NO_LINES = "the plugin's own score"
SENT_BACK = "scored as an extender sent the node back"


@dataclass(frozen=True, slots=True)
class ScoreFormula:
    """One plugin's score of one node, and how it comes about, line by line."""

    plugin: str
    raw: int
    normalized: int
    weight: int
    weighted: int
    lines: tuple[str, ...]


def score_formulas(
    scheduler: Scheduler, pod: Pod, decision: Decision, nodes: Sequence[str]
) -> dict[str, tuple[ScoreFormula, ...]]:
    """Per node that was scored, the formula of each plugin. The pod must be on no node, and the cluster as it was when
    the pod was decided.
    """
    cluster, wanted = scheduler.cluster, [node for node in nodes if node in decision.totals]
    plugins = {each.plugin.name: each.plugin for each in scheduler.framework_of(pod).score}
    found: dict[str, list[ScoreFormula]] = {node: [] for node in wanted}
    with PLUGIN_FAULTS:
        for scores in decision.scores if wanted else ():
            arithmetic = _Arithmetic(plugins[scores.plugin], scores, pod, cluster, bool(decision.scored_as_returned_by))
            for node in wanted:
                found[node].append(arithmetic.formula(node))
    return {node: tuple(formulas) for node, formulas in found.items()}


class _Arithmetic:
    """One plugin, in the state in which it scored the feasible nodes."""

    def __init__(
        self, plugin: ScorePlugin, scores: PluginScores, pod: Pod, cluster: Cluster, is_sent_back: bool
    ) -> None:
        self._plugin, self._scores, self._pod, self._cluster = plugin, scores, pod, cluster
        self._is_sent_back = is_sent_back
        self._places = {node: place for place, node in enumerate(scores.raw)}
        self._nodes = Nodes(cluster, np.array([cluster.rows[node] for node in scores.raw], dtype=np.int64))
        self._raw = np.array(list(scores.raw.values()), dtype=np.int64)
        self._state = CycleState(cluster.info_of(pod))
        if not is_sent_back:
            _prepare(plugin, self._state, pod, cluster.nodes, self._nodes)

    def formula(self, node: str) -> ScoreFormula:
        scores = self._scores
        raw, normalized, weighted = scores.raw[node], scores.normalized[node], scores.points(node)
        lines = [
            *self._score_lines(node),
            f"raw score {raw:,}",
            *self._normalize_lines(node),
            f"{normalized} * weight {scores.weight} = {weighted:,} points",
        ]
        return ScoreFormula(scores.plugin, raw, normalized, scores.weight, weighted, tuple(lines))

    def _score_lines(self, node: str) -> Sequence[str]:
        if self._is_sent_back:
            return [SENT_BACK]
        if not explains_score(self._plugin):
            return [NO_LINES]
        return self._plugin.score_lines(self._state, self._pod, NodeInfo(self._cluster, self._cluster.rows[node])) or [
            NO_LINES
        ]

    def _normalize_lines(self, node: str) -> list[str]:
        raw, normalized, plugin = self._scores.raw[node], self._scores.normalized[node], self._plugin
        lines: Sequence[str] = ()
        if plugin.normalizes and explains_normalizing(plugin) and not self._is_sent_back:
            lines = plugin.normalize_lines(self._state, self._pod, self._raw, self._nodes, self._places[node])
        if lines:
            return [f"normalised: {line}" for line in lines]
        return [f"normalised to {normalized}"] if raw != normalized else []


def _prepare(plugin: ScorePlugin, state: CycleState, pod: Pod, every_node: Nodes, feasible: Nodes) -> None:
    """Run what the profile runs before Score: scores may depend on what PreFilter, Filter and PreScore found."""
    passed = True
    if isinstance(plugin, PreFilterPlugin) and "preFilter" in plugin.runs_at:
        passed = plugin.pre_filter(state, pod, every_node).status == SUCCESS
    if passed and isinstance(plugin, FilterPlugin) and "filter" in plugin.runs_at:
        plugin.filter(state, pod, every_node)
    if isinstance(plugin, PreScorePlugin) and "preScore" in plugin.runs_at:
        plugin.pre_score(state, pod, feasible)
