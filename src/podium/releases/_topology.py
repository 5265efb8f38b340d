"""Affinity and spreading: between pods, of a pod's services and owners, and PodTopologySpread of v1.18."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Nodes, PodInfo
from podium.cluster.census import DomainTally, Matching, Scope, Tally, TermKind
from podium.cluster.columns import Floats, Interned, Ints, Mask
from podium.config.plugin_args import PodTopologySpreadArgs
from podium.errors import SelectorError
from podium.framework import CycleState, FilterPlugin, PreFilterPlugin, PreFilterResult, ScorePlugin, Status, Verdict
from podium.framework.obstacle import SpecPart
from podium.framework.plugin import PodView, PreScorePlugin
from podium.framework.status import PASSED, SKIPPED, SUCCESS
from podium.framework.suggested_change import Change, RejectedPod
from podium.model import (
    LabelSelector,
    Pod,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
    TopologySpreadConstraint,
)
from podium.model.objects import BETA_REGION, BETA_ZONE, REGION, ZONE
from podium.model.selectors import Labels, Requirement, Selector, label_selector, match_labels, required_node_affinity
from podium.plugins.inter_pod_affinity import InterPodAffinity, existing_terms, own_terms
from podium.plugins.pod_topology_spread import topology_spread_fixes
from podium.plugins.topology_spread_constraints import HARD, NO_PODS, SOFT, pod_services
from podium.releases.rules import (
    AFFINITY_RULES,
    ANTI_AFFINITY_RULES,
    EXISTING_ANTI_AFFINITY,
    POD_AFFINITY,
    SERVICE_AFFINITY,
    OfRelease,
    OldReleaseRules,
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


# -- services and owners -----------------------------------------------------------------------------------------------


class AnySelector(NamedTuple):
    """Matches objects that at least one of some selectors matches; it has a selector's methods, so it can be
    counted by.
    """

    selectors: tuple[Selector, ...]
    requirements: tuple[Requirement, ...] = ()
    """Empty: there is no requirement that every match must meet."""

    def matches(self, labels: Labels) -> bool:
        return any(selector.matches(labels) for selector in self.selectors)


def pod_selectors(pod: Pod, cluster: Cluster, rules: OldReleaseRules, *, services_only: bool = False) -> list[Selector]:
    """The selectors of everything that selects the pod by its labels, without repetition."""
    selectors = [match_labels(service.spec.selector or {}) for service in pod_services(pod, cluster)]
    if not services_only and pod.metadata.labels:
        selectors += _controller_selectors(pod, cluster)
    if rules.spread_ignores_empty_selectors:
        selectors = [selector for selector in selectors if not selector.empty]
    return list(dict.fromkeys(selectors))


def _controller_selectors(pod: Pod, cluster: Cluster) -> Iterator[Selector]:
    """Selectors of controllers and sets that match the pod; an empty selector matches nothing."""
    store, labels = cluster.store, pod.metadata.labels
    compiled = [match_labels(item.spec.selector) for item in store.of(ReplicationController).within(pod.namespace)]
    compiled += _compiled([item.spec.selector for item in store.of(ReplicaSet).within(pod.namespace)])
    compiled += _compiled([item.spec.selector for item in store.of(StatefulSet).within(pod.namespace)])
    return (selector for selector in compiled if not selector.empty and selector.matches(labels))


def _compiled(selectors: list[LabelSelector | None]) -> list[Selector]:
    """The compiled selectors; empty if one of them is invalid, as the listing fails then."""
    try:
        return [label_selector(selector) for selector in selectors]
    except SelectorError:
        return []


def sibling_tally(pod: Pod, selectors: list[Selector], cluster: Cluster, *, match_any: bool) -> Tally:
    """How many non-terminating pods of the namespace match all, or any, of the selectors, per node."""
    if not selectors:
        return cluster.census.tally(NO_PODS)
    namespace = frozenset((pod.namespace,))
    if match_any and len(selectors) > 1:
        # Sorted, since the order of alternatives does not matter and must not create another question.
        either = cast(Selector, AnySelector(tuple(sorted(selectors, key=repr))))
        return cluster.census.tally(Matching((Scope(namespace, either),), terminating=False))
    scopes = tuple(Scope(namespace, selector) for selector in selectors)
    return cluster.census.tally(Matching(scopes, terminating=False))


def first_service_selector(pod: Pod, cluster: Cluster) -> Selector | None:
    """The selector of the first service, ordered by name, that selects the pod."""
    services: list[Service] = pod_services(pod, cluster)
    return match_labels(services[0].spec.selector or {}) if services else None


@dataclass(frozen=True, kw_only=True)
class ServiceAffinityArgs:
    """Node labels that pods of a service must share, and labels over which they should be spread."""

    affinity_labels: tuple[str, ...] = ()
    anti_affinity_labels_preference: tuple[str, ...] = ()


class ServiceAffinity(OfRelease, PreFilterPlugin, FilterPlugin, ScorePlugin):
    """Keep the pods of a service on nodes with equal values of some labels; prefer nodes whose label value has few of
    them.
    """

    name = "ServiceAffinity"

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._labels = args if isinstance(args, ServiceAffinityArgs) else ServiceAffinityArgs()

    # -- filtering

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        """Find the required label values: those that the pod selects, and those of the nodes where a sibling runs."""
        labels, cluster = self._labels.affinity_labels, nodes.cluster
        selected = pod.spec.node_selector or {}
        wanted = {label: selected[label] for label in labels if label in selected}
        sibling = None
        if len(labels) > len(wanted) and pod_services(pod, cluster):
            sibling = _first_sibling(pod, cluster)
        if sibling is not None:
            if sibling not in cluster.rows:
                return PreFilterResult(Status.error(f'node "{sibling}" not found'))
            found = cluster.node(sibling).metadata.labels
            wanted = {label: found[label] for label in labels if label in found} | wanted
        state[self.name] = wanted
        return PASSED

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        fails = np.zeros(len(nodes), dtype=np.bool_)
        for label, value in state[self.name].items():
            fails |= ~nodes.satisfying(Requirement(label, "In", frozenset((value,))))
        return Verdict.choose(fails, (rejection_status([SERVICE_AFFINITY], self.rules),))

    # -- scoring

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        """How many pods of the pod's first service are on each node."""
        selector = first_service_selector(pod, nodes.cluster)
        if selector is None or (selector.empty and self.rules.spread_ignores_empty_selectors):
            return np.zeros(len(nodes), dtype=np.int64)
        if self.rules.service_pods_everywhere:
            question = Matching((Scope(frozenset((pod.namespace,)), selector),))
            return nodes.take(nodes.cluster.census.tally(question).per_row()).copy()
        return nodes.take(sibling_tally(pod, [selector], nodes.cluster, match_any=False).per_row()).copy()

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        """The fewer pods share a node's label value, the better; nodes without the label score 0."""
        labels = self._labels.anti_affinity_labels_preference
        total: NDArray[np.float64] = np.zeros(len(nodes))
        everyone = int(scores.sum())
        if self.rules.service_pods_everywhere:
            everyone = self._service_pods(pod, nodes.cluster)
        for label in labels:
            codes = nodes.codes(label)
            present = codes >= 0
            counts = np.bincount(codes[present], weights=scores[present], minlength=1)
            share = np.full(len(nodes), float(self.rules.max_score))
            if everyone > 0:
                of_node = np.append(counts, 0.0)[np.where(present, codes, -1)]
                share = float(self.rules.max_score) * ((everyone - of_node) / float(everyone))
            total += np.where(present, share / float(len(labels)), 0.0)
        return total.astype(np.int64)

    def _service_pods(self, pod: Pod, cluster: Cluster) -> int:
        """All pods of the first service, on all nodes."""
        selector = first_service_selector(pod, cluster)
        if selector is None:
            return 0
        scope = Scope(frozenset((pod.namespace,)), selector)
        stranded = sum(scope.matches(other.namespace, other.metadata.labels) for other in cluster.stranded)
        return int(cluster.census.tally(Matching((scope,))).per_row().sum()) + stranded


class CheckServiceAffinity(ServiceAffinity):
    name = "CheckServiceAffinity"


class ServiceAntiAffinity(ServiceAffinity):
    name = "ServiceAntiAffinity"


def _first_sibling(pod: Pod, cluster: Cluster) -> str | None:
    """The node of the first pod, by name, that has the pod's labels; None when there is none."""
    scope = Scope(frozenset((pod.namespace,)), match_labels(pod.metadata.labels))
    rows = np.flatnonzero(cluster.census.tally(Matching((scope,))).per_row())
    running = [(other, cluster.names[row]) for row in rows for other in cluster.pods_on(int(row))]
    running += [(other, other.spec.node_name) for other in cluster.stranded]
    nodes = {other.name: node for other, node in running if scope.matches(other.namespace, other.metadata.labels)}
    return nodes[min(nodes)] if nodes else None


ZONE_WEIGHT = 2.0 / 3.0
"""How much of the score the zone makes, where nodes have zones."""

_SMALLEST = np.iinfo(np.int64).min


class SelectorSpread(OfRelease, ScorePlugin):
    """Spread the pods of a service, controller or set: one third of the score over nodes, two thirds over zones."""

    name = "SelectorSpread"
    SERVICES_ONLY = False

    def _has_own_constraints(self, pod: Pod) -> bool:
        """Whether another plugin spreads the pod."""
        return False

    def _services_only(self) -> bool:
        return self.SERVICES_ONLY and not self.rules.service_spreading_is_selector_spread

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        """How many siblings are on each node."""
        selectors = pod_selectors(pod, nodes.cluster, self.rules, services_only=self._services_only())
        state[self.name] = bool(selectors)
        if self._has_own_constraints(pod):
            return np.zeros(len(nodes), dtype=np.int64)
        tally = sibling_tally(pod, selectors, nodes.cluster, match_any=self.rules.spread_matches_any)
        return nodes.take(tally.per_row()).copy()

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        if self._has_own_constraints(pod):
            return scores
        rules, most = self.rules, int(scores.max())
        total: Floats = np.full(len(nodes), float(rules.max_score))
        if most > 0:
            total = float(rules.max_score) * ((most - scores) / float(most))
        zones = zone_codes(nodes, rules)
        # Without selectors v1.8 ignores zones; the others find no pods in them.
        if not (zones >= 0).any() or (rules.spread_zone_divides_by_zero and not state[self.name]):
            return total.astype(np.int64)
        in_zone = np.where(zones >= 0, _zone_scores(zones, scores, rules), 0.0)
        with_zone = (total * (1.0 - ZONE_WEIGHT)) + (ZONE_WEIGHT * in_zone)
        return to_int64(np.where(zones >= 0, with_zone, total))


def _zone_scores(zones: Ints, scores: Ints, rules: OldReleaseRules) -> Floats:
    counts: Floats = np.bincount(zones[zones >= 0], weights=scores[zones >= 0]).astype(np.float64)
    most = float(counts.max())
    found: Floats = np.full(len(counts), np.nan if rules.spread_zone_divides_by_zero else float(rules.max_score))
    if most > 0:
        found = float(rules.max_score) * ((most - counts) / most)
    return found[zones]


def to_int64(numbers: Floats) -> Ints:
    """Convert floats to integers as Go does on amd64: truncated; NaN becomes the smallest int64."""
    return np.where(np.isnan(numbers), _SMALLEST, np.nan_to_num(numbers).astype(np.int64))


def zone_codes(nodes: Nodes, rules: OldReleaseRules) -> Ints:
    """A number per node, equal for nodes of the same region and zone; -1 for a node without both labels."""
    known: Interned[str] = Interned()
    known.code("")
    region = _label_codes(nodes, (BETA_REGION, REGION), known, rules)
    zone = _label_codes(nodes, (BETA_ZONE, ZONE), known, rules)
    pairs = region * len(known) + zone
    codes: Ints = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return np.where(pairs == 0, -1, codes)


def _label_codes(nodes: Nodes, labels: tuple[str, str], known: Interned[str], rules: OldReleaseRules) -> Ints:
    """The code in `known` of each node's beta label or, in releases that read it, of its stable label."""

    def read(label: str) -> Ints:
        values = nodes.cluster.columns.label(label).values.values
        return np.array([*map(known.code, values), 0], dtype=np.int64)[nodes.codes(label)]

    beta, stable = labels
    codes = read(beta)
    return np.where(nodes.codes(beta) >= 0, codes, read(stable)) if rules.zone_has_stable_label else codes


class SelectorSpreadPriority(SelectorSpread):
    name = "SelectorSpreadPriority"


class ServiceSpreadingPriority(SelectorSpread):
    """Spread the pods of a service."""

    name = "ServiceSpreadingPriority"
    SERVICES_ONLY = True


class DefaultPodTopologySpread(SelectorSpread):
    """Spread pods that have no constraints of their own."""

    name = "DefaultPodTopologySpread"

    def _has_own_constraints(self, pod: Pod) -> bool:
        return bool(pod.spec.topology_spread_constraints)
