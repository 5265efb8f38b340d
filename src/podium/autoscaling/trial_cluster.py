"""A copy of the cluster on which the autoscaler tries changes of nodes and undoes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

from podium.cluster import Cluster
from podium.cluster.store import releases
from podium.engine import Scheduler
from podium.errors import ExtenderError, InputError, PluginError
from podium.model import Node, Object, Pod, ResourceClaimTemplate, ResourceSlice
from podium.workloads.claims import claims_for
from podium.workloads.owners import recreated


class _IrreversibleError(Exception):
    """A step of a trial changed more than nodes and pods, which cannot be undone."""


class TrialCluster:
    """A copy of a cluster to try something on; `attempt` undoes a change that does not help.

    `comes_with` gives the pods and devices that a new node has at once.
    """

    def __init__(
        self,
        cluster: Cluster,
        scheduler_on: Callable[[Cluster], Scheduler],
        comes_with: Callable[[Node], Iterable[Object]],
    ) -> None:
        self._original, self._scheduler_on, self._comes_with = cluster, scheduler_on, comes_with
        self.placed: dict[str, list[Pod]] = {}
        """The pods that `fits` put on nodes, by node."""
        self._undo: list[Callable[[], object]] | None = None
        """How to undo the steps of the current attempt, in their order; None outside of an attempt."""
        self._start: tuple[Any, ...] = ()

    @cached_property
    def cluster(self) -> Cluster:
        """The copy, made on first use: often nothing is tried."""
        return self._original.fork()

    @cached_property
    def _scheduler(self) -> Scheduler:
        scheduler = self._scheduler_on(self.cluster)
        self._start = scheduler.save()
        return scheduler

    def copy(self) -> TrialCluster:
        twin = TrialCluster(self.cluster, self._scheduler_on, self._comes_with)
        twin.placed = {name: [*pods] for name, pods in self.placed.items()}
        return twin

    def attempt(self, change: Callable[[TrialCluster], bool], *, keep: bool) -> TrialCluster | None:
        """Make a change, which returns whether it succeeded; returns the changed cluster, or None if it failed.

        A change that failed is undone; without `keep`, a change that succeeded is undone as well. A change that cannot
        be undone, because it concerns volumes or devices, is made on a copy. The scheduler starts as a new one would,
        so that both ways have the same outcome.
        """
        self._scheduler.restore(self._start)
        self._undo = []
        succeeded = False
        try:
            succeeded = change(self)
        except _IrreversibleError:
            self._roll_back(self._undo)
            twin = self.copy()
            return twin if change(twin) else None
        finally:
            if not (succeeded and keep):
                self._roll_back(self._undo)
            self._undo = None
        return self if succeeded else None

    @staticmethod
    def _roll_back(undo: list[Callable[[], object]]) -> None:
        while undo:
            undo.pop()()

    def _done(self, undo: Callable[[], object]) -> None:
        """Record how to undo a step of the current attempt."""
        if self._undo is not None:
            self._undo.append(undo)

    def _require_copy_if(self, concerned: object) -> None:
        """End the current attempt if it would change objects that cannot be restored; it is repeated on a copy."""
        if self._undo is not None and concerned:
            raise _IrreversibleError

    def add(self, node: Node) -> None:
        """Add a node with its devices and the pods of DaemonSets."""
        self.cluster.add(node)
        self._done(lambda: self.cluster.remove(node))
        for item in self._comes_with(node):
            if isinstance(item, Pod):
                self._place(item)
            elif isinstance(item, ResourceSlice):
                self._require_copy_if(item)
                self.cluster.update(item)

    def remove(self, node: Node) -> None:
        """Remove a node with its pods and devices."""
        cluster, slices = self.cluster, slices_on(node, self.cluster)
        there = cluster.placed_on(cluster.rows[node.name])
        self._require_copy_if(slices or any(releases(each.pod, cluster.store) for each in there))
        moved = self.placed.pop(node.name, None)

        def restore() -> None:
            # The node gets its old row again, and its pods are in their old order.
            cluster.add(node)
            for each in there:
                cluster.place(each.pod, cluster.rows[node.name], each.info)
            if moved is not None:
                self.placed[node.name] = moved

        for each in there:
            cluster.end(each.pod)
        for item in slices:
            cluster.remove(item)
        cluster.remove(node)
        self._done(restore)

    def fits(self, pod: Pod) -> bool:
        """Place a pod if it fits on a node; returns whether it does."""
        node = self._place(pod)
        if node is None:
            return False
        moved = self.placed.setdefault(node, [])
        moved.append(pod)
        self._done(lambda: moved.pop() if len(moved) > 1 else self.placed.pop(node))
        return True

    def fit(self, pods: Sequence[Pod]) -> bool:
        """Place pods one after the other until one does not fit; returns whether all fit."""
        return all(map(self.fits, pods))

    def _place(self, pod: Pod) -> str | None:
        pod, claims = claims_for(pod, self.cluster.store.of(ResourceClaimTemplate).get)
        self._require_copy_if(claims)
        for claim in claims:
            self.cluster.update(claim)
        try:
            return self._scheduler.schedule(pod) if self._undo is None else self._place_reversibly(pod)
        except (InputError, PluginError, ExtenderError):
            return None

    def _place_reversibly(self, pod: Pod) -> str | None:
        attempt = self._scheduler.attempt(pod)
        if attempt.evaluation is None or attempt.node is None:
            return None
        # What plugins reserve is not undone here.
        self._require_copy_if(attempt.evaluation.plan.outline.reserve)
        # A pod that was pending before is pending again afterwards.
        undo = self.cluster.forget if pod.key in self.cluster.pending else self.cluster.remove
        self._scheduler.assume(attempt)
        self._done(lambda: undo(pod))
        return attempt.node


def replacement_of(pod: Pod) -> Pod:
    """The pod that its controller would create if it were evicted, under a name of its own."""
    return recreated(pod, f"{pod.name}-anew", f"{pod.metadata.uid}-anew")


def slices_on(node: Node, cluster: Cluster) -> list[ResourceSlice]:
    """The ResourceSlices of one node, which are deleted with it."""
    return [each for each in cluster.store.of(ResourceSlice) if each.spec.node_name == node.name]
