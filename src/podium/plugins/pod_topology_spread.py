"""PodTopologySpread: pods of a group spread evenly over zones, nodes or any other label."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, NodeInfo, Nodes
from podium.cluster.columns import Ints, Mask
from podium.cluster.counts import Matching, RowMask, Scope, Tally
from podium.config.args import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from podium.framework.plugin import (
    MAX_NODE_SCORE,
    CycleState,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
)
from podium.framework.status import SKIP, SUCCESS, Status, Verdict
from podium.objects import Pod, Taint, TopologySpreadConstraint
from podium.plugins.default_selector import default_selector
from podium.plugins.normalize import round_half_away
from podium.selectors import NodeMatcher, Selector, label_selector, required_node_affinity, untolerated

HOSTNAME = "kubernetes.io/hostname"
ANY_NODE = NodeMatcher()
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
PASSED, SKIPPED = PreFilterResult(), PreFilterResult(SKIP)

SYSTEM_CONSTRAINTS = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=SOFT, max_skew=3),
    TopologySpreadConstraint(topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SOFT, max_skew=5),
)


class Constraint(NamedTuple):
    """A spread constraint with its selector compiled and its defaults filled in."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int
    honor_affinity: bool
    honor_taints: bool

    def tally(self, namespace: str, cluster: Cluster) -> Tally | None:
        """The pods that count; None for an empty selector, which counts none."""
        if self.selector.empty:
            return None
        scope = Scope(frozenset((namespace,)), self.selector)
        return cluster.census.tally(Matching((scope,), terminating=False))


NO_CONSTRAINTS: list[Constraint] = []


def _compile(raw: TopologySpreadConstraint, selector: Selector) -> Constraint:
    return Constraint(
        raw.max_skew,
        raw.topology_key,
        selector,
        1 if raw.min_domains is None else raw.min_domains,
        (raw.node_affinity_policy or "Honor") == "Honor",
        (raw.node_taints_policy or "Ignore") == "Honor",
    )


class _Domains(NamedTuple):
    """One constraint's count per domain, and which domains have eligible nodes."""

    constraint: Constraint
    counts: Ints
    nodes: Ints
    eligible: RowMask
    moved: Ints | None = None
    """Pods that the counts do not follow, but that came or went since PreFilter."""

    def reject_table(self, matches_itself: bool) -> Mask:
        """Whether each domain would become too crowded; at index -1, for nodes without the label, never."""
        present = self.nodes > 0
        counts = self.counts if self.moved is None else self.counts + self.moved
        fewest = 0
        if np.count_nonzero(present) >= max(self.constraint.min_domains, 1):
            fewest = int(counts[present].min())
        counts = np.where(present, counts, 0)
        return counts + int(matches_itself) - fewest > self.constraint.max_skew

    def with_moved(self, pod: Pod, node: NodeInfo, amount: int) -> _Domains:
        """With a pod that came (1) or went (-1).

        The counts follow by themselves, except for pods that they leave out: terminating ones, and all pods where the
        selector is empty. kube-scheduler leaves those out at PreFilter too, but not when a pod comes or goes after it.
        """
        selector = self.constraint.selector
        is_followed = not pod.terminating and not selector.empty
        if is_followed or not selector.matches(pod.metadata.labels) or not self.eligible.read()[node.row]:
            return self
        moved = np.zeros_like(self.counts) if self.moved is None else self.moved.copy()
        moved[node.cluster.columns.label(self.constraint.topology_key).codes[node.row]] += amount
        return self._replace(moved=moved)


@dataclass(slots=True)
class _ScoreState:
    constraints: Sequence[Constraint]
    requires_all: bool
    """Nodes that lack one of the labels are left out, rather than just not counted for it."""
    counts: list[Ints | None]
    """Per constraint, pods per domain; None for the hostname, which is counted node by node."""
    weights: list[float]


class PodTopologySpread(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Reject nodes where a hard constraint's skew would grow too large; prefer nodes that even out soft ones."""

    name = "PodTopologySpread"
    REASON = "node(s) didn't match pod topology spread constraints"
    REASON_LABEL = f"{REASON} (missing required label)"

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        spread = args if isinstance(args, PodTopologySpreadArgs) else PodTopologySpreadArgs()
        self._system_defaulted = spread.defaulting_type == SYSTEM_DEFAULTING
        defaults = SYSTEM_CONSTRAINTS if self._system_defaulted else spread.default_constraints
        self._defaults = {
            action: [raw for raw in defaults if raw.when_unsatisfiable == action] for action in (HARD, SOFT)
        }
        self._defaults_key = msgspec.json.encode(defaults)

    def _constraints(self, state: CycleState, pod: Pod, action: str, cluster: Cluster) -> list[Constraint]:
        """The pod's own constraints, or the defaults when it has none at all."""
        memo, key = state.info.memo, (self.name, action, self._defaults_key)
        known: tuple[int, list[Constraint]] = memo.get(key, (-1, NO_CONSTRAINTS))
        if known[0] != cluster.store.version:
            known = memo[key] = cluster.store.version, self._compile_constraints(pod, action, cluster)
        return known[1]

    def _compile_constraints(self, pod: Pod, action: str, cluster: Cluster) -> list[Constraint]:
        own = pod.spec.topology_spread_constraints
        if own:
            # matchLabelKeys were merged into the selectors when the pod was created.
            wanted = [raw for raw in own if raw.when_unsatisfiable == action]
            return [_compile(raw, label_selector(raw.label_selector)) for raw in wanted]
        defaults = self._defaults[action]
        if not defaults:
            return NO_CONSTRAINTS
        selector = default_selector(pod, cluster)
        return NO_CONSTRAINTS if selector.empty else [_compile(raw, selector) for raw in defaults]

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        cluster = nodes.cluster
        constraints = self._constraints(state, pod, HARD, cluster)
        if not constraints:
            return SKIPPED
        state[self.name] = [_domains(constraint, constraints, pod, cluster) for constraint in constraints]
        return PASSED

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status:
        return self._move(state, pod, added, node, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status:
        return self._move(state, pod, removed, node, -1)

    def _move(self, state: CycleState, pod: Pod, moved: Pod, node: NodeInfo, amount: int) -> Status:
        if moved.namespace == pod.namespace:
            state[self.name] = [domains.with_moved(moved, node, amount) for domains in state[self.name]]
        return SUCCESS

    def filter_labels(self, state: CycleState) -> tuple[str, ...]:
        found: list[_Domains] = state[self.name]
        return tuple(dict.fromkeys(domains.constraint.topology_key for domains in found))

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        codes = np.zeros(len(nodes), dtype=np.int64)
        found: list[_Domains] = state[self.name]
        # The first constraint that fails gives the reason, so the last one is written first.
        for domains in reversed(found):
            of_node = nodes.codes(domains.constraint.topology_key)
            matches_itself = domains.constraint.selector.matches(pod.metadata.labels)
            codes[domains.reject_table(matches_itself)[of_node]] = 2
            codes[of_node < 0] = 1
        return Verdict.choose(codes, (Status.unresolvable(self.REASON_LABEL), Status.unschedulable(self.REASON)))

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        cluster = nodes.cluster
        constraints = self._constraints(state, pod, SOFT, cluster)
        if not constraints:
            return SKIP
        requires_all = bool(pod.spec.topology_spread_constraints) or not self._system_defaulted
        seen, numbers = nodes.representatives(tuple(dict.fromkeys(c.topology_key for c in constraints)))
        if requires_all:
            numbers = numbers * _has_all_keys(constraints, seen)
        counts: list[Ints | None] = []
        weights: list[float] = []
        for constraint in constraints:
            domains = _domains(constraint, constraints if requires_all else (), pod, cluster)
            is_hostname = constraint.topology_key == HOSTNAME
            counts.append(None if is_hostname else domains.counts)
            size = numbers.sum() if is_hostname else _domain_count(seen.codes(constraint.topology_key)[numbers > 0])
            weights.append(math.log(size + 2))
        state[f"{self.name}/score"] = _ScoreState(constraints, requires_all, counts, weights)
        return SUCCESS

    def score_labels(self, state: CycleState) -> tuple[str, ...] | None:
        found: _ScoreState = state[f"{self.name}/score"]
        keys = tuple(dict.fromkeys(constraint.topology_key for constraint in found.constraints))
        # For the hostname each node's own pods are counted.
        return None if HOSTNAME in keys else keys

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        """More matching pods in a node's domains, weighted by how many domains there are: a higher, worse score."""
        found: _ScoreState = state[f"{self.name}/score"]
        total: NDArray[np.float64] = np.zeros(len(nodes))
        for constraint, counts, weight in zip(found.constraints, found.counts, found.weights, strict=True):
            of_node = nodes.codes(constraint.topology_key)
            if counts is None:
                tally = constraint.tally(pod.namespace, nodes.cluster)
                pods = np.zeros(len(nodes), dtype=np.int64) if tally is None else nodes.take(tally.per_row())
                scores = pods * weight + float(constraint.max_skew - 1)
                total += np.where(of_node >= 0, scores, 0.0)
            else:
                table = counts * weight + float(constraint.max_skew - 1)
                table[-1] = 0.0
                total += table[of_node]
        if found.requires_all:
            total[~_has_all_keys(found.constraints, nodes)] = 0.0
        return round_half_away(total)

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        found: _ScoreState = state[f"{self.name}/score"]
        kept = _has_all_keys(found.constraints, nodes) if found.requires_all else np.ones(len(nodes), dtype=np.bool_)
        counted = scores[kept]
        highest = int(counted.max(initial=0))
        if highest == 0:
            return np.where(kept, MAX_NODE_SCORE, 0)
        lowest = int(counted.min())
        return np.where(kept, MAX_NODE_SCORE * (highest + lowest - scores) // highest, 0)


def _has_all_keys(constraints: Sequence[Constraint], nodes: Nodes) -> Mask:
    first, *others = dict.fromkeys([constraint.topology_key for constraint in constraints])
    mask: Mask = nodes.codes(first) >= 0
    for key in others:
        mask &= nodes.codes(key) >= 0
    return mask


def _domain_count(codes: NDArray[np.int32]) -> int:
    """How many domains the feasible nodes are in; nodes without the label together count as one."""
    return int(np.count_nonzero(np.bincount(codes + 1)))


def _domains(constraint: Constraint, required: Sequence[Constraint], pod: Pod, cluster: Cluster) -> _Domains:
    """Pods and nodes per domain, over the nodes that have the keys of `required` and meet the inclusion policies."""
    mask = _eligible(constraint, tuple(dict.fromkeys(c.topology_key for c in required)), pod, cluster)
    tally = constraint.tally(pod.namespace, cluster)
    if tally is None:
        tally = cluster.census.tally(NO_PODS)
    domain = tally.by_domain(constraint.topology_key, mask)
    return _Domains(constraint, domain.counts, domain.nodes, mask)


def _eligible(constraint: Constraint, keys: tuple[str, ...], pod: Pod, cluster: Cluster) -> RowMask:
    """The nodes that have the keys and that the pod's affinity and tolerations do not exclude, as far as they count."""
    matcher = required_node_affinity(pod) if constraint.honor_affinity else ANY_NODE
    tolerations = tuple(pod.spec.tolerations) if constraint.honor_taints else None

    def repelled(taints: tuple[Taint, ...]) -> int:
        return untolerated(taints, pod.spec.tolerations) is not None

    def eligible() -> Mask:
        nodes = Nodes(cluster)
        mask = nodes.take(cluster.columns.alive).copy()
        for key in keys:
            mask &= nodes.codes(key) >= 0
        if matcher != ANY_NODE:
            mask &= nodes.matching(matcher)
        if tolerations is not None:
            mask &= nodes.by_taints(repelled) == 0
        return mask

    return cluster.row_mask(("PodTopologySpread", keys, matcher, tolerations), eligible)


NO_PODS = Matching((Scope(frozenset(), Selector()),))
