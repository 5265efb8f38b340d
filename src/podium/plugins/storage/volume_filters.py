"""VolumeRestrictions: disks and claims that only one pod may use. VolumeZone: volumes that can be used only in their
zone or region.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes
from podium.cluster.cluster import ChangedRows, UpToDate
from podium.cluster.columns import Mask
from podium.cluster.store import Store
from podium.framework import PodView
from podium.framework.plugin import Action, CycleState, EventHint, PreFilterPlugin, WaitingPod, node_update
from podium.framework.registry import lacks
from podium.framework.status import PASSED, SKIPPED, SUCCESS, PreFilterResult, Status, Verdict
from podium.model import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, Volume
from podium.model.objects import BETA_REGION, BETA_ZONE, REGION, ZONE, storage_class_of
from podium.model.selectors import Requirement
from podium.plugins.storage.claims import (
    REASON_NO_CLASS_NAME,
    REASON_NO_VOLUME_NAME,
    WAIT_FOR_FIRST_CONSUMER,
    ZONE_DELIMITER,
    StorageFilter,
    claim_not_found,
    claims_named,
    class_not_found,
    names_claim,
    volume_not_found,
)

DiskIdentity = tuple[str, ...]


class DiskUse(NamedTuple):
    """An in-tree disk, and whether it is used read-only."""

    disk: DiskIdentity
    read_only: bool


def disk_uses(volume: Volume) -> Iterator[DiskUse]:
    """The disks of a volume that may conflict with other users; Ceph images with a common monitor are the same disk."""
    if (gce := volume.gce_persistent_disk) is not None:
        yield DiskUse(("gce", gce.pd_name), gce.read_only)
    if (ebs := volume.aws_elastic_block_store) is not None:
        # EBS volumes conflict even when both are read-only.
        yield DiskUse(("ebs", ebs.volume_id), False)
    if (iscsi := volume.iscsi) is not None:
        yield DiskUse(("iscsi", iscsi.iqn), iscsi.read_only)
    if (rbd := volume.rbd) is not None:
        for monitor in rbd.monitors:
            yield DiskUse(("rbd", monitor, rbd.pool, rbd.image), rbd.read_only)


class DisksInUse:
    """The disks and claims in use by row of one cluster, as of the last `catch_up`."""

    def __init__(self) -> None:
        self._changed_rows = ChangedRows(Aspect.PODS)
        self._rows: dict[int, tuple[dict[DiskIdentity, bool], frozenset[tuple[str, str]]]] = {}
        self._disks: dict[DiskIdentity, dict[int, bool]] = {}
        """Per disk, the rows that use it, and whether a pod writes there."""
        self._claims: dict[tuple[str, str], set[int]] = {}

    def catch_up(self, cluster: Cluster) -> None:
        for row in self._changed_rows.take(cluster):
            pods = [placed.pod for placed in cluster.placed_on(row) if placed.info.pod.spec.volumes]
            if pods or row in self._rows:
                self._forget(row)
                self._note(row, pods)

    def conflicts(self, uses: Iterable[DiskUse]) -> Iterator[int]:
        """The rows where one of these disks is in use, unless all users only read it; possibly repeated."""
        for disk, read_only in uses:
            for row, is_written in self._disks.get(disk, {}).items():
                if is_written or not read_only:
                    yield row

    def is_claim_used(self, namespace: str, name: str) -> bool:
        """Whether a pod on some node uses the claim; claims of ephemeral volumes are ignored."""
        return (namespace, name) in self._claims

    def _forget(self, row: int) -> None:
        disks, claims = self._rows.pop(row, ({}, frozenset()))
        for disk in disks:
            del self._disks[disk][row]
        for claim in claims:
            self._claims[claim].discard(row)
            if not self._claims[claim]:
                del self._claims[claim]

    def _note(self, row: int, pods: list[Pod]) -> None:
        disks: dict[DiskIdentity, bool] = {}
        claims: set[tuple[str, str]] = set()
        for pod in pods:
            for volume in pod.spec.volumes:
                if volume.persistent_volume_claim is not None:
                    claims.add((pod.namespace, volume.persistent_volume_claim.claim_name))
                for disk, read_only in disk_uses(volume):
                    disks[disk] = disks.get(disk, False) or not read_only
        if not disks and not claims:
            return
        self._rows[row] = disks, frozenset(claims)
        for disk, is_written in disks.items():
            self._disks.setdefault(disk, {})[row] = is_written
        for claim in claims:
            self._claims.setdefault(claim, set()).add(row)


READ_WRITE_ONCE_POD = "ReadWriteOncePod"


class _FilterState(NamedTuple):
    disks: list[DiskUse]
    exclusive: frozenset[str]
    """The pod's claims that only one pod may use."""
    conflicts: int
    """How many of them are in use; pods added or removed since PreFilter are counted by claim name alone."""


def _disks(pod: Pod) -> list[DiskUse]:
    return [use for volume in pod.spec.volumes for use in disk_uses(volume)]


class VolumeRestrictions(PreFilterPlugin, StorageFilter):
    """Reject nodes where an in-tree disk of the pod is in use, and all nodes while a ReadWriteOncePod claim is."""

    name = "VolumeRestrictions"
    REASON_DISK = "node(s) had no available disk"
    REASON_READ_WRITE_ONCE_POD = (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod"
    )

    REASON_SAME_CLAIM = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._in_use = UpToDate(DisksInUse)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        shelf, exclusive = nodes.cluster.store.of(PersistentVolumeClaim), set()
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                name = volume.persistent_volume_claim.claim_name
                claim = shelf.get(name, pod.namespace)
                if claim is None:
                    return PreFilterResult(Status.unresolvable(claim_not_found(name)))
                if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                    exclusive.add(name)
        disks = _disks(pod)
        if not disks and not exclusive:
            return SKIPPED
        in_use = self._in_use.of(nodes.cluster)
        conflicts = sum(in_use.is_claim_used(pod.namespace, name) for name in exclusive)
        if not disks and not conflicts:
            return SKIPPED
        state[self.name] = _FilterState(disks, frozenset(exclusive), conflicts)
        return PASSED

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status:
        return self._count(state, added, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status:
        return self._count(state, removed, -1)

    def _count(self, state: CycleState, other: Pod, amount: int) -> Status:
        found: _FilterState = state[self.name]
        claims = (volume.persistent_volume_claim for volume in other.spec.volumes)
        shared = sum(claim is not None and claim.claim_name in found.exclusive for claim in claims)
        state[self.name] = found._replace(conflicts=found.conflicts + amount * shared)
        return SUCCESS

    def concerns(self, pod: PodView, cluster: Cluster) -> bool:
        return self._is_unprepared or super().concerns(pod, cluster)

    @property
    def _is_unprepared(self) -> bool:
        """Whether the profile leaves out PreFilter: the plugin then fails on nodes without a disk conflict."""
        return "filter" in self.runs_at and "preFilter" not in self.runs_at

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        found = _FilterState(_disks(pod), frozenset(), 0) if self._is_unprepared else state[self.name]
        elsewhere = 3 if self._is_unprepared else 2 if found.conflicts > 0 else 0
        codes = np.full(len(nodes), elsewhere, dtype=np.int64)
        if found.disks:
            codes[nodes.among(self._in_use.of(nodes.cluster).conflicts(found.disks))] = 1
        names_mode = self.release_rules.read_write_once_pod_names_mode
        claim_in_use = self.REASON_READ_WRITE_ONCE_POD if names_mode else self.REASON_SAME_CLAIM
        reasons = Status.unschedulable(self.REASON_DISK), Status.unschedulable(claim_in_use)
        return Verdict.choose(codes, (*reasons, Status.error(lacks("preFilter"))))

    def events_to_register(self) -> Sequence[EventHint]:
        rules = self.release_rules
        of_claims = Action.ADD | (Action(0) if rules.pod_updates_name_their_part else Action.UPDATE)
        of_nodes = Action.ADD | (node_update(Action(0), rules) if rules.node_updates_name_their_part else Action(0))
        return (
            EventHint("Pod", Action.DELETE, self.frees_disk_or_claim),
            EventHint("Node", of_nodes),
            EventHint("PersistentVolumeClaim", of_claims, names_claim),
        )

    def frees_disk_or_claim(self, waiting: WaitingPod, old: Pod, new: None) -> bool:
        """Whether the deleted pod shared a disk or a claim with the waiting pod."""
        pod = waiting.pod
        if old.namespace != pod.namespace:
            return False
        held: dict[DiskIdentity, bool] = {}
        for disk, read_only in _disks(old):
            held[disk] = held.get(disk, True) and read_only
        if any(disk in held and not (read_only and held[disk]) for disk, read_only in _disks(pod)):
            return True
        return bool(claims_named(old) & claims_named(pod))


CURRENT_LABELS = {BETA_ZONE: ZONE, BETA_REGION: REGION, ZONE: ZONE, REGION: REGION}
"""Every zone or region label of a volume -> its current name."""


class Topology(NamedTuple):
    """The values that one topology label of a volume allows."""

    label: str
    values: frozenset[str]


class VolumeZone(PreFilterPlugin, StorageFilter):
    """Reject nodes outside the zones and regions of the pod's bound volumes; nodes without zone labels pass."""

    name = "VolumeZone"
    REASON = "node(s) had no available volume zone"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        topologies = _topologies(pod, nodes.cluster.store)
        if isinstance(topologies, Status):
            return PreFilterResult(topologies)
        if not topologies:
            return SKIPPED
        state[self.name] = topologies
        return PASSED

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        # The profile may leave out PreFilter.
        topologies: list[Topology] | Status = state.get(self.name) or _topologies(pod, nodes.cluster.store)
        if isinstance(topologies, Status):
            return Verdict.choose(np.ones(len(nodes), dtype=np.int64), (topologies,))
        labelled, matches = np.zeros(len(nodes), dtype=np.bool_), np.ones(len(nodes), dtype=np.bool_)
        for label in CURRENT_LABELS:
            labelled |= nodes.codes(label) >= 0
        for topology in topologies:
            matches &= _matching(topology, nodes)
        return Verdict.unresolvable(labelled & ~matches, self.REASON)

    def events_to_register(self) -> Sequence[EventHint]:
        changes = Action.UPDATE if self.release_rules.pod_updates_name_their_part else Action(0)
        return (
            EventHint("StorageClass", Action.ADD, self.waits_for_pods),
            EventHint("Node", Action.ADD | Action.UPDATE_NODE_LABEL),
            EventHint("PersistentVolumeClaim", Action.ADD | changes, names_claim),
            EventHint("PersistentVolume", Action.ADD | Action.UPDATE, self.volume_moved),
        )

    def waits_for_pods(self, waiting: WaitingPod, old: StorageClass | None, new: StorageClass) -> bool:
        """Whether the storage class waits for the first consumer."""
        return new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    def volume_moved(self, waiting: WaitingPod, old: PersistentVolume | None, new: PersistentVolume) -> bool:
        """Whether the volume is new or has other zone or region labels than before."""
        return old is None or any(old.metadata.labels.get(k) != new.metadata.labels.get(k) for k in CURRENT_LABELS)


def _topologies(pod: Pod, store: Store) -> list[Topology] | Status:
    """The topologies of all volumes of a pod's claims, or the status if a claim is not usable."""
    topologies: list[Topology] = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            found = topologies_of(volume.persistent_volume_claim.claim_name, pod.namespace, store)
            if isinstance(found, Status):
                return found
            topologies += found
    return topologies


def _matching(topology: Topology, nodes: Nodes) -> Mask:
    """Whether each node is where the volume is; a node that lacks an old label is matched by its current label."""
    here = nodes.satisfying(Requirement(topology.label, "In", topology.values))
    current = CURRENT_LABELS[topology.label]
    if current == topology.label:
        return here
    return here | ((nodes.codes(topology.label) < 0) & nodes.satisfying(Requirement(current, "In", topology.values)))


def topologies_of(claim_name: str, namespace: str, store: Store) -> list[Topology] | Status:
    """The topologies of the volume of a claim; none for a claim that waits for its first consumer."""
    if not claim_name:
        return Status.unresolvable("PersistentVolumeClaim had no name")
    claim = store.of(PersistentVolumeClaim).get(claim_name, namespace)
    if claim is None:
        return Status.unresolvable(claim_not_found(claim_name))
    if not claim.spec.volume_name:
        return _unbound(claim, store)
    volume = store.of(PersistentVolume).get(claim.spec.volume_name)
    if volume is None:
        return Status.unresolvable(volume_not_found(claim.spec.volume_name))
    return [
        Topology(label, zones)
        for label in CURRENT_LABELS
        if label in volume.metadata.labels and (zones := _zones(volume.metadata.labels[label]))
    ]


def _unbound(claim: PersistentVolumeClaim, store: Store) -> list[Topology] | Status:
    name = storage_class_of(claim)
    if not name:
        return Status.unresolvable(REASON_NO_CLASS_NAME)
    storage_class = store.of(StorageClass).get(name)
    if storage_class is None:
        return Status.unresolvable(class_not_found(name))
    if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
        return []
    return Status.unresolvable(REASON_NO_VOLUME_NAME)


def _zones(label: str) -> frozenset[str]:
    """The zones in a label value like `a__b`; none if one of them is empty, which makes the label invalid."""
    zones = frozenset(zone.strip() for zone in label.split(ZONE_DELIMITER))
    return frozenset() if "" in zones else zones
