"""Shrinking as Karpenter does: nodes go when their pods fit elsewhere, or make way for a cheaper one."""

from __future__ import annotations

from collections.abc import Iterator

from podium.autoscaling.fleet import Fleet
from podium.autoscaling.shrinking import Member, may_leave, without
from podium.autoscaling.what_if import WhatIf


class Consolidation:
    """Deletes nodes or replaces them by cheaper ones, one command at a time: the next when the last is carried out."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet, self._settings = fleet, fleet.settings
        self._since: dict[str, tuple[frozenset[str], float]] = {}
        """The pods on each node, and since when they are the ones."""
        self._tried = fleet.what_if()

    def timers(self) -> Iterator[float]:
        """When nodes have been unchanged for long enough."""
        yield from (since + self._settings.consolidate_after for _, since in self._since.values())

    def update(self, tried: WhatIf) -> None:
        """Note which nodes changed. `tried` is the cluster with the pods that wait where they fit."""
        self._tried, found = tried, {}
        for one in self._fleet.members():
            pods = frozenset(pod.key for pod in one.pods)
            before, since = self._since.get(one.name, (None, 0.0))
            found[one.name] = pods, since if before == pods else self._fleet.now
        self._since = found

    def act(self) -> bool:
        """Delete or replace what can be; whether there is anything."""
        fleet, settings = self._fleet, self._settings
        is_busy = bool(fleet.leaving) or any(boot.replaces for boot in fleet.booting)
        if not settings.scale_down_enabled or is_busy:
            return False
        oldest, spare = fleet.now - settings.consolidate_after, fleet.spare()
        due = [m for m in fleet.members() if self._since[m.name][1] <= oldest and m.name not in self._tried.claimed]
        due = [one for one in due if may_leave(one, settings, fleet.world.disruptions)]
        gone = False
        for one in due:
            if one.is_empty and spare[one.group.name] > 0:
                spare[one.group.name] -= 1
                fleet.remove(one, "empty")
                gone = True
        if gone or settings.consolidation_policy == "WhenEmpty":
            return gone
        candidates = sorted((one for one in due if not one.is_empty), key=lambda one: len(one.pods))
        return any(self._consolidate(one, self._tried, spare[one.group.name]) for one in candidates)

    def _consolidate(self, one: Member, tried: WhatIf, spare: int) -> bool:
        """Delete a node whose pods fit elsewhere, or replace it by a cheaper one on which they do."""
        fleet = self._fleet
        if spare > 0 and without(tried, one) is not None:
            fleet.remove(one, "underutilized")
            return True
        room = fleet.room()
        for group in sorted(fleet.groups, key=lambda group: group.price_per_hour):
            if group.price_per_hour >= one.group.price_per_hour or spare <= 0:
                return False
            if room[group.name] > 0 and without(tried, one, [group.node("instead")]) is not None:
                fleet.note("replace", node=one.name, group=group.name)
                fleet.boot(group, replaces=one.name)
                return True
        return False
