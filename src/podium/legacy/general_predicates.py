"""PodFitsResources, HostName, PodFitsHostPorts, MatchNodeSelector, and GeneralPredicates, which is all four."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import msgspec
import numpy as np

from podium.cluster import Aspect, Nodes, PodInfo
from podium.cluster.columns import Mask
from podium.cluster.pods import HostPort
from podium.cluster.ports import ANY_IP
from podium.errors import SelectorError
from podium.framework import CycleState
from podium.legacy.reasons import HOST_NAME, HOST_PORTS, NODE_SELECTOR, Failure, Predicate, Reason, insufficient
from podium.legacy.usage import pod_usage, usage_of
from podium.objects import Pod
from podium.resources import CPU, EPHEMERAL_STORAGE, MEMORY, is_extended_resource
from podium.selectors import NodeMatcher, NodeTerm, match_labels, node_term, required_node_affinity

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_ALWAYS_CHECKED = (CPU, MEMORY, EPHEMERAL_STORAGE)

_encode = msgspec.json.encode


@dataclass(frozen=True, kw_only=True)
class FitArgs:
    """Extended resources that an extender counts instead."""

    ignored_resources: frozenset[str] = frozenset()


class PodFitsResources(Predicate):
    """Reject nodes without room for what the pod requests.

    A pod that requests anything is held to cpu, memory and ephemeral storage even where it requests none of them: a
    node that gave away more than it has does not fit.
    """

    name = "PodFitsResources"
    reads = Aspect.RESOURCES | Aspect.PODS

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._ignored = args.ignored_resources if isinstance(args, FitArgs) else frozenset()

    def key(self, info: PodInfo) -> Hashable:
        return tuple(pod_usage(info, self.rules).request.items())

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


class HostName(Predicate):
    """Pass only the node the pod names; pass all when it names none."""

    name = "HostName"
    reads = Aspect.LABELS

    def key(self, info: PodInfo) -> Hashable:
        return info.pod.spec.node_name

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        wanted = pod.spec.node_name
        if not wanted:
            return [Failure(np.zeros(len(nodes), dtype=np.bool_), HOST_NAME)]
        row = nodes.cluster.rows.get(wanted)
        return [Failure(~nodes.among([] if row is None else [row]), HOST_NAME)]


class PodFitsHostPorts(Predicate):
    """Reject nodes where a host port of the pod is in use."""

    name = "PodFitsHostPorts"
    reads = Aspect.PORTS

    def key(self, info: PodInfo) -> Hashable:
        return info.ports

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        wanted: Iterable[HostPort] = state.info.ports
        if self.rules.ports_by_number:
            numbers = {port.port for port in wanted}
            wanted = [HostPort(ANY_IP, protocol, number) for number in numbers for protocol in _PROTOCOLS]
        return [Failure(nodes.among(nodes.cluster.ports.conflicts(wanted)), HOST_PORTS)]


class MatchNodeSelector(Predicate):
    """Reject nodes that the pod's nodeSelector or required node affinity excludes."""

    name = "MatchNodeSelector"
    reads = Aspect.LABELS

    def key(self, info: PodInfo) -> Hashable:
        spec = info.pod.spec
        return _encode((spec.node_selector, spec.affinity.node_affinity if spec.affinity else None))

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        return [Failure(~self._matching(pod, nodes), NODE_SELECTOR)]

    def _matching(self, pod: Pod, nodes: Nodes) -> Mask:
        return nodes.matching(required_node_affinity(pod) if self.rules.knows_match_fields else _by_labels(pod))


def _by_labels(pod: Pod) -> NodeMatcher:
    """The requirements on labels alone; terms after a broken one count as not there."""
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

    def key(self, info: PodInfo) -> Hashable:
        return tuple(part.key(info) for part in self._parts)

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        return [failure for part in self._parts for failure in part.failures(state, pod, nodes)]
