"""The strategy of cluster-autoscaler: removes nodes that have been little used for long enough."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from podium.autoscaling._cloud_provider import CloudProvider
from podium.autoscaling._group_nodes import Member, may_be_removed, try_removal
from podium.autoscaling.strategy import Removals, Strategy
from podium.autoscaling.trial_cluster import TrialCluster
from podium.manifests.located import Section
from podium.model import Node, Pod
from podium.model.pod import belongs_to_node, is_static
from podium.workloads.disruptions import Disruptions

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SYSTEM = "kube-system"
MEMORY_MEDIUM = "Memory"
KNOWN_CONTROLLERS = frozenset(("DaemonSet", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"))
"""The controllers whose pods the Cluster Autoscaler moves, fewer than those that `is_recreated` knows: by default, it
skips nodes with pods of custom controllers.
"""


@dataclass(frozen=True, kw_only=True)
class ClusterAutoscaler(Strategy):
    """cluster-autoscaler's rules and flags. Times are in seconds."""

    name: ClassVar[str] = "cluster-autoscaler"
    default_expander: ClassVar[str] = "least-waste"
    fields: ClassVar[tuple[str, ...]] = (
        "scaleDownDelayAfterAdd",
        "scaleDownDelayAfterDelete",
        "scaleDownUnneededTime",
        "scaleDownUnreadyTime",
        "scaleDownUtilizationThreshold",
        "scaleDownGpuUtilizationThreshold",
        "scaleDownNonEmptyCandidatesCount",
        "maxScaleDownParallelism",
        "maxDrainParallelism",
        "skipNodesWithLocalStorage",
        "skipNodesWithSystemPods",
        "ignoreDaemonsetsUtilization",
        "ignoreMirrorPodsUtilization",
        "expendablePodsPriorityCutoff",
    )

    scale_down_delay_after_add: float
    scale_down_delay_after_delete: float
    scale_down_unneeded_time: float
    scale_down_unready_time: float
    scale_down_utilization_threshold: float
    scale_down_gpu_utilization_threshold: float
    scale_down_non_empty_candidates_count: int
    max_scale_down_parallelism: int
    max_drain_parallelism: int
    skip_nodes_with_local_storage: bool
    skip_nodes_with_system_pods: bool
    ignore_daemonsets_utilization: bool
    ignore_mirror_pods_utilization: bool
    expendable_pods_priority_cutoff: int

    @classmethod
    def read(cls, top: Section, scan_interval: float) -> Self:
        return cls(
            scale_down_delay_after_add=top.duration("scaleDownDelayAfterAdd", 600.0),
            scale_down_delay_after_delete=top.duration("scaleDownDelayAfterDelete", scan_interval),
            scale_down_unneeded_time=top.duration("scaleDownUnneededTime", 600.0),
            scale_down_unready_time=top.duration("scaleDownUnreadyTime", 1200.0),
            scale_down_utilization_threshold=_share(top, "scaleDownUtilizationThreshold"),
            scale_down_gpu_utilization_threshold=_share(top, "scaleDownGpuUtilizationThreshold"),
            scale_down_non_empty_candidates_count=top.whole("scaleDownNonEmptyCandidatesCount", 30, least=1),
            max_scale_down_parallelism=top.whole("maxScaleDownParallelism", 10, least=1),
            max_drain_parallelism=top.whole("maxDrainParallelism", 1, least=1),
            skip_nodes_with_local_storage=top.truth("skipNodesWithLocalStorage", default=True),
            skip_nodes_with_system_pods=top.truth("skipNodesWithSystemPods", default=True),
            ignore_daemonsets_utilization=top.truth("ignoreDaemonsetsUtilization", default=False),
            ignore_mirror_pods_utilization=top.truth("ignoreMirrorPodsUtilization", default=False),
            expendable_pods_priority_cutoff=top.whole("expendablePodsPriorityCutoff", -10, least=-(2**31)),
        )

    def is_expendable(self, pod: Pod) -> bool:
        """Whether a pod's priority is so low that no node is added or kept for it; False for a pod without a
        priority.
        """
        return pod.spec.priority is not None and pod.spec.priority < self.expendable_pods_priority_cutoff

    def is_ignored(self, pod: Pod) -> bool:
        if is_static(pod):
            return self.ignore_mirror_pods_utilization
        return self.ignore_daemonsets_utilization and belongs_to_node(pod)

    def allows_eviction(self, pod: Pod, disruptions: Disruptions) -> bool:
        annotations, owner = pod.metadata.annotations, pod.metadata.controller
        if SAFE_TO_EVICT in annotations and annotations[SAFE_TO_EVICT] in ("true", "false"):
            return annotations[SAFE_TO_EVICT] == "true"
        if owner is None or owner.kind not in KNOWN_CONTROLLERS:
            return False
        if self.skip_nodes_with_system_pods and pod.namespace == SYSTEM and not disruptions.has_budget(pod):
            return False
        return not (self.skip_nodes_with_local_storage and _has_local_storage(pod))

    def allows_removal(self, node: Node) -> bool:
        return node.metadata.annotations.get(SCALE_DOWN_DISABLED) != "true"

    def removals(self, cloud: CloudProvider) -> Removals:
        return ScaleDown(cloud, self)


def _share(top: Section, field: str) -> float:
    share = top.number(field, 0.5, least=0)
    if share > 1:
        top.refuse(field, f"is {share:g}; it needs a share from 0 to 1, such as 0.5 for half of a node")
    return share


def _has_local_storage(pod: Pod) -> bool:
    safe = pod.metadata.annotations.get(SAFE_LOCAL_VOLUMES, "").split(",")
    return any(
        volume.host_path is not None or (volume.empty_dir is not None and volume.empty_dir.medium != MEMORY_MEDIUM)
        for volume in pod.spec.volumes
        if volume.name not in safe
    )


class ScaleDown(Removals):
    """cluster-autoscaler's scale-down: removes nodes that have been unneeded for long enough."""

    def __init__(self, cloud: CloudProvider, strategy: ClusterAutoscaler) -> None:
        self._cloud, self._strategy = cloud, strategy
        self._since: dict[str, float] = {}
        """By unneeded node, the time since when it has been unneeded."""
        self._due: dict[str, float] = {}
        """By unneeded node, the time from which it may be removed; that changes if the node fails."""

    def timers(self) -> Iterator[float]:
        """The times from which unneeded nodes may be removed."""
        if self._cloud.settings.scale_down_enabled:
            yield from (max(due, self._cooled) for due in self._due.values())

    @property
    def _cooled(self) -> float:
        """The time from which nodes may be removed again after the last one was added or removed."""
        strategy, cloud = self._strategy, self._cloud
        return max(
            cloud.last_add + strategy.scale_down_delay_after_add,
            cloud.last_delete + strategy.scale_down_delay_after_delete,
        )

    def update(self, tried: TrialCluster) -> None:
        """Find the unneeded nodes: little used, and their pods fit elsewhere when all unneeded nodes are removed
        together.

        `tried` is the cluster with the waiting pods placed where they fit; a node that gets such a pod is needed.
        """
        strategy, cloud, spare, non_empty = self._strategy, self._cloud, self._cloud.spare(), 0
        little_used = [
            one
            for one in cloud.members()
            if one.utilization <= self._threshold(one) and one.name not in tried.placed and spare[one.group.name] > 0
        ]
        little_used.sort(key=lambda one: (one.name not in self._due, not one.is_empty, one.utilization))
        since, due = self._since, {}
        self._since = {}
        for one in little_used:
            if non_empty >= strategy.scale_down_non_empty_candidates_count and not one.is_empty:
                continue
            if not may_be_removed(one, strategy, cloud.world.disruptions):
                continue
            non_empty += not one.is_empty
            trial = None if cloud.only_nodes.keep(one.name, one.pods) else try_removal(tried, one)
            if trial is not None:
                tried = trial
                wait = strategy.scale_down_unneeded_time if one.is_ready else strategy.scale_down_unready_time
                self._since[one.name] = since.get(one.name, cloud.now)
                due[one.name] = self._since[one.name] + wait
        self._due = due

    def _threshold(self, one: Member) -> float:
        """The utilization up to which a node may be removed, from 0 to 1."""
        strategy = self._strategy
        return (
            strategy.scale_down_gpu_utilization_threshold if one.has_gpus else strategy.scale_down_utilization_threshold
        )

    def act(self) -> bool:
        """Remove the nodes that have been unneeded for long enough; returns whether there were any."""
        strategy, cloud = self._strategy, self._cloud
        if not cloud.settings.scale_down_enabled or cloud.now < self._cooled:
            return False
        due, spare = [], cloud.spare()
        for one in sorted(cloud.members(), key=lambda one: not one.is_empty):
            if self._due.get(one.name, math.inf) <= cloud.now and spare[one.group.name] > 0:
                spare[one.group.name] -= 1
                due.append(one)
        empty = [one for one in due if one.is_empty][: strategy.max_scale_down_parallelism]
        at_once = min(
            strategy.max_drain_parallelism - len(cloud.leaving), strategy.max_scale_down_parallelism - len(empty)
        )
        drained = [one for one in due if not one.is_empty][: max(at_once, 0)]
        for one in (*empty, *drained):
            self._due.pop(one.name)
            cloud.remove(one, "empty" if one.is_empty else "underutilized")
        return bool(empty or drained)
