"""What a user can do about topology spread constraints: label the node, evict pods, or relax the constraint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
from msgspec.structs import replace

from podium.cluster import Nodes
from podium.framework.plugin import CycleState, PreFilterResult
from podium.framework.status import SUCCESS, Verdict
from podium.framework.suggested_change import Change, RejectedPod, edit_pod, evict_few, missing_labels, same_domain
from podium.model import Pod, TopologySpreadConstraint
from podium.model.selectors import label_selector
from podium.plugins.spread_constraints import HARD, SOFT


class SpreadFilter(Protocol):
    """PodTopologySpread of any release."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult: ...

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict: ...


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
    """As many pods of the node's domain as it has too many, the least important ones."""
    selector = label_selector(constraint.label_selector)
    crowd = [
        pod
        for pod in same_domain(rejected.cluster, rejected.node, constraint.topology_key)
        if pod.namespace == rejected.pod.namespace and selector.matches(pod.metadata.labels) and not pod.terminating
    ]
    return sorted(crowd, key=lambda pod: (pod.priority, pod.key))[: skew - constraint.max_skew]


def _sufficient_skew(plugin: SpreadFilter, rejected: RejectedPod, place: int) -> int | None:
    """The smallest maxSkew of one constraint with which the plugin passes the node, the other constraints left out.

    None if the constraint as it is passes the node, or if no maxSkew does.
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
