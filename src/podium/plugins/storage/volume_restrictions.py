"""VolumeRestrictions: disks and claims that only one pod may use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes
from podium.cluster.cluster import ChangedRows, UpToDate
from podium.framework import PodView
from podium.framework.events import Action, EventHint, WaitingPod, node_update
from podium.framework.plugin import CycleState, PreFilterPlugin
from podium.framework.registry import lacks
from podium.framework.status import PASSED, SKIPPED, SUCCESS, PreFilterResult, Status, Verdict
from podium.model import PersistentVolumeClaim, Pod, Volume
from podium.plugins.storage.claims import StorageFilter, claim_not_found, claims_named, names_claim

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
