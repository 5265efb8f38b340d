"""NodeAffinity: nodeSelector, required and preferred node affinity, and the profile's added affinity."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec
import numpy as np

from podium.cluster import Aspect, Nodes, PodInfo
from podium.cluster.columns import Ints
from podium.config.plugin_args import NodeAffinityArgs
from podium.framework.plugin import (
    CycleState,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    of_spec,
)
from podium.framework.status import SKIP, SUCCESS, Status, Verdict
from podium.model import NodeAffinity as Affinity
from podium.model import NodeSelector, Pod
from podium.model.selectors import NodeTerm, node_term, node_terms, required_node_affinity
from podium.plugins.normalize import normalize_by_max

_encode = msgspec.json.encode


def _affinity(pod: Pod) -> Affinity | None:
    return pod.spec.affinity.node_affinity if pod.spec.affinity else None


def _preferences(affinity: Affinity | None) -> list[tuple[int, NodeTerm]]:
    """Weights and terms; a term without weight or content means nothing."""
    terms = [(raw.weight, node_term(raw.preference)) for raw in affinity.preferred] if affinity else []
    return [(weight, term) for weight, term in terms if weight and term is not None]


class NodeAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Reject nodes that the pod's nodeSelector or required affinity excludes; prefer those its preferences like."""

    name = "NodeAffinity"
    reads = Aspect.LABELS
    normalizes_by_max = True
    REASON_POD = "node(s) didn't match Pod's node affinity/selector"
    REASON_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
    REASON_CONFLICT = "pod affinity terms conflict"

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        added = args.added_affinity if isinstance(args, NodeAffinityArgs) else None
        self._added_terms = node_terms(added.required) if added and added.required else None
        self._added_preferences = _preferences(added)
        self._adds_preferences = bool(added and added.preferred)

    @of_spec
    def key(self, info: PodInfo) -> Hashable:
        selector, affinity = info.pod.spec.node_selector, _affinity(info.pod)
        return None if selector is None and affinity is None else _encode((selector, affinity))

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        affinity = _affinity(pod)
        required = affinity.required if affinity else None
        if required is None and self._added_terms is None and pod.spec.node_selector is None:
            return PreFilterResult(SKIP)
        names = _named_nodes(required) if required else None
        if names is not None and not names:
            return PreFilterResult(Status.unresolvable(self.REASON_CONFLICT))
        return PreFilterResult(node_names=names)

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        codes = np.where(nodes.matching(required_node_affinity(pod)), 0, 2)
        if self._added_terms is not None:
            enforced = np.zeros(len(nodes), dtype=np.bool_)
            for term in self._added_terms:
                enforced |= nodes.matching_term(term)
            codes[~enforced] = 1
        return Verdict.choose(codes, (Status.unresolvable(self.REASON_ENFORCED), Status.unresolvable(self.REASON_POD)))

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        affinity = _affinity(pod)
        return SUCCESS if self._adds_preferences or (affinity and affinity.preferred) else SKIP

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        """The sum of the weights of the preferences a node meets."""
        total = np.zeros(len(nodes), dtype=np.int64)
        for weight, term in (*self._added_preferences, *_preferences(_affinity(pod))):
            total += weight * nodes.matching_term(term)
        return total

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        return normalize_by_max(scores)


def _named_nodes(required: NodeSelector) -> frozenset[str] | None:
    """The only nodes the terms can mean, when every term names some; None when a term leaves them open."""
    union: frozenset[str] | None = None
    for term in required.node_selector_terms:
        named: frozenset[str] | None = None
        for field in term.match_fields:
            if field.key == "metadata.name" and field.operator == "In":
                values = frozenset(field.values)
                named = values if named is None else named & values
        if named is None:
            return None
        union = named if union is None else union | named
    return union
