"""A pod, a cluster and a configuration on which changes are tried and undone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration
from podium.engine import Decision, Scheduler
from podium.engine.release import CURRENT, AnyRelease
from podium.framework import Framework, Registry
from podium.framework.suggested_change import Change
from podium.model import Node, Pod, ResourceClaim


class Situation:
    """A pod without a node, a copy of the cluster, and a configuration. Every change of them can be undone."""

    def __init__(
        self,
        cluster: Cluster,
        pod: Pod,
        config: KubeSchedulerConfiguration,
        registry: Registry,
        release: AnyRelease = CURRENT,
    ) -> None:
        self.cluster = cluster.fork()
        self.cluster.end(pod)
        self.pod, self.config, self.registry, self.release = pod, config, registry, release
        self._schedulers: list[tuple[KubeSchedulerConfiguration, Scheduler]] = []
        self._undo: list[Callable[[], object]] = []
        self.decisions = 0
        """How many decisions were made."""

    def decide(self) -> Decision:
        """Decide where the pod goes as things are."""
        self.decisions += 1
        return self._scheduler().decide(self.pod)

    def _scheduler(self) -> Scheduler:
        """A scheduler of the configuration; the first one is kept, the others serve a change of configuration."""
        for config, scheduler in self._schedulers:
            if config is self.config:
                return scheduler
        made = Scheduler(self.cluster, self.config, registry=self.registry, release=self.release, tie_break="first")
        for _, scheduler in self._schedulers[1:]:
            scheduler.close()
        self._schedulers = [*self._schedulers[:1], (self.config, made)]
        return made

    @property
    def framework(self) -> Framework:
        """The plugins of the pod's profile."""
        return self._scheduler().framework_of(self.pod)

    def close(self) -> None:
        for _, scheduler in self._schedulers:
            scheduler.close()

    @contextmanager
    def with_changes(self, changes: Iterable[Change]) -> Iterator[None]:
        """Make these changes for the length of the block."""
        before = len(self._undo)
        try:
            for change in changes:
                change.apply(self)
            yield
        finally:
            while len(self._undo) > before:
                self._undo.pop()()

    def edit_pod(self, edit: Callable[[Pod], Pod]) -> None:
        """Change the pod that is to be placed."""
        before = self.pod
        self._undo.append(lambda: setattr(self, "pod", before))
        self.pod = edit(before)

    def edit_config(self, edit: Callable[[KubeSchedulerConfiguration], KubeSchedulerConfiguration]) -> None:
        before = self.config
        self._undo.append(lambda: setattr(self, "config", before))
        self.config = edit(before)

    def edit_node(self, name: str, edit: Callable[[Node], Node]) -> None:
        before = self.cluster.node(name)
        self._undo.append(lambda: self.cluster.update(before))
        self.cluster.update(edit(before))

    def edit_running(self, key: str, edit: Callable[[Pod], Pod]) -> None:
        """Change a pod that is on a node."""
        found = self.cluster.find_pod(key)
        if found is not None:
            before = found[0]
            self._undo.append(lambda: self.cluster.update(before))
            self.cluster.update(edit(before))

    def evict(self, key: str) -> None:
        found = self.cluster.find_pod(key)
        if found is not None:
            before = found[0]
            held = self.cluster.end(before)
            self._undo.append(lambda: self._put_back(before, held))

    def _put_back(self, pod: Pod, held: list[ResourceClaim]) -> None:
        self.cluster.add(pod)
        for claim in held:
            self.cluster.update(claim)
