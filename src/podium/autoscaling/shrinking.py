"""What there is of the groups' nodes when it comes to shrinking: how full they are, and whether their pods can move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from podium.autoscaling.evictable import goes_along, may_go, may_move
from podium.autoscaling.groups import NodeGroup, Settings
from podium.autoscaling.what_if import WhatIf, made_anew
from podium.cluster import Cluster, NodeInfo
from podium.model import Node, Pod
from podium.model.resources import CPU, MEMORY
from podium.timeline.disruptions import Disruptions


@dataclass(frozen=True)
class Member:
    """A node of a group."""

    node: Node
    group: NodeGroup
    pods: tuple[Pod, ...]
    """Those that would have to move."""
    utilization: float
    """The larger share of cpu and memory that is requested, from 0 to 1."""

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def is_empty(self) -> bool:
        return not self.pods


def member(cluster: Cluster, node: Node, group: NodeGroup, current: Callable[[str], Pod], settings: Settings) -> Member:
    """A node as it is now; `current` gives a pod by its key."""
    row = cluster.rows[node.name]
    pods = [current(placed.pod.key) for placed in cluster.placed_on(row)]
    info = NodeInfo(cluster, row)
    ignored = [p for p in pods if settings.ignore_daemonsets_utilization and goes_along(p) and not p.terminating]
    shares = []
    for resource in (CPU, MEMORY):
        offered = info.allocatable(resource)
        requested = info.requested(resource) - sum(cluster.info_of(p).resources.used.get(resource, 0) for p in ignored)
        shares.append(requested / offered if offered else 0.0)
    return Member(node, group, tuple(pod for pod in pods if not goes_along(pod)), max(shares))


def may_leave(one: Member, settings: Settings, disruptions: Disruptions) -> bool:
    """Whether nothing on a node keeps it: no annotation, no pod that must not be moved, no budget."""
    movable = all(may_move(pod, settings, disruptions.may_evict) for pod in one.pods)
    return may_go(one.node) and movable and disruptions.may_evict_all(one.pods)


def without(tried: WhatIf, one: Member, instead: Sequence[Node] = ()) -> WhatIf | None:
    """The cluster without a node, its pods on others or on those that come instead; None if they do not fit."""
    trial = tried.copy()
    trial.remove(one.node)
    for node in instead:
        trial.add(node)
    return trial if trial.fit([made_anew(pod) for pod in one.pods]) else None
