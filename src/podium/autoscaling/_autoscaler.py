"""The autoscaler of a timeline: adds nodes for pods that fit nowhere, and lets the strategy remove nodes."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

from podium.autoscaling._cloud_provider import NEVER, CloudProvider
from podium.autoscaling._expansion import choose, options
from podium.autoscaling._node_groups import NodeGroups
from podium.autoscaling.trial_cluster import TrialCluster
from podium.model import Pod
from podium.timeline import Timeline


class Autoscaler:
    """Adds and removes the nodes of groups in a timeline.

    It scans the cluster at multiples of the scan interval. A scan is left out if nothing happened since the last one
    and no timer ran out: it would change nothing.
    """

    def __init__(self, timeline: Timeline, groups: NodeGroups) -> None:
        self._timeline, self._settings = timeline, groups.settings
        self._cloud = CloudProvider(timeline, groups)
        self._removals = groups.settings.strategy.removals(self._cloud)
        self._rng = random.Random(groups.settings.seed)
        self._last_scan = NEVER
        self._seen = -1
        """The length of the timeline's log at the last scan."""
        timeline.join(self)

    # -- time --------------------------------------------------------------------------------------------------------

    def next_time(self) -> float | None:
        """The time of the next scan or of the next node that is ready; None if there is nothing to do until an event
        happens.
        """
        times = [boot.ready for boot in self._cloud.booting]
        if self._is_news:
            times.append(self._next_scan(self._timeline.now))
        times += [self._next_scan(time) for time in self._timers() if time > self._last_scan]
        return min(times, default=None)

    def act(self) -> bool:
        """Let booted nodes join, or scan; returns whether that changed the cluster."""
        now = self._timeline.now
        if self._cloud.arrive():
            # The scheduler tries the waiting pods on the new nodes before the next scan.
            return True
        is_over = any(self._last_scan < time <= now for time in self._timers())
        if self._next_scan(now) <= now and (self._is_news or is_over):
            self._last_scan = now
            changed = self._scan()
            # After a change the next scan may find more to do.
            self._seen = -1 if changed else len(self._timeline.history.log)
            return changed
        return False

    @property
    def _is_news(self) -> bool:
        """Whether something happened since the last scan, or nodes are being drained."""
        return self._seen != len(self._timeline.history.log) or bool(self._cloud.leaving)

    def _next_scan(self, time: float) -> float:
        """The time of the first scan that is not before `time`."""
        interval = self._settings.scan_interval
        at = math.ceil(round(time / interval, 6)) * interval
        return at if at > self._last_scan else self._last_scan + interval

    def _timers(self) -> Iterator[float]:
        """The times at which a waiting pod is old enough for a scale-up, or a node may be removed."""
        delay = self._settings.new_pod_scale_up_delay
        if delay:
            yield from (self._timeline.history.current[pod.key].arrived + delay for pod in self._unschedulable())
        yield from self._removals.timers()

    # -- a look ------------------------------------------------------------------------------------------------------

    def _scan(self) -> bool:
        changed = self._cloud.finish_leaving()
        tried, coming = self._cloud.what_if(), [boot.node for boot in self._cloud.booting]
        helpless = [pod for pod in self._unschedulable() if not tried.fits(pod)]
        grown = self._grow(helpless, tried)
        # Pods are not moved to nodes that are still booting.
        for node in coming:
            tried.remove(node)
        self._removals.update(tried)
        # A scan that adds nodes removes none.
        return grown or self._removals.act() or changed

    def _grow(self, waiting: list[Pod], tried: TrialCluster) -> bool:
        """Add nodes to one group for pods that fit nowhere; returns whether it did."""
        settings, current = self._settings, self._timeline.history.current
        old_enough = self._timeline.now - settings.new_pod_scale_up_delay
        helpless = [pod for pod in waiting if current[pod.key].arrived <= old_enough]
        found = options(helpless, tried, self._cloud.room(), self._cloud.groups) if helpless else []
        if not found:
            return False
        option = choose(found, settings.expanders, self._rng)
        self._cloud.note("scale-up", group=option.group.name, nodes=option.nodes, pods=len(option.pods))
        self._cloud.boot(option.group, option.nodes)
        return True

    def _unschedulable(self) -> list[Pod]:
        """The waiting pods that a scale-up may help: tried in vain, not nominated to a node, and not expendable.

        They are in the order of priority, then of arrival, as kube-scheduler tries pods. The queue itself is in the
        order of backoff, which would give room on booting nodes to pods that those were not added for.
        """
        loop, lives = self._timeline.loop, self._timeline.history.current
        tried = [queued.pod.key for queued in loop.queue if queued.attempts and not queued.is_gated]
        found = [pod for pod in map(loop.pods.__getitem__, tried) if not pod.status.nominated_node_name]
        found = [pod for pod in found if not self._settings.strategy.is_expendable(pod)]
        return sorted(found, key=lambda pod: (-pod.priority, lives[pod.key].serial))

    def report(self) -> dict[str, Any]:
        """The cost and the hours of the groups' nodes until now, and how many were added and removed: in total and by
        group.
        """
        return self._cloud.report()


def scaled(timeline: Timeline, groups: NodeGroups | None) -> Timeline:
    """Add an autoscaler to the timeline if there are groups; returns the timeline."""
    if groups is not None:
        Autoscaler(timeline, groups)
    return timeline
