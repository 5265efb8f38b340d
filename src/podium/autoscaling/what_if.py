"""Would pods fit, if there were other nodes? Decided by the scheduler itself, on a copy of the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.errors import ExtenderError, InputError, PluginError
from podium.model import Node, Object, Pod, PodStatus


class WhatIf:
    """A copy of a cluster to try something on. `daemons` gives the pods that a new node gets at once."""

    def __init__(
        self,
        cluster: Cluster,
        scheduler_on: Callable[[Cluster], Scheduler],
        daemons: Callable[[Node], Iterable[Object]],
    ) -> None:
        self._original, self._scheduler_on, self._daemons = cluster, scheduler_on, daemons
        self.claimed: set[str] = set()
        """The nodes that pods were put on by `fits`."""

    @cached_property
    def cluster(self) -> Cluster:
        """The copy: made when it is needed, as often nothing is tried."""
        return self._original.fork()

    @cached_property
    def _scheduler(self) -> Scheduler:
        return self._scheduler_on(self.cluster)

    def copy(self) -> WhatIf:
        return WhatIf(self.cluster, self._scheduler_on, self._daemons)

    def add(self, node: Node) -> None:
        """A node joins, with its daemon pods."""
        self.cluster.add(node)
        for item in self._daemons(node):
            if isinstance(item, Pod):
                self._place(item)

    def remove(self, node: Node) -> None:
        """A node leaves; its pods are nowhere."""
        for pod in self.cluster.pods_on(self.cluster.rows[node.name]):
            self.cluster.end(pod)
        self.cluster.remove(node)

    def fits(self, pod: Pod) -> bool:
        """Whether a pod finds a node; it is on that node from now on."""
        node = self._place(pod)
        if node is not None:
            self.claimed.add(node)
        return node is not None

    def fit(self, pods: Sequence[Pod]) -> bool:
        """Whether all pods find nodes."""
        return all(map(self.fits, pods))

    def _place(self, pod: Pod) -> str | None:
        try:
            node = self._scheduler.schedule(pod)
        except (InputError, PluginError, ExtenderError):
            return None
        return node


def made_anew(pod: Pod) -> Pod:
    """The pod as its controller would make it once more: without a node."""
    metadata = replace(pod.metadata, name=f"{pod.name}-anew", deletion_timestamp=None)
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=PodStatus(phase="Pending"))
