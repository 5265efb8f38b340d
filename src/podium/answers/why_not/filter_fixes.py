"""What would make a filter pass a node that it rejects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace as replace_data
from typing import NamedTuple

from msgspec.structs import replace

from podium.answers.why_not.pod_affinity_fixes import inter_pod_affinity, topology_spread
from podium.answers.why_not.resource_fixes import evictable, resources
from podium.answers.why_not.suggested_change import (
    Change,
    Situation,
    edit_pod,
    evict,
    label_node,
    remove_gates,
    remove_taint,
    set_args,
    tolerate,
    uncordon,
)
from podium.cluster.pods import HostPort, host_ports
from podium.config import NodeAffinityArgs
from podium.engine import Decision
from podium.framework import Code, Status
from podium.model import Affinity, Container, NodeSelector, Pod, SelectorRequirement
from podium.model.selectors import NodeTerm, Requirement, node_terms, untolerated
from podium.plugins.node_affinity import NodeAffinity
from podium.plugins.node_unschedulable import CORDONED
from podium.releases.predicates import NodeLabelArgs
from podium.releases.reasons import HOST_PORTS, NODE_SELECTOR
from podium.releases.rules import V1_8

MOST_EVICTED = 3
"""How many pods one change evicts at most."""
MOST_SINGLE = 5
"""How many pods are tried one by one where nothing says which is in the way."""


class Rejected(NamedTuple):
    """A situation in which a node is rejected, and by what."""

    situation: Situation
    node: str
    status: Status
    narrowed_by: tuple[str, ...] = ()
    """The plugins that left only other nodes to look at, where that is what rejects the node."""

    @property
    def pod(self) -> Pod:
        return self.situation.pod


def rejection(decision: Decision, node: str) -> Status | None:
    """Why the node is out; None if it is feasible, or was not looked at because enough others were."""
    if decision.error:
        return Status.unresolvable(decision.error)
    if node in decision.feasible:
        return None
    found = decision.rejected.get(node) or decision.absent
    return found if found is not None and found.reasons else None


def fixes(rejected: Rejected) -> Iterator[Change]:
    """Changes each of which may let the node pass what rejects it; whether they do is for the decision to say."""
    if rejected.pod.spec.scheduling_gates:
        yield remove_gates(rejected.pod)
        return
    plugin = rejected.status.plugin
    if not plugin and NodeAffinity.name in rejected.narrowed_by:
        plugin = NodeAffinity.name
    known = _FIXES.get(plugin, _node_label)
    found = list(known(rejected))
    if not found and rejected.status.code is Code.UNSCHEDULABLE:
        found = [evict([pod]) for pod in evictable(rejected.situation, rejected.node)[:MOST_SINGLE]]
    yield from found


def _node_unschedulable(rejected: Rejected) -> Iterator[Change]:
    yield uncordon(rejected.node)
    yield tolerate(rejected.pod, CORDONED)


def _taint_toleration(rejected: Rejected) -> Iterator[Change]:
    node = rejected.situation.cluster.node(rejected.node)
    taint = untolerated(node.spec.taints, rejected.pod.spec.tolerations)
    if taint is not None:
        is_cordon = taint.key == CORDONED.key and node.spec.unschedulable
        yield uncordon(rejected.node) if is_cordon else remove_taint(rejected.node, taint)
        yield tolerate(rejected.pod, taint)


def _node_name(rejected: Rejected) -> Iterator[Change]:
    def edit(before: Pod) -> Pod:
        return replace(before, spec=replace(before.spec, node_name=""))

    yield edit_pod("clear-node-name", "clear the pod's nodeName", rejected.pod, 2, edit)


# -- node affinity -------------------------------------------------------------------------------------------------


def _node_affinity(rejected: Rejected) -> Iterator[Change]:
    yield from _by_labels(rejected)
    yield from _by_dropping(rejected)
    yield from _by_dropping_added(rejected)


def _by_labels(rejected: Rejected) -> Iterator[Change]:
    """Labels that the node lacks for the nodeSelector together with each of the terms, any of which suffices."""
    pod, labels = rejected.pod, rejected.situation.cluster.node(rejected.node).metadata.labels
    selected = tuple(
        Requirement(key, "In", frozenset((value,))) for key, value in sorted((pod.spec.node_selector or {}).items())
    )
    required = _required(pod)
    terms = [()] if required is None else [term.labels for term in node_terms(required) if _names(term, rejected.node)]
    enforced = [()] if _added(rejected) is None else [term.labels for term in _added(rejected) or ()]
    for term in terms:
        for added in enforced:
            unmet = [each for each in (*selected, *term, *added) if not each.matches(labels)]
            if unmet:
                yield label_node(rejected.node, {each.key: value_for(each) for each in unmet})


def _names(term: NodeTerm, node: str) -> bool:
    return all(requirement.matches_value(node) for requirement in term.names)


def value_for(requirement: Requirement) -> str | None:
    """A label value that meets the requirement; None for no label at all."""
    match requirement.operator:
        case "In":
            return min(requirement.values)
        case "Exists":
            return "true"
        case "Gt" | "Lt":
            bound = int(next(iter(requirement.values)))
            return str(bound + 1 if requirement.operator == "Gt" else bound - 1)
    return None


def _by_dropping(rejected: Rejected) -> Iterator[Change]:
    """Less to ask for: without a label of the nodeSelector, without a requirement, or without the terms at all."""
    pod, labels = rejected.pod, rejected.situation.cluster.node(rejected.node).metadata.labels
    for key, value in (pod.spec.node_selector or {}).items():
        if labels.get(key) != value:
            yield edit_pod(
                "drop-node-selector", f"drop {key}={value} from the pod's nodeSelector", pod, 3, _without_selector(key)
            )
    required = _required(pod)
    terms = required.node_selector_terms if required is not None else []
    if len(terms) == 1 and not terms[0].match_fields and len(terms[0].match_expressions) > 1:
        for expression in terms[0].match_expressions:
            if not Requirement(expression.key, expression.operator, frozenset(expression.values)).matches(labels):
                text = f"drop {_said(expression)} from the pod's required node affinity"
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
        required = _required(before)
        if required is None:
            return before
        terms = [
            replace(term, match_expressions=[each for each in term.match_expressions if each != expression])
            for term in required.node_selector_terms
        ]
        return _with_required(before, replace(required, node_selector_terms=terms))

    return edit


def _required(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    return affinity.required if affinity else None


def _with_required(pod: Pod, required: NodeSelector | None) -> Pod:
    affinity = pod.spec.affinity or Affinity()
    if affinity.node_affinity is None:
        return pod
    node_affinity = replace(affinity.node_affinity, required=required)
    return replace(pod, spec=replace(pod.spec, affinity=replace(affinity, node_affinity=node_affinity)))


def _said(expression: SelectorRequirement) -> str:
    return " ".join(filter(None, (expression.key, expression.operator, ",".join(expression.values))))


def _added_args(rejected: Rejected) -> NodeAffinityArgs | None:
    args = rejected.situation.args_of("NodeAffinity")
    return args if isinstance(args, NodeAffinityArgs) else None


def _added(rejected: Rejected) -> tuple[NodeTerm, ...] | None:
    """The terms that the profile adds for every pod."""
    args = _added_args(rejected)
    added = args.added_affinity if args else None
    return node_terms(added.required) if added and added.required else None


def _by_dropping_added(rejected: Rejected) -> Iterator[Change]:
    args, profile = _added_args(rejected), rejected.pod.spec.scheduler_name
    if args is not None and args.added_affinity is not None and args.added_affinity.required is not None:
        kept = replace(args.added_affinity, required=None)
        text = f"drop the required addedAffinity of NodeAffinity in profile {profile}"
        yield set_args(profile, "NodeAffinity", text, replace_data(args, added_affinity=kept))


# -- ports ---------------------------------------------------------------------------------------------------------


def _node_ports(rejected: Rejected) -> Iterator[Change]:
    wanted = host_ports(rejected.pod)
    running = rejected.situation.cluster.pods_on(rejected.situation.cluster.rows[rejected.node])
    # v1.8 looks at numbers alone.
    overlap = _same_number if rejected.situation.release == V1_8.release else _overlap
    holders = [pod for pod in running if any(overlap(one, other) for one in wanted for other in host_ports(pod))]
    if 0 < len(holders) <= MOST_EVICTED:
        yield evict(holders)
    taken = {one.port for one in wanted for pod in holders for other in host_ports(pod) if overlap(one, other)}
    if taken:
        text = f"drop the pod's host port {', '.join(map(str, sorted(taken)))}"
        yield edit_pod("drop-host-port", text, rejected.pod, 3, _without_ports(taken))


def _overlap(one: HostPort, other: HostPort) -> bool:
    anywhere = "0.0.0.0"
    same = (one.protocol, one.port) == (other.protocol, other.port)
    return same and (one.ip == other.ip or anywhere in (one.ip, other.ip))


def _same_number(one: HostPort, other: HostPort) -> bool:
    return one.port == other.port


def _without_ports(taken: set[int]) -> Callable[[Pod], Pod]:
    def edit(before: Pod) -> Pod:
        def freed(containers: list[Container]) -> list[Container]:
            return [
                replace(each, ports=[port for port in each.ports if port.host_port not in taken]) for each in containers
            ]

        spec = replace(
            before.spec,
            containers=freed(before.spec.containers),
            init_containers=freed(before.spec.init_containers),
        )
        return replace(before, spec=spec)

    return edit


# -- older releases ------------------------------------------------------------------------------------------------


def _general_predicates(rejected: Rejected) -> Iterator[Change]:
    """Resources, ports and node selector are one predicate, which gives the reasons of all of them."""
    parts = {HOST_PORTS: _node_ports, NODE_SELECTOR: _node_affinity}
    said = [part for part in parts if {part.name, part.sentence}.intersection(rejected.status.reasons)]
    for part in said:
        yield from parts[part](rejected)
    if len(said) < len(rejected.status.reasons):
        yield from resources(rejected.situation, rejected.node)


def _node_condition(rejected: Rejected) -> Iterator[Change]:
    if rejected.situation.cluster.node(rejected.node).spec.unschedulable:
        yield uncordon(rejected.node)


def _node_label(rejected: Rejected) -> Iterator[Change]:
    """Labels that a predicate, under whatever name, wants a node to have or to lack."""
    args = rejected.situation.args_of(rejected.status.plugin)
    if isinstance(args, NodeLabelArgs):
        labels = rejected.situation.cluster.node(rejected.node).metadata.labels
        wanted: dict[str, str | None] = {key: "true" for key in args.present_labels if key not in labels}
        wanted |= {key: None for key in args.absent_labels if key in labels}
        if wanted:
            yield label_node(rejected.node, wanted)


_FIXES: dict[str, Callable[[Rejected], Iterator[Change]]] = {
    "CheckNodeCondition": _node_condition,
    "CheckNodeUnschedulable": _node_unschedulable,
    "GeneralPredicates": _general_predicates,
    "HostName": _node_name,
    "InterPodAffinity": lambda r: inter_pod_affinity(r.situation, r.node, r.status),
    "MatchInterPodAffinity": lambda r: inter_pod_affinity(r.situation, r.node, r.status),
    "MatchNodeSelector": _node_affinity,
    "NodeAffinity": _node_affinity,
    "NodeName": _node_name,
    "NodePorts": _node_ports,
    "NodeResourcesFit": lambda r: resources(r.situation, r.node),
    "NodeUnschedulable": _node_unschedulable,
    "PodFitsHostPorts": _node_ports,
    "PodFitsPorts": _node_ports,
    "PodFitsResources": lambda r: resources(r.situation, r.node),
    "PodToleratesNodeTaints": _taint_toleration,
    "PodTopologySpread": lambda r: topology_spread(r.situation, r.node, r.status),
    "TaintToleration": _taint_toleration,
}
"""Per plugin, of any release, what may help; for others, evicting pods where the status says that this could."""
