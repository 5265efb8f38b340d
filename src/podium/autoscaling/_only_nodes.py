"""Which pods fit on no node but their own: rules out removals before they are tried."""

from __future__ import annotations

from collections.abc import Iterable

from podium.autoscaling.trial_cluster import replacement_of
from podium.cluster import Cluster, PodInfo
from podium.errors import InputError, PluginError
from podium.framework import Framework, PodView
from podium.framework.fast_paths import ForSomePods
from podium.loop.cycle import SchedulerLoop
from podium.model import Pod


class OnlyNodes:
    """Rules out removals before they are tried: finds pods that fit on no node but their own.

    It asks the scheduler of the real cluster, whose results are up to date, once for each kind of pod until the cluster
    changes.
    """

    def __init__(self, loop: SchedulerLoop) -> None:
        self._scheduler, self._cluster = loop.scheduler, loop.cluster
        self._found: dict[tuple[PodInfo, str], str | None] = {}
        self._as_of: tuple[int, ...] = ()

    def keep(self, node: str, pods: Iterable[Pod]) -> bool:
        """Whether one of the pods certainly fits nowhere else, even if other nodes go as well; False if unknown."""
        if self._scheduler.nominations or self._scheduler.extenders:
            return False
        if self._as_of != self._cluster.version:
            self._as_of = self._cluster.version
            self._found.clear()
        return any(self._only_node(pod) in ("", node) for pod in pods)

    def _only_node(self, pod: Pod) -> str | None:
        """The only node on which another pod of this kind fits, empty if there is none; None if several or unknown."""
        pod = replacement_of(pod)
        kind = self._cluster.infos.of(pod), pod.spec.scheduler_name
        if kind not in self._found:
            before = self._scheduler.save()
            try:
                self._found[kind] = self._ask(pod, kind[0])
            except (InputError, PluginError):
                self._found[kind] = None
            finally:
                self._scheduler.restore(before)
        return self._found[kind]

    def _ask(self, pod: Pod, info: PodInfo) -> str | None:
        scheduler = self._scheduler
        framework, evaluation = scheduler.framework_of(pod), scheduler.attempt(pod).evaluation
        skipped = frozenset[str]() if evaluation is None else frozenset(evaluation.skipped)
        if not _filters_node_by_node(framework, info, self._cluster, skipped):
            return None
        if evaluation is None or evaluation.feasible.count == 0:
            return ""
        if evaluation.feasible.count > 1 or evaluation.looked_at is not None:
            return None
        return self._cluster.names[evaluation.feasible.rows.item(0)]


def _filters_node_by_node(framework: Framework, info: PodInfo, cluster: Cluster, skipped: frozenset[str]) -> bool:
    """Whether a pod's filters check each node by itself, and never pass a node because pods were added to it.

    The second is known of Podium's own plugins only. `skipped` names the plugins that do not filter for this pod.
    """
    return all(
        plugin.name in skipped
        or (isinstance(plugin, ForSomePods) and not plugin.concerns(PodView(info), cluster))
        or (
            type(plugin).__module__.startswith("podium.")
            and plugin.reads is not None
            and not plugin.varies(info, cluster)
        )
        for plugin in (*framework.pre_filter, *framework.filter)
    )
