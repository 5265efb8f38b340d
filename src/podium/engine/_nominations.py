"""Which pod is nominated to which node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from podium.model import Pod, PodSpec


class Nominations:
    """Which pod is nominated to which node. A pod is identified by namespace and name; it has at most one nomination.

    A pod yields to nominated pods of the same or a higher priority: it fits a node only if it also fits next to them.
    """

    def __init__(self, pods: Iterable[Pod] = ()) -> None:
        """Start with the nominations in the pods' status."""
        self._node_of: dict[str, str] = {}
        self._on: dict[str, dict[str, Pod]] = {}
        self._changed: set[str] = set()
        self._tried: dict[str, Pod] = {}
        """The pods of the group that is being tried, as they count meanwhile."""
        self.version = 0
        """Increases whenever a nomination comes or goes."""
        for pod in pods:
            if pod.status.nominated_node_name:
                self.nominate(pod, pod.status.nominated_node_name)

    def __bool__(self) -> bool:
        """Whether any pod is nominated."""
        return bool(self._on)

    def node_of(self, pod: Pod) -> str:
        """The node a pod is nominated to, here or in its status; empty for none."""
        known = self._node_of.get(pod.key) if self._node_of else None
        return pod.status.nominated_node_name if known is None else known

    def on(self, node_name: str) -> list[Pod]:
        """The pods nominated to a node, in order of nomination."""
        return list(self._on.get(node_name, {}).values())

    def ahead_of(self, pod: Pod, node_name: str) -> list[Pod]:
        """The other pods nominated to a node that the pod yields to."""
        nominated = self._on.get(node_name)
        if nominated is None:
            return []
        others = [other for other in nominated.values() if other.key != pod.key]
        if self._tried:
            others = [self._tried.get(other.key, other) for other in others]
        return [other for other in others if other.priority >= pod.priority]

    @contextmanager
    def trying(self, pods: Sequence[Pod]) -> Iterator[None]:
        """Within this context, the pods of a group are being tried.

        kube-scheduler finds no nominated pod that has left the queue: it counts as a pod that asks for nothing, with
        priority 0.
        """
        self._tried = {pod.key: Pod(metadata=replace(pod.metadata, labels={}), spec=PodSpec()) for pod in pods}
        self._touch(pods)
        try:
            yield
        finally:
            self._tried = {}
            self._touch(pods)

    def _touch(self, pods: Sequence[Pod]) -> None:
        nodes = [node for pod in pods if (node := self._node_of.get(pod.key))]
        if nodes:
            self._changed.update(nodes)
            self.version += 1

    def has_others(self, pod: Pod) -> bool:
        """Whether any pod but this one is nominated."""
        if len(self._on) != 1:
            return bool(self._on)
        (only,) = self._on.values()
        return len(only) > 1 or pod.key not in only

    def nodes(self) -> list[str]:
        """The nodes with nominated pods."""
        return list(self._on)

    @property
    def have_changed(self) -> bool:
        """Whether nominations came or went since `take_changed`."""
        return bool(self._changed)

    def take_changed(self) -> set[str]:
        """The nodes whose nominations changed since the last call."""
        changed, self._changed = self._changed, set()
        return changed

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Nominate a pod to a node, replacing any other nomination; an empty name removes its nomination, whatever its
        status says.
        """
        self._take(pod)
        if node_name or pod.status.nominated_node_name:
            self._node_of[pod.key] = node_name
            self.version += 1
        if node_name:
            self._on.setdefault(node_name, {})[pod.key] = pod
            self._changed.add(node_name)

    def forget(self, pod: Pod) -> None:
        """Forget the nomination of a pod that is placed or gone."""
        if self._node_of:
            self._take(pod)

    def clear_lower(self, node_name: str, priority: int) -> list[Pod]:
        """Remove the nominations to a node of pods below a priority, as the node may have no room for them any more."""
        lower = [pod for pod in self.on(node_name) if pod.priority < priority]
        for pod in lower:
            self.nominate(pod, "")
        return lower

    def _take(self, pod: Pod) -> None:
        node_name = self._node_of.pop(pod.key, None)
        if node_name is not None:
            self.version += 1
        if node_name:
            pods = self._on[node_name]
            del pods[pod.key]
            if not pods:
                del self._on[node_name]
            self._changed.add(node_name)
