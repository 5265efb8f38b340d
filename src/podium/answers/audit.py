"""Decides running pods again: which pods would stay, which drifted, which no longer fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Unpack

import numpy as np

from podium.answers.compare import node_points
from podium.cluster import Cluster
from podium.engine import Decision, Scheduler
from podium.engine.decision import why
from podium.engine.scheduler import Config, SchedulerKeywords, SchedulerOptions
from podium.errors import ExtenderError, InputError, PluginError
from podium.model import Pod
from podium.model.pod import belongs_to_node, is_static
from podium.workloads import workload_of

STATIC = "a static pod: its node runs it"
OF_DAEMON_SET = "a DaemonSet's pod: it is for this node"


class Finding(StrEnum):
    """What the audit found about a pod."""

    AGREES = "agrees"
    """Its node is the best, or ties with the best."""
    DRIFTED = "drifted"
    """It fits its node, but another node is better now."""
    UNFIT = "unfit"
    """Its node would reject it now."""
    UNDECIDED = "undecided"
    """It cannot be decided, for example because another scheduler is responsible."""
    SKIPPED = "skipped"
    """It has no other node to go to: a static pod, or a DaemonSet's pod that fits its node."""


@dataclass(frozen=True, slots=True)
class Audited:
    """One running pod, and the decision about it now."""

    pod: str
    workload: str
    node: str
    finding: Finding
    best: str | None = None
    """The node it would get, which is its own if that ties with the best; None if it fits nowhere."""
    points: int = 0
    """By how many points the best node is ahead of its own."""
    plugins: Mapping[str, int] = field(default_factory=dict)
    """By how many points each plugin puts the best node ahead, or behind (negative)."""
    place: int = 0
    """The rank of its node among the feasible nodes, sorted by score; 0 if nothing was scored."""
    feasible: int = 0
    """How many nodes fit it."""
    reason: str = ""
    """Why its node would reject it, or why it was not decided."""

    @property
    def feasible_shown(self) -> int | None:
        """How many nodes fit it; None if that was not determined."""
        return self.feasible if self.feasible or self.finding is Finding.UNFIT else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "pod": self.pod,
            "workload": self.workload,
            "node": self.node,
            "finding": self.finding.value,
            "best": self.best,
            "points": self.points,
            "plugins": dict(self.plugins),
            "place": self.place or None,
            "feasible": self.feasible_shown,
            "reason": self.reason or None,
        }


@dataclass(frozen=True, slots=True)
class Audit:
    """Every running pod, in the order of the cluster."""

    pods: tuple[Audited, ...]

    def of(self, finding: Finding) -> tuple[Audited, ...]:
        return tuple(pod for pod in self.pods if pod.finding is finding)

    @property
    def agreement(self) -> float:
        """The share of the decided pods that would stay where they are; 1 if there are none."""
        decided = [pod for pod in self.pods if pod.finding not in (Finding.SKIPPED, Finding.UNDECIDED)]
        return len(self.of(Finding.AGREES)) / len(decided) if decided else 1.0

    @property
    def values(self) -> dict[str, float]:
        """The values that conditions may name: see `AUDIT_NAMES`."""
        counts = {finding.value: float(len(self.of(finding))) for finding in Finding}
        return {"pods": float(len(self.pods)), "agreement": self.agreement, **counts}

    def to_dict(self) -> dict[str, Any]:
        """The audit as plain data."""
        counts = {finding.value: len(self.of(finding)) for finding in Finding}
        return {"agreement": self.agreement, "counts": counts, "pods": [pod.to_dict() for pod in self.pods]}


AUDIT_NAMES = ("pods", "agreement", *(finding.value for finding in Finding))
"""The names that conditions on an audit may use."""


def audit(
    cluster: Cluster,
    config: Config | SchedulerOptions = None,
    *,
    on_decided: Callable[[], object] = lambda: None,
    **keywords: Unpack[SchedulerKeywords],
) -> Audit:
    """Decide every running pod again, each as if it were not running while all others are; the cluster stays as it is.

    A DaemonSet's pod has no other node to go to: only whether it fits is checked. `on_decided` is called after each
    pod; `keywords` are the fields of `SchedulerOptions`.
    """
    cluster = cluster.fork()
    found: dict[str, Audited] = {}
    options = SchedulerOptions.of(config, **keywords)
    with closing(Scheduler(cluster, options, tie_break="first")) as scheduler:
        keys = [pod.key for pod, _ in cluster.placed()]
        for pod, node in cluster.placed_by_kind():
            found[pod.key] = _audited(scheduler, pod, node)
            on_decided()
    return Audit(tuple(found[key] for key in keys))


def _audited(scheduler: Scheduler, pod: Pod, node: str) -> Audited:
    """Decide one pod again; afterwards it is back on its node."""
    if is_static(pod):
        return Audited(pod.key, workload_of(pod), node, Finding.SKIPPED, reason=STATIC)
    with scheduler.cluster.without(pod) as unbound:
        found = None if scheduler.extenders else _compared(scheduler, unbound, node)
        # Explaining takes time, so it is done only for pods whose node rejects them, and for extenders.
        return found or _explained(scheduler.decide(unbound), pod, node)


def _compared(scheduler: Scheduler, pod: Pod, node: str) -> Audited | None:
    """What is found about a pod that fits its node; None if it does not fit there or cannot be decided."""
    cluster = scheduler.cluster
    try:
        scored = scheduler.score(pod)
    except (InputError, PluginError, ExtenderError):
        return None
    place, feasible = scored.place_of(cluster.rows[node]), len(scored.rows)
    if place is None:
        return None
    about = (pod.key, workload_of(pod), node)
    if belongs_to_node(pod):
        return Audited(*about, Finding.SKIPPED, best=node, feasible=feasible, reason=OF_DAEMON_SET)
    if cluster.rows[node] in scored.best:
        return Audited(*about, Finding.AGREES, best=node, feasible=feasible)
    best = min([cluster.names[row] for row in scored.best.tolist()])
    there = scored.place_of(cluster.rows[best])
    assert there is not None, "the best node is feasible"
    here, leads = scored.points(place), scored.points(there)
    leads = {plugin: points - here[plugin] for plugin, points in leads.items()}
    total = scored.totals.item(place)
    rank = 1 + int(np.count_nonzero(scored.totals > total))
    return Audited(*about, Finding.DRIFTED, best, scored.totals.item(there) - total, _sorted(leads), rank, feasible)


def _sorted(leads: Mapping[str, int]) -> dict[str, int]:
    """The plugins that make a difference, the greatest first."""
    return {plugin: leads[plugin] for plugin in sorted(leads, key=lambda plugin: -abs(leads[plugin])) if leads[plugin]}


def _explained(decision: Decision, pod: Pod, node: str) -> Audited:
    """The same from a decision with every reason."""
    about = (pod.key, workload_of(pod), node)
    if decision.error:
        return Audited(*about, Finding.UNDECIDED, reason=decision.error)
    best, feasible = decision.node, len(decision.feasible)
    if node not in decision.feasible:
        status = decision.rejected.get(node) or decision.absent
        reason = why(status) if status is not None else decision.message
        # A DaemonSet's pod has no other node.
        goes_to = None if belongs_to_node(pod) else best
        return Audited(*about, Finding.UNFIT, best=goes_to, feasible=feasible, reason=reason)
    if belongs_to_node(pod):
        return Audited(*about, Finding.SKIPPED, best=node, feasible=feasible, reason=OF_DAEMON_SET)
    if best is None or node in decision.ties:
        return Audited(*about, Finding.AGREES, best=node, feasible=feasible)
    total = decision.totals[node]
    here, there = node_points(decision, node), node_points(decision, best)
    leads = {plugin: points - here[plugin] for plugin, points in there.items()}
    place = 1 + sum(other > total for other in decision.totals.values())
    return Audited(*about, Finding.DRIFTED, best, decision.totals[best] - total, _sorted(leads), place, feasible)
