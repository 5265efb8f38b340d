"""A pod before a decision: what changes are tried on, one after the other, and taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration
from podium.engine import Decision, Scheduler
from podium.framework import Registry
from podium.engine.release import CURRENT, AnyRelease
from podium.objects import Node, Pod

if TYPE_CHECKING:
    from podium.answers.turning.changes import Change


class Situation:
    """A pod without a node, a cluster of its own, and a configuration; every change to them can be undone."""

    def __init__(
        self,
        cluster: Cluster,
        pod: Pod,
        config: KubeSchedulerConfiguration,
        registry: Registry,
        release: AnyRelease = CURRENT,
    ) -> None:
        self.cluster = cluster.fork()
        self.cluster.remove(pod)
        self.pod, self.config, self.registry, self.release = pod, config, registry, release
        self._schedulers: list[tuple[KubeSchedulerConfiguration, Scheduler]] = []
        self._undo: list[Callable[[], object]] = []
        self.decisions = 0
        """How many were made."""

    def decide(self) -> Decision:
        """Where the pod goes as things are."""
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

    def args_of(self, plugin: str) -> object:
        """The arguments of a plugin in the pod's profile; None where it has none."""
        name = self.pod.spec.scheduler_name
        return next((each.args.get(plugin) for each in self.config.profiles if each.scheduler_name == name), None)

    def close(self) -> None:
        for _, scheduler in self._schedulers:
            scheduler.close()

    @contextmanager
    def trying(self, changes: Iterable[Change]) -> Iterator[Situation]:
        """With these changes, for the length of the block."""
        before = len(self._undo)
        try:
            for change in changes:
                change.apply(self)
            yield self
        finally:
            while len(self._undo) > before:
                self._undo.pop()()

    # -- what changes do -------------------------------------------------------------------------------------------

    def edit_pod(self, edit: Callable[[Pod], Pod]) -> None:
        """Change the pod that is to be decided."""
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
            self._undo.append(lambda: self.cluster.add(before))
            self.cluster.remove(before)
