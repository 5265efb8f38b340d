"""Predicates about the node itself: resources, ports, labels, taints and conditions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from podium.cluster import Aspect, Nodes
from podium.cluster.columns import Interned, Mask
from podium.cluster.pods import ANY_IP, HostPort
from podium.errors import SelectorError
from podium.framework import CycleState, Status, Verdict
from podium.framework.obstacle import Obstacle, RejectedNodes, SpecPart
from podium.framework.plugin import PodView
from podium.framework.suggested_change import Change, RejectedPod, label_node, uncordon
from podium.model import Node, Pod, PodSpec, Taint
from podium.model.quantity import parse_quantity
from podium.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, is_extended_resource
from podium.model.selectors import (
    CORDONED,
    NO_EXECUTE,
    NodeMatcher,
    NodeTerm,
    any_tolerates,
    match_labels,
    node_term,
    repels,
    required_node_affinity,
    untolerated,
)
from podium.plugins.node_affinity import node_affinity_fixes, node_affinity_obstacles
from podium.plugins.node_name import node_name_fixes, node_name_obstacles, not_named_by
from podium.plugins.node_ports import conflicts, port_fixes, port_obstacles
from podium.plugins.node_resources_fit import resource_fixes, resource_obstacles
from podium.plugins.node_unschedulable import cordon_fixes, cordon_obstacles
from podium.plugins.taint_toleration import taint_fixes, taint_obstacles
from podium.releases.priorities import NodeLabelArgs, pod_usage, usage_of
from podium.releases.rules import (
    DISK_PRESSURE,
    HOST_NAME,
    HOST_PORTS,
    LABEL_PRESENCE,
    MEMORY_PRESSURE,
    NETWORK,
    NODE_SELECTOR,
    NOT_READY,
    OUT_OF_DISK,
    PID_PRESSURE,
    TAINTS,
    UNSCHEDULABLE,
    Failure,
    Predicate,
    Reason,
    insufficient,
)

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_ALWAYS_CHECKED = (CPU, MEMORY, EPHEMERAL_STORAGE)

_encode = msgspec.json.encode


@dataclass(frozen=True, kw_only=True)
class FitArgs:
    """Extended resources that an extender counts instead."""

    ignored_resources: frozenset[str] = frozenset()


class PodFitsResources(Predicate):
    """Reject nodes without room for the pod's requests.

    For a pod with any request, cpu, memory and ephemeral storage are all checked, even if it requests none of them: a
    node that is overcommitted in one of them does not fit.
    """

    name = "PodFitsResources"
    reads = Aspect.RESOURCES | Aspect.PODS

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._ignored = args.ignored_resources if isinstance(args, FitArgs) else frozenset()

    def sign(self, pod: PodView) -> Hashable:
        return tuple(pod_usage(pod.info, self.rules).request.items())

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        request = pod_usage(state.info, self.rules).request
        too_many = Reason(self.rules.too_many_pods, self.rules.too_many_pods, True)
        found = [Failure(nodes.requested("pods") >= nodes.allocatable("pods"), too_many)]
        scalars = [name for name in request if name not in _ALWAYS_CHECKED]
        if not scalars and not any(request.get(name) for name in _ALWAYS_CHECKED):
            return found
        usage = usage_of(nodes.cluster, self.rules)
        for name in (*_ALWAYS_CHECKED, *scalars):
            if name in self._ignored and is_extended_resource(name):
                continue
            needed = usage.requested(nodes, name) + request.get(name, 0)
            found.append(Failure(nodes.allocatable(name) < needed, insufficient(name)))
        return found

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        return resource_obstacles(rejected, lambda name, node: name not in self._ignored)

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return resource_fixes(rejected)


class HostName(Predicate):
    """Pass only the node that the pod names; pass all nodes if it names none."""

    name = "HostName"
    reads = Aspect.LABELS

    def sign(self, pod: PodView) -> Hashable:
        return pod.spec.node_name

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        return [Failure(not_named_by(pod, nodes), HOST_NAME)]

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        return node_name_obstacles(rejected)

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return node_name_fixes(rejected)


class PodFitsHostPorts(Predicate):
    """Reject nodes where a host port of the pod is in use."""

    name = "PodFitsHostPorts"
    constraint = SpecPart.PORT
    reads = Aspect.PORTS

    def sign(self, pod: PodView) -> Hashable:
        return pod.ports

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        wanted: Iterable[HostPort] = state.info.ports
        if self.rules.ports_by_number:
            numbers = {port.port for port in wanted}
            wanted = [HostPort(ANY_IP, protocol, number) for number in numbers for protocol in _PROTOCOLS]
        return [Failure(nodes.among(nodes.cluster.ports.conflicts(wanted)), HOST_PORTS)]

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        return port_obstacles(rejected, _same_number if self.rules.ports_by_number else conflicts)

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return port_fixes(rejected, _same_number if self.rules.ports_by_number else conflicts)


def _same_number(one: HostPort, other: HostPort) -> bool:
    return one.port == other.port


class MatchNodeSelector(Predicate):
    """Reject nodes that the pod's nodeSelector or required node affinity excludes."""

    name = "MatchNodeSelector"
    constraint = SpecPart.NODE_AFFINITY
    reads = Aspect.LABELS

    def sign(self, pod: PodView) -> Hashable:
        spec = pod.spec
        return _encode((spec.node_selector, spec.affinity.node_affinity if spec.affinity else None))

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        return [Failure(~self._matching(pod, nodes), NODE_SELECTOR)]

    def _matching(self, pod: Pod, nodes: Nodes) -> Mask:
        return nodes.matching(required_node_affinity(pod) if self.rules.knows_match_fields else _by_labels(pod))

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        return node_affinity_obstacles(rejected)

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return node_affinity_fixes(rejected)


def _by_labels(pod: Pod) -> NodeMatcher:
    """The requirements on labels alone; terms after an invalid one are ignored."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    selector = match_labels(pod.spec.node_selector or {}).requirements
    if affinity is None or affinity.required is None:
        return NodeMatcher(selector)
    terms: list[NodeTerm] = []
    for raw in affinity.required.node_selector_terms:
        try:
            term = node_term(msgspec.structs.replace(raw, match_fields=[]))
        except SelectorError:
            break
        if term is not None:
            terms.append(term)
    return NodeMatcher(selector, tuple(terms))


class GeneralPredicates(Predicate):
    """Resources, host name, ports and node selector, with the reasons of all that fail."""

    name = "GeneralPredicates"
    reads = PodFitsResources.reads | HostName.reads | PodFitsHostPorts.reads | MatchNodeSelector.reads
    PARTS: tuple[type[Predicate], ...] = (PodFitsResources, HostName, PodFitsHostPorts, MatchNodeSelector)

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._parts = [part(args) for part in self.PARTS]
        for part in self._parts:
            part.rules = self.rules

    def sign(self, pod: PodView) -> Hashable:
        return tuple(part.sign(pod) for part in self._parts)

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        return [failure for part in self._parts for failure in part.failures(state, pod, nodes)]

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        of_parts = [part.obstacles(rejected) for part in self._parts]
        return {node: [each for found in of_parts for each in found.get(node, ())] for node in rejected.statuses}

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        """Fixes for each part whose reason was given; any other reason is about resources."""
        others = {HOST_NAME: HostName, HOST_PORTS: PodFitsHostPorts, NODE_SELECTOR: MatchNodeSelector}
        given = [kind for reason, kind in others.items() if reason.text(self.rules) in rejected.status.reasons]
        if len(given) < len(rejected.status.reasons):
            given.append(PodFitsResources)
        for kind in given:
            yield from next(part for part in self._parts if isinstance(part, kind)).fixes(rejected)


def _each(nodes: Nodes, judge: Callable[[Node], bool]) -> Mask:
    """Evaluate `judge` on each node object."""
    return np.fromiter((judge(node.node) for node in nodes), np.bool_, len(nodes))


def _has_other(node: Node, condition: str, good: str) -> bool:
    """Whether the node has a condition with a status other than the good one."""
    return any(found.type == condition and found.status != good for found in node.status.conditions)


def _status_of(node: Node, condition: str) -> str:
    """The status of a condition; if the node has it twice, the last one."""
    return next((found.status for found in reversed(node.status.conditions) if found.type == condition), "")


class _SameForAllPods(Predicate):
    reads = Aspect.LABELS | Aspect.TAINTS

    def sign(self, pod: PodView) -> Hashable:
        return None


class CheckNodeCondition(_SameForAllPods):
    """Reject nodes that are not ready, have no network, or are cordoned, whatever the pod tolerates."""

    name = "CheckNodeCondition"

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        unless = [("Ready", "True", NOT_READY), ("NetworkUnavailable", "False", NETWORK)]
        if self.rules.out_of_disk:
            unless.append(("OutOfDisk", "False", OUT_OF_DISK))

        def fails(condition: str, good: str) -> Mask:
            return _each(nodes, lambda node: _has_other(node, condition, good))

        found = [Failure(fails(condition, good), reason) for condition, good, reason in unless]
        return [*found, Failure(nodes.unschedulable, UNSCHEDULABLE)]

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        return cordon_obstacles(rejected)

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        if rejected.node_object.spec.unschedulable:
            yield uncordon(rejected.node)


class _Pressure(_SameForAllPods):
    CONDITION: str
    REASON: Reason

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        return [Failure(_each(nodes, lambda node: _status_of(node, self.CONDITION) == "True"), self.REASON)]


class CheckNodeDiskPressure(_Pressure):
    """Reject nodes under disk pressure."""

    name = "CheckNodeDiskPressure"
    CONDITION, REASON = "DiskPressure", DISK_PRESSURE


class CheckNodePIDPressure(_Pressure):
    """Reject nodes that run out of process IDs."""

    name = "CheckNodePIDPressure"
    CONDITION, REASON = "PIDPressure", PID_PRESSURE


class CheckNodeMemoryPressure(_Pressure):
    """Reject nodes under memory pressure for pods without requests and limits."""

    name = "CheckNodeMemoryPressure"
    CONDITION, REASON = "MemoryPressure", MEMORY_PRESSURE

    def sign(self, pod: PodView) -> Hashable:
        return is_best_effort(pod.spec)

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        if not is_best_effort(pod.spec):
            return [Failure(np.zeros(len(nodes), dtype=np.bool_), self.REASON)]
        return super().failures(state, pod, nodes)


def is_best_effort(spec: PodSpec) -> bool:
    """Whether no container requests, or limits, cpu or memory."""
    return not any(
        parse_quantity(amounts.get(name, 0)) > 0
        for container in spec.containers
        for amounts in (container.resources.requests, container.resources.limits)
        for name in (CPU, MEMORY)
    )


class CheckNodeUnschedulable(Predicate):
    """Reject cordoned nodes, unless the pod tolerates the taint of a cordoned node."""

    name = "CheckNodeUnschedulable"
    reads = Aspect.TAINTS

    def sign(self, pod: PodView) -> Hashable:
        return any_tolerates(pod.spec.tolerations, CORDONED)

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        return [Failure(nodes.unschedulable & (not any_tolerates(pod.spec.tolerations, CORDONED)), UNSCHEDULABLE)]

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        return cordon_obstacles(rejected)

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return cordon_fixes(rejected)


class PodToleratesNodeTaints(Predicate):
    """Reject nodes with a NoSchedule or NoExecute taint that the pod does not tolerate."""

    name = "PodToleratesNodeTaints"
    reads = Aspect.TAINTS

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._named: Interned[tuple[str, str]] = Interned()

    def sign(self, pod: PodView) -> Hashable:
        return tuple(pod.spec.tolerations)

    def repels(self, taint: Taint) -> bool:
        return repels(taint)

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        if not self.rules.names_the_taint:
            return super().filter(state, pod, nodes)

        def judge(taints: tuple[Taint, ...]) -> int:
            taint = untolerated(taints, pod.spec.tolerations, self.repels)
            return 0 if taint is None else 1 + self._named.code((taint.key, taint.value))

        return Verdict(nodes.by_taints(judge), self._describe)

    def _describe(self, code: int) -> Status:
        key, value = self._named.values[code - 1]
        return Status.unresolvable(f"node(s) had taint {{{key}: {value}}}, that the pod didn't tolerate")

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        def judge(taints: tuple[Taint, ...]) -> int:
            return untolerated(taints, pod.spec.tolerations, self.repels) is not None

        return [Failure(nodes.by_taints(judge) != 0, TAINTS)]

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        return taint_obstacles(rejected, self.repels)

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return taint_fixes(rejected)


class PodToleratesNodeNoExecuteTaints(PodToleratesNodeTaints):
    """Reject nodes with a NoExecute taint that the pod does not tolerate."""

    name = "PodToleratesNodeNoExecuteTaints"

    def repels(self, taint: Taint) -> bool:
        return taint.effect == NO_EXECUTE


class CheckNodeLabelPresence(_SameForAllPods):
    """Reject nodes that lack a required label, or have a forbidden one, whatever its value."""

    name = "CheckNodeLabelPresence"

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._labels = args if isinstance(args, NodeLabelArgs) else NodeLabelArgs()

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        fails = np.zeros(len(nodes), dtype=np.bool_)
        for wanted, labels in ((True, self._labels.present_labels), (False, self._labels.absent_labels)):
            for label in labels:
                fails |= (nodes.codes(label) >= 0) != wanted
        return [Failure(fails, LABEL_PRESENCE)]

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        """Add the required labels to the node, and remove the forbidden ones."""
        labels = rejected.node_labels
        wanted: dict[str, str | None] = {key: "true" for key in self._labels.present_labels if key not in labels}
        wanted |= {key: None for key in self._labels.absent_labels if key in labels}
        if wanted:
            yield from label_node(rejected.node, wanted)
