"""The front door for Python: a cluster that is opened once and answers every question, as the commands do.

Answers are imported by the question that needs them, so that a cluster for a scheduler or a plugin loads fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, Unpack

from podium.cluster import Cluster as ClusterColumns
from podium.cluster_input import ClusterInput
from podium.engine import Scheduler
from podium.engine.release import AnyRelease, known_release_of_nodes
from podium.engine.scheduler import Config, SchedulerKeywords, SchedulerOptions
from podium.lookup import find_nodes, find_pod
from podium.manifests import Objects
from podium.model import Node, Object, Pod

if TYPE_CHECKING:
    from podium import answers
    from podium.answers.consolidation import Consolidation
    from podium.answers.explanation import Explained
    from podium.answers.simulation import Simulation


class Cluster(ClusterColumns):
    """A cluster, and the questions about it. No question changes it.

    `Cluster.open("cluster.json")` reads what `kubectl get -o json` or `podium dump` wrote; `Cluster.live()` reads the
    cluster of a kubeconfig context. Pods and nodes are named as on the command line, or given as objects. Questions
    decide as `options` says: by default as the release of the nodes, with its default configuration.
    """

    objects: Objects
    """What was read, with the pods that workloads want and do not have."""
    options: SchedulerOptions

    @classmethod
    def open(
        cls,
        *sources: str | Mapping[str, Any],
        config: Config = None,
        strict: bool = False,
        **keywords: Unpack[SchedulerKeywords],
    ) -> Self:
        """Open files, directories, stdin (`-`) or dicts; later ones are applied over earlier ones.

        `config` is a KubeSchedulerConfiguration; `keywords` are those of `Scheduler`: release, registry, seed ...
        """
        return cls._of(ClusterInput.read(*sources, strict=strict), config, keywords)

    @classmethod
    def live(
        cls,
        context: str | None = None,
        kubeconfig: str | None = None,
        *,
        config: Config = None,
        **keywords: Unpack[SchedulerKeywords],
    ) -> Self:
        """Read the cluster of a kubeconfig context, by default the current one. Needs the extra `live`."""
        from podium.live.client import find_access
        from podium.live.reading import read_cluster

        objects, _ = read_cluster(find_access(kubeconfig, context))
        return cls._of(ClusterInput(objects), config, keywords)

    @classmethod
    def _of(cls, given: ClusterInput, config: Config, keywords: SchedulerKeywords) -> Self:
        cluster = cls.from_objects(given.expanded)
        cluster.options = SchedulerOptions.of(config, **keywords)
        if "release" not in keywords and (found := known_release_of_nodes(given.objects.of(Node))) is not None:
            cluster.options = replace(cluster.options, release=found.release)
        return cluster

    @classmethod
    def from_objects(cls, objects: Iterable[Object]) -> Self:
        cluster = super().from_objects(objects)
        assert isinstance(cluster, cls)
        cluster.objects = objects if isinstance(objects, Objects) else Objects(objects)
        cluster.options = SchedulerOptions()
        return cluster

    def __repr__(self) -> str:
        placed = sum(1 for _ in self.placed())
        return f"<Cluster: {self.node_count:,} nodes, {placed:,} pods on them, {len(self.pending):,} pending>"

    # -- questions about a pod -----------------------------------------------------------------------------------------

    def explain(self, pod: str | Pod, *, preempt: bool = False, profile: str | None = None) -> Explained:
        """Why a pod goes to its node, or fits on none."""
        from podium.answers.explanation import explain_pod

        with closing(Scheduler(self.fork(), self.options)) as scheduler:
            return explain_pod(scheduler, self._named_pod(pod), profile, preempt=preempt)

    def why_not(
        self, pod: str | Pod, node: str | Node | None = None, *, most: int = 5, profile: str | None = None
    ) -> answers.WhyNot | answers.WhyNowhere:
        """What keeps a pod off a node, or off all of them, and the smallest changes that help."""
        from podium import answers

        found = self._named_pod(pod)
        if node is None:
            return answers.why_nowhere(self, found, self.options, profile=profile, most=most)
        name = node if isinstance(node, str) else node.name
        return answers.why_not(self, found, name, self.options, profile=profile, most=most)

    # -- questions about the cluster -----------------------------------------------------------------------------------

    def simulate(self, *, preempt: bool = True) -> Simulation:
        """Where everything that is pending goes."""
        from podium.answers.simulation import simulate

        return simulate(self, config=self._steady, preempt=preempt)

    def capacity(
        self, *pods: str | Pod, mix: Sequence[int] = (), limit: int = 0, exclude_nodes: Iterable[str] = ()
    ) -> answers.Capacity:
        """How many more pods like these fit, several in turns, where, and what stops the next one."""
        from podium import answers

        templates = [self._named_pod(pod) for pod in pods]
        return answers.capacity(self, templates, self._steady, mix=mix, limit=limit, exclude_nodes=exclude_nodes)

    def drain(self, *nodes: str | Node, preempt: bool = True) -> answers.Disruption:
        """Where the pods of drained nodes go; nodes are named, or selected by labels such as `zone=eu-1a`."""
        from podium import answers

        return answers.drain(self, self._named_nodes(nodes), self._disruption(preempt))

    def fail(self, *nodes: str | Node, preempt: bool = True) -> answers.Disruption:
        """Where the pods of lost nodes go, which stay pending, and which budgets are violated."""
        from podium import answers

        return answers.fail(self, self._named_nodes(nodes), self._disruption(preempt))

    def audit(self) -> answers.Audit:
        """Which running pods are where they would go now, which drifted, which no longer fit."""
        from podium import answers

        return answers.audit(self, self.options)

    def compare(
        self, config: Config = None, *, release: AnyRelease | None = None, replay: bool = False
    ) -> answers.Comparison:
        """What is placed elsewhere with another configuration, or as another release."""
        from podium import answers

        mine = self.options
        before = answers.Way(cluster=self, config=mine.config, release=mine.release, name="before")
        after = replace(before, name="after", release=release or mine.release)
        if config is not None:
            after = replace(after, config=config)
        return answers.compare(before, after, mine, replay=replay)

    def upgrade(self, after: AnyRelease | None = None, *, before: AnyRelease | None = None) -> answers.Upgrade:
        """What another release of kube-scheduler, by default the newest, changes."""
        from podium import answers

        releases: dict[str, Any] = {"before": before or self.options.release}
        if after is not None:
            releases["after"] = after
        return answers.upgrade(self, self.options, **releases)

    def consolidate(
        self,
        *,
        nodes: Iterable[str | Node] | None = None,
        most_moves: int | None = None,
        prices: Mapping[str, float] | None = None,
    ) -> Consolidation:
        """Which nodes can go, in which order, and what that saves."""
        from podium.answers.consolidation import ConsolidationLimits, consolidate

        allowed = None if nodes is None else self._named_nodes(nodes)
        return consolidate(self, self.options, ConsolidationLimits(nodes=allowed, most_moves=most_moves, prices=prices))

    # -- names ---------------------------------------------------------------------------------------------------------

    @property
    def _steady(self) -> SchedulerOptions:
        return SchedulerOptions.steady(self.options)

    def _disruption(self, preempt: bool) -> answers.DisruptionSettings:
        from podium import answers

        return answers.DisruptionSettings(**vars(self._steady), preempt=preempt)

    def _named_pod(self, pod: str | Pod) -> Pod:
        return pod if isinstance(pod, Pod) else find_pod(self.objects, pod, None).pod

    def _named_nodes(self, nodes: Iterable[str | Node]) -> list[str]:
        return find_nodes(self, [node if isinstance(node, str) else node.name for node in nodes])
