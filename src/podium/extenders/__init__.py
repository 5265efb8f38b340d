"""An extender as the engine sees it, and the extender protocol, version 1: requests as documents, answers as values.

The protocol's own field names have no JSON tags in Go, so they travel capitalised (`NodeNames`); the Kubernetes
objects inside keep their usual names.

The HTTP client is imported when the first `Extender` is made, not before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, NoReturn, TypeVar

import msgspec

from podium.config.extender_calls import public_url
from podium.config.types import MAX_NODE_SCORE
from podium.errors import ExtenderError
from podium.model import Node, Object, Pod
from podium.model.quantity import INT64, int64
from podium.wording import one_line

if TYPE_CHECKING:
    from podium.config.types import ExtenderConfig


class WireError(ValueError):
    """An answer that kube-scheduler could not use; the message says why, on one line."""


def document(value: Object) -> dict[str, object]:
    """The object as JSON builtins, with `apiVersion` and `kind`.

    Unlike our own encoding, this writes defaults like `schedulerName`: the API server has set them by the time an
    extender sees the object. Quantities become strings, as the API writes them.
    """
    fields = _builtins(value)
    assert isinstance(fields, dict)
    return {"apiVersion": "v1", "kind": type(value).__name__, **fields}


def _builtins(value: object) -> object:
    if isinstance(value, msgspec.Struct):
        pairs = ((key, getattr(value, name), optional) for name, key, optional in _fields(type(value)))
        return {key: _builtins(item) for key, item, optional in pairs if item or (optional and item is not None)}
    if isinstance(value, dict):
        # The only numbers in maps of the API are quantities.
        return {key: str(item) if isinstance(item, int | float) else _builtins(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_builtins(item) for item in value]
    return value


@cache
def _fields(struct: type[msgspec.Struct]) -> tuple[tuple[str, str, bool], ...]:
    """Attribute, JSON name, and whether an empty value differs from an absent one, for each field."""
    return tuple((field.name, field.encode_name, field.default is None) for field in msgspec.structs.fields(struct))


def parse(body: bytes) -> object:
    """The first JSON value in the body; anything after it is ignored, as in Go."""
    text = body.decode("utf-8", "replace").lstrip(" \t\r\n")
    if not text:
        raise WireError("the answer is empty")
    try:
        value, _ = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        raise WireError(f"the answer is not JSON: {one_line(text, 80)}") from None
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def member(value: object, name: str) -> object:
    """The named member of a JSON object, ignoring case; None if it is absent, or if the object is null."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise WireError(f"{_kind(value)} stands where an object with {name} should")
    folded = name.lower()
    # If it occurs twice, the later one counts.
    return next((value[key] for key in reversed(value) if key.lower() == folded), None)


def string(value: object, name: str) -> str:
    """A JSON string; null means the empty string."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise WireError(f"{name} is {_kind(value)}, not a string")
    # An unpaired surrogate cannot be printed; Go replaces it by the replacement character.
    return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def integer(value: object, name: str) -> int:
    """A JSON integer that fits int64; null is zero."""
    if value is None:
        return 0
    if type(value) is not int or value not in INT64:
        raise WireError(f"{name} is {_kind(value)}, not a 64-bit integer")
    return value


def sequence(value: object, name: str) -> list[object]:
    """A JSON array; null means an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise WireError(f"{name} is {_kind(value)}, not an array")
    return value


def mapping(value: object, name: str) -> dict[str, object]:
    """A JSON object used as a map; null means an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise WireError(f"{name} is {_kind(value)}, not an object")
    return {string(key, name): member for key, member in value.items()}


def _kind(value: object) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "an array"}
    return names.get(type(value), "an object")


@dataclass(frozen=True, slots=True)
class FilterResult:
    """An extender's answer about the nodes it was sent.

    A node in none of the three was dropped without a reason. kube-scheduler counts no reason for it, and does not try
    preemption there. `unresolvable` wins over `failed`: no node is in both.
    """

    passed: list[str]
    failed: dict[str, str] = field(default_factory=dict)
    unresolvable: dict[str, str] = field(default_factory=dict)
    returned: Mapping[str, Node] = field(default_factory=dict)
    """The Node objects of the answer by name, if it has any: kube-scheduler continues with these, not with its own."""


@dataclass(frozen=True, slots=True)
class Victims:
    """Pods to evict from one node, and how many of them violate a PodDisruptionBudget."""

    pods: list[Pod]
    pdb_violations: int = 0


def pod_document(pod: Pod) -> dict[str, object]:
    """The pod as an extender sees it. Answers name pods by UID; a pod without one is named by its namespace and
    name.
    """
    if not pod.metadata.uid:
        pod = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=pod_uid(pod)))
    return document(pod)


def pod_uid(pod: Pod) -> str:
    return pod.metadata.uid or pod.key


def node_args(pod: Pod, *, nodes: list[msgspec.Raw] | None = None, names: list[str] | None = None) -> dict[str, object]:
    """ExtenderArgs, the request of filter and prioritize: encoded nodes, or names for an extender with a node cache."""
    listed = None if nodes is None else {"apiVersion": "v1", "kind": "NodeList", "metadata": {}, "items": nodes}
    return {"Pod": pod_document(pod), "Nodes": listed, "NodeNames": names}


def binding_args(pod: Pod, node_name: str) -> dict[str, object]:
    """ExtenderBindingArgs."""
    return {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod_uid(pod), "Node": node_name}


def preemption_args(pod: Pod, victims: Mapping[str, Victims], *, by_uid: bool) -> dict[str, object]:
    """ExtenderPreemptionArgs: victims by UID for an extender with a node cache, else as whole pods."""

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
    """Raise the error in the answer's Error field, if there is one."""
    if error := string(member(answer, "Error"), "Error"):
        raise WireError(one_line(error, 300))


def read_filter(answer: object, sent: Collection[str], *, by_name: bool) -> FilterResult:
    """ExtenderFilterResult, for the node names that were sent.

    An answer without nodes, or null, passes none. The name of a node that was not sent is an error; a Node object that
    was not sent is passed, as kube-scheduler does not compare these with what it sent.
    """
    read_error(answer)
    unresolvable = _reasons(answer, "FailedAndUnresolvableNodes")
    failed = {name: why for name, why in _reasons(answer, "FailedNodes").items() if name not in unresolvable}
    names = member(answer, "NodeNames")
    returned: dict[str, Node] = {}
    if by_name and names is not None:
        passed = list(dict.fromkeys(string(name, "NodeNames") for name in sequence(names, "NodeNames")))
        for name in passed:
            if name not in sent:
                raise WireError(f"passed node {name!r}, which it was not asked about")
    else:
        items = sequence(member(member(answer, "Nodes"), "items"), "Nodes.items")
        returned = {node.name: node for node in map(_returned_node, items)}
        passed = list(returned)
    return FilterResult(passed, failed, unresolvable, returned)


def _returned_node(item: object) -> Node:
    """A node as the extender sent it back. No defaults are set: without `allocatable` it offers nothing."""
    name = string(member(member(item, "metadata"), "name"), "a node's name")
    try:
        node = msgspec.convert(_without_nulls(item), Node)
    except (msgspec.ValidationError, RecursionError) as error:
        raise WireError(f"node {name!r}, which it passed, is not a Node: {error}") from None
    return msgspec.structs.replace(
        node, status=msgspec.structs.replace(node.status, allocatable=node.status.allocatable or {})
    )


def _without_nulls(value: object) -> object:
    """The same value without null members: in Go they mean the same as absent ones."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _reasons(answer: object, name: str) -> dict[str, str]:
    return {node: string(why, name) for node, why in mapping(member(answer, name), name).items()}


def read_scores(answer: object, sent: Collection[str]) -> dict[str, int]:
    """HostPriorityList: a host listed twice counts twice, a host that was not sent is ignored."""
    scores: dict[str, int] = {}
    for entry in sequence(answer, "the answer"):
        host = string(member(entry, "Host"), "Host")
        score = integer(member(entry, "Score"), "Score")
        if host in sent:
            scores[host] = scores.get(host, 0) + score
    return scores


def read_victims(answer: object, pods_by_node: Mapping[str, Iterable[Pod]]) -> dict[str, Victims]:
    """ExtenderPreemptionResult: the pods on the node with the UIDs that it names."""
    name = "NodeNameToMetaVictims"
    victims: dict[str, Victims] = {}
    for node, listed in mapping(member(answer, name), name).items():
        if node not in pods_by_node:
            raise WireError(f"preempts on node {node!r}, which does not exist")
        if listed is None:
            raise WireError(f"gives null as the victims on node {node!r}")
        by_uid = {pod_uid(pod): pod for pod in pods_by_node[node]}
        pods = []
        for entry in sequence(member(listed, "Pods"), "Pods"):
            uid = string(member(entry, "UID"), "UID")
            if uid not in by_uid:
                raise WireError(f"preempts pod {uid!r} on node {node!r}, but no such pod runs there")
            pods.append(by_uid[uid])
        violations = integer(member(listed, "NumPDBViolations"), "NumPDBViolations")
        victims[node] = Victims(pods, violations)
    return victims


MAX_EXTENDER_PRIORITY = 10

Answer = TypeVar("Answer")


class Extender:
    """An HTTP extender: each method is one call, and raises ExtenderError if the call fails.

    Creating one checks its TLS settings (ConfigError if they are unusable) but does not connect. The caller handles
    `ignorable`: kube-scheduler ignores failures of filter, preempt and bind from an ignorable extender, and failures of
    prioritize from any.
    """

    def __init__(self, config: ExtenderConfig) -> None:
        # Imported here: the HTTP client is slow to import, and most runs have no extender.
        from podium.extenders.transport import Transport

        self.name = public_url(config.url_prefix)
        """The urlPrefix, by which kube-scheduler names an extender; without user, password and query."""
        self.weight = config.weight
        self.ignorable = config.ignorable
        self._config = config
        self._managed = frozenset(resource.name for resource in config.managed_resources)
        self._transport = Transport(config, self.name)
        self._encoded: dict[str, tuple[Node, msgspec.Raw]] = {}

    def __repr__(self) -> str:
        return f"Extender({self.name!r})"

    def __enter__(self) -> Extender:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. Any call after this fails."""
        self._transport.close()

    @property
    def is_filter(self) -> bool:
        return bool(self._config.filter_verb)

    @property
    def is_prioritizer(self) -> bool:
        return bool(self._config.prioritize_verb)

    @property
    def is_binder(self) -> bool:
        return bool(self._config.bind_verb)

    @property
    def supports_preemption(self) -> bool:
        return bool(self._config.preempt_verb)

    def is_interested(self, pod: Pod) -> bool:
        """Whether a container of the pod requests a managed resource; always True if the extender manages none."""
        if not self._managed:
            return True
        asked = (
            resources
            for container in (*pod.spec.containers, *pod.spec.init_containers)
            for resources in (container.resources.requests, container.resources.limits)
        )
        return any(not self._managed.isdisjoint(resources) for resources in asked)

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> FilterResult:
        """The nodes that the extender passes; all of them if it has no filter verb."""
        names = [node.name for node in nodes]
        if not self.is_filter:
            return FilterResult(passed=names)
        read = partial(read_filter, sent=frozenset(names), by_name=self._config.node_cache_capable)
        return self._call(self._config.filter_verb, self._node_args(pod, nodes), read)

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> dict[str, int]:
        """Raw scores by node name, meant to be 0 to 10 but not checked; `weighted` turns them into node scores.

        A node that the extender does not mention is missing from the result, and gets nothing. Without a prioritize
        verb every node scores 0.
        """
        names = [node.name for node in nodes]
        if not self.is_prioritizer:
            return dict.fromkeys(names, 0)
        read = partial(read_scores, sent=frozenset(names))
        return self._call(self._config.prioritize_verb, self._node_args(pod, nodes), read)

    def weighted(self, score: int) -> int:
        """The points that a raw score adds to the node's total: scaled from 0..10 to 0..100, times the
        extender's weight.
        """
        total = score * self.weight * (MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY)
        # Extenders may answer with any int64, and Go's product wraps around.
        return int64(total)

    def bind(self, pod: Pod, node_name: str) -> None:
        """Have the extender bind the pod to the node."""
        if not self.is_binder:
            raise ExtenderError(self.name, "has no bindVerb: it cannot be asked to bind")
        self._call(self._config.bind_verb, binding_args(pod, node_name), read_error)

    def preempt(
        self, pod: Pod, victims: Mapping[str, Victims], pods_by_node: Mapping[str, Iterable[Pod]]
    ) -> dict[str, Victims]:
        """The nodes on which the extender agrees to preempt, each with the victims it chose.

        `pods_by_node` has the pods on every node of the cluster: the extender may choose victims that nobody proposed.
        It may also return a node without victims, which kube-scheduler treats as a failure; if the extender is
        ignorable, it drops the node.
        """
        if not self.supports_preemption:
            raise ExtenderError(self.name, "has no preemptVerb: it cannot be asked to preempt")
        args = preemption_args(pod, victims, by_uid=self._config.node_cache_capable)
        return self._call(self._config.preempt_verb, args, partial(read_victims, pods_by_node=pods_by_node))

    def _call(self, verb: str, args: dict[str, object], read: Callable[[object], Answer]) -> Answer:
        body = self._transport.post(verb, msgspec.json.encode(args))
        try:
            return read(parse(body))
        except WireError as error:
            raise self._transport.error(verb, str(error)) from error

    def _node_args(self, pod: Pod, nodes: Sequence[Node]) -> dict[str, object]:
        if self._config.node_cache_capable:
            return node_args(pod, names=[node.name for node in nodes])
        return node_args(pod, nodes=[self._encode(node) for node in nodes])

    def _encode(self, node: Node) -> msgspec.Raw:
        """The node's JSON, made once as long as the node is the same object."""
        known = self._encoded.get(node.name)
        if known is not None and known[0] is node:
            return known[1]
        encoded = msgspec.Raw(msgspec.json.encode(document(node)))
        self._encoded[node.name] = (node, encoded)
        return encoded
