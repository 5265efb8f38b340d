"""The cluster a scheduler decides on: nodes, the pods on them, and everything they refer to."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, NamedTuple, Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from msgspec.structs import replace

from podium.cluster.census import Census, RowMask
from podium.cluster.columns import ROW_ASPECTS, Aspect, ChangeLog, Columns, Ints, Mask
from podium.cluster.nodes import LabelGroups, Nodes, ResourceStates
from podium.cluster.pod_group_members import PodGroupMembers
from podium.cluster.pods import PodInfo, PodInfos, Ports, counts_alike
from podium.cluster.store import EXTENDED_RESOURCE_CLAIM, Images, Store, releases
from podium.errors import InputError
from podium.memory import RecentlyUsed, collector_paused
from podium.model import Namespace, Node, Object, Pod, PodGroup, ResourceClaim
from podium.rules import NEWEST_RULES, Rules


class Placed(NamedTuple):
    """A pod on a node."""

    pod: Pod
    row: int
    info: PodInfo
    cohort: int


class TakenOff(NamedTuple):
    """A pod that was taken off its node."""

    pod: Pod
    node: str
    claims: Sequence[ResourceClaim] = ()
    """The claims that changed with it, as they were before."""
    info: PodInfo | None = None
    """Its compiled spec, if it is known."""


class Cluster:
    """The columns of nodes plus the pods on them; every change is logged so that results can catch up.

    Build a cluster with `Cluster.from_objects(load(...))`; change it with `add`, `update` and `remove`. `assume` and
    `forget` place and take back a pod that the scheduler decided on; `fork` makes a copy to try something on.
    """

    MOST_ROW_MASKS = 1024

    def __init__(self) -> None:
        self.columns = Columns()
        self.names: list[str] = []
        """The node name of each row; "" for a dead row."""
        self.rows: dict[str, int] = {}
        """The row of each node."""
        self._set_up_logs()
        self.store = Store()
        self.images = Images()
        self.ports = Ports()
        self.infos = PodInfos(self.columns, NEWEST_RULES)
        self.census = Census(self.columns, self.logs[Aspect.LABELS])
        self.resource_states = ResourceStates(self.columns)
        self.groups = LabelGroups(self.columns, self.logs[Aspect.LABELS])
        self.members = PodGroupMembers()
        """The pods of each PodGroup."""
        self.pending: dict[str, Pod] = {}
        """Pods without a node, in order of arrival."""
        self.node_set_version = 0
        """Increases when a node comes, goes or changes its images."""
        self.placement_version = 0
        """Increases when a pod comes to a node or leaves it; the end of a `PodTrial` resets it."""
        self.moment: float | None = None
        """The simulated calendar time, in seconds since 1970; None if time is not simulated."""
        self._nodes: dict[str, Node] = {}
        self._compiled: dict[str, tuple[Pod, PodInfo]] = {}
        self._placed: dict[str, Placed] = {}
        self._on_row: list[dict[str, Placed]] = []
        self._free_rows: list[int] = []
        self._stranded: dict[str, dict[str, Pod]] = {}
        self._row_masks: RecentlyUsed[RowMask] = RecentlyUsed(self.MOST_ROW_MASKS)
        self._name_order: tuple[int, bool, Ints] = (-1, True, np.zeros(0, dtype=np.int64))
        self._names_now: tuple[int, tuple[str, ...]] = (-1, ())

    def _set_up_logs(self) -> None:
        self.logs: dict[Aspect, ChangeLog] = {aspect: ChangeLog() for aspect in ROW_ASPECTS}
        """Per row aspect, the log of changed rows."""
        # A node's requested resources change with its pods, so one log serves both.
        self._pods_log = self.logs[Aspect.PODS] = self.logs[Aspect.RESOURCES]

    @classmethod
    def from_objects(cls, objects: Iterable[Object]) -> Cluster:
        """Build a cluster from objects; finished pods are ignored, pods without a node become pending."""
        cluster, pods = cls(), []
        with collector_paused():
            for item in objects:
                if isinstance(item, Pod):
                    pods.append(item)
                else:
                    cluster.add(item)
            cluster._add_pods(pods)
            cluster.resource_states.read()
            cluster.name_order()
        return cluster

    # -- reading ---------------------------------------------------------------------------------------------------

    @property
    def version(self) -> tuple[int, int, int]:
        """Changes with everything that a decision may depend on; a `PodTrial` leaves it as it was."""
        return self.placement_version, self.node_set_version, self.store.version

    def time(self) -> float:
        """The calendar time in seconds since 1970: the simulated time if there is one, else the clock's."""
        return time.time() if self.moment is None else self.moment

    @property
    def nodes(self) -> Nodes:
        """All nodes, as plugins see them, without dead rows."""
        return Nodes(self, np.flatnonzero(self.columns.alive) if self._free_rows else None)

    @property
    def node_count(self) -> int:
        return len(self._nodes)

    def node(self, name: str) -> Node:
        return self._nodes[name]

    def pods_on(self, row: int) -> list[Pod]:
        return [placed.pod for placed in self._on_row[row].values()]

    def placed_on(self, row: int) -> list[Placed]:
        """The pods on a row in order of arrival."""
        return list(self._on_row[row].values())

    def placed_pods(self, keys: Iterable[str]) -> Iterator[Placed]:
        """The pods with these keys that are on nodes, in the given order."""
        return (self._placed[key] for key in keys if key in self._placed)

    def placed(self) -> Iterator[tuple[Pod, str]]:
        """Every pod on a node, with the node's name."""
        return ((placed.pod, self.names[placed.row]) for placed in self._placed.values())

    def placed_by_kind(self) -> list[tuple[Pod, str]]:
        """The same as `placed`, with the pods of one compiled spec together.

        Who takes them off and puts them back one by one in this order lets the results kept for a spec follow one
        changed row at a time.
        """
        kinds: dict[PodInfo, list[Placed]] = {}
        for placed in self._placed.values():
            kinds.setdefault(placed.info, []).append(placed)
        return [(placed.pod, self.names[placed.row]) for alike in kinds.values() for placed in alike]

    def find_pod(self, key: str) -> tuple[Pod, str | None] | None:
        """A pod by namespace/name, with its node; None if there is no pod with this key."""
        placed = self._placed.get(key)
        if placed is not None:
            return placed.pod, self.names[placed.row]
        pod = self.pending.get(key)
        return None if pod is None else (pod, None)

    def info_of(self, pod: Pod) -> PodInfo:
        """The pod's compiled spec; for a pending pod it was compiled when the pod was added."""
        known = self._compiled.get(pod.key)
        return known[1] if known is not None and known[0] is pod else self.infos.of(pod)

    @property
    def stranded(self) -> list[Pod]:
        """Pods bound to nodes that are not in the cluster."""
        return [pod for pods in self._stranded.values() for pod in pods.values()]

    def as_victim(self, pod: Pod) -> Pod:
        """The pod with the priority that counts when it may be evicted: that of its PodGroup, if it has one."""
        named = pod.spec.scheduling_group
        if named is None or not self.rules.pod_groups:
            return pod
        group = self.store.of(PodGroup).get(named.pod_group_name, pod.namespace)
        if group is None or group.priority == pod.priority:
            return pod
        return replace(pod, spec=replace(pod.spec, priority=group.priority))

    def namespace_labels(self, namespace: str) -> dict[str, str]:
        """The labels of a namespace; empty if there is no Namespace object."""
        found = self.store.of(Namespace).get(namespace)
        return {} if found is None else found.metadata.labels

    @property
    def names_now(self) -> tuple[str, ...]:
        """The node name of each row now, as a tuple that later changes do not affect."""
        if self._names_now[0] != self.node_set_version:
            self._names_now = self.node_set_version, tuple(self.names)
        return self._names_now[1]

    def name_order(self) -> Ints:
        """The position of each row when nodes are sorted by name."""
        version, _, ranks = self._name_order
        if version != self.node_set_version:
            order = sorted(range(len(self.names)), key=self.names.__getitem__)
            ranks = np.empty(len(order), dtype=np.int64)
            ranks[order] = np.arange(len(order))
            living = ranks[self.columns.alive[: len(ranks)]]
            self._name_order = (self.node_set_version, bool((np.diff(living) > 0).all()), ranks)
        return ranks

    @property
    def rows_in_name_order(self) -> bool:
        """Whether rows are in the order of names, so that the first of several rows has the smallest name."""
        if self._name_order[0] != self.node_set_version:
            self.name_order()
        return self._name_order[1]

    def row_mask(self, key: Hashable, compute: Callable[[], Mask]) -> RowMask:
        """A mask that `compute` derives from nodes' labels and taints, cached under a key and recomputed when those
        change.
        """
        mask: RowMask | None = self._row_masks[key]
        if mask is None:
            mask = self._row_masks[key] = RowMask(compute, (self.logs[Aspect.LABELS], self.logs[Aspect.TAINTS]))
        return mask

    def logs_of(self, aspects: Aspect) -> list[ChangeLog]:
        """The logs of some row aspects, without repetition."""
        return list(dict.fromkeys([self.logs[aspect] for aspect in aspects]))

    # -- changing --------------------------------------------------------------------------------------------------

    @property
    def rules(self) -> Rules:
        """The rules of the release by which pods are counted."""
        return self.infos.rules

    def count_as(self, rules: Rules) -> None:
        """Count pods by the rules of another release; a scheduler calls this itself."""
        if self.infos.rules is rules:
            return
        alike = counts_alike(self.infos.rules, rules)
        self.infos = self.infos.counted_as(rules)
        if alike:
            return
        for key, (pod, info) in self._compiled.items():
            if info.varies:
                self._compiled[key] = pod, self.infos.of(pod)
        for key, placed in self._placed.items():
            if placed.info.varies:
                self._count(placed, -1)
                info = self._bound_info(placed.pod)
                cohort = info.cohort(placed.pod.terminating, self.census.cohorts)
                placed = Placed(placed.pod, placed.row, info, cohort)
                self._placed[key] = self._on_row[placed.row][key] = placed
                self._count(placed, 1)

    def add(self, item: Object) -> None:
        """Add any object; a pod without a node becomes pending, a finished pod is ignored."""
        if isinstance(item, Node):
            self._add_node(item)
        elif isinstance(item, Pod):
            self._add_pod(item)
        else:
            self.store.put(item)

    def update(self, item: Object) -> None:
        """Replace an object by its newer version, or add it if it is not there."""
        if isinstance(item, Node):
            self._update_node(item)
        elif isinstance(item, Pod):
            self.remove(item)
            self._add_pod(item)
        else:
            self.store.put(item)

    def remove(self, item: Object) -> None:
        """Remove an object, if it is there. The pods of a removed node become stranded."""
        if isinstance(item, Node):
            self._remove_node(item.name)
        elif isinstance(item, Pod):
            self._remove_pod(item.key)
        else:
            self.store.remove(item)

    def end(self, pod: Pod) -> list[ResourceClaim]:
        """Remove a pod for good: claims that only it used lose their devices, as controllers would do.

        Returns the changed claims as they were before; `update` with them undoes the change.
        """
        self._remove_pod(pod.key)
        return self._release(pod)

    def end_all(self, keys: Iterable[str]) -> None:
        """Remove pods for good, by namespace/name; keys without a pod are ignored."""
        has_claims = self.store.has_any(ResourceClaim)
        for key in keys:
            found = self.find_pod(key) if has_claims else None
            self._remove_pod(key)
            if found is not None:
                self._release(found[0])

    @contextmanager
    def without(self, pod: Pod) -> Iterator[Pod]:
        """Take a running pod off its node for the length of the block; yields the pod as it is without a node.

        Nothing changes for a pod that is on no node.
        """
        taken = self.take_off(pod.key)
        unbound = replace(pod, spec=replace(pod.spec, node_name="")) if pod.spec.node_name else pod
        if taken is not None and taken.pod is pod and taken.info is not None:
            self._compiled[pod.key] = unbound, taken.info
        try:
            yield unbound
        finally:
            if taken is not None:
                self.put_back(taken)

    def take_off(self, key: str) -> TakenOff | None:
        """Remove a running pod, and the devices of claims that only it used; None if the pod is on no node."""
        placed = self._placed.get(key)
        if placed is not None:
            return TakenOff(placed.pod, self.names[placed.row], self.end(placed.pod), placed.info)
        for node, pods in self._stranded.items():
            if key in pods:
                return TakenOff(pods[key], node, self.end(pods[key]))
        return None

    def put_back(self, taken: TakenOff) -> None:
        """Undo `take_off`, whether the pod was bound to its node or only placed there."""
        if taken.info is not None and not taken.info.varies:
            self.place(taken.pod, self.rows[taken.node], taken.info)
        elif taken.pod.spec.node_name:
            self.add(taken.pod)
        else:
            self.assume(taken.pod, taken.node)
        for claim in taken.claims:
            self.update(claim)

    def _release(self, pod: Pod) -> list[ResourceClaim]:
        """Take the devices back from claims that only this pod used; returns the claims as they were before."""
        if not self.store.has_any(ResourceClaim):
            return []
        released = releases(pod, self.store)
        for _, after in released:
            if EXTENDED_RESOURCE_CLAIM in after.metadata.annotations:
                self.remove(after)
            else:
                self.update(after)
        return [before for before, _ in released]

    def assume(self, pod: Pod, node_name: str) -> None:
        """Place a pod on a node, as the scheduler does before binding."""
        self.place(pod, self.rows[node_name], self.info_of(pod))

    def forget(self, pod: Pod) -> None:
        """Take back an assumed pod; it is pending again."""
        placed = self._placed.get(pod.key)
        if placed is not None:
            self._remove_pod(pod.key)
            self.pending[pod.key] = placed.pod
            self._compiled[pod.key] = placed.pod, placed.info
            if pod.spec.scheduling_group is not None:
                self.members.add(placed.pod, is_scheduled=False)

    def place(self, pod: Pod, row: int, info: PodInfo) -> None:
        """Put a pod on a row; `info` is its compiled spec."""
        self._count(self._put(pod, row, info), 1)

    def _put(self, pod: Pod, row: int, info: PodInfo) -> Placed:
        """Record where a pod is, without counting it there yet."""
        key = pod.key
        if key in self._placed:
            raise InputError(f"pod {key} is on node {self.names[self._placed[key].row]} already; remove it first")
        self._drop_pending(key)
        placed = Placed(pod, row, info, info.cohort(pod.terminating, self.census.cohorts))
        self._placed[key] = self._on_row[row][key] = placed
        if pod.spec.scheduling_group is not None:
            self.members.add(pod, is_scheduled=True)
        return placed

    def _count(self, placed: Placed, amount: int) -> None:
        """Add a pod's requests, ports and labels to its row (1), or subtract them (-1)."""
        info, row, columns = placed.info, placed.row, self.columns
        if len(info.used) > len(columns.used):
            columns.resource(columns.resources.values[-1])
        used = columns.used[: len(info.used), row]
        if amount > 0:
            used += info.used
        else:
            used -= info.used
        self.resource_states.change(row, (info.resources, amount))
        self.placement_version += 1
        self._pods_log.append(row)
        if info.ports:
            self.ports.change(row, info.ports, amount)
            self.logs[Aspect.PORTS].append(row)
        self.census.add(placed.cohort, row, amount)

    def _count_all(self, everything: list[Placed]) -> None:
        """The same as `_count` for many pods; the requests of all pods of a row are summed before they are written."""
        columns, census = self.columns, self.census
        kinds = {info: code for code, info in enumerate(dict.fromkeys(placed.info for placed in everything))}
        used = np.zeros((len(columns.used), len(kinds)), dtype=np.int64)
        for info, code in kinds.items():
            used[: len(info.used), code] = info.used
        codes = np.fromiter((kinds[placed.info] for placed in everything), np.int64, len(everything))
        rows = np.fromiter((placed.row for placed in everything), np.int64, len(everything))
        for line, amount in zip(columns.used, used, strict=True):
            np.add.at(line, rows, amount[codes])
        for placed in everything:
            census.add(placed.cohort, placed.row, 1)
            if placed.info.ports:
                self.ports.change(placed.row, placed.info.ports, 1)
                self.logs[Aspect.PORTS].append(placed.row)
        self.placement_version += 1
        for row in dict.fromkeys(rows.tolist()):
            self.resource_states.touch(row)
            self._pods_log.append(row)

    def _add_pods(self, pods: Iterable[Pod]) -> None:
        """Add many pods at once."""
        bound = []
        for pod in pods:
            row = self.rows.get(pod.spec.node_name)
            if row is None or pod.finished:
                self._add_pod(pod)
            else:
                bound.append(self._put(pod, row, self._bound_info(pod)))
        self._count_all(bound)

    def _add_pod(self, pod: Pod) -> None:
        if pod.finished:
            return
        node_name = pod.spec.node_name
        row = self.rows.get(node_name)
        if not node_name:
            info = self.infos.of(pod)
            # Done now, like the rest of the compilation, and not when the pod is placed.
            self.census.admit(info.cohort(pod.terminating, self.census.cohorts))
            self.pending[pod.key] = pod
            self._compiled[pod.key] = pod, info
            if pod.spec.scheduling_group is not None:
                self.members.add(pod, is_scheduled=False)
        elif row is None:
            self._stranded.setdefault(node_name, {})[pod.key] = pod
            if pod.spec.scheduling_group is not None:
                self.members.add(pod, is_scheduled=True)
        else:
            self.place(pod, row, self._bound_info(pod))

    def _bound_info(self, pod: Pod) -> PodInfo:
        # The node is not part of the compiled spec: pods of one template share it on all nodes.
        return self.infos.of(replace(pod, spec=replace(pod.spec, node_name="")))

    def _drop_pending(self, key: str) -> None:
        pod = self.pending.pop(key, None)
        self._compiled.pop(key, None)
        if pod is not None and pod.spec.scheduling_group is not None:
            self.members.remove(pod)

    def _remove_pod(self, key: str) -> None:
        self._drop_pending(key)
        placed = self._placed.pop(key, None)
        if placed is not None:
            del self._on_row[placed.row][key]
            self._count(placed, -1)
            if placed.pod.spec.scheduling_group is not None:
                self.members.remove(placed.pod)
        for pods in self._stranded.values():
            stranded = pods.pop(key, None)
            if stranded is not None and stranded.spec.scheduling_group is not None:
                self.members.remove(stranded)

    def _add_node(self, node: Node) -> None:
        if node.name in self.rows:
            raise InputError(f"node {node.name} occurs twice; keep one of the two", "")
        if self._free_rows:
            row = self._free_rows.pop()
        else:
            row = self.columns.new_row()
            self.names.append("")
            self._on_row.append({})
        self.names[row], self.rows[node.name], self._nodes[node.name] = node.name, row, node
        self._write_node(row, node)
        self.images.add(row, node)
        self.node_set_version += 1
        for pod in self._stranded.pop(node.name, {}).values():
            self.place(pod, row, self._bound_info(pod))

    def _update_node(self, node: Node) -> None:
        row = self.rows.get(node.name)
        if row is None:
            self._add_node(node)
            return
        old = self._nodes[node.name]
        self._nodes[node.name] = node
        self._write_node(row, node)
        if old.status.images != node.status.images:
            self.images.remove(row, old)
            self.images.add(row, node)
        self.node_set_version += 1

    def _remove_node(self, name: str) -> None:
        row = self.rows.get(name)
        if row is None:
            return
        for placed in self.placed_on(row):
            self._remove_pod(placed.pod.key)
            self._stranded.setdefault(name, {})[placed.pod.key] = placed.pod
            if placed.pod.spec.scheduling_group is not None:
                self.members.add(placed.pod, is_scheduled=True)
        del self.rows[name]
        self.images.remove(row, self._nodes.pop(name))
        self.names[row] = ""
        self.columns.clear_node(row)
        self._log_node(row)
        self._free_rows.append(row)
        self.node_set_version += 1

    def _write_node(self, row: int, node: Node) -> None:
        self.columns.set_node(row, node)
        self._log_node(row)

    def _log_node(self, row: int) -> None:
        self.resource_states.touch(row)
        for log in self.logs_of(ROW_ASPECTS):
            log.append(row)

    # -- forking ---------------------------------------------------------------------------------------------------

    def fork(self) -> Cluster:
        """An independent copy to try something on; dictionaries that only grow are shared."""
        twin = Cluster.__new__(Cluster)
        twin.columns = self.columns.copy()
        twin.names, twin.rows = self.names.copy(), self.rows.copy()
        twin._set_up_logs()
        twin.store, twin.images, twin.ports = self.store.copy(), self.images.copy(), self.ports.copy()
        twin.infos = self.infos
        twin.census = self.census.copy(twin.columns, twin.logs[Aspect.LABELS])
        twin.groups = LabelGroups(twin.columns, twin.logs[Aspect.LABELS])
        twin.resource_states = ResourceStates(twin.columns)
        for row in range(twin.columns.size):
            twin.resource_states.touch(row)
        twin.pending, twin.members = self.pending.copy(), self.members.copy()
        twin.node_set_version, twin.placement_version = self.node_set_version, self.placement_version
        twin._nodes, twin._placed = self._nodes.copy(), self._placed.copy()
        twin._compiled = self._compiled.copy()
        twin._on_row = [pods.copy() for pods in self._on_row]
        twin._free_rows = self._free_rows.copy()
        twin._stranded = {name: pods.copy() for name, pods in self._stranded.items()}
        twin._row_masks = RecentlyUsed(self.MOST_ROW_MASKS)
        twin._name_order, twin._names_now = self._name_order, self._names_now
        twin.moment = self.moment
        return twin


class PodTrial:
    """Adds pods to nodes, or removes them, for the length of a `with` block; afterwards the cluster is as it was.

    Much cheaper than a fork when few nodes are touched. `Cluster.find_pod` and `Cluster.placed` do not see the changes;
    everything that plugins read from nodes, and every tally, does.
    """

    def __init__(self, cluster: Cluster, *, is_logged: bool = False) -> None:
        """With `is_logged`, the cluster gets a new version at the end: decisions may be made, and remembered,
        meanwhile.
        """
        self._cluster, self._version = cluster, None if is_logged else cluster.placement_version
        self._rows: dict[int, dict[str, Placed]] = {}
        """The original pods of every touched row."""
        self._changed: dict[str, tuple[Placed, int]] = {}
        """By pod, how its count differs from the start of the trial: 1, 0 or -1."""

    def __enter__(self) -> PodTrial:
        return self

    def __exit__(self, *_: object) -> None:
        for placed, amount in self._changed.values():
            if amount:
                self._cluster._count(placed, -amount)
        for row, pods in self._rows.items():
            self._cluster._on_row[row] = pods
        if self._version is not None:
            self._cluster.placement_version = self._version

    def place(self, pod: Pod, row: int, info: PodInfo) -> Placed:
        """Put a pod that has no node on a row; `info` is its compiled spec."""
        placed = Placed(pod, row, info, info.cohort(pod.terminating, self._cluster.census.cohorts))
        self.put_back(placed)
        return placed

    def put_back(self, placed: Placed) -> None:
        """Put a pod back on its row."""
        self._pods(placed.row)[placed.pod.key] = placed
        self._count(placed, 1)

    def take_off(self, placed: Placed) -> None:
        """Take a pod off its row."""
        # A pod that is nominated to a node may be tried there a second time.
        self._pods(placed.row).pop(placed.pod.key, None)
        self._count(placed, -1)

    def _pods(self, row: int) -> dict[str, Placed]:
        """The pods on a row, to be changed. The original dict is kept aside, so that its order can be restored."""
        on_row = self._cluster._on_row
        if row not in self._rows:
            self._rows[row] = on_row[row]
            on_row[row] = on_row[row].copy()
        return on_row[row]

    def _count(self, placed: Placed, amount: int) -> None:
        self._cluster._count(placed, amount)
        _, before = self._changed.get(placed.pod.key, (placed, 0))
        self._changed[placed.pod.key] = placed, before + amount


T = TypeVar("T")


class PerCluster(Generic[T]):
    """One T per cluster, created on first use. A T must not refer to its cluster, or neither is ever freed."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[Cluster, T] = WeakKeyDictionary()

    def of(self, cluster: Cluster) -> T:
        found = self._made.get(cluster)
        if found is None:
            found = self._made[cluster] = self._make()
        return found


class Follows(Protocol):
    """Data derived from a cluster, which catches up with the cluster's changes."""

    def catch_up(self, cluster: Cluster) -> None: ...


F = TypeVar("F", bound=Follows)


class UpToDate(PerCluster[F]):
    """One F per cluster, brought up to date with it whenever it is asked for."""

    def of(self, cluster: Cluster) -> F:
        found = super().of(cluster)
        found.catch_up(cluster)
        return found


class ChangedRows:
    """Reads a cluster's change log of one aspect."""

    def __init__(self, aspect: Aspect) -> None:
        self._aspect = aspect
        self._cursor = -1

    def take(self, cluster: Cluster) -> Collection[int]:
        """The rows that changed since the last call, without repetition; all rows on the first call."""
        log = cluster.logs[self._aspect]
        if log.head == self._cursor:
            return ()
        changed = log.since(self._cursor) if self._cursor >= 0 else None
        self._cursor = log.head
        return range(cluster.columns.size) if changed is None else set(changed.tolist())
