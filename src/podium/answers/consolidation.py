"""Plans which nodes can go: in which order to drain them, where their pods move, and what that saves.

Removals are tried on a copy of the cluster; then every step is checked by `drain`, with its budgets, and
`play_consolidation` plays the plan through the scheduling loop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from math import fsum

from podium.answers._replicas import place
from podium.answers.disruption import Disruption, DisruptionSettings, Fate, drain
from podium.answers.measures import node_price
from podium.answers.simulation import in_queue_order
from podium.autoscaling.trial_cluster import TrialCluster, replacement_of
from podium.cluster import Cluster
from podium.cluster.budgets import BudgetHealth
from podium.engine import Scheduler
from podium.engine.scheduler import SchedulerOptions
from podium.model import Node, Object, Pod
from podium.model.objects import INSTANCE_TYPE
from podium.model.pod import ends_with_node, is_recreated
from podium.model.resources import CPU, MEMORY, PODS
from podium.model.selectors import cordoned, uncordoned
from podium.timeline import TimedEvent, Timeline, TimelineEvents, Verb

CONTROL_PLANE = frozenset(("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"))
"""The labels and taints of nodes that run the control plane."""
DO_NOT_DISRUPT = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}
"""Annotations of nodes and pods, with the value that forbids to take the node away."""
NO_ROOM = "the pods do not all fit on the nodes that stay"
MOST_TRIED_SETS = 1_500
"""How many removals the search over all sets of nodes may try; with more nodes, one pass is made over them."""
SECONDS_BETWEEN_STEPS = 600.0
"""When a plan is played, how long after each other its nodes are drained."""


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A pod that a step moves."""

    pod: str
    workload: str
    node: str
    to: str


@dataclass(frozen=True, slots=True)
class RemovalStep:
    """Drain one node and delete it."""

    node: str
    price: float
    moves: tuple[PlannedMove, ...]
    flags: tuple[str, ...]
    """The flags that `kubectl drain` needs."""

    @property
    def commands(self) -> tuple[str, ...]:
        """What to type to carry out the step, once all nodes of the plan are cordoned."""
        return f"kubectl drain {' '.join((self.node, *self.flags))}", f"kubectl delete node {self.node}"


@dataclass(frozen=True, slots=True)
class KeptNode:
    """A node that stays, and why."""

    node: str
    reason: str
    pod: str = ""
    """The pod on it that must not be moved, if that is why."""


@dataclass(frozen=True, slots=True)
class Consolidation:
    """Which nodes can go, in this order."""

    steps: tuple[RemovalStep, ...]
    kept: tuple[KeptNode, ...]
    node_count: int
    """The number of nodes before."""
    cost_before: float
    """What all nodes cost per hour."""
    fewest: int
    """No plan leaves fewer nodes than this: their resources would not suffice."""
    covers_all_sets: bool
    """Whether every set of nodes that may go was considered; otherwise there may be a plan that leaves fewer."""
    cluster: Cluster
    """The cluster afterwards."""

    @property
    def commands(self) -> tuple[str, ...]:
        """What to type to carry out the plan."""
        if not self.steps:
            return ()
        cordon = f"kubectl cordon {' '.join(step.node for step in self.steps)}"
        return cordon, *(command for step in self.steps for command in step.commands)

    @property
    def nodes_left(self) -> int:
        return self.node_count - len(self.steps)

    @property
    def moves(self) -> int:
        return sum(len(step.moves) for step in self.steps)

    @property
    def saves(self) -> float:
        """What the removed nodes cost per hour."""
        return fsum(step.price for step in self.steps)

    @property
    def values(self) -> dict[str, float]:
        """The values that conditions may name."""
        return {
            "removed": float(len(self.steps)),
            "left": float(self.nodes_left),
            "moves": float(self.moves),
            "saves": self.saves,
            "fewest": float(self.fewest),
        }


CONSOLIDATION_NAMES = ("removed", "left", "moves", "saves", "fewest")


@dataclass(frozen=True, kw_only=True)
class ConsolidationLimits:
    """What a plan may do."""

    nodes: Collection[str] | None = None
    """The only nodes that may go; None for all."""
    most_moves: int | None = None
    prices: Mapping[str, float] | None = None
    """Prices per hour by instance type, before the nodes' own price label."""


def consolidate(
    cluster: Cluster,
    options: SchedulerOptions,
    limits: ConsolidationLimits = ConsolidationLimits(),
    *,
    on_tried: Callable[[], object] = lambda: None,
) -> Consolidation:
    """Plan which nodes can go without a pod that stays pending, is lost or is preempted; the cluster stays as it is.

    Pods that are pending and fit get their nodes first. `on_tried` is called once for each node that may go.
    """
    options = replace(options, tie_break="first")
    cluster = _at_rest(cluster, options)
    prices = {name: price_of(cluster.node(name), limits.prices or {}) for name in cluster.rows}
    kept = {each.node: each for each in _untouchable(cluster, limits.nodes)}
    candidates = sorted((name for name in cluster.rows if name not in kept), key=lambda name: _order(cluster, name))
    search = _RemovalSearch(cluster, options, candidates, prices)
    wanted, covers_all = search.best(on_tried)
    steps, after = _checked_steps(cluster, wanted, options, limits.most_moves, prices)
    gone = {step.node for step in steps}
    kept |= {name: KeptNode(name, NO_ROOM) for name in candidates if name not in gone}
    return Consolidation(
        steps=tuple(steps),
        kept=tuple(kept[name] for name in sorted(kept)),
        node_count=cluster.node_count,
        cost_before=fsum(prices.values()),
        fewest=fewest_nodes(cluster, candidates),
        covers_all_sets=covers_all and limits.most_moves is None,
        cluster=after,
    )


def _at_rest(cluster: Cluster, options: SchedulerOptions) -> Cluster:
    """A copy of the cluster in which the pending pods that fit have their nodes."""
    cluster = cluster.fork()
    with closing(Scheduler(cluster, options)) as scheduler:
        for pod in in_queue_order(list(cluster.pending.values()), scheduler):
            place(scheduler, pod)
    return cluster


def price_of(node: Node, prices: Mapping[str, float]) -> float:
    """What a node costs per hour: by its instance type, by its price label, or 1."""
    instance_type = node.metadata.labels.get(INSTANCE_TYPE, "")
    return prices[instance_type] if instance_type in prices else node_price(node)


def _untouchable(cluster: Cluster, allowed: Collection[str] | None) -> Iterator[KeptNode]:
    """The nodes that must stay, each with the reason."""
    budgets = BudgetHealth(cluster)
    for name, row in cluster.rows.items():
        node = cluster.node(name)
        if allowed is not None and name not in allowed:
            yield KeptNode(name, "not among the nodes that were asked about")
        elif CONTROL_PLANE & {*node.metadata.labels, *(taint.key for taint in node.spec.taints)}:
            yield KeptNode(name, "part of the control plane")
        elif forbidding := next(_forbidding(node), ""):
            yield KeptNode(name, f"annotation {forbidding} forbids it")
        else:
            reasons = ((pod, _why_pod_stays(pod, budgets, cluster)) for pod in cluster.pods_on(row))
            yield from [KeptNode(name, reason, pod.key) for pod, reason in reasons if reason][:1]


def _why_pod_stays(pod: Pod, budgets: BudgetHealth, cluster: Cluster) -> str:
    """Why a pod must not be moved; empty if it may, or if it goes with its node."""
    if ends_with_node(pod):
        return ""
    if forbidding := next(_forbidding(pod), ""):
        return f"annotation {forbidding} of a pod forbids it"
    if not is_recreated(pod):
        return "a pod would be lost: no controller makes it again"
    return budgets.refusal(pod, cluster)


def _forbidding(item: Object) -> Iterator[str]:
    annotations = item.metadata.annotations
    return (key for key, value in DO_NOT_DISRUPT.items() if annotations.get(key) == value)


def _order(cluster: Cluster, node: str) -> tuple[int, float, str]:
    """Nodes with little to move come first: by what has to move, as a share of the node."""
    row = cluster.rows[node]
    moving = [cluster.info_of(pod) for pod in cluster.pods_on(row) if not ends_with_node(pod)]
    shares = [
        sum(info.resources.used.get(resource, 0) for info in moving) / offered
        for resource in (CPU, MEMORY)
        if (offered := int(cluster.nodes.allocatable(resource)[row]))
    ]
    return bool(moving), max(shares, default=0.0), node


def fewest_nodes(cluster: Cluster, removable: Collection[str]) -> int:
    """How many nodes are needed at least, by each resource alone: those that stay anyway, and the largest others.

    A node that is fuller than it offers counts as large enough for what it has.
    """
    others = frozenset(removable)
    staying = frozenset(name for name in cluster.rows if name not in others)
    most = 0
    for resource in (CPU, MEMORY, PODS):
        offered = {name: int(cluster.nodes.allocatable(resource)[row]) for name, row in cluster.rows.items()}
        used = dict.fromkeys(cluster.rows, 0)
        for pod, node in cluster.placed():
            if node in staying or not ends_with_node(pod):
                used[node] += 1 if resource == PODS else cluster.info_of(pod).resources.used.get(resource, 0)
        homeless = sum(used[name] for name in removable) - sum(max(offered[name] - used[name], 0) for name in staying)
        needed = len(staying)
        for amount in sorted((max(offered[name], used[name]) for name in removable), reverse=True):
            if homeless <= 0:
                break
            homeless -= amount
            needed += 1
        most = max(most, needed)
    return most


class _RemovalSearch:
    """Tries which nodes can go together, on copies of the cluster."""

    def __init__(
        self, cluster: Cluster, options: SchedulerOptions, candidates: Sequence[str], prices: Mapping[str, float]
    ) -> None:
        self._cluster, self._options, self._candidates, self._prices = cluster, options, candidates, prices

    def best(self, on_tried: Callable[[], object]) -> tuple[list[str], bool]:
        """The nodes to remove, in order, that save most; and whether every set of nodes was considered."""
        found = self._one_by_one(on_tried)
        number = len(self._candidates)
        if len(found) == number or number * 2 ** (number - 1) > MOST_TRIED_SETS:
            return found, len(found) == number
        return max((found, *self._all_sets()), key=lambda nodes: fsum(map(self._prices.__getitem__, nodes))), True

    def _trial(self) -> TrialCluster:
        return TrialCluster(self._cluster, lambda cluster: Scheduler(cluster, self._options), lambda node: ())

    def _one_by_one(self, on_tried: Callable[[], object]) -> list[str]:
        """One pass over the nodes: each goes if its pods fit on the others."""
        trial, gone = self._trial(), []
        for name in self._candidates:
            changed = _without_node(trial, name)
            if changed is not None:
                trial = changed
                gone.append(name)
            on_tried()
        return gone

    def _all_sets(self) -> Iterator[list[str]]:
        """Every set of nodes that can go, each in one order in which it was found to work."""
        waiting: list[tuple[list[str], TrialCluster]] = [([], self._trial())]
        seen: set[frozenset[str]] = set()
        while waiting:
            gone, trial = waiting.pop()
            for name in self._candidates:
                nodes = frozenset((*gone, name))
                if name in gone or nodes in seen:
                    continue
                changed = _without_node(trial.copy(), name)
                if changed is not None:
                    seen.add(nodes)
                    waiting.append(([*gone, name], changed))
                    yield [*gone, name]


def _without_node(trial: TrialCluster, name: str) -> TrialCluster | None:
    """The trial without a node, its pods on others; None if they do not all fit. The trial then stays as it is."""
    cluster = trial.cluster
    node, pods = cluster.node(name), sorted(cluster.pods_on(cluster.rows[name]), key=lambda pod: pod.key)
    moving = [replacement_of(pod) for pod in pods if not ends_with_node(pod)]

    def change(to: TrialCluster) -> bool:
        to.remove(node)
        return to.fit(moving)

    return trial.attempt(change, keep=True)


def _checked_steps(
    cluster: Cluster,
    nodes: Sequence[str],
    options: SchedulerOptions,
    most_moves: int | None,
    prices: Mapping[str, float],
) -> tuple[list[RemovalStep], Cluster]:
    """The steps that `drain` confirms, one after the other, and the cluster after them."""
    cluster = cluster.fork()
    for name in nodes:
        # Cordoned before the first is drained: no pod moves to a node that goes later.
        cluster.update(cordoned(cluster.node(name)))
    settings = DisruptionSettings(**{name: getattr(options, name) for name in options.__dataclass_fields__})
    steps: list[RemovalStep] = []
    moves = 0
    for name in nodes:
        found = drain(cluster, [name], settings)
        moved = found.of(Fate.MOVES)
        too_many = most_moves is not None and moves + len(moved) > most_moves
        if not found.harmless or found.values["preempted"] or too_many:
            cluster.update(uncordoned(cluster.node(name)))
            continue
        moves += len(moved)
        steps.append(_step(name, prices[name], found))
        cluster = found.cluster
        for pod in cluster.pods_on(cluster.rows[name]):
            cluster.end(pod)
        cluster.remove(cluster.node(name))
    return steps, cluster


def _step(name: str, price: float, found: Disruption) -> RemovalStep:
    moves = [PlannedMove(each.pod, each.workload, each.node, each.to or "") for each in found.of(Fate.MOVES)]
    return RemovalStep(name, price, tuple(moves), tuple(flag.flag for flag in found.flags))


# -- the plan, played ------------------------------------------------------------------------------------------------


def play_consolidation(objects: Iterable[Object], plan: Consolidation, options: SchedulerOptions) -> list[str]:
    """Play a plan through the scheduling loop, with controllers and budgets; what does not end as planned, in words."""
    there = list(objects)
    nodes = {item.name: item for item in there if isinstance(item, Node)}
    events = [TimedEvent(0.0, Verb.CORDON, nodes[step.node]) for step in plan.steps]
    for number, step in enumerate(plan.steps):
        at = 1 + number * SECONDS_BETWEEN_STEPS
        events.append(TimedEvent(at, Verb.DRAIN, nodes[step.node]))
        events.append(TimedEvent(at + SECONDS_BETWEEN_STEPS / 2, Verb.DELETE, nodes[step.node]))
    timeline = Timeline(there, TimelineEvents(tuple(events)), replace(options, tie_break="first"))
    waiting_before = {pod.key for pod in timeline.loop.cluster.pending.values()}
    result = timeline.run()
    timeline.close()
    problems = [
        f"node {node} was not drained: {', '.join(pods)} stay" for node, pods in result.unfinished_drains.items()
    ]
    late = [life.pod for life in result.unplaced if life.pod not in waiting_before]
    return [*problems, *(f"pod {pod} found no node" for pod in late)]
