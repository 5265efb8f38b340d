"""PodTopologySpread as v1.18 has it: plain sums of pods instead of weighted ones, and defaults only if configured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Nodes
from podium.cluster.census import DomainTally, Matching, Scope
from podium.cluster.columns import Ints, Mask
from podium.config.plugin_args import PodTopologySpreadArgs
from podium.framework import (
    SKIP,
    SUCCESS,
    CycleState,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    Status,
    Verdict,
)
from podium.framework.suggested_change import Change, RejectedPod
from podium.model import Pod, TopologySpreadConstraint
from podium.model.selectors import Selector, label_selector, required_node_affinity
from podium.plugins.spread_constraints import HARD, SOFT
from podium.plugins.topology_spread_fixes import topology_spread_fixes
from podium.releases.rules import OfRelease
from podium.releases.service_affinity import pod_selectors

NO_DOMAIN = 2**31 - 1
"""The fewest pods of a domain where there is no domain at all."""


class _Constraint(NamedTuple):
    max_skew: int
    topology_key: str
    selector: Selector


class LegacyPodTopologySpread(OfRelease, PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Reject nodes where a hard constraint's skew would grow too large; prefer domains with fewer matching pods."""

    name = "PodTopologySpread"
    title = "Spread"
    REASON = "node(s) didn't match pod topology spread constraints"

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._defaults = args.default_constraints if isinstance(args, PodTopologySpreadArgs) else ()

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return topology_spread_fixes(self, rejected)

    def _constraints(self, pod: Pod, action: str, cluster: Cluster) -> list[_Constraint]:
        """The pod's own constraints; the configured defaults if it has none and something selects it."""

        def compiled(raw: TopologySpreadConstraint, selector: Selector) -> _Constraint:
            return _Constraint(raw.max_skew, raw.topology_key, selector)

        own = pod.spec.topology_spread_constraints
        if own:
            wanted = [raw for raw in own if raw.when_unsatisfiable == action]
            return [compiled(raw, label_selector(raw.label_selector)) for raw in wanted]
        defaults = [raw for raw in self._defaults if raw.when_unsatisfiable == action]
        selectors = pod_selectors(pod, cluster, self.rules) if defaults else []
        if not selectors:
            return []
        merged = Selector(tuple(requirement for selector in selectors for requirement in selector.requirements))
        return [compiled(raw, merged) for raw in defaults]

    # -- filtering

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        constraints = self._constraints(pod, HARD, nodes.cluster)
        if not constraints:
            return PreFilterResult(SKIP)
        state[self.name] = _count(constraints, pod, nodes.cluster)
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        fails = np.zeros(len(nodes), dtype=np.bool_)
        counted: list[tuple[_Constraint, DomainTally]] = state[self.name]
        for constraint, domains in counted:
            present = domains.nodes > 0
            fewest = int(domains.counts[present].min(initial=NO_DOMAIN))
            itself = int(constraint.selector.matches(pod.metadata.labels))
            crowded = np.where(present, domains.counts, 0) + itself - fewest > constraint.max_skew
            fails |= np.append(crowded, True)[nodes.codes(constraint.topology_key)]
        return Verdict.reject(fails, self.REASON)

    # -- scoring

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        state[f"{self.name}/score"] = _count(self._constraints(pod, SOFT, nodes.cluster), pod, nodes.cluster)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        """The matching pods in all of a node's domains; 0 for a node that lacks one of the labels."""
        counted: list[tuple[_Constraint, DomainTally]] = state[f"{self.name}/score"]
        total = np.zeros(len(nodes), dtype=np.int64)
        for constraint, domains in counted:
            total += np.append(domains.counts, 0)[nodes.codes(constraint.topology_key)]
        return np.where(_qualified(counted, nodes), total, 0)

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        """The share of all matching pods that are elsewhere, compared with the node that has the fewest."""
        qualified = _qualified(state[f"{self.name}/score"], nodes)
        if not qualified.any():
            return np.zeros_like(scores)
        total = int(scores[qualified].sum())
        spread = total - int(scores[qualified].min())
        best = self.rules.max_score
        if spread == 0:
            return np.full_like(scores, best)
        share: NDArray[np.float64] = float(best) * ((total - scores) / float(spread))
        return np.where(qualified, share.astype(np.int64), 0)


def _qualified(counted: list[tuple[_Constraint, DomainTally]], nodes: Nodes) -> Mask:
    """Whether each node has the labels of all constraints; no node has where there is no constraint."""
    mask = np.full(len(nodes), bool(counted))
    for constraint, _ in counted:
        mask &= nodes.codes(constraint.topology_key) >= 0
    return mask


def _count(constraints: list[_Constraint], pod: Pod, cluster: Cluster) -> list[tuple[_Constraint, DomainTally]]:
    """Per constraint, its living pods per domain, over the nodes that have all its labels and that the pod selects."""
    keys = tuple(dict.fromkeys(constraint.topology_key for constraint in constraints))
    matcher = required_node_affinity(pod)

    def eligible() -> Mask:
        nodes = Nodes(cluster)
        mask = nodes.take(cluster.columns.alive) & nodes.matching(matcher)
        for key in keys:
            mask &= nodes.codes(key) >= 0
        return mask

    mask = cluster.row_mask(("PodTopologySpread v1.18", keys, matcher), eligible)
    namespace = frozenset((pod.namespace,))
    found = []
    for constraint in constraints:
        tally = cluster.census.tally(Matching((Scope(namespace, constraint.selector),), terminating=False))
        found.append((constraint, tally.by_domain(constraint.topology_key, mask)))
    return found
