"""The nodes of groups: their cost and utilization, and whether they may be removed and their pods fit elsewhere, which
is tried on a copy of the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import NoneType
from typing import Any

from podium.autoscaling._groups import AutoscalingSettings, NodeGroup, NodeGroups
from podium.cluster import Cluster, NodeInfo, PodInfo
from podium.cluster.store import releases
from podium.engine import Scheduler
from podium.errors import ExtenderError, InputError, PluginError
from podium.framework import Framework, PodView
from podium.framework.fast_paths import ForSomePods
from podium.loop.cycle import SchedulerLoop
from podium.manifests.workloads import claims_for, recreated
from podium.model import Node, Object, Pod, ResourceClaimTemplate, ResourceSlice
from podium.model.pod import belongs_to_node, ends_with_node, is_static
from podium.model.resources import CPU, MEMORY
from podium.model.selectors import is_unreachable
from podium.plugins.image_locality import ImageLocality
from podium.timeline import TimedEvent, Timeline, TimelineEvents, Verb
from podium.timeline.controllers import Disruptions

# -- trials on a copy of the cluster -----------------------------------------------------------------------------------


class _IrreversibleError(Exception):
    """A step of a trial changed more than nodes and pods, which cannot be undone."""


class TrialCluster:
    """A copy of a cluster to try something on; `attempt` undoes a change that does not help.

    `comes_with` gives the pods and devices that a new node has at once.
    """

    def __init__(
        self,
        cluster: Cluster,
        scheduler_on: Callable[[Cluster], Scheduler],
        comes_with: Callable[[Node], Iterable[Object]],
    ) -> None:
        self._original, self._scheduler_on, self._comes_with = cluster, scheduler_on, comes_with
        self.placed: dict[str, list[Pod]] = {}
        """The pods that `fits` put on nodes, by node."""
        self._undo: list[Callable[[], object]] | None = None
        """How to undo the steps of the current attempt, in their order; None outside of an attempt."""
        self._start: tuple[Any, ...] = ()

    @cached_property
    def cluster(self) -> Cluster:
        """The copy, made on first use: often nothing is tried."""
        return self._original.fork()

    @cached_property
    def _scheduler(self) -> Scheduler:
        scheduler = self._scheduler_on(self.cluster)
        self._start = scheduler.save()
        return scheduler

    def copy(self) -> TrialCluster:
        twin = TrialCluster(self.cluster, self._scheduler_on, self._comes_with)
        twin.placed = {name: [*pods] for name, pods in self.placed.items()}
        return twin

    def attempt(self, change: Callable[[TrialCluster], bool], *, keep: bool) -> TrialCluster | None:
        """Make a change, which returns whether it succeeded; returns the changed cluster, or None if it failed.

        A change that failed is undone; without `keep`, a change that succeeded is undone as well. A change that cannot
        be undone, because it concerns volumes or devices, is made on a copy. The scheduler starts as a new one would,
        so that both ways have the same outcome.
        """
        self._scheduler.restore(self._start)
        self._undo = []
        succeeded = False
        try:
            succeeded = change(self)
        except _IrreversibleError:
            self._roll_back(self._undo)
            twin = self.copy()
            return twin if change(twin) else None
        finally:
            if not (succeeded and keep):
                self._roll_back(self._undo)
            self._undo = None
        return self if succeeded else None

    @staticmethod
    def _roll_back(undo: list[Callable[[], object]]) -> None:
        while undo:
            undo.pop()()

    def _done(self, undo: Callable[[], object]) -> None:
        """Record how to undo a step of the current attempt."""
        if self._undo is not None:
            self._undo.append(undo)

    def _require_copy_if(self, concerned: object) -> None:
        """End the current attempt if it would change objects that cannot be restored; it is repeated on a copy."""
        if self._undo is not None and concerned:
            raise _IrreversibleError

    def add(self, node: Node) -> None:
        """Add a node with its devices and the pods of DaemonSets."""
        self.cluster.add(node)
        self._done(lambda: self.cluster.remove(node))
        for item in self._comes_with(node):
            if isinstance(item, Pod):
                self._place(item)
            elif isinstance(item, ResourceSlice):
                self._require_copy_if(item)
                self.cluster.update(item)

    def remove(self, node: Node) -> None:
        """Remove a node with its pods and devices."""
        cluster, slices = self.cluster, slices_on(node, self.cluster)
        there = cluster.placed_on(cluster.rows[node.name])
        self._require_copy_if(slices or any(releases(each.pod, cluster.store) for each in there))
        moved = self.placed.pop(node.name, None)

        def restore() -> None:
            # The node gets its old row again, and its pods are in their old order.
            cluster.add(node)
            for each in there:
                cluster.place(each.pod, cluster.rows[node.name], each.info)
            if moved is not None:
                self.placed[node.name] = moved

        for each in there:
            cluster.end(each.pod)
        for item in slices:
            cluster.remove(item)
        cluster.remove(node)
        self._done(restore)

    def fits(self, pod: Pod) -> bool:
        """Place a pod if it fits on a node; returns whether it does."""
        node = self._place(pod)
        if node is None:
            return False
        moved = self.placed.setdefault(node, [])
        moved.append(pod)
        self._done(lambda: moved.pop() if len(moved) > 1 else self.placed.pop(node))
        return True

    def fit(self, pods: Sequence[Pod]) -> bool:
        """Place pods one after the other until one does not fit; returns whether all fit."""
        return all(map(self.fits, pods))

    def _place(self, pod: Pod) -> str | None:
        pod, claims = claims_for(pod, self.cluster.store.of(ResourceClaimTemplate).get)
        self._require_copy_if(claims)
        for claim in claims:
            self.cluster.update(claim)
        try:
            return self._scheduler.schedule(pod) if self._undo is None else self._place_reversibly(pod)
        except (InputError, PluginError, ExtenderError):
            return None

    def _place_reversibly(self, pod: Pod) -> str | None:
        attempt = self._scheduler.attempt(pod)
        if attempt.evaluation is None or attempt.node is None:
            return None
        # What plugins reserve is not undone here.
        self._require_copy_if(attempt.evaluation.plan.outline.reserve)
        # A pod that was pending before is pending again afterwards.
        undo = self.cluster.forget if pod.key in self.cluster.pending else self.cluster.remove
        self._scheduler.assume(attempt)
        self._done(lambda: undo(pod))
        return attempt.node


def replacement_of(pod: Pod) -> Pod:
    """The pod that its controller would create if it were evicted, under a name of its own."""
    return recreated(pod, f"{pod.name}-anew", f"{pod.metadata.uid}-anew")


def slices_on(node: Node, cluster: Cluster) -> list[ResourceSlice]:
    """The ResourceSlices of one node, which are deleted with it."""
    return [each for each in cluster.store.of(ResourceSlice) if each.spec.node_name == node.name]


class OnlyNodes:
    """Rules out removals before they are tried: finds pods that fit on no node but their own.

    It asks the scheduler of the real cluster, whose results are up to date, once for each kind of pod until the cluster
    changes.
    """

    def __init__(self, loop: SchedulerLoop) -> None:
        self._scheduler, self._cluster = loop.scheduler, loop.cluster
        self._found: dict[tuple[PodInfo, str], str | None] = {}
        self._as_of: tuple[int, ...] = ()

    def keep(self, node: str, pods: Iterable[Pod]) -> bool:
        """Whether one of the pods certainly fits nowhere else, even if other nodes go as well; False if unknown."""
        if self._scheduler.nominations or self._scheduler.extenders:
            return False
        if self._as_of != self._cluster.version:
            self._as_of = self._cluster.version
            self._found.clear()
        return any(self._only_node(pod) in ("", node) for pod in pods)

    def _only_node(self, pod: Pod) -> str | None:
        """The only node on which another pod of this kind fits, empty if there is none; None if several or unknown."""
        pod = replacement_of(pod)
        kind = self._cluster.infos.of(pod), pod.spec.scheduler_name
        if kind not in self._found:
            before = self._scheduler.save()
            try:
                self._found[kind] = self._ask(pod, kind[0])
            except (InputError, PluginError):
                self._found[kind] = None
            finally:
                self._scheduler.restore(before)
        return self._found[kind]

    def _ask(self, pod: Pod, info: PodInfo) -> str | None:
        scheduler = self._scheduler
        framework, evaluation = scheduler.framework_of(pod), scheduler.attempt(pod).evaluation
        skipped = frozenset[str]() if evaluation is None else frozenset(evaluation.skipped)
        if not _filters_node_by_node(framework, info, self._cluster, skipped):
            return None
        if evaluation is None or evaluation.feasible.count == 0:
            return ""
        if evaluation.feasible.count > 1 or evaluation.looked_at is not None:
            return None
        return self._cluster.names[evaluation.feasible.rows.item(0)]


def _filters_node_by_node(framework: Framework, info: PodInfo, cluster: Cluster, skipped: frozenset[str]) -> bool:
    """Whether a pod's filters check each node by itself, and never pass a node because pods were added to it.

    The second is known of Podium's own plugins only. `skipped` names the plugins that do not filter for this pod.
    """
    return all(
        plugin.name in skipped
        or (isinstance(plugin, ForSomePods) and not plugin.concerns(PodView(info), cluster))
        or (
            type(plugin).__module__.startswith("podium.")
            and plugin.reads is not None
            and not plugin.varies(info, cluster)
        )
        for plugin in (*framework.pre_filter, *framework.filter)
    )


# -- nodes of groups ---------------------------------------------------------------------------------------------------


SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
GPU = "nvidia.com/gpu"
SYSTEM = "kube-system"
MEMORY_MEDIUM = "Memory"
KNOWN_CONTROLLERS = frozenset(("DaemonSet", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"))
"""The controllers whose pods the Cluster Autoscaler moves, fewer than those that `is_recreated` knows: by default, it
skips nodes with pods of custom controllers.
"""


def is_expendable(pod: Pod, settings: AutoscalingSettings) -> bool:
    """Whether a pod's priority is so low that no node is added or kept for it; False for a pod without a priority."""
    cutoff = settings.expendable_pods_priority_cutoff
    return pod.spec.priority is not None and pod.spec.priority < cutoff and not settings.is_karpenter


def strategy_allows_eviction(pod: Pod, settings: AutoscalingSettings, disruptions: Disruptions) -> bool:
    """Whether the rules of the strategy allow to evict a pod so that its node can be removed."""
    annotations, owner = pod.metadata.annotations, pod.metadata.controller
    if not disruptions.may_evict(pod):
        return False
    if settings.is_karpenter:
        return annotations.get(DO_NOT_DISRUPT) != "true"
    if SAFE_TO_EVICT in annotations and annotations[SAFE_TO_EVICT] in ("true", "false"):
        return annotations[SAFE_TO_EVICT] == "true"
    if owner is None or owner.kind not in KNOWN_CONTROLLERS:
        return False
    if settings.skip_nodes_with_system_pods and pod.namespace == SYSTEM and not disruptions.has_budget(pod):
        return False
    return not (settings.skip_nodes_with_local_storage and _has_local_storage(pod))


def node_allows_removal(node: Node, settings: AutoscalingSettings) -> bool:
    """Whether a node's annotations let it be removed."""
    return node.metadata.annotations.get(DO_NOT_DISRUPT if settings.is_karpenter else SCALE_DOWN_DISABLED) != "true"


def _has_local_storage(pod: Pod) -> bool:
    safe = pod.metadata.annotations.get(SAFE_LOCAL_VOLUMES, "").split(",")
    return any(
        volume.host_path is not None or (volume.empty_dir is not None and volume.empty_dir.medium != MEMORY_MEDIUM)
        for volume in pod.spec.volumes
        if volume.name not in safe
    )


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


def member(
    cluster: Cluster, node: Node, group: NodeGroup, pods: Sequence[Pod], settings: AutoscalingSettings
) -> Member:
    """Compute the utilization and the pods to move of a node with these pods on it."""
    row = cluster.rows[node.name]
    counted = [pod for pod in pods if not is_expendable(pod, settings)]
    info = NodeInfo(cluster, row)
    resources = (GPU,) if info.allocatable(GPU) else (CPU, MEMORY)
    ignored = [pod for pod in counted if _is_ignored(pod, settings)]

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


def _is_ignored(pod: Pod, settings: AutoscalingSettings) -> bool:
    """Whether the settings exclude a pod's requests from the utilization of its node."""
    if is_static(pod):
        return settings.ignore_mirror_pods_utilization
    return settings.ignore_daemonsets_utilization and belongs_to_node(pod)


def may_be_removed(one: Member, settings: AutoscalingSettings, disruptions: Disruptions) -> bool:
    """Whether a node may be removed: no annotation forbids it, all its pods may be moved, and budgets allow it."""
    movable = all(strategy_allows_eviction(pod, settings, disruptions) for pod in one.pods)
    return node_allows_removal(one.node, settings) and movable and disruptions.may_evict_all(one.pods)


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
                self._known[node.name] = node, pods, member(cluster, node, group, pods, self.settings)
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
