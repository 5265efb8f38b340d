"""The result of an attempt to place a pod: the node, the scores, and for a failed attempt the diagnosis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from podium.engine._evaluation import Evaluation
from podium.engine._feasible_rows import status_counts
from podium.engine.dry_runs import Candidate
from podium.engine.release import FIT_ERROR, FitError
from podium.framework import Code, Status
from podium.framework.status import ObjectChange
from podium.model import Pod
from podium.model.quantity import int64

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, slots=True)
class PluginScores:
    """One plugin's scores per node: raw, normalised to 0..100, and weighted."""

    plugin: str
    weight: int
    raw: dict[str, int]
    normalized: dict[str, int]
    title: str = field(default="", compare=False)
    """The heading of the plugin's scores in a table; empty to use its name."""

    def points(self, node: str) -> int:
        """The plugin's normalised score of a node times its weight."""
        # Go's product wraps around on overflow, which scores of old releases can cause.
        return int64(self.normalized[node] * self.weight)

    @property
    def weighted(self) -> dict[str, int]:
        return {node: self.points(node) for node in self.normalized}


class Eviction(NamedTuple):
    """Where evicting pods could make room for a pod, as known without a dry run."""

    nodes: tuple[str, ...]
    """Nodes with pods that may be evicted, rejected for a reason that evicting pods may remove."""
    without_victims: int
    """How many other nodes were rejected for a reason of this sort, but have no pod of a lower priority."""
    nobody_because: str = ""
    """Why the pod may not evict any pod on any node."""
    lacks_devices: bool = False
    """Whether nodes have too few free devices, for which the scheduler evicts no pods."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Where a pod goes, or why it fits nowhere. Lists of node names are sorted."""

    pod: str
    node: str | None
    feasible: tuple[str, ...] = ()
    rejected: Mapping[str, Status] = field(default_factory=dict)
    """Per rejected node, the status of the first filter that rejected it, or of all where the release collects
    reasons.
    """
    absent: Status | None = None
    """The status of nodes that PreFilter excluded before any filter looked at them."""
    narrowed_by: tuple[str, ...] = ()
    """The plugins whose PreFilter excluded those nodes, by naming the only nodes to check; sorted."""
    scores: tuple[PluginScores, ...] = ()
    """Empty when nothing was scored, because at most one node is feasible."""
    extender_scores: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Per extender that scored, the weighted score of each node."""
    totals: Mapping[str, int] = field(default_factory=dict)
    ties: tuple[str, ...] = ()
    """The nodes that share the highest total."""
    node_count: int = 0
    pre_filter_status: Status | None = None
    """Why PreFilter rejected the pod for all nodes."""
    post_filter_message: str = ""
    """The message of the PostFilter plugins, preemption included, when they ran and could not help."""
    nominated: str | None = None
    """The node where evicting the victims makes room for the pod."""
    clears_nomination: bool = False
    """Whether the pod's earlier nomination is to be removed."""
    victims: tuple[str, ...] = ()
    """The pods to evict there, as namespace/name, the most important first; up to v1.34 they include pods that are
    terminating already.
    """
    changes: tuple[ObjectChange, ...] = ()
    """Changes that PostFilter asks for: a claim gives back devices that keep the pod from fitting."""
    candidates: tuple[Candidate, ...] = ()
    """The nodes that preemption chose from."""
    chosen_by: str = ""
    """The criterion that made the nominated node better than the other candidates."""
    eviction: Eviction | None = field(default=None, compare=False)
    """Whether evicting pods could make room; only `Scheduler.decide` finds out, for a pod that fits nowhere."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Plugins' reservations for the pod on its node, as plain data: for claims, the devices."""
    dropped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Per extender, the nodes it left out without giving a reason."""
    unasked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Per extender, the nodes it passed that filters or earlier extenders had rejected."""
    scored_as_returned_by: tuple[str, ...] = ()
    """The extenders whose Node objects were scored in place of the cluster's: as they sent them, and without pods."""
    kept: tuple[str, ...] = field(default=(), compare=False)
    """The plugins that reused results of earlier pods of the same kind, brought up to date."""
    fit_error: FitError = FIT_ERROR
    """How the release words that a pod fits nowhere."""
    error: str = ""
    """Why no decision could be made: a scheduling gate, an unknown scheduler name, a broken plugin or extender."""

    @property
    def pre_filter_message(self) -> str:
        """The message of the PreFilter plugin that rejected the pod for all nodes; empty if none did."""
        return "" if self.pre_filter_status is None else self.pre_filter_status.message

    @property
    def message(self) -> str:
        """kube-scheduler's sentence for a pod that fits nowhere; empty for a pod that fits."""
        if self.node is not None or self.error:
            return ""
        if not self.node_count:
            return "no nodes available to schedule pods"
        parts = [self.fit_error.head.format(nodes=self.node_count)]
        if self.pre_filter_message:
            parts.append(f"{self.pre_filter_message}.")
        elif reasons := self.reasons():
            each = self.fit_error.reason
            said = sorted(each.format(count=count, reason=reason) for reason, count in reasons.items())
            parts.append(f"{', '.join(said)}.")
        if self.post_filter_message:
            parts.append(self.post_filter_message)
        return " ".join(parts)

    def reasons(self) -> Counter[str]:
        """The number of nodes per reason."""
        counts: Counter[str] = Counter()
        for status, number in status_counts(self.rejected).items():
            for reason in status.reasons:
                counts[reason] += number
        missing = self.node_count - len(self.rejected) - len(self.feasible)
        if self.absent is not None and missing > 0:
            for reason in self.absent.reasons:
                counts[reason] += missing
        return counts

    def explain(
        self,
        *,
        width: int = 80,
        wide: bool = False,
        every_node: bool = False,
        per_node: bool = False,
    ) -> str:
        """The decision in words and tables; see `podium.present.explanation.explain`."""
        from podium.present.explanation import explain

        lines = explain(self, width=width, wide=wide, every_node=every_node, per_node=per_node)
        return "\n".join(line.text for line in lines)

    def to_frame(self) -> polars.DataFrame:
        """A row per node with its status, what rejected it and why, its total and the weighted score of each plugin.

        The best node comes first. Needs polars: the extra `frames`.
        """
        from podium.present.html import decision_frame

        return decision_frame(self)

    def _repr_html_(self) -> str:
        from podium.present.html import decision_html

        return decision_html(self)

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
            shape["message"] = self.message
            preemption = (
                ("nominated", self.nominated),
                ("victims", sorted(self.victims)),
                ("postmsg", self.post_filter_message),
            )
            return shape | {name: value for name, value in preemption if value}
        return shape | {"ties": list(self.ties), "node": self.node, **self.details}

    def _scores_by_node(self) -> dict[str, dict[str, int]]:
        by_node: dict[str, dict[str, int]] = {node: {} for node in self.feasible}
        columns = {scores.plugin: scores.weighted for scores in self.scores} | dict(self.extender_scores)
        for name, weighted in columns.items():
            for node, score in weighted.items():
                by_node[node][name] = score
        return by_node


def _status(status: Status) -> dict[str, Any]:
    return {"plugin": status.plugin, "code": status.code.value, "reasons": list(status.reasons)}


class Scored(NamedTuple):
    """The scores of one plugin, or of one extender, which gives weighted scores only."""

    plugin: str
    weighted: Mapping[str, int]
    weight: int | None = None
    raw: Mapping[str, int] | None = None
    normalized: Mapping[str, int] | None = None
    title: str = ""

    def cell(self, node: str, *, wide: bool) -> str:
        if not wide or self.raw is None or self.normalized is None:
            return str(self.weighted[node])
        return f"{self.raw[node]}/{self.normalized[node]}/{self.weighted[node]}"


def scored(decision: Decision) -> list[Scored]:
    """Every plugin and extender that scored, in the order they ran."""
    plugins = [
        Scored(one.plugin, one.weighted, one.weight, one.raw, one.normalized, one.title) for one in decision.scores
    ]
    return plugins + [Scored(name, scores) for name, scores in decision.extender_scores.items()]


def ranking(decision: Decision) -> list[str]:
    """The feasible nodes, best first; the chosen node comes before nodes with the same total."""
    totals = decision.totals
    return sorted(decision.feasible, key=lambda node: (-totals.get(node, 0), node != decision.node, node))


def runner_up(decision: Decision) -> str | None:
    """The best node with a lower total than the chosen one; None if all have the same total."""
    totals = decision.totals
    best = totals.get(decision.node or "", 0)
    others = [node for node in decision.feasible if totals.get(node, best) < best]
    return min(others, key=lambda node: (-totals[node], node), default=None)


def lead(decision: Decision, over: str) -> dict[str, int]:
    """By how many points each plugin put the chosen node ahead of another (negative: behind); equal scores are left
    out.
    """
    chosen = decision.node or ""
    points = {one.plugin: one.points(chosen) - one.points(over) for one in decision.scores}
    points |= {name: scores[chosen] - scores[over] for name, scores in decision.extender_scores.items()}
    return {plugin: points[plugin] for plugin in sorted(points, key=lambda name: -abs(points[name])) if points[plugin]}


def why_finished(pod: Pod) -> str:
    """Why a finished pod is not decided, as the rest of a sentence about it."""
    return f"has finished ({pod.status.phase}) and needs no node"


def why(status: Status) -> str:
    """The plugin that rejected, and its reasons: `NodeResourcesFit: Insufficient cpu`."""
    reasons = ", ".join(status.reasons) or status.code.value
    return f"{status.plugin}: {reasons}" if status.plugin else reasons


def not_looked_at(decision: Decision) -> int:
    """How many nodes no filter checked: PreFilter excluded them, or sampling had found enough feasible nodes."""
    dropped = {node for nodes in decision.dropped.values() for node in nodes}
    return max(decision.node_count - len(decision.feasible) - len(decision.rejected.keys() | dropped), 0)


EXTENDER = "Extender"
"""Stands for all extenders among the plugins that rejected a pod."""
NO_PLUGINS: frozenset[str] = frozenset()


class Attempt(NamedTuple):
    """The best node found for a pod, or None if no node fits. Nothing is placed yet."""

    pod: Pod
    node: str | None
    evaluation: Evaluation | None = None
    """None if the pod was known to fit nowhere, or the cluster has no nodes."""


class Diagnosis(NamedTuple):
    """Why a pod could not be placed, which plugins rejected it, and what preemption does about it."""

    message: str
    unschedulable_plugins: frozenset[str] = NO_PLUGINS
    pending_plugins: frozenset[str] = NO_PLUGINS
    """The plugins that only asked the pod to wait."""
    nominated: str | None = None
    """The node where evicting the victims makes room."""
    clears_nomination: bool = False
    victims: tuple[str, ...] = ()
    """The pods to evict, as namespace/name."""
    changes: tuple[ObjectChange, ...] = ()
    """The changes to make so that the pod may fit next time."""
    is_error: bool = False
    """Whether an error occurred, as opposed to a pod that fits nowhere."""
    failed_plugin: str = ""
    """The plugin behind the error; empty if it was not a plugin."""

    @property
    def rejectors(self) -> tuple[str, ...]:
        """The plugins that rejected the pod or asked it to wait, sorted."""
        return tuple(sorted(self.unschedulable_plugins | self.pending_plugins))

    @classmethod
    def of(cls, decision: Decision) -> Diagnosis:
        """The diagnosis of a pod that got no node, from its decision with PostFilter."""
        if decision.error or not decision.node_count:
            return cls.of_error(decision.error) if decision.error else cls(decision.message, clears_nomination=True)
        unschedulable, pending = _rejecting_plugins(decision)
        return cls(
            decision.message,
            unschedulable,
            pending,
            decision.nominated,
            decision.clears_nomination,
            decision.victims,
            decision.changes,
        )

    @classmethod
    def of_error(cls, message: str, plugin: str = "") -> Diagnosis:
        """The diagnosis of a pod that could not be decided because of an error, in a plugin if one is named."""
        return cls(message, clears_nomination=True, is_error=True, failed_plugin=plugin)

    @classmethod
    def of_status(cls, status: Status) -> Diagnosis:
        """The diagnosis of a pod that a plugin rejected on the chosen node."""
        if not status.code.rejects:
            return cls.of_error(status.message, status.plugin)
        plugins = frozenset((status.plugin,))
        is_pending = status.code is Code.PENDING
        return cls(
            f"0/1 nodes are available: 1 {status.message}.",
            NO_PLUGINS if is_pending else plugins,
            plugins if is_pending else NO_PLUGINS,
            clears_nomination=True,
        )


def _rejecting_plugins(decision: Decision) -> tuple[frozenset[str], frozenset[str]]:
    """The plugins that rejected the pod on some node, and those that only asked it to wait."""
    unschedulable, pending = set[str](), set[str]()
    for status in status_counts(decision.rejected):
        if status.code is Code.PENDING:
            pending.add(status.plugin)
        elif status.code.rejects:
            unschedulable.add(status.plugin or EXTENDER)
    if decision.absent is not None:
        unschedulable.update((decision.absent.plugin,) if decision.absent.plugin else decision.narrowed_by)
    return frozenset(unschedulable), frozenset(pending)
