"""Drains or fails nodes: where their pods go, which stay pending, and which nodes would be the worst to lose."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any, Literal

from podium.answers._replicas import Recreation
from podium.answers.measures import domains
from podium.answers.shown_result import ShownResult
from podium.answers.spec_constraints import SpecConstraint, spec_constraints
from podium.cluster import Cluster, PodInfo
from podium.cluster.budgets import BudgetHealth, Health
from podium.cluster.cluster import TakenOff
from podium.engine import Scheduler
from podium.engine.scheduler import SchedulerOptions
from podium.engine.select import TieBreak
from podium.errors import InputError
from podium.lookup import SHORT_KEYS
from podium.model import Node, Pod
from podium.model.pod import belongs_to_node, ends_with_node, is_of_daemon_set, is_recreated, is_static
from podium.model.resources import CPU, MEMORY
from podium.workloads import workload_of

if TYPE_CHECKING:
    from podium.answers._at_rest import PodOutcome, RestingCluster

NO_CONTROLLER = "no controller makes it again"
IGNORE_DAEMON_SETS, DELETE_EMPTY_DIR_DATA, FORCE = "--ignore-daemonsets", "--delete-emptydir-data", "--force"
OF_DAEMON = "its DaemonSet makes it again on the same node once there is room"


class Fate(StrEnum):
    """What happens to a pod."""

    MOVES = "moves"
    """It is recreated and gets another node."""
    RETURNS = "returns"
    """It is recreated and gets the drained node again, which it tolerates."""
    PENDING = "pending"
    """It is recreated and fits nowhere."""
    BLOCKED = "blocked"
    """It is not evicted: a budget forbids it."""
    LOST = "lost"
    """It is gone for good: no controller recreates it."""
    STAYS = "stays"
    """It belongs to its node, like pods of DaemonSets and static pods: neither evicted nor recreated elsewhere."""
    TERMINATING = "terminating"
    """It was terminating already."""


@dataclass(frozen=True, slots=True)
class Disrupted:
    """One pod of the nodes, or a pod that is preempted for one of them."""

    pod: str
    workload: str
    node: str
    """Its node before."""
    fate: Fate
    to: str | None = None
    """Its node afterwards."""
    reason: str = ""
    """Why it has no node."""
    constraints: tuple[SpecConstraint, ...] = ()
    """The parts of its spec that keep it from other nodes, if it is pending."""
    preempted_by: str = ""
    """The pod that preempts it; empty for the pods of the nodes themselves."""

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
    """The health at the worst moment."""
    after: Health
    blocks: tuple[str, ...] = ()
    """The pods whose eviction it blocks."""

    @property
    def violated(self) -> bool:
        """Whether at some time fewer pods are healthy than it demands."""
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
class DrainFlag:
    """A flag that `kubectl drain` needs, and the pods that make it necessary."""

    flag: str
    pods: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"flag": self.flag, "pods": list(self.pods)}


def drain_flags(cluster: Cluster, nodes: Sequence[str]) -> tuple[DrainFlag, ...]:
    """The flags that `kubectl drain` of these nodes needs."""
    found: dict[str, list[str]] = {IGNORE_DAEMON_SETS: [], DELETE_EMPTY_DIR_DATA: [], FORCE: []}
    for name in nodes:
        for pod in sorted(cluster.pods_on(cluster.rows[name]), key=lambda pod: pod.key):
            if is_static(pod):
                continue
            if is_of_daemon_set(pod):
                found[IGNORE_DAEMON_SETS].append(pod.key)
                continue
            if any(volume.empty_dir is not None for volume in pod.spec.volumes):
                found[DELETE_EMPTY_DIR_DATA].append(pod.key)
            if not is_recreated(pod):
                found[FORCE].append(pod.key)
    return tuple(DrainFlag(flag, tuple(pods)) for flag, pods in found.items() if pods)


@dataclass(frozen=True, slots=True, repr=False)
class Disruption(ShownResult):
    """What happens to the pods of some nodes."""

    kind: Literal["drain", "fail"]
    nodes: tuple[str, ...]
    pods: tuple[Disrupted, ...]
    budgets: tuple[BudgetImpact, ...]
    cluster: Cluster
    """The cluster afterwards."""
    flags: tuple[DrainFlag, ...] = ()
    """The flags that `kubectl drain` needs; empty for a failure."""

    def of(self, *fates: Fate) -> tuple[Disrupted, ...]:
        return tuple(pod for pod in self.pods if pod.fate in fates)

    @property
    def harmless(self) -> bool:
        """Whether every evicted pod gets another node."""
        return not self.of(Fate.PENDING, Fate.BLOCKED, Fate.LOST, Fate.RETURNS)

    @property
    def values(self) -> dict[str, float]:
        """The values that conditions may name: see `DISRUPTION_NAMES`."""
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
            "kubectlFlags": [flag.to_dict() for flag in self.flags],
        }


DISRUPTION_NAMES = (*(fate.value for fate in Fate), "preempted", "violated", "nodes")
"""The names that conditions on a disruption may use."""


@dataclass(frozen=True, kw_only=True)
class DisruptionSettings(SchedulerOptions):
    """How the pods are placed again. The smallest name wins a tie, so that no pod moves by chance."""

    tie_break: TieBreak | str | None = "first"
    preempt: bool = True
    """Whether pods may evict others of a lower priority, as the scheduler does."""


def drain(
    cluster: Cluster,
    nodes: Sequence[str],
    settings: DisruptionSettings = DisruptionSettings(),
    *,
    on_decided: Callable[[], object] = lambda: None,
) -> Disruption:
    """Cordon the nodes and evict their pods where budgets allow it, as `kubectl drain`; the cluster stays as it is.

    All pods that budgets allow are evicted at once, the others are tried again every five seconds. A replacement counts
    for the budget as soon as it has a node. Pods that were pending before are left out.
    """
    checked(cluster, nodes)
    return _disrupted(cluster, nodes, "drain", settings, on_decided)


def fail(
    cluster: Cluster,
    nodes: Sequence[str],
    settings: DisruptionSettings = DisruptionSettings(),
    *,
    on_decided: Callable[[], object] = lambda: None,
) -> Disruption:
    """Remove the nodes and place their pods again in queue order; the cluster stays as it is.

    Budgets do not stop a failure; violated budgets are reported. Pods that were pending before are left out.
    """
    checked(cluster, nodes)
    return _disrupted(cluster, nodes, "fail", settings, on_decided)


def lose(recreation: Recreation, nodes: Sequence[str]) -> None:
    """Remove nodes, and recreate their pods on the others."""
    cluster = recreation.scheduler.cluster
    gone = [each for name in nodes for each in _evictable(cluster, name)]
    for name in nodes:
        for pod in cluster.pods_on(cluster.rows[name]):
            cluster.end(pod)
        cluster.remove(cluster.node(name))
    recreation.recreate(gone)
    recreation.retry()


def _disrupted(
    cluster: Cluster,
    nodes: Sequence[str],
    kind: Literal["drain", "fail"],
    settings: DisruptionSettings,
    on_decided: Callable[[], object],
) -> Disruption:
    """Let the same thing happen to all nodes at the same time, and schedule until nothing changes any more."""
    # Imported here because most answers need no simulated time.
    from podium.answers._at_rest import run_to_rest, without_preemption
    from podium.timeline import TimedEvent, Verb

    evicted = [pod.key for name in nodes for pod, _ in _evictable(cluster, name)]
    others = [other for name in nodes for other in _unmoved(cluster, name)]
    verb = Verb.DRAIN if kind == "drain" else Verb.DELETE
    events = [TimedEvent(0.0, verb, cluster.node(name)) for name in nodes]
    chosen = settings if settings.preempt else without_preemption(settings)
    with run_to_rest(cluster.fork(), chosen, waiting=(), events=events) as resting:
        moved = dict.fromkeys((*(key for key in evicted if key in resting.pods), *resting.pods))
        unmoved = {other.pod for other in others}
        pods = [(*_found(cluster, key), resting.pods[key]) for key in moved if key not in unmoved]
        blocked = [
            _about(*_found(cluster, key), Fate.BLOCKED, reason=resting.not_evicted[key])
            for key in evicted
            if key in resting.not_evicted
        ]
        for _ in evicted:
            on_decided()
        fates = [*_fates(pods, resting, nodes), *blocked, *others]
        budgets = _budget_impacts(cluster, resting, [pod for pod, _, _ in pods], blocked)
        flags = drain_flags(cluster, nodes) if kind == "drain" else ()
        return Disruption(kind, tuple(nodes), tuple(fates), budgets, resting.cluster, flags)


def checked(cluster: Cluster, nodes: Sequence[str]) -> None:
    """InputError unless there is at least one node and all are known."""
    if not nodes:
        raise InputError("no node to take away; name at least one")
    for name in nodes:
        if name not in cluster.rows:
            raise InputError(f"node {name!r} is not in the cluster")


# -- how -----------------------------------------------------------------------------------------------------------


def _evictable(cluster: Cluster, node: str) -> list[tuple[Pod, str]]:
    """The pods that have to leave a node, ordered by name."""
    pods = sorted(cluster.pods_on(cluster.rows[node]), key=lambda pod: pod.key)
    return [(pod, node) for pod in pods if not ends_with_node(pod)]


def _unmoved(cluster: Cluster, node: str) -> Iterator[Disrupted]:
    """What happens to the pods that do not have to leave."""
    for pod in sorted(cluster.pods_on(cluster.rows[node]), key=lambda pod: pod.key):
        if belongs_to_node(pod):
            yield _about(pod, node, Fate.STAYS)
        elif pod.terminating:
            yield _about(pod, node, Fate.TERMINATING)


def _found(cluster: Cluster, key: str) -> tuple[Pod, str]:
    """A running pod by its name, and its node."""
    found = cluster.find_pod(key)
    if found is None or found[1] is None:
        raise AssertionError(f"{key} did not run")
    return found[0], found[1]


def _fates(
    pods: Iterable[tuple[Pod, str, PodOutcome]], resting: RestingCluster, nodes: Sequence[str]
) -> Iterator[Disrupted]:
    drained, scheduler = frozenset(nodes), resting.scheduler
    known: dict[PodInfo, tuple[SpecConstraint, ...]] = {}
    for pod, node, outcome in pods:
        by, current = outcome.preempted_by, outcome.pod
        if current is None:
            yield _about(pod, node, Fate.LOST, reason=NO_CONTROLLER, preempted_by=by)
        elif outcome.node is not None:
            fate = Fate.RETURNS if outcome.node in drained else Fate.MOVES
            yield _about(pod, node, fate, to=outcome.node, preempted_by=by)
        elif belongs_to_node(pod):
            yield _about(pod, node, Fate.PENDING, reason=OF_DAEMON, preempted_by=by)
        else:
            kind = scheduler.cluster.info_of(current)
            if kind not in known:
                known[kind] = spec_constraints(scheduler, current)
            reason = scheduler.message(current)
            yield _about(pod, node, Fate.PENDING, reason=reason, constraints=known[kind], preempted_by=by)


def _budget_impacts(
    cluster: Cluster, resting: RestingCluster, pods: Iterable[Pod], blocked: Sequence[Disrupted]
) -> tuple[BudgetImpact, ...]:
    """The budgets of these pods, before, at the worst moment and afterwards; and the pods whose eviction they block."""
    budgets, moved = BudgetHealth(cluster), {pod.key: pod for pod in pods}
    is_healthy = {key: budgets.is_healthy(pod, cluster) for key, pod in moved.items()}
    blocks: dict[str, list[str]] = {}
    for each in blocked:
        for name in budgets.of(_found(cluster, each.pod)[0]):
            blocks.setdefault(name, []).append(each.pod)
    before = {name: budgets.health(name, cluster) for pod in moved.values() for name in budgets.of(pod)}
    before |= {name: budgets.health(name, cluster) for name in blocks}
    now = {name: health.healthy for name, health in before.items()}
    worst = dict(before)
    for record in resting.log:
        key = record.get("pod", "")
        if key not in moved or record["event"] not in ("evict", "lost", "bind"):
            continue
        change = (record["event"] == "bind") - is_healthy[key]
        is_healthy[key] = record["event"] == "bind"
        for name in budgets.of(moved[key]) if change else ():
            now[name] += change
            worst[name] = min(worst[name], budgets.health_with(name, now[name], cluster))
    after = {name: budgets.health_with(name, now[name], cluster) for name in before}
    return tuple(
        BudgetImpact(name, before[name], worst[name], after[name], tuple(blocks.get(name, ())))
        for name in sorted(before)
    )


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


MOST_SETS = 2_000
"""The maximum number of node sets to try."""
BEAM = 4
"""How many of the worst sets are extended by one node, if not all can be tried."""

NodeNames = tuple[str, ...]
Severity = tuple[int, int, int]
"""The number of pods without a node, of violated budgets, and of affected pods."""


@dataclass(frozen=True, slots=True)
class WorstCase:
    """The worst loss that was found."""

    disruption: Disruption
    domain: str
    """The failed domain, for example `topology.kubernetes.io/zone=a`; empty for a set of nodes."""
    exhaustive: bool
    """Whether all sets were tried, so that none is worse."""
    tried: int
    possible: int

    def to_dict(self) -> dict[str, Any]:
        """The worst case as plain data."""
        search = {"domain": self.domain or None, "exhaustive": self.exhaustive}
        return {"search": {**search, "tried": self.tried, "possible": self.possible}, **self.disruption.to_dict()}


def worst_nodes(
    cluster: Cluster,
    number: int,
    settings: DisruptionSettings = DisruptionSettings(),
    *,
    most: int = MOST_SETS,
    on_tried: Callable[[], object] = lambda: None,
) -> WorstCase:
    """The set of `number` nodes whose failure leaves the most pods without a node.

    If there are at most `most` sets, all are tried. Otherwise it is a beam search: the four worst single nodes are
    kept, each is tried with every other node, the four worst of those are kept, and so on; if even that is too much,
    only the busiest nodes are tried. Among equals, a set that violates more budgets, affects more pods or comes first
    by name is worse.
    """
    names = sorted(cluster.rows)
    if len(names) < 2:
        raise InputError("there is only one node; without it nothing is left to go to")
    if not 1 <= number < len(names):
        fewer = "1" if len(names) == 2 else f"from 1 to {len(names) - 1}"
        raise InputError(f"cannot lose {number} of {len(names)} nodes; {fewer} can fail")
    possible = comb(len(names), number)
    with closing(_Trials(cluster, settings, on_tried)) as trials:
        if possible <= most:
            (nodes,) = trials.worst(combinations(names, number), 1)
        else:
            (nodes,) = _beam_search(trials, busiest(cluster), number, most)
    return WorstCase(fail(cluster, nodes, settings), "", possible <= most, trials.tried, possible)


def worst_domain(
    cluster: Cluster,
    key: str,
    settings: DisruptionSettings = DisruptionSettings(),
    *,
    on_tried: Callable[[], object] = lambda: None,
) -> WorstCase:
    """The value of a label, for example a zone, whose nodes' failure leaves the most pods without a node; all values
    are tried.
    """
    key = SHORT_KEYS.get(key, key)
    by_value: dict[str, list[str]] = {}
    for node, value in sorted(domains(cluster, key).items()):
        by_value.setdefault(value, []).append(node)
    if not by_value:
        raise InputError(f"no node has the label {key}")
    with closing(_Trials(cluster, settings, on_tried)) as trials:
        (nodes,) = trials.worst((tuple(nodes) for _, nodes in sorted(by_value.items())), 1)
    value = next(value for value, named in by_value.items() if tuple(named) == nodes)
    return WorstCase(fail(cluster, nodes, settings), f"{key}={value}", True, trials.tried, len(by_value))


def worst_case(
    cluster: Cluster,
    lost: str,
    settings: DisruptionSettings = DisruptionSettings(),
    *,
    most: int = MOST_SETS,
    on_tried: Callable[[], object] = lambda: None,
) -> WorstCase:
    """The worst loss of so many nodes, if `lost` is a number, else of the nodes that share a value of that label."""
    number = _number(lost)
    if number is None:
        return worst_domain(cluster, lost, settings, on_tried=on_tried)
    return worst_nodes(cluster, number, settings, most=most, on_tried=on_tried)


def trials_needed(cluster: Cluster, lost: str, most: int = MOST_SETS) -> int:
    """The maximum number of sets of nodes that `worst_case` tries."""
    number = _number(lost)
    if number is None:
        return len(set(domains(cluster, SHORT_KEYS.get(lost, lost)).values()))
    return min(comb(cluster.node_count, number), most)


def _number(lost: str) -> int | None:
    """The number of nodes to lose; None for a label."""
    if not _NUMBER.fullmatch(lost):
        return None
    digits = lost.lstrip("0")
    if not digits or lost.startswith("-"):
        raise InputError("at least one node has to fail")
    if len(digits) > MOST_DIGITS:
        raise InputError(f"a number of {len(digits):,} digits is more than the nodes there are; give a smaller one")
    return int(digits)


_NUMBER = re.compile("-?[0-9]+")
MOST_DIGITS = 18


def busiest(cluster: Cluster) -> list[str]:
    """The nodes by the share of the cluster that their movable pods use, busiest first."""
    totals = {resource: max(int(cluster.nodes.allocatable(resource).sum()), 1) for resource in (CPU, MEMORY)}
    load = dict.fromkeys(cluster.rows, 0.0)
    for pod, node in cluster.placed():
        if not belongs_to_node(pod):
            used = cluster.info_of(pod).resources.used
            load[node] += max(used.get(resource, 0) / total for resource, total in totals.items())
    return sorted(load, key=lambda node: (-load[node], node))


class _ViolatedBudgets:
    """Counts the budgets that a trial violates."""

    def __init__(self, budgets: BudgetHealth) -> None:
        self._budgets = budgets
        self._found: set[str] = set()

    def gone(self, pod: Pod, cluster: Cluster) -> None:
        """Note that a pod has left its node."""
        for name in self._budgets.of(pod):
            health = self._budgets.health(name, cluster)
            if health.healthy < health.desired:
                self._found.add(name)

    def __len__(self) -> int:
        return len(self._found)


class _Trials:
    """Tries sets of nodes, one after the other, on one copy of the cluster that is restored after each."""

    def __init__(self, cluster: Cluster, settings: DisruptionSettings, on_tried: Callable[[], object]) -> None:
        self._original, self._cluster, self._settings = cluster, cluster.fork(), settings
        self._scheduler, self._on_tried = Scheduler(self._cluster, settings), on_tried
        self._budgets = BudgetHealth(cluster)
        self.tried = 0

    def close(self) -> None:
        self._scheduler.close()

    def worst(self, sets: Iterable[NodeNames], keep: int) -> list[NodeNames]:
        """The worst of the sets, worst first; among equals, the earlier one comes first."""
        kept: list[tuple[Severity, NodeNames]] = []
        for nodes in sets:
            kept.append((self._badness(nodes), nodes))
            if len(kept) > 4 * keep + 16:
                kept = _worst_of(kept, keep)
        return [nodes for _, nodes in _worst_of(kept, keep)]

    def _badness(self, nodes: NodeNames) -> Severity:
        cluster, violated = self._cluster, _ViolatedBudgets(self._budgets)
        lost = [(cluster.node(name), cluster.pods_on(cluster.rows[name])) for name in nodes]
        version = cluster.store.version
        recreation = Recreation(
            self._scheduler,
            preempt=self._settings.preempt,
            on_gone=lambda pod: violated.gone(pod, cluster),
            explain=False,
        )
        lose(recreation, nodes)
        homeless = sum(1 for _ in recreation.pending()) + len(recreation.lost)
        hit = len(recreation.found) + len(recreation.lost)
        self._undo(recreation, lost, version)
        self.tried += 1
        self._on_tried()
        return homeless, len(violated), hit

    def _undo(self, recreation: Recreation, lost: Sequence[tuple[Node, list[Pod]]], version: int) -> None:
        """Restore everything: nodes last in, first out, so that each gets its row again."""
        cluster = self._cluster
        for key, each in (*recreation.found.items(), *recreation.lost.items()):
            cluster.end(each.pod)
            self._scheduler.nominations.forget(each.pod)
            found = self._original.find_pod(key)
            if found is not None and found[1] in cluster.rows:
                cluster.put_back(TakenOff(found[0], str(found[1])))
        for node, pods in reversed(lost):
            cluster.add(node)
            for pod in pods:
                cluster.put_back(TakenOff(pod, node.name))
        for item in cluster.store.since(version) or ():
            before = self._original.store.of(type(item)).get(item.name, item.namespace)
            if before is not None:
                cluster.update(before)
            else:
                cluster.remove(item)


def _worst_of(found: Sequence[tuple[Severity, NodeNames]], keep: int) -> list[tuple[Severity, NodeNames]]:
    return sorted(found, key=lambda each: (tuple(-number for number in each[0]), each[1]))[:keep]


def _beam_search(trials: _Trials, names: Sequence[str], number: int, most: int) -> list[NodeNames]:
    share = most // (1 + BEAM * (number - 1))
    considered = names[: max(share, number)]
    beam = trials.worst(((name,) for name in considered), BEAM)
    for size in range(2, number + 1):
        beam = trials.worst(_extended(beam, considered), 1 if size == number else BEAM)
    return beam


def _extended(beam: Iterable[NodeNames], names: Iterable[str]) -> Iterator[NodeNames]:
    """Every set with one more node, without repetition."""
    yield from dict.fromkeys(tuple(sorted((*nodes, name))) for nodes in beam for name in names if name not in nodes)
