"""PodTopologySpread: spreads pods over the domains of a topology."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from podium.cluster import Cluster, NodeInfo, Nodes, PodInfo
from podium.cluster.census import DomainTally
from podium.cluster.columns import Ints, Mask, highest, lowest, round_half_away, rounded
from podium.cluster.nodes import Representatives
from podium.config.plugin_args import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from podium.config.types import MAX_NODE_SCORE
from podium.framework import Action, Change, EventHint, Obstacle, RejectedNodes, RejectedPod, WaitingPod
from podium.framework.fast_paths import ByNodeLabels, ForSomePods
from podium.framework.obstacle import SpecPart
from podium.framework.plugin import CycleState, FilterPlugin, PodView, PreFilterPlugin, PreScorePlugin, ScorePlugin
from podium.framework.status import PASSED, SKIP, SKIPPED, SUCCESS, PreFilterResult, Status, Verdict
from podium.framework.suggested_change import edit_pod, evict_few, may_be_evicted, missing_labels, same_domain
from podium.model import Node, Pod, TopologySpreadConstraint
from podium.model.objects import HOSTNAME, ZONE
from podium.model.pod import is_placed
from podium.model.selectors import EVERYTHING, label_selector
from podium.plugins.topology_spread_constraints import (
    HARD,
    NO_CONSTRAINTS,
    SOFT,
    Constraints,
    SpreadConstraint,
    compile_constraints,
    default_selector,
    has_selecting_objects,
)
from podium.wording import counted


class SpreadFilter(Protocol):
    """The PodTopologySpread plugin of any release."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult: ...

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict: ...


class DomainSkew(NamedTuple):
    """How a domain compares with the others once the pod is in it."""

    pods: int
    """Matching pods in the domain, without the pod itself."""
    fewest: int
    """Matching pods in the domain with the fewest; 0 while there are fewer domains than minDomains."""
    skew: int
    """How many more pods the domain would have than that domain."""
    max_skew: int

    @property
    def is_too_large(self) -> bool:
        return self.skew > self.max_skew


def spread_obstacle(key: str, labels: Mapping[str, str], found: DomainSkew) -> Obstacle:
    """The topology label that a node lacks, or the skew that its domain would have."""
    domain = labels.get(key)
    if domain is None:
        return Obstacle("topology", f"the node has no label {key}, by which the pod is spread", {"topologyKey": key})
    text = (
        f"{key}={domain} has {counted(found.pods, 'such pod')}, the emptiest domain {found.fewest:,}: "
        f"the skew would be {found.skew:,}, and maxSkew is {found.max_skew:,}"
    )
    facts = {"topologyKey": key, "domain": domain, "pods": found.pods, "fewest": found.fewest}
    return Obstacle("topology", text, {**facts, "skew": found.skew, "maxSkew": found.max_skew}, missing=found.skew)


def topology_spread_fixes(plugin: SpreadFilter, rejected: RejectedPod) -> Iterator[Change]:
    """Label the node, evict pods of its domain, raise maxSkew, or make the constraint soft."""
    pod, node = rejected.pod, rejected.node
    constraints = pod.spec.topology_spread_constraints
    hard = [place for place, each in enumerate(constraints) if each.when_unsatisfiable == HARD]
    yield from missing_labels(rejected.cluster, node, [constraints[place].topology_key for place in hard])
    for place in hard:
        constraint = constraints[place]
        skew = _sufficient_skew(plugin, rejected, place)
        if skew is not None:
            yield from evict_few(_crowding(rejected, constraint, skew))
            text = f"relax maxSkew by {constraint.topology_key} from {constraint.max_skew} to {skew}"
            size = 2 + min(skew - constraint.max_skew, 5)
            yield edit_pod("relax-spread", text, pod, size, _with_constraint(place, max_skew=skew))
        text = f"make the spread constraint by {constraint.topology_key} {SOFT}"
        yield edit_pod("soften-spread", text, pod, 5, _with_constraint(place, when_unsatisfiable=SOFT))


def _crowding(rejected: RejectedPod, constraint: TopologySpreadConstraint, skew: int) -> list[Pod]:
    """The least important pods of the node's domain that may be evicted, as many as it has too many."""
    selector = label_selector(constraint.label_selector)
    crowd = [
        pod
        for pod in same_domain(rejected.cluster, rejected.node, constraint.topology_key)
        if pod.namespace == rejected.pod.namespace and selector.matches(pod.metadata.labels) and may_be_evicted(pod)
    ]
    return sorted(crowd, key=lambda pod: (pod.priority, pod.key))[: skew - constraint.max_skew]


def _sufficient_skew(plugin: SpreadFilter, rejected: RejectedPod, place: int) -> int | None:
    """The smallest maxSkew of one constraint with which the plugin passes the node, ignoring the other constraints.

    None if the constraint passes the node as it is, or if no maxSkew does.
    """
    pod, cluster = rejected.pod, rejected.cluster
    row = cluster.rows[rejected.node]

    def passes(skew: int) -> bool:
        tried = _only_constraint(place, skew)(pod)
        state = CycleState(cluster.infos.of(tried))
        if plugin.pre_filter(state, tried, cluster.nodes).status != SUCCESS:
            return True
        return not plugin.filter(state, tried, Nodes(cluster, np.array([row]))).rejected.any()

    low = high = pod.spec.topology_spread_constraints[place].max_skew
    if passes(low):
        return None
    while not passes(high):
        if high > cluster.node_count * 1000:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high


def _only_constraint(place: int, skew: int) -> Callable[[Pod], Pod]:
    def edit(before: Pod) -> Pod:
        constraints = [
            replace(each, max_skew=skew) if number == place else replace(each, when_unsatisfiable=SOFT)
            for number, each in enumerate(before.spec.topology_spread_constraints)
        ]
        return replace(before, spec=replace(before.spec, topology_spread_constraints=constraints))

    return edit


def _with_constraint(place: int, **fields: int | str) -> Callable[[Pod], Pod]:
    def edit(before: Pod) -> Pod:
        constraints = [
            replace(each, **fields) if number == place else each
            for number, each in enumerate(before.spec.topology_spread_constraints)
        ]
        return replace(before, spec=replace(before.spec, topology_spread_constraints=constraints))

    return edit


SYSTEM_CONSTRAINTS = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=SOFT, max_skew=3),
    TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable=SOFT, max_skew=5),
)


class _DomainCounts(NamedTuple):
    """A hard constraint's count per domain."""

    constraint: SpreadConstraint
    tally: DomainTally
    moved: Ints | None = None
    """The change since PreFilter for pods that the counts leave out."""

    @property
    def counts(self) -> Ints:
        """Pods per domain; 0 for a domain without eligible nodes and, at index -1, for nodes without the label."""
        return self.tally.counts if self.moved is None else self.tally.counts + self.moved

    @property
    def most(self) -> int:
        """The maximum number of pods a domain may have for the pod to go there."""
        constraint, tally, fewest = self.constraint, self.tally, 0
        if tally.domains >= max(constraint.min_domains, 1):
            fewest = tally.fewest if self.moved is None else lowest(self.counts[tally.nodes > 0])
        return constraint.max_skew + fewest - constraint.matches_itself

    def skew_on(self, node: NodeInfo) -> DomainSkew:
        """How the node's domain compares with the others if the pod goes there."""
        own, constraint = int(self.counts[node.code(self.constraint.topology_key)]), self.constraint
        fewest = self.most - constraint.max_skew + constraint.matches_itself
        return DomainSkew(own, fewest, own + constraint.matches_itself - fewest, constraint.max_skew)

    def with_moved(self, pod: Pod, node: NodeInfo, amount: int) -> _DomainCounts:
        """A copy that includes a pod that was added (1) or removed (-1).

        The counts follow the cluster, except for pods that they leave out: terminating pods, and all pods if the
        selector is empty. kube-scheduler also leaves those out at PreFilter, but not when a pod is added or removed
        later.
        """
        selector, eligible = self.constraint.selector, self.constraint.eligible.mask(node.cluster)
        is_followed = not pod.terminating and not selector.empty
        if is_followed or not selector.matches(pod.metadata.labels) or not eligible.read()[node.row]:
            return self
        moved = np.zeros_like(self.tally.counts) if self.moved is None else self.moved.copy()
        moved[node.code(self.constraint.topology_key)] += amount
        return self._replace(moved=moved)


class _Scored(NamedTuple):
    """A soft constraint, with the number of pods in each of its domains."""

    constraint: SpreadConstraint
    pods: Ints
    """Per domain; for the hostname, per row of the cluster, as it is counted node by node."""
    weight: float

    @property
    def by_row(self) -> bool:
        return self.constraint.topology_key == HOSTNAME


@dataclass(slots=True)
class _ScoreState:
    constraints: Constraints
    scored: list[_Scored]


class PodTopologySpread(ForSomePods, ByNodeLabels, PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Reject nodes where a hard constraint's skew would grow too large; prefer nodes that even out soft constraints."""

    name = "PodTopologySpread"
    needs = frozenset((("filter", "preFilter"), ("score", "preScore")))
    title = "Spread"
    constraint = SpecPart.SPREAD
    REASON = "node(s) didn't match pod topology spread constraints"
    REASON_LABEL = f"{REASON} (missing required label)"
    TOO_CROWDED, LACKS_LABEL = Status.unschedulable(REASON), Status.unresolvable(REASON_LABEL)

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        spread = args if isinstance(args, PodTopologySpreadArgs) else PodTopologySpreadArgs()
        self._system_defaulted = spread.defaulting_type == SYSTEM_DEFAULTING
        self._defaults = SYSTEM_CONSTRAINTS if self._system_defaulted else tuple(spread.default_constraints)
        self._memo_key = (self.name, self._system_defaulted, msgspec.json.encode(self._defaults))

    def concerns(self, pod: PodView, cluster: Cluster) -> bool:
        if not pod.spec.topology_spread_constraints and not has_selecting_objects(cluster):
            return False
        hard, soft = self._constraints(pod.info, cluster)
        return bool(hard.all or soft.all)

    def _constraints(self, info: PodInfo, cluster: Cluster) -> tuple[Constraints, Constraints]:
        """The hard and the soft constraints: the pod's own, or the defaults if it has none at all."""
        memo, version, rules = info.memo, cluster.store.version, self.release_rules
        key = (self._memo_key, rules.min_domains, rules.node_inclusion_policies)
        known: tuple[int, tuple[Constraints, Constraints]] | None = memo.get(key)
        if known is None or known[0] != version:
            known = memo[key] = version, self._compile_all(info.pod, cluster)
        return known[1]

    def _compile_all(self, pod: Pod, cluster: Cluster) -> tuple[Constraints, Constraints]:
        own = pod.spec.topology_spread_constraints
        if own:
            # matchLabelKeys were merged into the selectors when the pod was created.
            wanted = [(self._known_fields(raw), label_selector(raw.label_selector)) for raw in own]
        else:
            selector = default_selector(pod, cluster) if self._defaults else EVERYTHING
            if selector.empty:
                return NO_CONSTRAINTS, NO_CONSTRAINTS
            wanted = [(raw, selector) for raw in self._defaults]
        requires_all = bool(own) or not self._system_defaulted
        return compile_constraints(HARD, wanted, pod, requires_all=True), compile_constraints(
            SOFT, wanted, pod, requires_all=requires_all
        )

    def _known_fields(self, raw: TopologySpreadConstraint) -> TopologySpreadConstraint:
        """The constraint without the fields that the release does not know."""
        if not self.release_rules.min_domains:
            raw = replace(raw, min_domains=None)
        if not self.release_rules.node_inclusion_policies:
            raw = replace(raw, node_affinity_policy=None, node_taints_policy=None)
        return raw

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        constraints, _ = self._constraints(state.info, nodes.cluster)
        if not constraints.all:
            return SKIPPED
        state[self.name] = [_DomainCounts(each, each.by_domain(nodes.cluster)) for each in constraints.all]
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
        found: list[_DomainCounts] = state[self.name]
        return tuple(dict.fromkeys([domains.constraint.topology_key for domains in found]))

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        codes = np.zeros(len(nodes), dtype=np.int64)
        found: list[_DomainCounts] = state[self.name]
        # The reason comes from the first constraint that fails, so the last one is written first.
        for domains in reversed(found):
            of_node = nodes.codes(domains.constraint.topology_key)
            codes[(domains.counts > domains.most)[of_node]] = 2
            codes[of_node < 0] = 1
        return Verdict.choose(codes, (self.LACKS_LABEL, self.TOO_CROWDED))

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        found: list[_DomainCounts] = state[self.name]
        for domains in found:
            code = node.code(domains.constraint.topology_key)
            if code < 0:
                return self.LACKS_LABEL
            if domains.counts.item(code) > domains.most:
                return self.TOO_CROWDED
        return SUCCESS

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        _, constraints = self._constraints(state.info, nodes.snapshot)
        if not constraints.all:
            return SKIP
        sizes = _sizes(constraints, nodes.representatives(constraints.keys))
        scored = []
        for each in constraints.all:
            # For the hostname, each node's own pods are counted; a node that an extender sent back has none.
            own = nodes.cluster.census.tally(each.question).per_row() if each.topology_key == HOSTNAME else None
            pods = each.by_domain(nodes.snapshot).counts if own is None else own
            scored.append(_Scored(each, pods, math.log(sizes[each.topology_key] + 2)))
        state[f"{self.name}/score"] = _ScoreState(constraints, scored)
        return SUCCESS

    def score_labels(self, state: CycleState) -> tuple[str, ...] | None:
        found: _ScoreState = state[f"{self.name}/score"]
        # For the hostname, each node's own pods are counted.
        return None if HOSTNAME in found.constraints.keys else found.constraints.keys

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        """A higher, worse score for more matching pods in a node's domains, weighted by the number of domains."""
        found: _ScoreState = state[f"{self.name}/score"]
        total: NDArray[np.float64] = np.zeros(len(nodes))
        for each in found.scored:
            of_node = nodes.codes(each.constraint.topology_key)
            pods = nodes.take(each.pods) if each.by_row else each.pods[of_node]
            scores = pods * each.weight + float(each.constraint.max_skew - 1)
            total += np.where(of_node >= 0, scores, 0.0)
        if found.constraints.requires_all:
            total[~_has_all(found.constraints.keys, nodes)] = 0.0
        return round_half_away(total)

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        found: _ScoreState = state[f"{self.name}/score"]
        total = 0.0
        for each in found.scored:
            code = node.code(each.constraint.topology_key)
            if code >= 0:
                pods = each.pods.item(node.row if each.by_row else code)
                total += pods * each.weight + float(each.constraint.max_skew - 1)
            elif found.constraints.requires_all:
                return 0
        return rounded(total)

    def score_lines(self, state: CycleState, pod: Pod, node: NodeInfo) -> Sequence[str]:
        found: _ScoreState = state[f"{self.name}/score"]
        lines, total = [], 0.0
        for each in found.scored:
            key, skew = each.constraint.topology_key, each.constraint.max_skew
            code = node.code(key)
            if code >= 0:
                pods = each.pods.item(node.row if each.by_row else code)
                total += pods * each.weight + float(skew - 1)
                lines.append(f"{key}: {pods:,} matching pods * {each.weight:.3f} + maxSkew {skew} - 1")
            elif found.constraints.requires_all:
                return [f"{key}: the node has no such label, so it gets 0"]
            else:
                lines.append(f"{key}: the node has no such label")
        return [*lines, f"the sum, rounded; the fewer the better: {rounded(total)}"]

    def normalize_lines(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes, place: int) -> Sequence[str]:
        found: _ScoreState = state[f"{self.name}/score"]
        kept = np.ones(len(nodes), dtype=np.bool_)
        if found.constraints.requires_all:
            kept = _has_all(found.constraints.keys, nodes)
        if not kept[place]:
            return ["a node without one of the labels gets 0"]
        counted = scores[kept]
        most, least, score = max(highest(counted), 0), lowest(counted), int(scores[place])
        if most == 0:
            return ["no pod counts on any node, so each gets 100"]
        result = int(_invert(counted)[int(kept[:place].sum())])
        return [f"100 * ({most:,} (the highest) + {least:,} (the lowest) - {score:,}) / {most:,} = {result}"]

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        found: _ScoreState = state[f"{self.name}/score"]
        if found.constraints.requires_all:
            kept = _has_all(found.constraints.keys, nodes)
            if not kept.all():
                normalized = np.zeros_like(scores)
                normalized[kept] = _invert(scores[kept])
                return normalized
        return _invert(scores)

    def events_to_register(self) -> Sequence[EventHint]:
        rules = self.release_rules
        changes = Action.UPDATE_POD_LABEL if rules.pod_updates_name_their_part else Action.UPDATE
        of_pods = Action.ADD | changes | Action.DELETE
        if rules.own_changes_help_spreading:
            of_pods |= Action.UPDATE_POD_TOLERATION
        of_nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL
        if rules.taints_stand_for_added_nodes:
            of_nodes |= Action.UPDATE_NODE_TAINT
        return EventHint("Pod", of_pods, self.changes_counts), EventHint("Node", of_nodes, self.changes_domains)

    def changes_counts(self, waiting: WaitingPod, old: Pod | None, new: Pod | None) -> bool:
        """Whether a pod was added, removed or relabelled that counts in the waiting pod's spreading."""
        pods = [pod for pod in (old, new) if pod is not None]
        if not all(self._is_involved(waiting, pod) for pod in pods):
            return False
        constraints, _ = self._constraints(waiting.info, waiting.cluster)
        if old is None or new is None:
            return any(each.selector.matches(pods[0].metadata.labels) for each in constraints.all)
        gained_toleration = waiting.is_same(new) and old.spec.tolerations != new.spec.tolerations
        if gained_toleration and any(each.eligible.tolerations is not None for each in constraints.all):
            return True
        before, after = old.metadata.labels, new.metadata.labels
        return any(each.selector.matches(before) != each.selector.matches(after) for each in constraints.all)

    def _is_involved(self, waiting: WaitingPod, pod: Pod) -> bool:
        """Whether a pod is the waiting pod, or may count in its spreading: placed, and in the same namespace."""
        rules = self.release_rules
        if waiting.is_same(pod):
            return rules.own_changes_help_spreading
        counts = is_placed(pod) if rules.hints_count_nominated_pods else bool(pod.spec.node_name)
        return counts and pod.namespace == waiting.pod.namespace

    def changes_domains(self, waiting: WaitingPod, old: Node | None, new: Node | None) -> bool:
        """Whether a node with all topology keys of the waiting pod's constraints was added, removed or changed."""
        constraints, _ = self._constraints(waiting.info, waiting.cluster)
        keys = constraints.keys
        counted_before = old is not None and all(key in old.metadata.labels for key in keys)
        counted_after = new is not None and all(key in new.metadata.labels for key in keys)
        if old is None or new is None:
            return counted_before or counted_after
        if not self.release_rules.hints_compare_nodes:
            return counted_after
        if counted_before != counted_after:
            return True
        moved = any(old.metadata.labels.get(key) != new.metadata.labels.get(key) for key in keys)
        return counted_after and (moved or old.spec.taints != new.spec.taints)

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        cluster, info = rejected.cluster, rejected.cluster.info_of(rejected.pod)
        constraints, _ = self._constraints(info, cluster)
        counted = [_DomainCounts(each, each.by_domain(cluster)) for each in constraints.all]
        found = {}
        for node in rejected.statuses:
            labels, row = cluster.node(node).metadata.labels, cluster.rows[node]
            found[node] = [
                spread_obstacle(each.constraint.topology_key, labels, each.skew_on(NodeInfo(cluster, row)))
                for each in counted
                if each.constraint.topology_key not in labels or each.skew_on(NodeInfo(cluster, row)).is_too_large
            ]
        return found

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return topology_spread_fixes(self, rejected)


def _invert(scores: Ints) -> Ints:
    """Invert the scores: the lowest becomes the highest; 100 for all if no pod counts."""
    most = max(highest(scores), 0)
    if most == 0:
        return np.full(len(scores), MAX_NODE_SCORE)
    return MAX_NODE_SCORE * (most + lowest(scores) - scores) // most


def _has_all(keys: tuple[str, ...], nodes: Nodes) -> Mask:
    first, *others = keys
    mask: Mask = nodes.codes(first) >= 0
    for key in others:
        mask &= nodes.codes(key) >= 0
    return mask


def _sizes(constraints: Constraints, seen: Representatives) -> dict[str, int]:
    """The number of domains of each key among the scored nodes; for the hostname, the number of nodes.

    Nodes without the label, if they count, form one domain together.
    """
    memo, key = seen.memo, ("sizes", constraints.keys, constraints.requires_all)
    sizes: dict[str, int] | None = memo.get(key)
    if sizes is None:
        chosen = _has_all(constraints.keys, seen.nodes) if constraints.requires_all else slice(None)
        sizes = memo[key] = {name: len(np.unique(seen.nodes.codes(name)[chosen])) for name in constraints.keys}
        if HOSTNAME in sizes:
            sizes[HOSTNAME] = int(seen.numbers[chosen].sum())
    return sizes
