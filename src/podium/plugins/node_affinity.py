"""NodeAffinity: nodeSelector, required and preferred node affinity, and the profile's added affinity."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace as replace_data

import msgspec
import numpy as np
from msgspec.structs import replace

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes
from podium.cluster.columns import Ints
from podium.config.plugin_args import NodeAffinityArgs
from podium.framework import Action, Change, EventHint, Obstacle, RejectedNodes, RejectedPod, WaitingPod
from podium.framework.events import node_update
from podium.framework.fast_paths import NormalizesByMax
from podium.framework.obstacle import SpecPart, unmet_label
from podium.framework.plugin import CycleState, FilterPlugin, PodView, PreFilterPlugin, PreScorePlugin
from podium.framework.status import SKIP, SKIPPED, SUCCESS, PreFilterResult, Status, Verdict
from podium.framework.suggested_change import edit_pod, label_node, set_args
from podium.model import Node, NodeSelector, Pod, PodSpec, SelectorRequirement
from podium.model import NodeAffinity as Affinity
from podium.model.selectors import (
    NodeTerm,
    Requirement,
    condition_text,
    node_term,
    node_terms,
    required_node_affinity,
    requirement_text,
)

_encode = msgspec.json.encode


def _affinity(spec: PodSpec) -> Affinity | None:
    return spec.affinity.node_affinity if spec.affinity else None


def _preferences(affinity: Affinity | None) -> list[tuple[int, NodeTerm]]:
    """Weights and terms; a term without weight or content is left out."""
    terms = [(raw.weight, node_term(raw.preference)) for raw in affinity.preferred] if affinity else []
    return [(weight, term) for weight, term in terms if weight and term is not None]


class NodeAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, NormalizesByMax):
    """Reject nodes that the pod's nodeSelector or required affinity excludes; prefer nodes that meet its
    preferences.
    """

    name = "NodeAffinity"
    title = "NodeAff"
    constraint = SpecPart.NODE_AFFINITY
    reads = Aspect.LABELS
    REASON_POD = "node(s) didn't match Pod's node affinity/selector"
    REASON_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
    REASON_CONFLICT = "pod affinity terms conflict"

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._args = args if isinstance(args, NodeAffinityArgs) else NodeAffinityArgs()
        added = self._args.added_affinity
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
            return SKIPPED
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
        for weight, term in self._all_preferences(pod):
            total += weight * nodes.matching_term(term)
        return total

    def score_lines(self, state: CycleState, pod: Pod, node: NodeInfo) -> Sequence[str]:
        lines, met = [], []
        for weight, term in self._all_preferences(pod):
            wanted = " and ".join(map(requirement_text, (*term.labels, *term.names)))
            is_met = term.matches(node.labels, node.name)
            met += [weight] if is_met else []
            lines.append(f"prefers {wanted}, weight {weight}: {'met' if is_met else 'not met'}")
        return [*lines, f"the weights of what is met: {sum(met)}"]

    def _all_preferences(self, pod: Pod) -> list[tuple[int, NodeTerm]]:
        return [*self._added_preferences, *_preferences(_affinity(pod.spec))]

    def events_to_register(self) -> Sequence[EventHint]:
        of_nodes = Action.ADD | node_update(Action.UPDATE_NODE_LABEL, self.release_rules)
        return (EventHint("Node", of_nodes, self.matches_now),)

    def matches_now(self, waiting: WaitingPod, old: Node | None, new: Node) -> bool:
        """Whether the node matches the waiting pod's and the profile's affinity, and did not match the pod's before."""
        terms = self._added_terms
        if terms is not None and not any(term.matches(new.metadata.labels, new.name) for term in terms):
            return False
        wanted = required_node_affinity(waiting.pod)
        if not wanted.matches(new.metadata.labels, new.name):
            return False
        before = old if self.release_rules.hints_compare_nodes else None
        return before is None or not wanted.matches(before.metadata.labels, before.name)

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        return node_affinity_obstacles(rejected, self._added_terms)

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        yield from node_affinity_fixes(rejected, self._added_terms)
        added = self._args.added_affinity
        if added is not None and added.required is not None:
            profile = rejected.pod.spec.scheduler_name
            text = f"drop the required addedAffinity of NodeAffinity in profile {profile}"
            kept = replace_data(self._args, added_affinity=replace(added, required=None))
            yield set_args(profile, self.name, text, kept)

    def score_fixes(self, pod: Pod, node: str, cluster: Cluster) -> Iterator[Change]:
        return preference_fixes(pod, node, cluster)


def _named_nodes(required: NodeSelector) -> frozenset[str] | None:
    """The only nodes that can match, if every term names nodes; None if a term does not."""
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


# -- what is in the way --------------------------------------------------------------------------------------------


def node_affinity_obstacles(
    rejected: RejectedNodes, added: Sequence[NodeTerm] | None = None
) -> dict[str, list[Obstacle]]:
    """The labels that do not meet the pod's requirements; `added` are the terms that the profile requires as well."""
    wanted = required_node_affinity(rejected.pod)
    found = {}
    for node in rejected.statuses:
        labels = rejected.cluster.node(node).metadata.labels
        selected = [unmet_label("nodeSelector", each, labels) for each in wanted.labels if not each.matches(labels)]
        own = [] if wanted.terms is None else _unmet_terms("required node affinity", wanted.terms, node, labels)
        enforced = [] if added is None else _unmet_terms("the profile's addedAffinity", added, node, labels)
        found[node] = [*selected, *own, *enforced]
    return found


def _unmet_terms(owner: str, terms: Sequence[NodeTerm], node: str, labels: Mapping[str, str]) -> list[Obstacle]:
    """The unmet requirements of the term that the node comes closest to; empty if one of the terms matches."""
    if any(term.matches(labels, node) for term in terms):
        return []
    if not terms:
        return [Obstacle("label", f"{owner} has no term that matches any node")]
    unmet = [
        [
            *[unmet_label(owner, each, labels) for each in term.labels if not each.matches(labels)],
            *[_unmet_name(owner, each) for each in term.names if not each.matches_value(node)],
        ]
        for term in terms
    ]
    closest = min(unmet, key=len)
    if len(terms) > 1:
        closest[0] = replace_data(closest[0], text=f"{closest[0].text} (the closest of {len(terms)} terms)")
    return closest


def _unmet_name(owner: str, requirement: Requirement) -> Obstacle:
    wanted = condition_text(requirement)
    return Obstacle("name", f"{owner} wants metadata.name {wanted}", {"field": "metadata.name", "wants": wanted})


# -- what a rejected user can do -----------------------------------------------------------------------------------


def node_affinity_fixes(rejected: RejectedPod, added: Sequence[NodeTerm] | None = None) -> Iterator[Change]:
    """Label the node, or drop a requirement of the pod; `added` are the terms that the profile requires as well."""
    yield from _label_fixes(rejected, added)
    yield from _drop_fixes(rejected)


def _label_fixes(rejected: RejectedPod, added: Sequence[NodeTerm] | None) -> Iterator[Change]:
    """The labels that the node lacks to meet the nodeSelector and one of the terms; one change per term."""
    spec = rejected.pod.spec
    selected = tuple(
        Requirement(key, "In", frozenset((value,))) for key, value in sorted((spec.node_selector or {}).items())
    )
    required = _required(spec)
    terms = [()] if required is None else [term.labels for term in node_terms(required) if _names(term, rejected.node)]
    enforced = [()] if added is None else [term.labels for term in added]
    for term in terms:
        for more in enforced:
            unmet = [each for each in (*selected, *term, *more) if not each.matches(rejected.node_labels)]
            if unmet:
                yield from label_node(rejected.node, {each.key: value_for(each) for each in unmet})


def _required(spec: PodSpec) -> NodeSelector | None:
    affinity = _affinity(spec)
    return affinity.required if affinity else None


def _names(term: NodeTerm, node: str) -> bool:
    return all(requirement.matches_value(node) for requirement in term.names)


def value_for(requirement: Requirement) -> str | None:
    """A label value that meets the requirement; None if the label must not exist."""
    match requirement.operator:
        case "In":
            return min(requirement.values)
        case "Exists":
            return "true"
        case "Gt" | "Lt":
            bound = int(next(iter(requirement.values)))
            return str(bound + 1 if requirement.operator == "Gt" else bound - 1)
    return None


def _drop_fixes(rejected: RejectedPod) -> Iterator[Change]:
    """Drop a label of the nodeSelector, a requirement, or all required terms."""
    pod, labels = rejected.pod, rejected.node_labels
    for key, value in (pod.spec.node_selector or {}).items():
        if labels.get(key) != value:
            text = f"drop {key}={value} from the pod's nodeSelector"
            yield edit_pod("drop-node-selector", text, pod, 3, _without_selector(key))
    required = _required(pod.spec)
    terms = required.node_selector_terms if required is not None else []
    if len(terms) == 1 and not terms[0].match_fields and len(terms[0].match_expressions) > 1:
        for expression in terms[0].match_expressions:
            if not Requirement(expression.key, expression.operator, frozenset(expression.values)).matches(labels):
                text = f"drop {requirement_text(expression)} from the pod's required node affinity"
                yield edit_pod("drop-node-affinity", text, pod, 3, _without_expression(expression))
    if required is not None:
        text = "drop the pod's required node affinity"
        yield edit_pod("drop-node-affinity", text, pod, 5, lambda before: _with_required(before, None))


def _without_selector(key: str) -> Callable[[Pod], Pod]:
    def edit(before: Pod) -> Pod:
        kept = {each: value for each, value in (before.spec.node_selector or {}).items() if each != key}
        return replace(before, spec=replace(before.spec, node_selector=kept or None))

    return edit


def _without_expression(expression: SelectorRequirement) -> Callable[[Pod], Pod]:
    def edit(before: Pod) -> Pod:
        required = _required(before.spec)
        if required is None:
            return before
        terms = [
            replace(term, match_expressions=[each for each in term.match_expressions if each != expression])
            for term in required.node_selector_terms
        ]
        return _with_required(before, replace(required, node_selector_terms=terms))

    return edit


def _with_required(pod: Pod, required: NodeSelector | None) -> Pod:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return pod
    changed = replace(affinity, node_affinity=replace(affinity.node_affinity, required=required))
    return replace(pod, spec=replace(pod.spec, affinity=changed))


def preference_fixes(pod: Pod, node: str, cluster: Cluster) -> Iterator[Change]:
    """The labels that the node lacks to meet a preference of the pod, the heaviest preference first."""
    labels, affinity = cluster.node(node).metadata.labels, _affinity(pod.spec)
    for each in sorted(affinity.preferred, key=lambda each: -each.weight) if affinity else ():
        term = node_term(each.preference)
        unmet = [requirement for requirement in (term.labels if term else ()) if not requirement.matches(labels)]
        if unmet:
            yield from label_node(node, {requirement.key: value_for(requirement) for requirement in unmet})
