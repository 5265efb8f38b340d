"""The pods of each PodGroup: those on nodes, and those that wait."""

from __future__ import annotations

from podium.model import Pod

Pods = dict[str, Pod]
"""By namespace/name."""

NO_PODS: Pods = {}


class PodGroupMembers:
    """The pods that name a PodGroup, by the group's namespace/name; whether the PodGroup exists does not matter."""

    def __init__(self) -> None:
        self._scheduled: dict[str, Pods] = {}
        self._waiting: dict[str, Pods] = {}
        self.schedulers: frozenset[str] | None = None
        """The scheduler names whose waiting pods count; None for all."""

    def add(self, pod: Pod, *, is_scheduled: bool) -> None:
        """Count a pod of a group, on a node or waiting for one."""
        shelf = self._scheduled if is_scheduled else self._waiting
        shelf.setdefault(pod.group_key, {})[pod.key] = pod

    def remove(self, pod: Pod) -> None:
        """Count a pod of a group no more."""
        for shelf in (self._scheduled, self._waiting):
            pods = shelf.get(pod.group_key)
            if pods is not None and pods.pop(pod.key, None) is not None and not pods:
                del shelf[pod.group_key]

    def scheduled(self, group: str) -> list[Pod]:
        """The pods on nodes, assumed or bound, by name."""
        return [pod for _, pod in sorted(self._scheduled.get(group, NO_PODS).items())]

    def scheduled_count(self, group: str) -> int:
        return len(self._scheduled.get(group, NO_PODS))

    def count(self, group: str) -> int:
        """All pods of the group: those on nodes, and those that the scheduler at hand has to place."""
        waiting = self._waiting.get(group, NO_PODS).values()
        names = self.schedulers
        if names is None:
            return self.scheduled_count(group) + len(waiting)
        return self.scheduled_count(group) + sum(pod.spec.scheduler_name in names for pod in waiting)

    def copy(self) -> PodGroupMembers:
        twin = PodGroupMembers()
        twin._scheduled = {group: pods.copy() for group, pods in self._scheduled.items()}
        twin._waiting = {group: pods.copy() for group, pods in self._waiting.items()}
        twin.schedulers = self.schedulers
        return twin
