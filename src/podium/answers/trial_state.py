"""A pod, a copy of the cluster and a configuration, on which changes are tried and undone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace as replace_data

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration
from podium.config.profiles import check_profile
from podium.engine import Decision, Scheduler
from podium.engine.decision import why_finished
from podium.engine.scheduler import SchedulerOptions
from podium.errors import InputError
from podium.framework import Framework
from podium.framework.suggested_change import Change, T
from podium.model import Node, Pod


class TrialState:
    """A pod without a node, a copy of the cluster, and a configuration. Every change of them can be undone."""

    def __init__(
        self,
        cluster: Cluster,
        pod: Pod,
        config: KubeSchedulerConfiguration,
        options: SchedulerOptions,
    ) -> None:
        """`config` is the configuration of the options, decoded; configuration changes start from it."""
        self.cluster = cluster.fork()
        self.cluster.take_off(pod.key)
        # A pending pod goes as well: a nomination of its own would keep it from all other nodes.
        self.cluster.remove(pod)
        self.pod, self.config, self.options = pod, config, options
        self._schedulers: list[tuple[KubeSchedulerConfiguration, Scheduler]] = []
        self._undo: list[Callable[[], object]] = []
        self.decisions = 0
        """The number of decisions made so far."""

    def decide(self) -> Decision:
        """Decide where the pod goes now."""
        self.decisions += 1
        return self._scheduler().decide(self.pod)

    def _scheduler(self) -> Scheduler:
        """A scheduler for the current configuration; the first one is kept, others are made for a changed
        configuration.
        """
        for config, scheduler in self._schedulers:
            if config is self.config:
                return scheduler
        made = Scheduler(self.cluster, replace_data(self.options, config=self.config, tie_break="first"))
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
        """Apply these changes for the length of the block."""
        before = len(self._undo)
        try:
            for change in changes:
                change.apply(self)
            yield
        finally:
            while len(self._undo) > before:
                self._undo.pop()()

    def edit_pod(self, edit: Callable[[Pod], Pod]) -> None:
        """Change the pod to be placed."""
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

    def edit_object(self, item: T, edit: Callable[[T], T]) -> None:
        """Change an object that is neither a node nor a pod."""
        before = self.cluster.store.of(type(item)).get(item.name, item.namespace)
        if before is not None:
            self._undo.append(lambda: self.cluster.update(before))
            self.cluster.update(edit(before))

    def evict(self, key: str) -> None:
        taken = self.cluster.take_off(key)
        if taken is not None:
            self._undo.append(lambda: self.cluster.put_back(taken))


@contextmanager
def trial_of(
    cluster: Cluster, pod: Pod, options: SchedulerOptions, profile: str | None = None
) -> Iterator[tuple[TrialState, Decision]]:
    """A trial of a pod that is decided as if it had no node yet, and the decision without any change."""
    pod = undecided(pod, profile)
    with closing(Scheduler(cluster, options)) as scheduler:
        if profile is not None:
            check_profile(profile, scheduler.frameworks)
        scheduler.framework_of(pod)
        settings = scheduler.config
    with closing(TrialState(cluster, pod, _until_one_rejects(settings), options)) as trial:
        with closing(Scheduler(trial.cluster, replace_data(options, config=settings))) as scheduler:
            decision = scheduler.decide(pod)
        yield trial, decision


def undecided(pod: Pod, profile: str | None = None) -> Pod:
    """The pod as if it had no node yet, to be decided by its own profile or another."""
    if pod.finished:
        raise InputError(f"pod {pod.key} {why_finished(pod)}")
    return replace(pod, spec=replace(pod.spec, node_name="", scheduler_name=profile or pod.spec.scheduler_name))


def _until_one_rejects(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """The same decisions, but a release in which every filter checks every node stops at the first filter that
    rejects.
    """
    if not config.old_release:
        return config
    from podium.releases import LegacyConfiguration  # loaded where an old release decides

    assert isinstance(config, LegacyConfiguration)
    return replace_data(config, behaviour=replace_data(config.behaviour, collects_all_reasons=False))
