"""The autoscaler of a timeline: adds nodes for pods that fit nowhere, and removes nodes as cluster-autoscaler or
Karpenter does.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.autoscaling._group_nodes import (
    NEVER,
    CloudProvider,
    Member,
    TrialCluster,
    is_expendable,
    may_be_removed,
    try_removal,
)
from podium.autoscaling._groups import EMPTY, UNDERUTILIZED, NodeGroup, NodeGroups
from podium.cluster import PodInfo
from podium.model import Pod
from podium.model.quantity import parse_quantity
from podium.model.resources import CPU, MEMORY, pod_resources, scheduler_units
from podium.rules import Rules
from podium.timeline import Timeline


class Consolidation:
    """Karpenter's consolidation: removes nodes or replaces them by cheaper ones, one command at a time."""

    def __init__(self, cloud: CloudProvider) -> None:
        self._cloud, self._settings = cloud, cloud.settings
        self._since: dict[str, tuple[frozenset[str], float]] = {}
        """By node, the keys of its pods, and the time since when these have been its pods."""
        self._tried = cloud.what_if()

    def timers(self) -> Iterator[float]:
        """The times at which the pods of a node have been the same for `consolidate_after` seconds."""
        yield from (since + self._settings.consolidate_after for _, since in self._since.values())

    def update(self, tried: TrialCluster) -> None:
        """Note which nodes have other pods than before. `tried` is the cluster with the waiting pods placed where they
        fit.
        """
        self._tried, found = tried, {}
        for one in self._cloud.members():
            pods = frozenset(pod.key for pod in one.pods)
            before, since = self._since.get(one.name, (None, 0.0))
            found[one.name] = pods, since if before == pods else self._cloud.now
        self._since = found

    def act(self) -> bool:
        """Remove or replace the nodes that may go now; returns whether there were any."""
        cloud, settings = self._cloud, self._settings
        is_busy = bool(cloud.leaving) or any(boot.replaces for boot in cloud.booting)
        if not settings.scale_down_enabled or is_busy:
            return False
        oldest, spare, members = cloud.now - settings.consolidate_after, cloud.spare(), cloud.members()
        due = [m for m in members if self._since[m.name][1] <= oldest and m.name not in self._tried.placed]
        due = [one for one in due if may_be_removed(one, settings, cloud.world.disruptions)]
        empty = []
        for one in due:
            if one.is_empty and spare[one.group.name] > 0:
                spare[one.group.name] -= 1
                empty.append(one)
        empty = empty[: self._allowed(EMPTY, len(members))]
        for one in empty:
            cloud.remove(one, "empty")
        if empty or settings.consolidation_policy == "WhenEmpty" or not self._allowed(UNDERUTILIZED, len(members)):
            return bool(empty)
        candidates = sorted((one for one in due if not one.is_empty), key=lambda one: len(one.pods))
        return any(self._consolidate(one, self._tried, spare[one.group.name]) for one in candidates)

    def _allowed(self, reason: str, nodes: int) -> int:
        """How many nodes may be removed at a time for a reason, if there are `nodes`: the strictest budget decides."""
        budgets = [budget for budget in self._settings.budgets if reason in budget.reasons]
        return min((budget.allowed(nodes) for budget in budgets), default=nodes)

    def _consolidate(self, one: Member, tried: TrialCluster, spare: int) -> bool:
        """Remove a node if its pods fit elsewhere, or replace it by a cheaper one if they fit there; returns whether it
        did.
        """
        cloud = self._cloud
        if spare <= 0:
            return False
        if not cloud.only_nodes.keep(one.name, one.pods) and try_removal(tried, one, keep=False) is not None:
            cloud.remove(one, "underutilized")
            return True
        cheaper = [group for group in cloud.groups if group.price_per_hour < one.group.price_per_hour]
        room = cloud.room() if cheaper else {}
        for group in sorted(cheaper, key=lambda group: group.price_per_hour):
            if room[group.name] > 0 and try_removal(tried, one, [group.node("new_0")], keep=False):
                cloud.note("replace", node=one.name, group=group.name)
                cloud.boot(group, replaces=one.name)
                return True
        return False


class ScaleDown:
    """cluster-autoscaler's scale-down: removes nodes that have been unneeded for long enough."""

    def __init__(self, cloud: CloudProvider) -> None:
        self._cloud, self._settings = cloud, cloud.settings
        self._since: dict[str, float] = {}
        """By unneeded node, the time since when it has been unneeded."""
        self._due: dict[str, float] = {}
        """By unneeded node, the time from which it may be removed; that changes if the node fails."""

    def timers(self) -> Iterator[float]:
        """The times from which unneeded nodes may be removed."""
        if self._settings.scale_down_enabled:
            yield from (max(due, self._cooled) for due in self._due.values())

    @property
    def _cooled(self) -> float:
        """The time from which nodes may be removed again after the last one was added or removed."""
        settings, cloud = self._settings, self._cloud
        return max(
            cloud.last_add + settings.scale_down_delay_after_add,
            cloud.last_delete + settings.scale_down_delay_after_delete,
        )

    def update(self, tried: TrialCluster) -> None:
        """Find the unneeded nodes: little used, and their pods fit elsewhere when all unneeded nodes are removed
        together.

        `tried` is the cluster with the waiting pods placed where they fit; a node that gets such a pod is needed.
        """
        settings, cloud, spare, non_empty = self._settings, self._cloud, self._cloud.spare(), 0
        little_used = [
            one
            for one in cloud.members()
            if one.utilization <= self._threshold(one) and one.name not in tried.placed and spare[one.group.name] > 0
        ]
        little_used.sort(key=lambda one: (one.name not in self._due, not one.is_empty, one.utilization))
        since, due = self._since, {}
        self._since = {}
        for one in little_used:
            if non_empty >= settings.scale_down_non_empty_candidates_count and not one.is_empty:
                continue
            if not may_be_removed(one, settings, cloud.world.disruptions):
                continue
            non_empty += not one.is_empty
            trial = None if cloud.only_nodes.keep(one.name, one.pods) else try_removal(tried, one)
            if trial is not None:
                tried = trial
                wait = settings.scale_down_unneeded_time if one.is_ready else settings.scale_down_unready_time
                self._since[one.name] = since.get(one.name, cloud.now)
                due[one.name] = self._since[one.name] + wait
        self._due = due

    def _threshold(self, one: Member) -> float:
        """The utilization up to which a node may be removed, from 0 to 1."""
        settings = self._settings
        return (
            settings.scale_down_gpu_utilization_threshold if one.has_gpus else settings.scale_down_utilization_threshold
        )

    def act(self) -> bool:
        """Remove the nodes that have been unneeded for long enough; returns whether there were any."""
        settings, cloud = self._settings, self._cloud
        if not settings.scale_down_enabled or cloud.now < self._cooled:
            return False
        due, spare = [], cloud.spare()
        for one in sorted(cloud.members(), key=lambda one: not one.is_empty):
            if self._due.get(one.name, math.inf) <= cloud.now and spare[one.group.name] > 0:
                spare[one.group.name] -= 1
                due.append(one)
        empty = [one for one in due if one.is_empty][: settings.max_scale_down_parallelism]
        at_once = min(
            settings.max_drain_parallelism - len(cloud.leaving), settings.max_scale_down_parallelism - len(empty)
        )
        drained = [one for one in due if not one.is_empty][: max(at_once, 0)]
        for one in (*empty, *drained):
            self._due.pop(one.name)
            cloud.remove(one, "empty" if one.is_empty else "underutilized")
        return bool(empty or drained)


class Autoscaler:
    """Adds and removes the nodes of groups in a timeline.

    It scans the cluster at multiples of the scan interval. A scan is left out if nothing happened since the last one
    and no timer ran out: it would change nothing.
    """

    def __init__(self, timeline: Timeline, groups: NodeGroups) -> None:
        self._timeline, self._settings = timeline, groups.settings
        self._cloud = CloudProvider(timeline, groups)
        self._shrinking = (Consolidation if groups.settings.is_karpenter else ScaleDown)(self._cloud)
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
        yield from self._shrinking.timers()

    # -- a look ------------------------------------------------------------------------------------------------------

    def _scan(self) -> bool:
        changed = self._cloud.finish_leaving()
        tried, coming = self._cloud.what_if(), [boot.node for boot in self._cloud.booting]
        helpless = [pod for pod in self._unschedulable() if not tried.fits(pod)]
        grown = self._grow(helpless, tried)
        # Pods are not moved to nodes that are still booting.
        for node in coming:
            tried.remove(node)
        self._shrinking.update(tried)
        # A scan that adds nodes removes none.
        return grown or self._shrinking.act() or changed

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
        found = [pod for pod in found if not is_expendable(pod, self._settings)]
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


@dataclass(frozen=True)
class ExpansionOption:
    """A group that could grow by some nodes, and the pods that would fit then."""

    group: NodeGroup
    nodes: int
    pods: tuple[Pod, ...]
    rules: Rules
    """The release that counts the pods."""

    @property
    def price(self) -> float:
        """The price per hour of the new nodes, divided by the number of pods they help."""
        return self.group.price_per_hour * self.nodes / len(self.pods)

    @property
    def waste(self) -> float:
        """The unused share of the new nodes' cpu plus the unused share of their memory, from 0 to 2."""
        template, asked = self.group.template, [pod_resources(pod, self.rules).requests for pod in self.pods]
        capacity = template.status.capacity or template.allocatable
        offered = scheduler_units({name: parse_quantity(amount) for name, amount in capacity.items()})
        requested = {name: sum(each.get(name, 0) for each in asked) for name in (CPU, MEMORY)}
        return sum(1 - amount / max(offered.get(name, 0) * self.nodes, 1) for name, amount in requested.items())


def options(
    waiting: Sequence[Pod], tried: TrialCluster, room: Mapping[str, int], groups: Sequence[NodeGroup]
) -> list[ExpansionOption]:
    """The option of each group that helps pods which fit nowhere in `tried`; `room` is how many nodes a group may still
    get.
    """
    ordered = sorted(waiting, key=lambda pod: _size(tried.cluster.info_of(pod)), reverse=True)
    found = (_option(group, ordered, tried, room[group.name]) for group in groups if room[group.name] > 0)
    return [option for option in found if option is not None]


def _size(info: PodInfo) -> tuple[int, int]:
    requests = info.resources.requests
    return requests.get(CPU, 0), requests.get(MEMORY, 0)


def _option(group: NodeGroup, pods: Sequence[Pod], tried: TrialCluster, room: int) -> ExpansionOption | None:
    """Try how many nodes a group needs: one is added for each pod that does not fit yet. `tried` stays as it is."""
    option: ExpansionOption | None = None

    def grow(trial: TrialCluster) -> bool:
        nonlocal option
        option = _grown(group, pods, trial, room)
        return option is not None

    tried.attempt(grow, keep=False)
    return option


def _grown(group: NodeGroup, pods: Sequence[Pod], tried: TrialCluster, room: int) -> ExpansionOption | None:
    helped: list[Pod] = []
    added = 0
    hopeless: set[object] = set()
    for pod in pods:
        kind = tried.cluster.infos.of(pod)
        if tried.fits(pod):
            helped.append(pod)
        elif added < room and kind not in hopeless:
            node = group.node(f"new_{added}")
            tried.add(node)
            if tried.fits(pod):
                helped.append(pod)
                added += 1
            else:
                hopeless.add(kind)
                tried.remove(node)
    return ExpansionOption(group, added, tuple(helped), tried.cluster.rules) if added else None


BY: Mapping[str, Callable[[ExpansionOption], float]] = {
    "least-waste": lambda option: option.waste,
    "price": lambda option: option.price,
    "priority": lambda option: -option.group.priority,
    "most-pods": lambda option: -len(option.pods),
    "least-nodes": lambda option: option.nodes,
}
"""The value of an option that each expander minimises."""


def choose(found: Sequence[ExpansionOption], expanders: Sequence[str], rng: random.Random) -> ExpansionOption:
    """Apply the expanders one after the other until one option is left; of equal ones, the first group in the file
    wins.
    """
    for expander in expanders:
        if expander == "random":
            return rng.choice(found)
        values = [BY[expander](option) for option in found]
        found = [option for option, value in zip(found, values, strict=True) if value == min(values)]
    return found[0]
