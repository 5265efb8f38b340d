"""MatchInterPodAffinity and InterPodAffinityPriority, and the plugin of v1.18 that is both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from podium.cluster import Cluster, Nodes, PodInfo
from podium.cluster.census import Matching, Scope, TermKind
from podium.cluster.columns import Ints, Mask
from podium.framework import SKIP, SUCCESS, CycleState, PreFilterResult, Status, Verdict
from podium.model import Pod
from podium.plugins.inter_pod_affinity import InterPodAffinity, existing_terms, own_terms
from podium.releases.reasons import (
    AFFINITY_RULES,
    ANTI_AFFINITY_RULES,
    EXISTING_ANTI_AFFINITY,
    POD_AFFINITY,
    Reason,
    rejection,
)
from podium.releases.rules import OfRelease

_KIND: TermKind = "required_anti_affinity"


@dataclass(slots=True)
class _Found:
    """What decides whether a node fits: pods per domain, by the label that makes the domains."""

    existing: list[tuple[str, Ints]]
    affinity: list[tuple[str, Ints]] = field(default_factory=list)
    anti_affinity: list[tuple[str, Ints]] = field(default_factory=list)
    waived: list[bool] = field(default_factory=list)
    """Per affinity term, whether any node will do, because no pod matches it yet but the pod itself."""


class LegacyInterPodAffinity(OfRelease, InterPodAffinity):
    """Reject nodes by required terms of the pod and of pods there; score by preferred terms of both.

    Which pods pull and push in the score is as in today's plugin; the scale and what fits are not.
    """

    def concerns(self, info: PodInfo, cluster: Cluster) -> bool:
        # Where no terms matter, every node still gets a score.
        return True

    # -- filtering

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        cluster, terms = nodes.cluster, state.info.terms
        found = state[self.name] = _Found(list(self._kept_out(state.info, cluster)))
        if not found.existing and not terms.required_affinity and not terms.required_anti_affinity:
            return PreFilterResult(SKIP)
        own = own_terms(state.info, cluster)
        scopes = own.together.scopes
        questions = [question if self.rules.affinity_term_by_term else own.together for _, question in own.affinity]
        keys = [key for key, _ in own.affinity]
        found.affinity = [_domains(key, question, cluster) for key, question in zip(keys, questions, strict=True)]
        found.waived = self._waived(found, scopes, questions, pod, cluster)
        found.anti_affinity = [_domains(key, question, cluster) for key, question in own.anti_affinity]
        return PreFilterResult()

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
        """The domains that running pods keep this pod out of."""
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
        return rejection([POD_AFFINITY] if self.rules.bare_reasons else [POD_AFFINITY, reason], self.rules)

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
    """Whether each node is in one of the domains that have pods."""
    mask = np.zeros(len(nodes), dtype=np.bool_)
    for key, counts in domains:
        mask |= _rows_with(key, counts, nodes)
    return mask
