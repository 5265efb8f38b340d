"""InterPodAffinity: pods that want to be, or not to be, where certain other pods are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from podium.cluster import Cluster, NodeInfo, Nodes, PodInfo
from podium.cluster.columns import Ints, Mask
from podium.cluster.counts import DomainTally, Matching, Owning, Scope, TermKind
from podium.cluster.pods import NO_TERMS, Term, Terms
from podium.config.args import InterPodAffinityArgs
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
from podium.objects import Namespace, Pod

ANTI: TermKind = "required_anti_affinity"
PASSED, SKIPPED = PreFilterResult(), PreFilterResult(SKIP)
PREFERENCES: tuple[tuple[TermKind, int], ...] = (("preferred_affinity", 1), ("preferred_anti_affinity", -1))


def scope_of(term: Term, cluster: Cluster) -> Scope:
    """The pods an incoming pod's term means.

    A namespaceSelector adds the namespaces it matches. One that even a namespace without labels would match means
    all of them: the scheduler tries it on no labels for every pod, besides the namespaces it found.
    """
    if term.namespace_selector.matches({}):
        return Scope(None, term.selector)
    if term.namespace_selector.nothing:
        return Scope(term.namespaces, term.selector)
    found = {n.name for n in cluster.store.of(Namespace) if term.namespace_selector.matches(n.metadata.labels)}
    return Scope(term.namespaces | found, term.selector)


def existing_terms(kind: TermKind, info: PodInfo, cluster: Cluster) -> list[Owning]:
    """The terms of pods in the cluster that mean the incoming pod, as questions for how many pods carry them."""
    live = cluster.census.terms[kind]
    if not live:
        return []
    memo, key, version = info.memo, ("existing_terms", kind), (live.version, cluster.store.version)
    known: tuple[tuple[int, int], list[Owning]] | None = memo.get(key)
    if known is None or known[0] != version:
        labels = cluster.namespace_labels(info.namespace)
        terms = live.matching(info.namespace, info.labels, labels)
        known = memo[key] = version, [Owning(kind, term) for term in terms]
    return known[1]


def own_terms(kind: TermKind, info: PodInfo, cluster: Cluster) -> list[tuple[Term, Matching]]:
    """The incoming pod's terms, each with the question for how many pods it means."""
    memo, key = info.memo, ("own_terms", kind)
    known: tuple[int, list[tuple[Term, Matching]]] | None = memo.get(key)
    if known is None or known[0] != cluster.store.version:
        terms: tuple[Term, ...] = getattr(info.terms, kind)
        found = [(term, Matching((scope_of(term, cluster),))) for term in terms]
        known = memo[key] = cluster.store.version, found
    return known[1]


def all_own_terms(info: PodInfo, cluster: Cluster) -> Matching:
    """The question for how many pods all required affinity terms of the incoming pod mean at once."""
    memo, key = info.memo, "all_own_terms"
    known: tuple[int, Matching] | None = memo.get(key)
    if known is None or known[0] != cluster.store.version:
        terms = own_terms("required_affinity", info, cluster)
        question = Matching(tuple(scope for _, one in terms for scope in one.scopes))
        known = memo[key] = cluster.store.version, question
    return known[1]


class Domains(NamedTuple):
    """How many pods there are of what a term asks for, by the values of its label key."""

    key: str
    tally: DomainTally

    def occupied(self, nodes: Nodes) -> Mask:
        """Whether each node is in a domain with such pods."""
        return nodes.take(self.tally.occupied_rows())


@dataclass(slots=True)
class _FilterState:
    terms: Terms
    affinity: list[Domains]
    """Per required term, the pods that match all terms."""
    anti_affinity: list[Domains]
    existing_anti_affinity: list[Domains]
    matches_itself: bool


class InterPodAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Reject nodes by required terms of the pod and of pods there; score by preferred terms of both."""

    name = "InterPodAffinity"
    REASON_AFFINITY = "node(s) didn't match pod affinity rules"
    REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
    REASON_EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._args = args if isinstance(args, InterPodAffinityArgs) else InterPodAffinityArgs()

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        cluster, terms = nodes.cluster, state.info.terms
        if terms is NO_TERMS and not cluster.census.with_terms:
            return SKIPPED
        info = state.info
        existing = [_domains(one, one.term, cluster) for one in existing_terms(ANTI, info, cluster)]
        existing = [domains for domains in existing if domains.tally.occupied]
        if not existing and not terms.required_affinity and not terms.required_anti_affinity:
            return SKIPPED
        anti_affinity = [_domains(question, term, cluster) for term, question in own_terms(ANTI, info, cluster)]
        state[self.name] = found = _FilterState(terms, [], anti_affinity, existing, False)
        if terms.required_affinity:
            everyone = all_own_terms(info, cluster)
            found.affinity = [_domains(everyone, term, cluster) for term in terms.required_affinity]
            found.matches_itself = all(scope.matches(pod.namespace, info.labels) for scope in everyone.scopes)
        return PASSED

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status:
        """Heed anti-affinity that no pod had at PreFilter. The counts as such follow the cluster by themselves."""
        if added.spec.affinity is not None and added.spec.affinity.pod_anti_affinity is not None:
            self.pre_filter(state, pod, node.cluster.nodes)
        return SUCCESS

    def filter_labels(self, state: CycleState) -> tuple[str, ...]:
        found: _FilterState = state[self.name]
        domains = (*found.affinity, *found.anti_affinity, *found.existing_anti_affinity)
        return tuple(dict.fromkeys([each.key for each in domains]))

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        found: _FilterState = state[self.name]
        codes = np.zeros(len(nodes), dtype=np.int64)
        for domains in found.existing_anti_affinity:
            np.putmask(codes, domains.occupied(nodes), 3)
        for domains in found.anti_affinity:
            np.putmask(codes, domains.occupied(nodes), 2)
        if found.affinity:
            np.putmask(codes, ~self._affinity_holds(found, nodes), 1)
        return Verdict(codes, self._describe)

    def _describe(self, code: int) -> Status:
        if code == 1:
            return Status.unresolvable(self.REASON_AFFINITY)
        return Status.unschedulable(self.REASON_ANTI_AFFINITY if code == 2 else self.REASON_EXISTING)

    def _affinity_holds(self, found: _FilterState, nodes: Nodes) -> Mask:
        holds = np.ones(len(nodes), dtype=np.bool_)
        # The first pod of a group that wants to be together may go anywhere that has the labels.
        is_first = found.matches_itself and not any(domains.tally.occupied for domains in found.affinity)
        for domains in found.affinity:
            holds &= nodes.codes(domains.key) >= 0 if is_first else domains.occupied(nodes)
        return holds

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        terms = state.info.terms
        if terms is NO_TERMS and not nodes.cluster.census.with_terms:
            return SKIP
        has_preferences = bool(terms.preferred_affinity or terms.preferred_anti_affinity)
        if self._args.ignore_preferred_terms_of_existing_pods and not has_preferences:
            return SKIP
        by_key = self._topology_scores(state.info, nodes.cluster)
        if not by_key:
            return SKIP
        state[f"{self.name}/score"] = by_key
        return SUCCESS

    def _topology_scores(self, info: PodInfo, cluster: Cluster) -> dict[str, Ints]:
        """Per label key, the score of each of its domains; empty when no pod matters."""
        scores: dict[str, Ints] = {}
        for weight, (key, tally) in (*_own_preferences(info, cluster), *self._existing_preferences(info, cluster)):
            if tally.occupied:
                scores[key] = scores.get(key, 0) + weight * tally.counts
        return scores

    def _existing_preferences(self, info: PodInfo, cluster: Cluster) -> Iterator[tuple[int, Domains]]:
        """Weight and pods of the terms in the cluster that pull or push the incoming pod."""
        hard = self._args.hard_pod_affinity_weight
        if hard > 0:
            for one in existing_terms("required_affinity", info, cluster):
                yield hard, _domains(one, one.term, cluster)
        for kind, sign in PREFERENCES:
            for one in existing_terms(kind, info, cluster):
                yield sign * one.term.weight, _domains(one, one.term, cluster)

    def score_labels(self, state: CycleState) -> tuple[str, ...]:
        return tuple(state[f"{self.name}/score"])

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        total = np.zeros(len(nodes), dtype=np.int64)
        for key, scores in state[f"{self.name}/score"].items():
            total += scores.take(nodes.codes(key))
        return total

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        lowest, highest = int(scores.min()), int(scores.max())
        if lowest == highest:
            return np.zeros_like(scores)
        return (float(MAX_NODE_SCORE) * ((scores - lowest) / float(highest - lowest))).astype(np.int64)


def _own_preferences(info: PodInfo, cluster: Cluster) -> Iterator[tuple[int, Domains]]:
    """Weight and matching pods of the incoming pod's preferred terms."""
    for kind, sign in PREFERENCES:
        for term, question in own_terms(kind, info, cluster):
            yield sign * term.weight, _domains(question, term, cluster)


def _domains(question: Matching | Owning, term: Term, cluster: Cluster) -> Domains:
    return Domains(term.topology_key, cluster.census.tally(question).by_domain(term.topology_key))
