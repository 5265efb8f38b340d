"""Shrinking as cluster-autoscaler does: nodes that are little used go after some minutes."""

from __future__ import annotations

from collections.abc import Iterator

from podium.autoscaling.fleet import Fleet
from podium.autoscaling.shrinking import may_leave, without
from podium.autoscaling.what_if import WhatIf


class ScaleDown:
    """Notes since when nodes are not needed, and takes those away that have not been for long enough."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet, self._settings = fleet, fleet.settings
        self._since: dict[str, float] = {}

    def timers(self) -> Iterator[float]:
        """When nodes that are not needed may go."""
        if self._settings.scale_down_enabled:
            long_enough = self._settings.scale_down_unneeded_time
            yield from (max(since + long_enough, self._cooled) for since in self._since.values())

    @property
    def _cooled(self) -> float:
        """When enough time has passed since nodes came or went."""
        settings, fleet = self._settings, self._fleet
        return max(
            fleet.last_add + settings.scale_down_delay_after_add,
            fleet.last_delete + settings.scale_down_delay_after_delete,
        )

    def update(self, tried: WhatIf) -> None:
        """Find the nodes that are little used and whose pods fit elsewhere, all of them taken away together.

        `tried` is the cluster with the pods that wait where they fit: nodes that are to get one are needed.
        """
        settings, fleet = self._settings, self._fleet
        threshold, claimed = settings.scale_down_utilization_threshold, tried.claimed
        little_used = [m for m in fleet.members() if m.utilization < threshold and m.name not in claimed]
        little_used.sort(key=lambda one: (one.name not in self._since, not one.is_empty, one.utilization))
        spare, non_empty = fleet.spare(), 0
        unneeded: dict[str, float] = {}
        for one in little_used:
            if non_empty >= settings.scale_down_non_empty_candidates_count and not one.is_empty:
                continue
            if spare[one.group.name] <= 0 or not may_leave(one, settings, fleet.world.disruptions):
                continue
            non_empty += not one.is_empty
            trial = without(tried, one)
            if trial is not None:
                tried = trial
                spare[one.group.name] -= 1
                unneeded[one.name] = self._since.get(one.name, fleet.now)
        self._since = unneeded

    def act(self) -> bool:
        """Take away nodes that have not been needed for long enough; whether there are any."""
        settings, fleet = self._settings, self._fleet
        if not settings.scale_down_enabled or fleet.now < self._cooled:
            return False
        oldest = fleet.now - settings.scale_down_unneeded_time
        due = [one for one in fleet.members() if self._since.get(one.name, fleet.now + 1) <= oldest]
        empty = [one for one in due if one.is_empty][: settings.max_scale_down_parallelism]
        drained = [one for one in due if not one.is_empty][
            : max(settings.max_drain_parallelism - len(fleet.leaving), 0)
        ]
        for one in (*empty, *drained):
            self._since.pop(one.name)
            fleet.remove(one, "empty" if one.is_empty else "underutilized")
        return bool(empty or drained)
