"""What was decided about a pod, and everything that led to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podium.framework import Status


@dataclass(frozen=True, slots=True)
class PluginScores:
    """One plugin's scores per node: as it gave them, brought to 0..100, and times its weight."""

    plugin: str
    weight: int
    raw: dict[str, int]
    normalized: dict[str, int]

    @property
    def weighted(self) -> dict[str, int]:
        return {node: score * self.weight for node, score in self.normalized.items()}


@dataclass(frozen=True, slots=True)
class Decision:
    """Where a pod goes, or why nowhere. Node names are sorted wherever there are several."""

    pod: str
    node: str | None
    feasible: tuple[str, ...] = ()
    rejected: Mapping[str, Status] = field(default_factory=dict)
    """Per rejected node, the first filter that rejected it and why."""
    absent: Status | None = None
    """The status of nodes that PreFilter excluded before any filter looked at them."""
    scores: tuple[PluginScores, ...] = ()
    """Empty when nothing was scored, because only one node is feasible or none."""
    extender_scores: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Per extender that scored, the weighted score of each node."""
    totals: Mapping[str, int] = field(default_factory=dict)
    ties: tuple[str, ...] = ()
    """The nodes that share the highest total."""
    node_count: int = 0
    pre_filter_message: str = ""
    error: str = ""
    """Why no decision could be made: a scheduling gate, an unknown scheduler name, a broken plugin or extender."""

    @property
    def message(self) -> str:
        """kube-scheduler's sentence for a pod that fits nowhere; empty for one that does."""
        if self.node is not None or self.error:
            return ""
        if not self.node_count:
            return "no nodes available to schedule pods"
        text = f"0/{self.node_count} nodes are available:"
        if self.pre_filter_message:
            return f"{text} {self.pre_filter_message}."
        reasons = sorted(f"{count} {reason}" for reason, count in self.reasons().items())
        return f"{text} {', '.join(reasons)}." if reasons else text

    def reasons(self) -> Counter[str]:
        """How many nodes each reason was given for."""
        counts = Counter(reason for status in self.rejected.values() for reason in status.reasons)
        missing = self.node_count - len(self.rejected) - len(self.feasible)
        if self.absent is not None and missing > 0:
            for reason in self.absent.reasons:
                counts[reason] += missing
        return counts

    def to_dict(self) -> dict[str, Any]:
        """The decision as plain data, in the shape `podium decide` writes."""
        shape: dict[str, Any] = {"pod": self.pod}
        if self.error:
            return shape | {"error": self.error}
        shape["feasible"] = list(self.feasible)
        if self.rejected:
            shape["rejected"] = {node: _status(status) for node, status in self.rejected.items()}
        if self.absent is not None:
            shape["absent"] = _status(self.absent)
        if self.totals:
            shape["scores"] = self._scores_by_node()
            shape["totals"] = dict(self.totals)
        if self.node is None:
            return shape | {"message": self.message}
        return shape | {"ties": list(self.ties), "node": self.node}

    def _scores_by_node(self) -> dict[str, dict[str, int]]:
        by_node: dict[str, dict[str, int]] = {node: {} for node in self.feasible}
        columns = {scores.plugin: scores.weighted for scores in self.scores} | dict(self.extender_scores)
        for name, weighted in columns.items():
            for node, score in weighted.items():
                by_node[node][name] = score
        return by_node


def _status(status: Status) -> dict[str, Any]:
    return {"plugin": status.plugin, "code": status.code.value, "reasons": list(status.reasons)}
