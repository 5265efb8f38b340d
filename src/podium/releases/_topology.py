"""Inter-pod affinity of the old releases, and PodTopologySpread of v1.18."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Nodes, PodInfo
from podium.cluster.census import DomainTally, Matching, Scope, TermKind
from podium.cluster.columns import Ints, Mask
from podium.config.plugin_args import PodTopologySpreadArgs
from podium.framework.plugin import CycleState, FilterPlugin, PodView, PreFilterPlugin, PreScorePlugin, ScorePlugin
from podium.framework.status import PASSED, SKIPPED, SUCCESS, PreFilterResult, Status, Verdict
from podium.framework.suggested_change import Change, RejectedPod, SpecPart
from podium.model import Pod, TopologySpreadConstraint
from podium.model.selectors import Selector, label_selector, required_node_affinity
from podium.plugins.inter_pod_affinity import InterPodAffinity, existing_terms, own_terms
from podium.plugins.pod_topology_spread import topology_spread_fixes
from podium.plugins.spread_constraints import HARD, SOFT
from podium.releases._service_affinity import pod_selectors
from podium.releases.rules import (
    AFFINITY_RULES,
    ANTI_AFFINITY_RULES,
    EXISTING_ANTI_AFFINITY,
    POD_AFFINITY,
    OfRelease,
    Reason,
    rejection_status,
)

_KIND: TermKind = "required_anti_affinity"


@dataclass(slots=True)
class _Found:
    """The data that decides whether a node fits: pods per domain, by topology key."""

    existing: list[tuple[str, Ints]]
    affinity: list[tuple[str, Ints]] = field(default_factory=list)
    anti_affinity: list[tuple[str, Ints]] = field(default_factory=list)
    waived: list[bool] = field(default_factory=list)
    """Per affinity term, whether any node fits because only the pod itself matches the term so far."""


class LegacyInterPodAffinity(OfRelease, InterPodAffinity):
    """Reject nodes by required terms of the pod and of pods there; score by preferred terms of both.

    The same pods attract and repel in the score as in the current plugin; the scale and the filter differ.
    """

    def concerns(self, pod: PodView, cluster: Cluster) -> bool:
        # Even if no terms matter, every node gets a score.
        return True

    # -- filtering

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        cluster, terms = nodes.cluster, state.info.terms
        found = state[self.name] = _Found(list(self._kept_out(state.info, cluster)))
        if not found.existing and not terms.required_affinity and not terms.required_anti_affinity:
            return SKIPPED
        own = own_terms(state.info, cluster)
        scopes = own.together.scopes
        questions = [question if self.rules.affinity_term_by_term else own.together for _, question in own.affinity]
        keys = [key for key, _ in own.affinity]
        found.affinity = [_domains(key, question, cluster) for key, question in zip(keys, questions, strict=True)]
        found.waived = self._waived(found, scopes, questions, pod, cluster)
        found.anti_affinity = [_domains(key, question, cluster) for key, question in own.anti_affinity]
        return PASSED

    def _waived(
        self, found: _Found, scopes: tuple[Scope, ...], questions: list[Matching], pod: Pod, cluster: Cluster
    ) -> list[bool]:
        matches = [scope.matches(pod.namespace, pod.metadata.labels) for scope in scopes]
        if self.rules.affinity_term_by_term:
            anywhere = [bool(cluster.census.tally(question).per_row().any()) for question in questions]
            return [itself and not others for itself, others in zip(matches, anywhere, strict=True)]
        is_first = all(matches) and not any(counts.any() for _, counts in found.affinity)
        return [is_first] * len(scopes)

    def _kept_out(self, info: PodInfo, cluster: Cluster) -> Iterator[tuple[str, Ints]]:
        """The domains that running pods' anti-affinity keeps this pod out of."""
        for question in existing_terms(_KIND, info, cluster):
            tally, term = cluster.census.tally(question), question.term
            if not self.rules.existing_terms_share_last_key:
                yield term.topology_key, tally.by_domain(term.topology_key).counts
                continue
            for row in np.flatnonzero(tally.per_row()):
                owners = (placed.info.terms.required_anti_affinity for placed in cluster.placed_on(int(row)))
                for key in {terms[-1].topology_key for terms in owners if term in terms}:
                    column = cluster.columns.label(key)
                    counts = np.zeros(len(column.values) + 1, dtype=np.int64)
                    if column.codes[row] >= 0:
                        counts[column.codes[row]] = 1
                    yield key, counts

    def filter_labels(self, state: CycleState) -> tuple[str, ...]:
        found: _Found = state[self.name]
        return tuple({key: None for key, _ in (*found.existing, *found.affinity, *found.anti_affinity)})

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        found: _Found = state[self.name]
        codes = np.zeros(len(nodes), dtype=np.int64)
        codes[_any(found.anti_affinity, nodes)] = 3
        for (key, counts), waived in zip(found.affinity, found.waived, strict=True):
            if not waived:
                codes[~_rows_with(key, counts, nodes)] = 2
        codes[_any(found.existing, nodes)] = 1
        return Verdict.choose(codes, tuple(map(self._status, self._reasons())))

    def _reasons(self) -> tuple[Reason, ...]:
        return EXISTING_ANTI_AFFINITY, AFFINITY_RULES, ANTI_AFFINITY_RULES

    def _status(self, reason: Reason) -> Status:
        return rejection_status([POD_AFFINITY] if self.rules.bare_reasons else [POD_AFFINITY, reason], self.rules)

    # -- scoring

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        state[f"{self.name}/score"] = self._topology_scores(state.info, nodes.cluster)
        return SUCCESS

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        lowest, highest = min(int(scores.min()), 0), max(int(scores.max()), 0)
        if lowest == highest:
            return np.zeros_like(scores)
        return (float(self.rules.max_score) * ((scores - lowest) / float(highest - lowest))).astype(np.int64)


class MatchInterPodAffinity(LegacyInterPodAffinity):
    name = "MatchInterPodAffinity"


class InterPodAffinityPriority(LegacyInterPodAffinity):
    name = "InterPodAffinityPriority"


def _domains(key: str, question: Matching, cluster: Cluster) -> tuple[str, Ints]:
    return key, cluster.census.tally(question).by_domain(key).counts


def _rows_with(key: str, counts: Ints, nodes: Nodes) -> Mask:
    """Whether each node is in a domain with a count above zero."""
    return counts.take(nodes.codes(key)) > 0


def _any(domains: list[tuple[str, Ints]], nodes: Nodes) -> Mask:
    """Whether each node is in one of the domains with pods."""
    mask = np.zeros(len(nodes), dtype=np.bool_)
    for key, counts in domains:
        mask |= _rows_with(key, counts, nodes)
    return mask


NO_DOMAIN = 2**31 - 1
"""The fewest pods of a domain if there is no domain at all."""


class _Constraint(NamedTuple):
    max_skew: int
    topology_key: str
    selector: Selector


class LegacyPodTopologySpread(OfRelease, PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Reject nodes where a hard constraint's skew would grow too large; prefer domains with fewer matching pods."""

    name = "PodTopologySpread"
    title = "Spread"
    constraint = SpecPart.SPREAD
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
            return SKIPPED
        state[self.name] = _count(constraints, pod, nodes.cluster)
        return PASSED

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
    """Whether each node has the labels of all constraints; False for all if there is no constraint."""
    mask = np.full(len(nodes), bool(counted))
    for constraint, _ in counted:
        mask &= nodes.codes(constraint.topology_key) >= 0
    return mask


def _count(constraints: list[_Constraint], pod: Pod, cluster: Cluster) -> list[tuple[_Constraint, DomainTally]]:
    """Per constraint, its non-terminating pods per domain, over the nodes that have all labels and that the pod
    selects.
    """
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
