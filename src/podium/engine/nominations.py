"""Pods that wait for a node: preemption made, or is making, room for them there."""

from __future__ import annotations

from collections.abc import Iterable

from podium.model import Pod


class Nominations:
    """Which pod is nominated to which node. A pod is known by namespace and name, and nominated to one node at most.

    Other pods yield to those with at least their own priority: they fit a node only if they also fit besides them.
    """

    def __init__(self, pods: Iterable[Pod] = ()) -> None:
        """Start with the nominations that stand in the pods' status."""
        self._node_of: dict[str, str] = {}
        self._on: dict[str, dict[str, Pod]] = {}
        self._changed: set[str] = set()
        self.version = 0
        """Counts the nominations that came or went."""
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
        return [other for other in nominated.values() if other.priority >= pod.priority and other.key != pod.key]

    def nodes(self) -> list[str]:
        """The nodes with nominated pods."""
        return list(self._on)

    def take_changed(self) -> set[str]:
        """The nodes to which nominations came or went since the last call."""
        changed, self._changed = self._changed, set()
        return changed

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Nominate a pod to a node instead of any other; an empty name takes its nomination back, whatever its status
        says."""
        self._take(pod)
        if node_name or pod.status.nominated_node_name:
            self._node_of[pod.key] = node_name
            self.version += 1
        if node_name:
            self._on.setdefault(node_name, {})[pod.key] = pod
            self._changed.add(node_name)

    def forget(self, pod: Pod) -> None:
        """The pod is placed or gone: nothing is known about its nomination any more."""
        self._take(pod)

    def clear_lower(self, node_name: str, priority: int) -> list[Pod]:
        """Take back the nominations of pods below a priority to a node, as it may have no room for them any more."""
        lower = [pod for pod in self.on(node_name) if pod.priority < priority]
        for pod in lower:
            self.nominate(pod, "")
        return lower

    def _take(self, pod: Pod) -> None:
        node_name = self._node_of.pop(pod.key, None) if self._node_of else None
        if node_name is not None:
            self.version += 1
        if node_name:
            pods = self._on[node_name]
            del pods[pod.key]
            if not pods:
                del self._on[node_name]
            self._changed.add(node_name)
