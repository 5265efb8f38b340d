"""The nodes of groups: their utilization, and whether they may be removed and their pods fit elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from podium.autoscaling._node_groups import NodeGroup
from podium.autoscaling.strategy import Strategy
from podium.autoscaling.trial_cluster import TrialCluster, replacement_of
from podium.cluster import Cluster, NodeInfo
from podium.model import Node, Pod
from podium.model.pod import ends_with_node
from podium.model.resources import CPU, MEMORY
from podium.model.selectors import is_unreachable
from podium.workloads.disruptions import Disruptions

GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Member:
    """A node of a group."""

    node: Node
    group: NodeGroup
    pods: tuple[Pod, ...]
    """The pods that have to be moved before the node can be removed."""
    utilization: float
    """The requested share of cpu or of memory, whichever is larger, from 0 to 1; on a node with GPUs, the share of
    GPUs.
    """
    has_gpus: bool

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def is_empty(self) -> bool:
        return not self.pods

    @property
    def is_ready(self) -> bool:
        return not is_unreachable(self.node)


def member(cluster: Cluster, node: Node, group: NodeGroup, pods: Sequence[Pod], strategy: Strategy) -> Member:
    """Compute the utilization and the pods to move of a node with these pods on it."""
    row = cluster.rows[node.name]
    counted = [pod for pod in pods if not strategy.is_expendable(pod)]
    info = NodeInfo(cluster, row)
    resources = (GPU,) if info.allocatable(GPU) else (CPU, MEMORY)
    ignored = [pod for pod in counted if strategy.is_ignored(pod)]

    def used(resource: str, by: Iterable[Pod]) -> int:
        return sum(cluster.info_of(pod).resources.used.get(resource, 0) for pod in by)

    shares = [0.0]
    for resource in resources:
        # The requests of ignored pods count neither as used nor as available.
        not_counted = used(resource, ignored)
        offered = info.allocatable(resource) - not_counted
        shares.append((used(resource, counted) - not_counted) / offered if offered > 0 else 0.0)
    moving = tuple(pod for pod in counted if not ends_with_node(pod))
    return Member(node, group, moving, max(shares), has_gpus=resources == (GPU,))


def may_be_moved(pod: Pod, strategy: Strategy, disruptions: Disruptions) -> bool:
    """Whether a pod may be evicted so that its node can be removed."""
    return disruptions.may_evict(pod) and strategy.allows_eviction(pod, disruptions)


def may_be_removed(one: Member, strategy: Strategy, disruptions: Disruptions) -> bool:
    """Whether a node may be removed: no annotation forbids it, all its pods may be moved, and budgets allow it."""
    movable = all(may_be_moved(pod, strategy, disruptions) for pod in one.pods)
    return strategy.allows_removal(one.node) and movable and disruptions.may_evict_all(one.pods)


def try_removal(
    tried: TrialCluster, one: Member, instead: Sequence[Node] = (), *, keep: bool = True
) -> TrialCluster | None:
    """Remove a node from `tried` and place its pods on the other nodes and those in `instead`; None if they do not fit.

    Its pods include those that were moved there when another node was removed. With `keep`, `tried` itself is changed
    if they fit; otherwise it stays as it is.
    """
    pods = [replacement_of(pod) for pod in (*one.pods, *tried.placed.get(one.name, ()))]

    def change(trial: TrialCluster) -> bool:
        trial.remove(one.node)
        for node in instead:
            trial.add(node)
        return trial.fit(pods)

    return tried.attempt(change, keep=keep)
