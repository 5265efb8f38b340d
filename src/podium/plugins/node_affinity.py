"""NodeAffinity: nodeSelector, required and preferred node affinity, and the profile's added affinity."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import msgspec
import numpy as np

from podium.cluster import Aspect, Nodes
from podium.cluster.columns import Ints
from podium.config.plugin_args import NodeAffinityArgs
from podium.framework.events import Action, EventHint, WaitingPod
from podium.framework.fast_paths import NormalizesByMax
from podium.framework.plugin import (
    CycleState,
    FilterPlugin,
    PodView,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
)
from podium.framework.status import SKIP, SUCCESS, Status, Verdict
from podium.model import Node, NodeSelector, Pod, PodSpec
from podium.model import NodeAffinity as Affinity
from podium.model.selectors import NodeTerm, node_term, node_terms, required_node_affinity

_encode = msgspec.json.encode


def _affinity(spec: PodSpec) -> Affinity | None:
    return spec.affinity.node_affinity if spec.affinity else None


def _preferences(affinity: Affinity | None) -> list[tuple[int, NodeTerm]]:
    """Weights and terms; a term without weight or content means nothing."""
    terms = [(raw.weight, node_term(raw.preference)) for raw in affinity.preferred] if affinity else []
    return [(weight, term) for weight, term in terms if weight and term is not None]


class NodeAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, NormalizesByMax):
    """Reject nodes that the pod's nodeSelector or required affinity excludes; prefer those its preferences like."""

    name = "NodeAffinity"
    title = "NodeAff"
    reads = Aspect.LABELS
    REASON_POD = "node(s) didn't match Pod's node affinity/selector"
    REASON_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
    REASON_CONFLICT = "pod affinity terms conflict"

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        added = args.added_affinity if isinstance(args, NodeAffinityArgs) else None
        self._added_terms = node_terms(added.required) if added and added.required else None
        self._added_preferences = _preferences(added)
        self._adds_preferences = bool(added and added.preferred)

    def sign(self, pod: PodView) -> Hashable:
        selector, affinity = pod.spec.node_selector, _affinity(pod.spec)
        return None if selector is None and affinity is None else _encode((selector, affinity))

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        affinity = _affinity(pod.spec)
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
        affinity = _affinity(pod.spec)
        scores = self._adds_preferences or (affinity and affinity.preferred)
        return SUCCESS if scores or not self.release_rules.node_affinity_skips_score else SKIP

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        """The sum of the weights of the preferences a node meets."""
        total = np.zeros(len(nodes), dtype=np.int64)
        for weight, term in (*self._added_preferences, *_preferences(_affinity(pod.spec))):
            total += weight * nodes.matching_term(term)
        return total

    def events_to_register(self) -> Sequence[EventHint]:
        return (EventHint("Node", Action.ADD | Action.UPDATE_NODE_LABEL, self.matches_now),)

    def matches_now(self, waiting: WaitingPod, old: Node | None, new: Node) -> bool:
        """Whether the node matches the waiting pod's and the profile's affinity, and did not match the pod's before."""
        terms = self._added_terms
        if terms is not None and not any(term.matches(new.metadata.labels, new.name) for term in terms):
            return False
        wanted = required_node_affinity(waiting.pod)
        if not wanted.matches(new.metadata.labels, new.name):
            return False
        return old is None or not wanted.matches(old.metadata.labels, old.name)


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
