"""An autoscaler in simulated time: it looks at the cluster every so often, and lets groups grow and shrink."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

from podium.autoscaling import scale_up
from podium.autoscaling.consolidation import Consolidation
from podium.autoscaling.fleet import NEVER, Fleet
from podium.autoscaling.groups import NodeGroups
from podium.autoscaling.scale_down import ScaleDown
from podium.autoscaling.what_if import WhatIf
from podium.model import Pod
from podium.timeline import Timeline


class Autoscaler:
    """Grows and shrinks the groups of a timeline, which it joins.

    It looks at the cluster at multiples of the scan interval, and only where something happened since it last did, or
    where a time it waits for is over: the same as if it always looked.
    """

    def __init__(self, timeline: Timeline, groups: NodeGroups) -> None:
        self._timeline, self._settings = timeline, groups.settings
        self._fleet = Fleet(timeline, groups)
        is_karpenter = groups.settings.strategy == "karpenter"
        self._shrinking = Consolidation(self._fleet) if is_karpenter else ScaleDown(self._fleet)
        self._rng = random.Random(groups.settings.seed)
        self._last_scan = NEVER
        self._seen = -1
        """How long the log was then."""
        timeline.join(self)

    # -- time --------------------------------------------------------------------------------------------------------

    def next_time(self) -> float | None:
        """When there is something to do; None if nothing but an event can change that."""
        times = [boot.ready for boot in self._fleet.booting]
        if self._is_news:
            times.append(self._next_scan(self._timeline.now))
        times += [self._next_scan(time) for time in self._timers() if time > self._last_scan]
        return min(times, default=None)

    def act(self) -> bool:
        """Do what is due; whether that changed the cluster."""
        now = self._timeline.now
        if self._fleet.arrive():
            # The scheduler is first to see what that is good for.
            return True
        is_over = any(self._last_scan < time <= now for time in self._timers())
        if self._next_scan(now) <= now and (self._is_news or is_over):
            self._last_scan = now
            changed = self._scan()
            self._seen = len(self._timeline.history.log)
            return changed
        return False

    @property
    def _is_news(self) -> bool:
        """Whether anything happened since the last look, or is under way."""
        return self._seen != len(self._timeline.history.log) or bool(self._fleet.leaving)

    def _next_scan(self, time: float) -> float:
        """The first look from a time on."""
        interval = self._settings.scan_interval
        at = math.ceil(round(time / interval, 6)) * interval
        return at if at > self._last_scan else self._last_scan + interval

    def _timers(self) -> Iterator[float]:
        """When a pod is old enough to be helped, or a node has not been needed for long enough."""
        delay = self._settings.new_pod_scale_up_delay
        if delay:
            yield from (self._timeline.history.current[pod.key].arrived + delay for pod in self._unschedulable())
        yield from self._shrinking.timers()

    # -- a look ------------------------------------------------------------------------------------------------------

    def _scan(self) -> bool:
        changed = self._fleet.finish_leaving()
        tried = self._fleet.what_if()
        helpless = [pod for pod in self._unschedulable() if not tried.fits(pod)]
        grown = self._grow(helpless, tried)
        self._shrinking.update(tried)
        # In a look that lets a group grow, none shrinks.
        return grown or self._shrinking.act() or changed

    def _grow(self, waiting: list[Pod], tried: WhatIf) -> bool:
        """Let a group grow for pods that fit nowhere; whether one does."""
        settings, current = self._settings, self._timeline.history.current
        old_enough = self._timeline.now - settings.new_pod_scale_up_delay
        helpless = [pod for pod in waiting if current[pod.key].arrived <= old_enough]
        found = scale_up.options(helpless, tried, self._fleet.room(), self._fleet.groups) if helpless else []
        if not found:
            return False
        option = scale_up.choose(found, settings.expander, self._rng)
        self._fleet.note("scale-up", group=option.group.name, nodes=option.nodes, pods=len(option.pods))
        self._fleet.boot(option.group, option.nodes)
        return True

    def _unschedulable(self) -> Iterator[Pod]:
        """The pods that were tried in vain and are not to get a node by preemption."""
        loop = self._timeline.loop
        for queued in loop.queue:
            pod = loop.pods[queued.pod.key]
            if queued.attempts and not queued.is_gated and not pod.status.nominated_node_name:
                yield pod

    def report(self) -> dict[str, Any]:
        """What the nodes of groups cost until now, and how many came and went, in all and by group."""
        return self._fleet.report()
