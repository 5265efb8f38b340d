"""InterPodAffinity: keeps pods close to, or away from, other pods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
from msgspec.structs import replace

from podium.cluster import Cluster, NodeInfo, Nodes, PodInfo
from podium.cluster.census import DomainTally, Matching, Owning, Scope, TermKind
from podium.cluster.columns import Ints, Mask, highest, lowest
from podium.cluster.pods import Term, affinity_terms
from podium.config.plugin_args import InterPodAffinityArgs
from podium.config.types import MAX_NODE_SCORE
from podium.framework import Action, Change, EventHint, Obstacle, RejectedNodes, RejectedPod, WaitingPod
from podium.framework.fast_paths import ByNodeLabels, ForSomePods
from podium.framework.obstacle import SpecPart
from podium.framework.plugin import CycleState, FilterPlugin, PodView, PreFilterPlugin, PreScorePlugin, ScorePlugin
from podium.framework.status import PASSED, SKIP, SKIPPED, SUCCESS, PreFilterResult, Status, Verdict
from podium.framework.suggested_change import edit_pod, edit_running, evict_few, missing_labels, same_domain
from podium.model import LabelSelector, Namespace, Node, Pod
from podium.model.objects import HOSTNAME
from podium.model.pod import is_placed
from podium.rules import Rules

Field = Literal["pod_affinity", "pod_anti_affinity"]
_NAMES: dict[Field, str] = {"pod_affinity": "affinity", "pod_anti_affinity": "anti-affinity"}


def pod_affinity_obstacles(rejected: RejectedNodes, rules: Rules) -> dict[str, list[Obstacle]]:
    """The affinity terms that no pod matches, and the topology labels that nodes lack."""
    terms, domains = affinity_terms(rejected.pod, rules).required_affinity, _SelectedPods(rejected.cluster)

    def missing(term: Term, domain: str | None) -> Obstacle | None:
        key = term.topology_key
        if domain is None:
            text = f"the node has no label {key}, the topologyKey of the pod's affinity"
            return Obstacle("topology", text, {"topologyKey": key})
        if domains.first(terms, key, domain):
            return None
        text = f"no pod that the pod's affinity wants runs {_where(key, domain)}"
        return Obstacle("affinity", text, {"topologyKey": key, "domain": domain})

    return _term_by_term(rejected, terms, missing)


def anti_affinity_obstacles(rejected: RejectedNodes, rules: Rules) -> dict[str, list[Obstacle]]:
    """The pods that the pod's anti-affinity excludes."""
    domains = _SelectedPods(rejected.cluster)

    def unwanted(term: Term, domain: str | None) -> Obstacle | None:
        key = term.topology_key
        other = "" if domain is None else domains.first((term,), key, domain)
        if not other:
            return None
        text = f"the pod's anti-affinity keeps it away from pod {other} {_where(key, domain)}"
        return _apart(text, key, domain, other)

    return _term_by_term(rejected, affinity_terms(rejected.pod, rules).required_anti_affinity, unwanted)


def _term_by_term(
    rejected: RejectedNodes,
    terms: Iterable[Term],
    obstacle: Callable[[Term, str | None], Obstacle | None],
) -> dict[str, list[Obstacle]]:
    """The obstacles that each term of a pod has on each node, given the node's domain."""
    found = {}
    for node in rejected.statuses:
        labels = rejected.cluster.node(node).metadata.labels
        each = (obstacle(term, labels.get(term.topology_key)) for term in terms)
        found[node] = [one for one in each if one is not None]
    return found


def existing_anti_affinity_obstacles(rejected: RejectedNodes, rules: Rules) -> dict[str, list[Obstacle]]:
    """The pods whose anti-affinity excludes the pod."""
    pod, cluster = rejected.pod, rejected.cluster
    namespace_labels = cluster.namespace_labels(pod.namespace)
    carriers: dict[tuple[str, str], str] = {}
    for other, where in cluster.placed():
        if other.spec.affinity is None or other.spec.affinity.pod_anti_affinity is None:
            continue
        for term in affinity_terms(other, rules).required_anti_affinity:
            value = cluster.node(where).metadata.labels.get(term.topology_key)
            if value is not None and term.matches(pod.namespace, pod.metadata.labels, namespace_labels):
                carriers.setdefault((term.topology_key, value), other.key)
    found = {}
    for node in rejected.statuses:
        labels = cluster.node(node).metadata.labels
        here = [(key, value, other) for (key, value), other in carriers.items() if labels.get(key) == value]
        found[node] = [
            _apart(f"the anti-affinity of pod {other} {_where(key, value)} keeps the pod away", key, value, other)
            for key, value, other in here
        ]
    return found


def _where(key: str, domain: str | None) -> str:
    return "on the node" if key == HOSTNAME else f"in {key}={domain}"


def _apart(text: str, key: str, domain: str | None, other: str) -> Obstacle:
    return Obstacle("anti-affinity", text, {"topologyKey": key, "domain": domain, "pod": other})


class _SelectedPods:
    """Finds a pod in a domain that some terms all select; it scans the pods once per topology key."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[tuple[tuple[Term, ...], str], dict[str, str]] = {}

    def first(self, terms: tuple[Term, ...], key: str, domain: str) -> str:
        """The namespace/name of a pod in the domain that all terms select; empty if there is none."""
        known = self._known.get((terms, key))
        if known is None:
            known = self._known[terms, key] = {}
            for pod, where in self._cluster.placed():
                value = self._cluster.node(where).metadata.labels.get(key)
                if value is not None and value not in known and self._means(terms, pod):
                    known[value] = pod.key
        return known.get(domain, "")

    def _means(self, terms: tuple[Term, ...], pod: Pod) -> bool:
        return all(_meant_by(term, self._cluster, [pod]) for term in terms)


def pod_affinity_fixes(rejected: RejectedPod) -> Iterator[Change]:
    """Give the node a topology label that it lacks, or drop the pod's required affinity."""
    keys = [term.topology_key for term in rejected.cluster.info_of(rejected.pod).terms.required_affinity]
    yield from missing_labels(rejected.cluster, rejected.node, keys)
    yield from _drop_terms(rejected.pod, "pod_affinity")


def anti_affinity_fixes(rejected: RejectedPod) -> Iterator[Change]:
    """Evict the pods that the pod's anti-affinity excludes, or drop the pod's required anti-affinity."""
    cluster = rejected.cluster
    for term in cluster.info_of(rejected.pod).terms.required_anti_affinity:
        yield from evict_few(_meant_by(term, cluster, same_domain(cluster, rejected.node, term.topology_key)))
    yield from _drop_terms(rejected.pod, "pod_anti_affinity")


def existing_anti_affinity_fixes(rejected: RejectedPod) -> Iterator[Change]:
    """Evict the pods whose anti-affinity excludes this pod, or drop their anti-affinity."""
    pod, cluster = rejected.pod, rejected.cluster
    labels = cluster.namespace_labels(pod.namespace)
    carriers: dict[str, Pod] = {}
    for other, where in cluster.placed():
        for term in cluster.info_of(other).terms.required_anti_affinity:
            value = cluster.node(where).metadata.labels.get(term.topology_key)
            here = rejected.node_labels.get(term.topology_key)
            if value is not None and value == here and term.matches(pod.namespace, pod.metadata.labels, labels):
                carriers[other.key] = other
    yield from evict_few(list(carriers.values()))
    if len(carriers) == 1:
        (carrier,) = carriers.values()
        text = f"drop the required anti-affinity of {carrier.key}"
        yield edit_running("drop-anti-affinity", text, carrier, _without_terms("pod_anti_affinity"))


def _meant_by(term: Term, cluster: Cluster, pods: list[Pod]) -> list[Pod]:
    """The pods that a term selects."""
    return [
        pod for pod in pods if term.matches(pod.namespace, pod.metadata.labels, cluster.namespace_labels(pod.namespace))
    ]


def _drop_terms(pod: Pod, field: Field) -> Iterator[Change]:
    """Drop one of the pod's required terms, or all of them."""
    affinity = getattr(pod.spec.affinity, field) if pod.spec.affinity else None
    terms = affinity.required if affinity else []
    for place, term in enumerate(terms):
        to = _selected(term.label_selector)
        text = f"drop the pod's required {_NAMES[field]} to {to} by {term.topology_key}"
        if field == "pod_anti_affinity":
            text = text.replace(" to ", " against ", 1)
        yield edit_pod(f"drop-{_NAMES[field]}", text, pod, 4, _without_terms(field, place))
    if len(terms) > 1:
        text = f"drop all of the pod's required {_NAMES[field]}"
        yield edit_pod(f"drop-{_NAMES[field]}", text, pod, 7, _without_terms(field))


def _without_terms(field: Field, place: int | None = None) -> Callable[[Pod], Pod]:
    """An edit that removes one required term, or all of them."""

    def edit(before: Pod) -> Pod:
        affinity = before.spec.affinity
        rules = getattr(affinity, field) if affinity else None
        if affinity is None or rules is None:
            return before
        kept = [] if place is None else [*rules.required[:place], *rules.required[place + 1 :]]
        changed = replace(affinity, **{field: replace(rules, required=kept)})
        return replace(before, spec=replace(before.spec, affinity=changed))

    return edit


def _selected(selector: LabelSelector | None) -> str:
    if selector is None:
        return "no pods"
    parts = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    parts += [f"{each.key} {each.operator} {','.join(each.values)}".strip() for each in selector.match_expressions]
    return f"pods with {', '.join(parts)}" if parts else "all pods"


REQUIRED: TermKind = "required_affinity"
ANTI: TermKind = "required_anti_affinity"
PREFERENCES: tuple[tuple[TermKind, int], ...] = (("preferred_affinity", 1), ("preferred_anti_affinity", -1))


def scope_of(term: Term, cluster: Cluster) -> Scope:
    """The pods that an incoming pod's term selects: a namespaceSelector adds the namespaces it matches.

    In some releases a namespaceSelector that matches the empty set of labels selects all namespaces: the scheduler also
    tries it without labels for every pod.
    """
    if term.namespace_selector.matches({}) and _means_all(term, cluster):
        return Scope(None, term.selector)
    if term.namespace_selector.nothing:
        return Scope(term.namespaces, term.selector)
    found = {n.name for n in cluster.store.of(Namespace) if term.namespace_selector.matches(n.metadata.labels)}
    return Scope(term.namespaces | found, term.selector)


def _means_all(term: Term, cluster: Cluster) -> bool:
    """Whether a namespaceSelector that matches the empty set of labels selects every namespace; an empty selector
    always does.
    """
    return term.namespace_selector.empty or _selectors_reach_everywhere(cluster.rules)


def _selectors_reach_everywhere(rules: Rules) -> bool:
    return rules.namespace_selector_reaches_everywhere and not rules.namespace_selector_matches_listed_namespaces


def existing_terms(kind: TermKind, info: PodInfo, cluster: Cluster) -> list[Owning]:
    """The terms of pods in the cluster that select the incoming pod, as questions for how many pods carry them."""
    live = cluster.census.terms[kind]
    if not live.counts:
        return []
    memo, key, version = info.memo, ("existing_terms", kind), (live.version, cluster.store.version)
    known: tuple[tuple[int, int], list[Owning]] | None = memo.get(key)
    if known is None or known[0] != version:
        labels = cluster.namespace_labels(info.namespace)
        terms = live.matching(info.namespace, info.labels, labels)
        known = memo[key] = version, [Owning(kind, term) for term in terms]
    return known[1]


class OwnTerms(NamedTuple):
    """The incoming pod's terms: their topology keys, and the questions for how many pods they select."""

    affinity: tuple[tuple[str, Matching], ...]
    together: Matching
    """How many pods all required affinity terms select at once."""
    matches_itself: bool
    """Whether all required affinity terms also select the pod itself."""
    anti_affinity: tuple[tuple[str, Matching], ...]
    preferences: tuple[tuple[int, str, Matching], ...]
    """Each with its weight, which is negative for anti-affinity."""


def own_terms(info: PodInfo, cluster: Cluster) -> OwnTerms:
    """The incoming pod's terms, computed once until namespaces change."""
    memo, version = info.memo, cluster.store.version
    key = ("own_terms", _selectors_reach_everywhere(cluster.rules))
    known: tuple[int, OwnTerms] | None = memo.get(key)
    if known is None or known[0] != version:
        known = memo[key] = version, _own_terms(info, cluster)
    return known[1]


def _own_terms(info: PodInfo, cluster: Cluster) -> OwnTerms:
    def question(term: Term) -> Matching:
        return Matching((scope_of(term, cluster),))

    terms = info.terms
    affinity = tuple((term.topology_key, question(term)) for term in terms.required_affinity)
    together = Matching(tuple(scope for _, one in affinity for scope in one.scopes))
    return OwnTerms(
        affinity,
        together,
        all(scope.matches(info.namespace, info.labels) for scope in together.scopes),
        tuple((term.topology_key, question(term)) for term in terms.required_anti_affinity),
        tuple(
            (sign * term.weight, term.topology_key, question(term))
            for kind, sign in PREFERENCES
            for term in getattr(terms, kind)
        ),
    )


@dataclass(slots=True)
class _FilterState:
    affinity: list[DomainTally]
    """Per required term, the pods that match all terms."""
    anti_affinity: list[DomainTally]
    existing_anti_affinity: list[DomainTally]
    matches_itself: bool

    @property
    def is_first(self) -> bool:
        """Whether the pod is the first of a group with affinity to each other: it may go to any node that has
        the labels.
        """
        return self.matches_itself and not any(tally.occupied for tally in self.affinity)


class InterPodAffinity(ForSomePods, ByNodeLabels, PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Reject nodes by required terms of the pod and of pods there; score by preferred terms of both."""

    name = "InterPodAffinity"
    needs = frozenset((("filter", "preFilter"), ("score", "preScore")))
    title = "PodAff"
    REASON_AFFINITY = "node(s) didn't match pod affinity rules"
    REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
    REASON_EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
    AFFINITY = Status.unresolvable(REASON_AFFINITY)
    ANTI_AFFINITY = Status.unschedulable(REASON_ANTI_AFFINITY)
    EXISTING = Status.unschedulable(REASON_EXISTING)
    CONSTRAINTS = MappingProxyType(
        {
            REASON_AFFINITY: SpecPart.AFFINITY,
            REASON_ANTI_AFFINITY: SpecPart.ANTI_AFFINITY,
            REASON_EXISTING: SpecPart.OTHERS,
        }
    )

    def constraint_of(self, reason: str) -> SpecPart | None:
        return self.CONSTRAINTS.get(reason)

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._args = args if isinstance(args, InterPodAffinityArgs) else InterPodAffinityArgs()

    def concerns(self, pod: PodView, cluster: Cluster) -> bool:
        return pod.has_terms or cluster.census.with_terms > 0

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        cluster, info, terms = nodes.cluster, state.info, state.info.terms
        existing = [_tally(one, one.term.topology_key, cluster) for one in existing_terms(ANTI, info, cluster)]
        existing = [tally for tally in existing if tally.occupied]
        if not existing and not terms.required_affinity and not terms.required_anti_affinity:
            return SKIPPED
        own = own_terms(info, cluster)
        state[self.name] = _FilterState(
            [_tally(own.together, key, cluster) for key, _ in own.affinity],
            [_tally(question, key, cluster) for key, question in own.anti_affinity],
            existing,
            own.matches_itself,
        )
        return PASSED

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status:
        """Add anti-affinity that no pod had at PreFilter. The counts themselves follow the cluster."""
        if added.spec.affinity is not None and added.spec.affinity.pod_anti_affinity is not None:
            self.pre_filter(state, pod, node.cluster.nodes)
        return SUCCESS

    def filter_labels(self, state: CycleState) -> tuple[str, ...]:
        found: _FilterState = state[self.name]
        tallies = (*found.affinity, *found.anti_affinity, *found.existing_anti_affinity)
        return tuple(dict.fromkeys([tally.key for tally in tallies]))

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        found: _FilterState = state[self.name]
        return Verdict.first(
            *[(~holds, self.AFFINITY) for holds in self._affinity_holds(found, nodes)],
            *[(nodes.take(tally.occupied_rows()), self.ANTI_AFFINITY) for tally in found.anti_affinity],
            *[(nodes.take(tally.occupied_rows()), self.EXISTING) for tally in found.existing_anti_affinity],
        )

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        found: _FilterState = state[self.name]
        for tally in found.affinity:
            if not tally.is_occupied(node.row) and not (found.is_first and node.code(tally.key) >= 0):
                return self.AFFINITY
        for tally in found.anti_affinity:
            if tally.is_occupied(node.row):
                return self.ANTI_AFFINITY
        for tally in found.existing_anti_affinity:
            if tally.is_occupied(node.row):
                return self.EXISTING
        return SUCCESS

    def _affinity_holds(self, found: _FilterState, nodes: Nodes) -> list[Mask]:
        """Per required affinity term, whether it holds on each node."""
        if found.is_first:
            return [nodes.codes(tally.key) >= 0 for tally in found.affinity]
        return [nodes.take(tally.occupied_rows()) for tally in found.affinity]

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        if self._args.ignore_preferred_terms_of_existing_pods and not _has_preferences(state.info):
            return SKIP
        by_key = self._topology_scores(state.info, nodes.snapshot)
        if not by_key:
            return SKIP
        state[f"{self.name}/score"] = by_key
        return SUCCESS

    def _topology_scores(self, info: PodInfo, cluster: Cluster) -> dict[str, Ints]:
        """Per label key, the score of each of its domains; empty if no pod matters."""
        scores: dict[str, Ints] = {}
        weighed: list[tuple[int, str, Matching | Owning]] = []
        if _has_preferences(info):
            weighed += own_terms(info, cluster).preferences
        # Terms of pods in the cluster that attract or repel the incoming pod.
        live, hard = cluster.census.terms, self._args.hard_pod_affinity_weight
        if hard > 0 and live[REQUIRED].counts:
            weighed += [(hard, one.term.topology_key, one) for one in existing_terms(REQUIRED, info, cluster)]
        for kind, sign in PREFERENCES:
            if live[kind].counts:
                terms = existing_terms(kind, info, cluster)
                weighed += [(sign * one.term.weight, one.term.topology_key, one) for one in terms]
        for weight, key, question in weighed:
            tally = _tally(question, key, cluster)
            if tally.occupied:
                score = tally.counts if weight == 1 else weight * tally.counts
                scores[key] = scores[key] + score if key in scores else score
        return scores

    def score_labels(self, state: CycleState) -> tuple[str, ...]:
        return tuple(state[f"{self.name}/score"])

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        by_key: dict[str, Ints] = state[f"{self.name}/score"]
        found = [scores.take(nodes.codes(key)) for key, scores in by_key.items()]
        if not found:
            return np.zeros(len(nodes), dtype=np.int64)
        total, *others = found
        for added in others:
            total += added
        return total

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        by_key: dict[str, Ints] = state[f"{self.name}/score"]
        return sum([scores.item(node.code(key)) for key, scores in by_key.items()])

    def score_lines(self, state: CycleState, pod: Pod, node: NodeInfo) -> Sequence[str]:
        by_key: dict[str, Ints] = state[f"{self.name}/score"]
        points = {key: int(scores.item(node.code(key))) for key, scores in by_key.items()}
        lines = [f"{key}: pods with the same value add {number:,}" for key, number in points.items()]
        return [*lines, f"the sum: {sum(points.values()):,}"]

    def normalize_lines(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes, place: int) -> Sequence[str]:
        least, most, score = lowest(scores), highest(scores), int(scores[place])
        if least == most:
            return ["all nodes have the same, so each gets 0"]
        result = int(self.normalize(state, pod, scores, nodes)[place])
        return [f"100 * ({score:,} - {least:,}) / ({most:,} - {least:,}), from lowest to highest = {result}"]

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        least, most = lowest(scores), highest(scores)
        if least == most:
            return np.zeros(len(scores), dtype=np.int64)
        share = (scores - least) / float(most - least)
        share *= float(MAX_NODE_SCORE)
        return share.astype(np.int64)

    def events_to_register(self) -> Sequence[EventHint] | None:
        rules = self.release_rules
        changes = Action.UPDATE_POD_LABEL if rules.pod_updates_name_their_part else Action.UPDATE
        of_nodes = Action.ADD | Action.UPDATE_NODE_LABEL
        if rules.taints_stand_for_added_nodes and not rules.node_updates_name_their_part:
            of_nodes |= Action.UPDATE_NODE_TAINT
        return (
            EventHint("Pod", Action.ADD | changes | Action.DELETE, self.changes_affinity),
            EventHint("Node", of_nodes, self.changes_topology),
        )

    def changes_affinity(self, waiting: WaitingPod, old: Pod | None, new: Pod | None) -> bool:
        """Whether a pod was added that the waiting pod has affinity to, or one was removed that kept it away."""
        looks_further = self.release_rules.hints_count_nominated_pods
        if looks_further and old is not None and waiting.is_same(new):
            return True
        counts = is_placed if looks_further else _is_bound
        if any(pod is not None and not counts(pod) for pod in (old, new)):
            return False
        terms = waiting.info.terms
        if old is not None and new is not None:
            comes = _meets_all(terms.required_affinity, new) and not _meets_all(terms.required_affinity, old)
            leaves = self._avoids(terms.required_anti_affinity, old) and not self._avoids(
                terms.required_anti_affinity, new
            )
            return comes or leaves
        if new is not None:
            return _meets_all(terms.required_affinity, new)
        assert old is not None
        if self._avoids(terms.required_anti_affinity, old):
            return True
        return looks_further and self._avoids(
            affinity_terms(old, self.release_rules).required_anti_affinity, waiting.pod
        )

    def _avoids(self, terms: tuple[Term, ...], pod: Pod) -> bool:
        """Whether anti-affinity terms exclude a pod, as the queueing hints check it."""
        if not self.release_rules.any_anti_affinity_term_counts:
            return _meets_all(terms, pod)
        return any(term.matches(pod.namespace, pod.metadata.labels, {}) for term in terms)

    def changes_topology(self, waiting: WaitingPod, old: Node | None, new: Node) -> bool:
        """Whether a node joined a domain of one of the waiting pod's terms, or left a domain that it avoids."""
        after = new.metadata.labels
        required, anti = waiting.info.terms.required_affinity, waiting.info.terms.required_anti_affinity
        if not self.release_rules.affinity_compares_topology:
            return any(term.topology_key in after for term in (*required, *anti))
        if old is None:
            return bool(anti) or any(term.topology_key in after for term in required)
        before = old.metadata.labels
        joins = any(t.topology_key in after and before.get(t.topology_key) != after[t.topology_key] for t in required)
        return joins or any(
            t.topology_key in before and before[t.topology_key] != after.get(t.topology_key) for t in anti
        )

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        by_reason = {
            self.REASON_AFFINITY: pod_affinity_obstacles,
            self.REASON_ANTI_AFFINITY: anti_affinity_obstacles,
            self.REASON_EXISTING: existing_anti_affinity_obstacles,
        }
        found: dict[str, list[Obstacle]] = {}
        for reason, obstacles in by_reason.items():
            statuses = {node: status for node, status in rejected.statuses.items() if reason in status.reasons}
            if statuses:
                found |= obstacles(rejected._replace(statuses=statuses), rejected.cluster.rules)
        return found

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        by_reason = {
            self.REASON_AFFINITY: pod_affinity_fixes,
            self.REASON_ANTI_AFFINITY: anti_affinity_fixes,
            self.REASON_EXISTING: existing_anti_affinity_fixes,
        }
        given = [reason for reason in by_reason if reason in rejected.status.reasons]
        # v1.8 does not report which of the three rules rejected the node.
        for reason in given or by_reason:
            yield from by_reason[reason](rejected)


def _has_preferences(info: PodInfo) -> bool:
    return bool(info.terms.preferred_affinity or info.terms.preferred_anti_affinity)


def _is_bound(pod: Pod) -> bool:
    return bool(pod.spec.node_name)


def _meets_all(terms: tuple[Term, ...], pod: Pod) -> bool:
    """Whether all terms select the pod; False without terms. Hints ignore the labels of namespaces."""
    return bool(terms) and all(term.matches(pod.namespace, pod.metadata.labels, {}) for term in terms)


def _tally(question: Matching | Owning, key: str, cluster: Cluster) -> DomainTally:
    """The number of pods for a term's question, by the values of its topology key."""
    return cluster.census.tally(question).by_domain(key)
