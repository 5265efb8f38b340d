"""What happens when nodes are drained or fail: where their pods go, which stay pending, and which budgets object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from msgspec.structs import replace

from podium.answers.disruption.budgets import Budgets, Health
from podium.answers.disruption.recreation import Recreation
from podium.answers.spec_constraints import SpecConstraint, spec_constraints
from podium.cluster import Cluster, PodInfo
from podium.config import KubeSchedulerConfiguration
from podium.engine import Scheduler
from podium.engine.release import CURRENT, AnyRelease
from podium.engine.select import TieBreak
from podium.errors import InputError
from podium.framework import Registry
from podium.manifests import workload_of
from podium.model import Pod, Taint
from podium.model.pod_kinds import belongs_to_node
from podium.plugins import IN_TREE

UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
NO_CONTROLLER = "no controller makes it again"
OF_DAEMON = "its DaemonSet makes it again on the same node once there is room"


class Fate(StrEnum):
    """What becomes of a pod."""

    MOVES = "moves"
    """It is made anew and gets another node."""
    RETURNS = "returns"
    """It is made anew and gets the node that is being drained: it tolerates that."""
    PENDING = "pending"
    """It is made anew and fits nowhere."""
    BLOCKED = "blocked"
    """It is not evicted: a budget forbids it."""
    LOST = "lost"
    """It is gone for good: no controller makes it anew."""
    STAYS = "stays"
    """It goes with its node, as pods of DaemonSets and static ones do: neither evicted nor made anew elsewhere."""
    TERMINATING = "terminating"
    """It was on its way out already."""


@dataclass(frozen=True, slots=True)
class Disrupted:
    """One pod of the nodes, or one that has to make room for such a pod."""

    pod: str
    workload: str
    node: str
    """Where it was."""
    fate: Fate
    to: str | None = None
    """Where it goes."""
    reason: str = ""
    """Why it goes nowhere."""
    constraints: tuple[SpecConstraint, ...] = ()
    """What of its spec keeps it from other nodes, while it is pending."""
    preempted_by: str = ""
    """The pod it has to make room for; empty for the pods of the nodes themselves."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "pod": self.pod,
            "workload": self.workload,
            "from": self.node,
            "fate": self.fate.value,
            "to": self.to,
            "reason": self.reason or None,
            "pins": [constraint.to_dict() for constraint in self.constraints],
            "preemptedBy": self.preempted_by or None,
        }


@dataclass(frozen=True, slots=True)
class BudgetImpact:
    """A budget that covers pods of the nodes."""

    budget: str
    before: Health
    worst: Health
    """As few as are healthy at a time."""
    after: Health
    blocks: tuple[str, ...] = ()
    """The pods it does not let go."""

    @property
    def violated(self) -> bool:
        """Whether fewer pods than it demands are healthy for a while, or for longer."""
        return self.worst.healthy < self.worst.desired

    def to_dict(self) -> dict[str, Any]:
        return {
            "budget": self.budget,
            "desired": self.before.desired,
            "healthyBefore": self.before.healthy,
            "healthyAtWorst": self.worst.healthy,
            "healthyAfter": self.after.healthy,
            "violated": self.violated,
            "blocks": list(self.blocks),
        }


@dataclass(frozen=True, slots=True)
class Disruption:
    """What becomes of the pods of some nodes."""

    kind: Literal["drain", "fail"]
    nodes: tuple[str, ...]
    pods: tuple[Disrupted, ...]
    budgets: tuple[BudgetImpact, ...]
    cluster: Cluster
    """The cluster afterwards."""

    def of(self, *fates: Fate) -> tuple[Disrupted, ...]:
        return tuple(pod for pod in self.pods if pod.fate in fates)

    @property
    def harmless(self) -> bool:
        """Whether every pod that has to go finds another node."""
        return not self.of(Fate.PENDING, Fate.BLOCKED, Fate.LOST, Fate.RETURNS)

    @property
    def values(self) -> dict[str, float]:
        """What conditions may name: see `NAMES`."""
        fates = Counter(pod.fate for pod in self.pods)
        counts = {fate.value: float(fates[fate]) for fate in Fate}
        preempted = sum(bool(pod.preempted_by) for pod in self.pods)
        violated = sum(budget.violated for budget in self.budgets)
        return {**counts, "preempted": float(preempted), "violated": float(violated), "nodes": float(len(self.nodes))}

    def to_dict(self) -> dict[str, Any]:
        """The disruption as plain data."""
        return {
            "nodes": list(self.nodes),
            "harmless": self.harmless,
            "counts": {name: int(value) for name, value in self.values.items() if name != "nodes"},
            "pods": [pod.to_dict() for pod in self.pods],
            "budgets": [budget.to_dict() for budget in self.budgets],
        }


NAMES = (*(fate.value for fate in Fate), "preempted", "violated", "nodes")
"""What conditions on a disruption may name."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How the pods are placed again."""

    config: KubeSchedulerConfiguration | Mapping[str, Any] | None = None
    registry: Registry = field(default_factory=lambda: IN_TREE)
    release: AnyRelease = CURRENT
    tie_break: TieBreak | str = "first"
    seed: int = 0
    preempt: bool = True
    """Whether pods may evict others of a lower priority, as the scheduler does."""

    def scheduler(self, cluster: Cluster) -> Scheduler:
        return Scheduler(
            cluster,
            self.config,
            registry=self.registry,
            release=self.release,
            tie_break=self.tie_break,
            seed=self.seed,
        )


def drain(
    cluster: Cluster,
    nodes: Sequence[str],
    settings: Settings = Settings(),
    *,
    on_decided: Callable[[], object] = lambda: None,
) -> Disruption:
    """Cordon the nodes and evict their pods one by one as far as budgets allow; the cluster stays as it is.

    A pod is evicted once its budget allows it, and its successor counts for the budget as soon as it has a node. What
    is blocked is tried again for as long as that leads anywhere. Pods that were pending before take no part.
    """
    checked(cluster, nodes)
    impact, cluster = Impact(Budgets(cluster), cluster), cluster.fork()
    for name in nodes:
        cordon(cluster, name)
    others = [other for name in nodes for other in _unmoved(cluster, name)]
    waiting = [each for name in nodes for each in _evictable(cluster, name)]
    with closing(settings.scheduler(cluster)) as scheduler:
        recreation = Recreation(
            scheduler,
            preempt=settings.preempt,
            on_gone=lambda pod: impact.gone(pod, cluster),
            on_decided=on_decided,
        )
        while True:
            left = len(waiting)
            waiting = list(_evict(waiting, recreation, impact.budgets))
            if not recreation.retry() and len(waiting) == left:
                break
        reasons = [impact.budgets.forbids(pod, cluster) for pod, _ in waiting]
        blocked = [_about(*each, Fate.BLOCKED, reason=why) for each, why in zip(waiting, reasons, strict=True)]
        pods = [*_fates(recreation, nodes), *blocked, *others]
    return Disruption("drain", tuple(nodes), tuple(pods), impact.found(cluster, waiting), cluster)


def fail(
    cluster: Cluster,
    nodes: Sequence[str],
    settings: Settings = Settings(),
    *,
    on_decided: Callable[[], object] = lambda: None,
) -> Disruption:
    """Take the nodes away and place their pods anew in queue order; the cluster stays as it is.

    Nobody asks budgets; those that are violated are reported. Pods that were pending before take no part.
    """
    checked(cluster, nodes)
    impact, cluster = Impact(Budgets(cluster), cluster), cluster.fork()
    others = [other for name in nodes for other in _unmoved(cluster, name)]
    with closing(settings.scheduler(cluster)) as scheduler:
        recreation = Recreation(
            scheduler,
            preempt=settings.preempt,
            on_gone=lambda pod: impact.gone(pod, cluster),
            on_decided=on_decided,
        )
        lose(recreation, nodes)
        pods = [*_fates(recreation, nodes), *others]
    return Disruption("fail", tuple(nodes), tuple(pods), impact.found(cluster), cluster)


def lose(recreation: Recreation, nodes: Sequence[str]) -> None:
    """Take nodes away, and make their pods anew on the rest."""
    cluster = recreation.scheduler.cluster
    gone = [each for name in nodes for each in _evictable(cluster, name)]
    for name in nodes:
        for pod in cluster.pods_on(cluster.rows[name]):
            cluster.end(pod)
        cluster.remove(cluster.node(name))
    recreation.recreate(gone)
    recreation.retry()


def checked(cluster: Cluster, nodes: Sequence[str]) -> None:
    """InputError unless there are nodes, all of them known."""
    if not nodes:
        raise InputError("no node to take away; name at least one")
    for name in nodes:
        if name not in cluster.rows:
            raise InputError(f"node {name!r} is not in the cluster")


# -- how -----------------------------------------------------------------------------------------------------------


class Impact:
    """Watches the budgets of the pods that go."""

    def __init__(self, budgets: Budgets, cluster: Cluster) -> None:
        self.budgets, self._at_first = budgets, cluster
        self._before: dict[str, Health] = {}
        self._worst: dict[str, Health] = {}

    def gone(self, pod: Pod, cluster: Cluster) -> None:
        """A pod has left its node."""
        for name in self.budgets.of(pod):
            self._watch(name)
            self._worst[name] = min(self._worst[name], self.budgets.health(name, cluster))

    def found(self, cluster: Cluster, blocked: Iterable[tuple[Pod, str]] = ()) -> tuple[BudgetImpact, ...]:
        """What became of the budgets; `blocked` are the pods that were not let go."""
        blocks: dict[str, list[str]] = {}
        for pod, _ in blocked:
            for name in self.budgets.of(pod):
                self._watch(name)
                blocks.setdefault(name, []).append(pod.key)
        return tuple(
            BudgetImpact(
                name, before, self._worst[name], self.budgets.health(name, cluster), tuple(blocks.get(name, ()))
            )
            for name, before in sorted(self._before.items())
        )

    @property
    def violated(self) -> int:
        """How many budgets had fewer healthy pods than they demand."""
        return sum(health.healthy < health.desired for health in self._worst.values())

    def _watch(self, name: str) -> None:
        if name not in self._before:
            self._before[name] = self._worst[name] = self.budgets.health(name, self._at_first)


def cordon(cluster: Cluster, name: str) -> None:
    node = cluster.node(name)
    taints = [taint for taint in node.spec.taints if taint != UNSCHEDULABLE]
    cluster.update(replace(node, spec=replace(node.spec, unschedulable=True, taints=[*taints, UNSCHEDULABLE])))


def _evictable(cluster: Cluster, node: str) -> list[tuple[Pod, str]]:
    """The pods that have to go when a node does, by name."""
    pods = sorted(cluster.pods_on(cluster.rows[node]), key=lambda pod: pod.key)
    return [(pod, node) for pod in pods if not belongs_to_node(pod) and not pod.terminating]


def _unmoved(cluster: Cluster, node: str) -> Iterator[Disrupted]:
    """What becomes of the others."""
    for pod in sorted(cluster.pods_on(cluster.rows[node]), key=lambda pod: pod.key):
        if belongs_to_node(pod):
            yield _about(pod, node, Fate.STAYS)
        elif pod.terminating:
            yield _about(pod, node, Fate.TERMINATING)


def _evict(pods: Iterable[tuple[Pod, str]], recreation: Recreation, budgets: Budgets) -> Iterator[tuple[Pod, str]]:
    """Evict the pods that may be evicted; the others are given back."""
    for pod, node in pods:
        if budgets.forbids(pod, recreation.scheduler.cluster):
            yield pod, node
        else:
            recreation.recreate([(pod, node)])


def _fates(recreation: Recreation, nodes: Sequence[str]) -> Iterator[Disrupted]:
    drained, scheduler = frozenset(nodes), recreation.scheduler
    known: dict[PodInfo, tuple[SpecConstraint, ...]] = {}
    for each in recreation.found.values():
        if each.node is not None:
            fate = Fate.RETURNS if each.node in drained else Fate.MOVES
            yield _about(each.pod, each.old_node, fate, to=each.node, preempted_by=each.preempted_by)
            continue
        kind = scheduler.cluster.info_of(each.pod)
        if kind not in known:
            known[kind] = spec_constraints(scheduler, each.pod)
        why = {"reason": each.message, "preempted_by": each.preempted_by}
        yield _about(each.pod, each.old_node, Fate.PENDING, constraints=known[kind], **why)
    for each in recreation.lost.values():
        fate, reason = (Fate.PENDING, OF_DAEMON) if belongs_to_node(each.pod) else (Fate.LOST, NO_CONTROLLER)
        yield _about(each.pod, each.old_node, fate, reason=reason, preempted_by=each.preempted_by)


def _about(
    pod: Pod,
    node: str,
    fate: Fate,
    *,
    to: str | None = None,
    reason: str = "",
    constraints: tuple[SpecConstraint, ...] = (),
    preempted_by: str = "",
) -> Disrupted:
    return Disrupted(pod.key, workload_of(pod), node, fate, to, reason, constraints, preempted_by)
