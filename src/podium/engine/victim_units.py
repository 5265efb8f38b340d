"""Victim units: pods that preemption evicts together, a pod alone or all pods of a PodGroup."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from podium.cluster import Cluster
from podium.cluster.cluster import Placed
from podium.model import Pod, PodGroup
from podium.plugins.default_preemption import start_time

POD, POD_GROUP = 1, 2
"""The ranks of units: of two with equal priority, that of a group is the more important."""


class VictimUnit(NamedTuple):
    """Pods that are evicted together or not at all, by name."""

    pods: tuple[Placed, ...]
    priority: int
    """The group's for a pod of a group, else the pod's."""
    rank: int

    @property
    def importance(self) -> tuple[float, ...]:
        """The sort key: the unit with the smallest key is reprieved first."""
        started = min([start_time(placed.pod) for placed in self.pods])
        return -self.priority, -self.rank, -len(self.pods), started


class VictimUnits:
    """Finds the units that pods belong to."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._groups = cluster.store.of(PodGroup)

    def group_of(self, pod: Pod) -> PodGroup | None:
        named = pod.spec.scheduling_group
        return None if named is None else self._groups.get(named.pod_group_name, pod.namespace)

    def on(self, rows: Iterable[int]) -> list[VictimUnit]:
        """The units with a pod on one of these rows, each once, in the order of their first pods."""
        found: dict[str, VictimUnit] = {}
        for row in rows:
            for placed in self._cluster.placed_on(row):
                pod = placed.pod
                group = self.group_of(pod)
                key = f"group {group.key}" if group is not None and group.is_disrupted_together else pod.key
                if key not in found:
                    found[key] = self._unit(placed, group)
        return list(found.values())

    def _unit(self, placed: Placed, group: PodGroup | None) -> VictimUnit:
        pod, priority = placed.pod, placed.pod.priority if group is None else group.priority
        if group is None or not group.is_disrupted_together:
            return VictimUnit((placed,), priority, POD if pod.spec.scheduling_group is None else POD_GROUP)
        members = self._cluster.placed_pods(each.key for each in self._cluster.members.scheduled(group.key))
        return VictimUnit(tuple(members), priority, POD_GROUP)


class ReprieveOrder(NamedTuple):
    """Units in the order in which they are reprieved: first those with pods whose eviction violates a budget, then the
    others, each the most important first.
    """

    units: list[VictimUnit]
    violations: list[int]
    """Per unit, how many of its pods violate a budget."""

    @classmethod
    def of(cls, units: Iterable[VictimUnit], violating: Callable[[Iterable[Pod]], list[bool]]) -> ReprieveOrder:
        """`violating` tells for each pod whether evicting it after the previous ones violates a budget."""
        ordered = sorted(units, key=lambda unit: unit.importance)
        flags = iter(violating([placed.pod for unit in ordered for placed in unit.pods]))
        counts = [(unit, sum(next(flags) for _ in unit.pods)) for unit in ordered]
        counts.sort(key=lambda each: not each[1])
        return cls([unit for unit, _ in counts], [count for _, count in counts])
