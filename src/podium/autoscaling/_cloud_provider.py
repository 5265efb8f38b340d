"""Adds and removes the nodes of groups in a timeline, and adds up what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import NoneType
from typing import Any

from podium.autoscaling._group_nodes import Member, member
from podium.autoscaling._node_groups import NodeGroup, NodeGroups
from podium.autoscaling._only_nodes import OnlyNodes
from podium.autoscaling.trial_cluster import TrialCluster, slices_on
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.model import Node, Pod, ResourceSlice
from podium.model.pod import belongs_to_node
from podium.plugins.image_locality import ImageLocality
from podium.timeline import TimedEvent, Timeline, TimelineEvents, Verb

HOUR = 3600.0
NEVER = float("-inf")


@dataclass(frozen=True)
class Boot:
    """A node that was asked for and is booting."""

    ready: float
    node: Node
    group: NodeGroup
    replaces: str = ""
    """The node to drain when this one is ready; empty for none."""


@dataclass
class Account:
    """The totals of one group so far."""

    hours: float = 0.0
    """Node hours of the nodes that are gone."""
    added: int = 0
    removed: int = 0
    most: int = 0
    """The largest number of nodes at a time, including booting ones."""


class CloudProvider:
    """Adds and removes nodes of groups in a timeline. A node costs money from when it is asked for until it is gone."""

    def __init__(self, timeline: Timeline, groups: NodeGroups) -> None:
        self.timeline, self.groups, self.settings = timeline, groups.groups, groups.settings
        self.world, self._loop, self._group_of = timeline.world, timeline.loop, groups.of
        self.booting: list[Boot] = []
        self.leaving: set[str] = set()
        """The nodes that are being drained, to be deleted after that."""
        self.last_add = self.last_delete = NEVER
        self._born: dict[str, tuple[NodeGroup, float]] = {}
        self._numbers: Counter[str] = Counter()
        self._accounts = {group.name: Account() for group in groups.groups}
        self._grouped: tuple[int, list[tuple[Node, NodeGroup]]] = (-1, [])
        """The nodes of groups, sorted by name, and the `node_set_version` for which that holds."""
        self._known: dict[str, tuple[Node, list[Pod], Member]] = {}
        """By node, the member as last computed, with the node and the pods that it was computed from."""
        self.only_nodes = OnlyNodes(timeline.loop)
        self._taken = taken = _added_by(timeline.events)
        self.world.may_come = lambda name: name not in taken and groups.may_name(name)
        for node, group in self._members():
            self._born[node.name] = group, self.now
        for name, missing in self.spare().items():
            group = next(group for group in groups.groups if group.name == name)
            for _ in range(-missing):
                self._arrive(self._new(group))
        self._count_most()

    @property
    def now(self) -> float:
        return self.timeline.now

    # -- nodes come --------------------------------------------------------------------------------------------------

    def boot(self, group: NodeGroup, number: int = 1, replaces: str = "") -> None:
        """Ask for nodes of a group; they join after its boot time."""
        for _ in range(number):
            self.booting.append(Boot(self.now + group.boot_time, self._new(group), group, replaces))
        self.last_add = self.now
        self._count_most()

    def arrive(self) -> bool:
        """Let the nodes that are ready by now join the cluster; returns whether there were any."""
        ready = [boot for boot in self.booting if boot.ready <= self.now]
        self.booting = [boot for boot in self.booting if boot.ready > self.now]
        for boot in ready:
            self._arrive(boot.node)
            if boot.replaces in self._loop.cluster.rows:
                self.drain(boot.replaces)
        return bool(ready)

    def _new(self, group: NodeGroup) -> Node:
        """A new node of a group, with a name that no other node has, nor one that an event adds."""
        while True:
            self._numbers[group.name] += 1
            node = group.node(self._numbers[group.name])
            if node.name not in self._loop.cluster.rows and node.name not in self._taken:
                break
        self._born[node.name] = group, self.now
        self._accounts[group.name].added += 1
        return node

    def _arrive(self, node: Node) -> None:
        self.world.apply(TimedEvent(self.now, Verb.ADD, node))
        for each in self._slices_of(node):
            self.world.apply(TimedEvent(self.now, Verb.ADD, each))

    def _slices_of(self, node: Node) -> list[ResourceSlice]:
        group = self._group_of(node)
        return [] if group is None else group.slices_of(node)

    # -- nodes go ----------------------------------------------------------------------------------------------------

    def remove(self, one: Member, reason: str) -> None:
        """Drain a node, and delete it once its pods are gone."""
        self.note("scale-down", node=one.name, group=one.group.name, reason=reason)
        self.drain(one.name)

    def drain(self, name: str) -> None:
        self.leaving.add(name)
        self.last_delete = self.now
        self.world.apply(TimedEvent(self.now, Verb.DRAIN, self._loop.cluster.node(name)))
        self.finish_leaving()

    def finish_leaving(self) -> bool:
        """Delete drained nodes on which only pods are left that belong to them; returns whether there were any."""
        changed = False
        for name in sorted(self.leaving):
            row = self._loop.cluster.rows.get(name)
            if row is not None and not all(map(belongs_to_node, self._loop.cluster.pods_on(row))):
                continue
            self.leaving.discard(name)
            if row is not None:
                node = self._loop.cluster.node(name)
                for each in slices_on(node, self._loop.cluster):
                    self.world.apply(TimedEvent(self.now, Verb.DELETE, each))
                self.world.apply(TimedEvent(self.now, Verb.DELETE, node))
                changed = True
        self._settle()
        return changed

    def _settle(self) -> None:
        """Add the hours of nodes that are gone to their group, whoever removed them."""
        coming = {boot.node.name for boot in self.booting}
        for name, (group, born) in [*self._born.items()]:
            if name not in self._loop.cluster.rows and name not in coming:
                del self._born[name]
                self._accounts[group.name].hours += (self.now - born) / HOUR
                self._accounts[group.name].removed += 1

    # -- what there is -----------------------------------------------------------------------------------------------

    def what_if(self) -> TrialCluster:
        """A copy of the cluster with the booting nodes added, to try something on."""
        daemons_for = self.world.controllers.daemons_for
        what_if = TrialCluster(
            self._loop.cluster, self._scheduler_on, lambda node: [*self._slices_of(node), *daemons_for(node)]
        )
        for boot in self.booting:
            what_if.add(boot.node)
        return what_if

    def _scheduler_on(self, cluster: Cluster) -> Scheduler:
        """A scheduler for trials. It runs without ImageLocality while no node has images: all nodes would score 0.

        ImageLocality counts the nodes, so that it would be evaluated on all of them whenever a trial removes one.
        """
        frameworks = self._loop.scheduler.frameworks.values()
        is_own = all(type(each.plugins.get(ImageLocality.name)) in (ImageLocality, NoneType) for each in frameworks)
        # A profile without any score plugin would stop at the first node that fits.
        scores_anyway = all(len(each.score) > 1 for each in frameworks)
        has_images = cluster.images.states or any(group.template.status.images for group in self.groups)
        is_idle = is_own and scores_anyway and not has_images
        return self._loop.scheduler_on(cluster, (ImageLocality.name,) if is_idle else ())

    def members(self) -> list[Member]:
        """The nodes of groups, without those that are being drained."""
        cluster, current = self._loop.cluster, self._loop.pods
        known, self._known = self._known, {}
        for node, group in self._members():
            pods = [current[placed.pod.key] for placed in cluster.placed_on(cluster.rows[node.name])]
            before = known.get(node.name)
            if before is not None and before[0] is node and before[1] == pods:
                self._known[node.name] = before
            else:
                self._known[node.name] = node, pods, member(cluster, node, group, pods, self.settings.strategy)
        return [found for _, _, found in self._known.values()]

    def _members(self) -> Iterator[tuple[Node, NodeGroup]]:
        cluster = self._loop.cluster
        if self._grouped[0] != cluster.node_set_version:
            nodes = [cluster.node(name) for name in sorted(cluster.rows)]
            grouped = [(node, group) for node in nodes if (group := self._group_of(node)) is not None]
            self._grouped = cluster.node_set_version, grouped
        return ((node, group) for node, group in self._grouped[1] if node.name not in self.leaving)

    def _sizes(self) -> Counter[str]:
        """The number of nodes of each group: booting ones count, those being drained do not."""
        sizes = Counter(group.name for _, group in self._members())
        sizes.update(boot.group.name for boot in self.booting)
        return sizes

    def room(self) -> dict[str, int]:
        """How many more nodes each group may have."""
        sizes = self._sizes()
        return {group.name: group.max_size - sizes[group.name] for group in self.groups}

    def spare(self) -> dict[str, int]:
        """How many nodes each group has above its minimum; negative if it has too few."""
        sizes = self._sizes()
        return {group.name: sizes[group.name] - group.min_size for group in self.groups}

    def note(self, event: str, **what: object) -> None:
        """Add a record to the timeline's log."""
        self.timeline.history.note(self.now, event, **what)

    def _count_most(self) -> None:
        for name, size in self._sizes().items():
            self._accounts[name].most = max(self._accounts[name].most, size)

    def report(self) -> dict[str, Any]:
        """The cost and the hours of the nodes until now, and how many were added and removed: in total and by group."""
        self._settle()
        groups = {}
        for group in self.groups:
            account = self._accounts[group.name]
            running = sum(self.now - born for its, born in self._born.values() if its is group)
            hours = account.hours + running / HOUR
            groups[group.name] = {
                "nodeHours": hours,
                "cost": hours * group.price_per_hour,
                "added": account.added,
                "removed": account.removed,
                "most": account.most,
            }
        summed = ("nodeHours", "cost", "added", "removed")
        return {**{key: sum(found[key] for found in groups.values()) for key in summed}, "groups": groups}


def _added_by(events: TimelineEvents) -> frozenset[str]:
    """The names of the nodes that events add; those of a recording may be added by their first update."""
    adding = (Verb.ADD, Verb.UPDATE) if events.is_record else (Verb.ADD,)
    return frozenset(one.object.name for one in events.events if isinstance(one.object, Node) and one.verb in adding)
