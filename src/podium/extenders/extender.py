"""An extender as the engine sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from podium.errors import ExtenderError
from podium.extenders import messages
from podium.extenders import messages as wire
from podium.extenders.messages import FilterResult, Victims
from podium.model import Node, Pod
from podium.model.quantity import int64

if TYPE_CHECKING:
    from podium.config.types import ExtenderConfig

MAX_EXTENDER_PRIORITY = 10
MAX_NODE_SCORE = 100

Answer = TypeVar("Answer")


class Extender:
    """An HTTP extender: each method is one call, and raises ExtenderError when the call fails.

    Making one checks its TLS settings (ConfigError when they are unusable) but does not connect. What `ignorable`
    means is up to the caller: kube-scheduler ignores failures of filter, preempt and bind from an ignorable extender,
    and failures of prioritize from any.
    """

    def __init__(self, config: ExtenderConfig) -> None:
        # Here and not above: the HTTP client is slow to import, and most runs have no extender.
        from podium.extenders.transport import Transport, public_url

        self.name = public_url(config.url_prefix)
        """The urlPrefix, which is how kube-scheduler names an extender; without user, password and query."""
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
        """Whether a container of the pod asks for a managed resource; always, when the extender manages none."""
        if not self._managed:
            return True
        asked = (
            resources
            for container in (*pod.spec.containers, *pod.spec.init_containers)
            for resources in (container.resources.requests, container.resources.limits)
        )
        return any(not self._managed.isdisjoint(resources) for resources in asked)

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> FilterResult:
        """The nodes that the extender passes, out of these; all of them when it has no filter verb."""
        names = [node.name for node in nodes]
        if not self.is_filter:
            return FilterResult(passed=names)
        read = partial(messages.read_filter, sent=frozenset(names), by_name=self._config.node_cache_capable)
        return self._call(self._config.filter_verb, self._node_args(pod, nodes), read)

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> dict[str, int]:
        """Raw scores by node name, meant to be 0 to 10 but not held to it; `weighted` makes node scores of them.

        A node that the extender does not mention is not in the result, and gets nothing from it. Without a
        prioritize verb every node scores 0.
        """
        names = [node.name for node in nodes]
        if not self.is_prioritizer:
            return dict.fromkeys(names, 0)
        read = partial(messages.read_scores, sent=frozenset(names))
        return self._call(self._config.prioritize_verb, self._node_args(pod, nodes), read)

    def weighted(self, score: int) -> int:
        """What a raw score adds to the node's total: scaled from 0..10 to 0..100, times the extender's weight."""
        total = score * self.weight * (MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY)
        # Extenders may answer any int64, and Go's product wraps around.
        return int64(total)

    def bind(self, pod: Pod, node_name: str) -> None:
        """Have the extender bind the pod to the node."""
        if not self.is_binder:
            raise ExtenderError(self.name, "has no bindVerb: it cannot be asked to bind")
        self._call(self._config.bind_verb, messages.binding_args(pod, node_name), messages.read_error)

    def preempt(
        self, pod: Pod, victims: Mapping[str, Victims], pods_by_node: Mapping[str, Iterable[Pod]]
    ) -> dict[str, Victims]:
        """The nodes on which the extender agrees to preempt, each with the victims it wants.

        `pods_by_node` has the pods on every node of the cluster: the extender may choose victims nobody proposed.
        It may also return a node without victims. kube-scheduler takes that as a failure, or drops the node when the
        extender is ignorable.
        """
        if not self.supports_preemption:
            raise ExtenderError(self.name, "has no preemptVerb: it cannot be asked to preempt")
        args = messages.preemption_args(pod, victims, by_uid=self._config.node_cache_capable)
        return self._call(self._config.preempt_verb, args, partial(messages.read_victims, pods_by_node=pods_by_node))

    def _call(self, verb: str, args: dict[str, object], read: Callable[[object], Answer]) -> Answer:
        body = self._transport.post(verb, msgspec.json.encode(args))
        try:
            return read(wire.parse(body))
        except wire.WireError as error:
            raise self._transport.error(verb, str(error)) from error

    def _node_args(self, pod: Pod, nodes: Sequence[Node]) -> dict[str, object]:
        if self._config.node_cache_capable:
            return messages.node_args(pod, names=[node.name for node in nodes])
        return messages.node_args(pod, nodes=[self._encode(node) for node in nodes])

    def _encode(self, node: Node) -> msgspec.Raw:
        """The node's JSON, made once for as long as the node stays the same object."""
        known = self._encoded.get(node.name)
        if known is not None and known[0] is node:
            return known[1]
        encoded = msgspec.Raw(msgspec.json.encode(wire.document(node)))
        self._encoded[node.name] = (node, encoded)
        return encoded
