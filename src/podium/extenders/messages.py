"""The extender protocol, version 1: its requests as JSON-ready documents, its answers as values.

The protocol's own field names have no JSON tags in Go, so they travel capitalised (`NodeNames`); the Kubernetes
objects inside keep their usual names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from podium.extenders import wire
from podium.extenders.wire import WireError
from podium.objects import Pod


@dataclass(frozen=True, slots=True)
class FilterResult:
    """What an extender said of the nodes it was shown.

    A node in none of the three was dropped without a word. kube-scheduler counts no reason for it, and does not try
    preemption there. `unresolvable` wins over `failed`: no node is in both.
    """

    passed: list[str]
    failed: dict[str, str] = field(default_factory=dict)
    unresolvable: dict[str, str] = field(default_factory=dict)
    replaced: bool = False
    """The answer carried Node objects. kube-scheduler scores those as returned, as nodes on which no pod runs."""


@dataclass(frozen=True, slots=True)
class Victims:
    """Pods to evict from one node, and how many of them their PodDisruptionBudgets would have protected."""

    pods: list[Pod]
    pdb_violations: int = 0


def pod_document(pod: Pod) -> dict[str, object]:
    """The pod as an extender sees it. Answers name pods by UID, so a pod without one goes by its namespace and name."""
    if not pod.metadata.uid:
        pod = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=pod_uid(pod)))
    return wire.document(pod)


def pod_uid(pod: Pod) -> str:
    return pod.metadata.uid or pod.key


def node_args(pod: Pod, *, nodes: list[msgspec.Raw] | None = None, names: list[str] | None = None) -> dict[str, object]:
    """ExtenderArgs, the request of filter and prioritize: encoded nodes, or names for who has a node cache."""
    listed = None if nodes is None else {"apiVersion": "v1", "kind": "NodeList", "metadata": {}, "items": nodes}
    return {"Pod": pod_document(pod), "Nodes": listed, "NodeNames": names}


def binding_args(pod: Pod, node_name: str) -> dict[str, object]:
    """ExtenderBindingArgs."""
    return {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod_uid(pod), "Node": node_name}


def preemption_args(pod: Pod, victims: Mapping[str, Victims], *, by_uid: bool) -> dict[str, object]:
    """ExtenderPreemptionArgs: victims by UID for who has a cache, as whole pods for who has not."""

    def listed(node: Victims) -> dict[str, object]:
        pods = [{"UID": pod_uid(victim)} if by_uid else pod_document(victim) for victim in node.pods]
        return {"Pods": pods, "NumPDBViolations": node.pdb_violations}

    per_node = {name: listed(node) for name, node in victims.items()}
    return {
        "Pod": pod_document(pod),
        "NodeNameToVictims": None if by_uid else per_node,
        "NodeNameToMetaVictims": per_node if by_uid else None,
    }


def read_error(answer: object) -> None:
    """Raise what the answer's Error field says, if it says anything."""
    if error := wire.string(wire.field(answer, "Error"), "Error"):
        raise WireError(wire.one_line(error, 300))


def read_filter(answer: object, sent: Collection[str], *, by_name: bool) -> FilterResult:
    """ExtenderFilterResult, for the node names that were sent.

    Naming no nodes at all, or answering null, passes none. A node that was not sent is an error.
    """
    read_error(answer)
    unresolvable = _reasons(answer, "FailedAndUnresolvableNodes")
    failed = {name: why for name, why in _reasons(answer, "FailedNodes").items() if name not in unresolvable}
    names, nodes = wire.field(answer, "NodeNames"), wire.field(answer, "Nodes")
    replaced = False
    if by_name and names is not None:
        passed = [wire.string(name, "NodeNames") for name in wire.sequence(names, "NodeNames")]
    else:
        replaced = nodes is not None
        items = wire.sequence(wire.field(nodes, "items"), "Nodes.items")
        passed = [wire.string(wire.field(wire.field(item, "metadata"), "name"), "a node's name") for item in items]
    passed = list(dict.fromkeys(passed))
    for name in passed:
        if name not in sent:
            raise WireError(f"passed node {name!r}, which it was not asked about")
    return FilterResult(passed, failed, unresolvable, replaced)


def _reasons(answer: object, name: str) -> dict[str, str]:
    return {node: wire.string(why, name) for node, why in wire.mapping(wire.field(answer, name), name).items()}


def read_scores(answer: object, sent: Collection[str]) -> dict[str, int]:
    """HostPriorityList: a host listed twice counts twice, one that was not sent does not count."""
    scores: dict[str, int] = {}
    for entry in wire.sequence(answer, "the answer"):
        host = wire.string(wire.field(entry, "Host"), "Host")
        score = wire.integer(wire.field(entry, "Score"), "Score")
        if host in sent:
            scores[host] = scores.get(host, 0) + score
    return scores


def read_victims(answer: object, pods_by_node: Mapping[str, Iterable[Pod]]) -> dict[str, Victims]:
    """ExtenderPreemptionResult: the UIDs it names, as the pods that run on that node."""
    name = "NodeNameToMetaVictims"
    victims: dict[str, Victims] = {}
    for node, listed in wire.mapping(wire.field(answer, name), name).items():
        if node not in pods_by_node:
            raise WireError(f"preempts on node {node!r}, which does not exist")
        if listed is None:
            raise WireError(f"gives null as the victims on node {node!r}")
        by_uid = {pod_uid(pod): pod for pod in pods_by_node[node]}
        pods = []
        for entry in wire.sequence(wire.field(listed, "Pods"), "Pods"):
            uid = wire.string(wire.field(entry, "UID"), "UID")
            if uid not in by_uid:
                raise WireError(f"preempts pod {uid!r} on node {node!r}, but no such pod runs there")
            pods.append(by_uid[uid])
        violations = wire.integer(wire.field(listed, "NumPDBViolations"), "NumPDBViolations")
        victims[node] = Victims(pods, violations)
    return victims
