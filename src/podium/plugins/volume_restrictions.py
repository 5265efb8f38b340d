"""VolumeRestrictions: disks that only one pod of a node may use, claims that only one pod at all may."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.cluster import Cluster, NodeInfo, Nodes, PodInfo
from podium.framework.plugin import CycleState, FilterPlugin, PreFilterPlugin, PreFilterResult
from podium.framework.status import SKIP, SUCCESS, Status, Verdict
from podium.objects import PersistentVolumeClaim, Pod
from podium.plugins.claims import claim_not_found
from podium.plugins.disks_in_use import DisksInUse, DiskUse, disk_uses
from podium.plugins.per_cluster import PerCluster

READ_WRITE_ONCE_POD = "ReadWriteOncePod"
SKIPPED = PreFilterResult(SKIP)


class _FilterState(NamedTuple):
    disks: list[DiskUse]
    exclusive: frozenset[str]
    """The pod's claims that only one pod may use."""
    conflicts: int
    """How many of them are in use, as far as known: pods added and removed since are counted by claim name alone."""


class VolumeRestrictions(PreFilterPlugin, FilterPlugin):
    """Reject nodes where an in-tree disk of the pod is in use, and all nodes while a ReadWriteOncePod claim is."""

    name = "VolumeRestrictions"
    REASON_DISK = "node(s) had no available disk"
    REASON_READ_WRITE_ONCE_POD = (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod"
    )

    REASON_SAME_CLAIM = (
        "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
    )

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._in_use = PerCluster(DisksInUse)

    def concerns(self, info: PodInfo, cluster: Cluster) -> bool:
        return bool(info.pod.spec.volumes)

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
        disks = [use for volume in pod.spec.volumes for use in disk_uses(volume)]
        if not disks and not exclusive:
            return SKIPPED
        in_use = self._in_use.of(nodes.cluster)
        in_use.catch_up(nodes.cluster)
        conflicts = sum(in_use.is_claim_used(pod.namespace, name) for name in exclusive)
        if not disks and not conflicts:
            return SKIPPED
        state[self.name] = _FilterState(disks, frozenset(exclusive), conflicts)
        return PreFilterResult()

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

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        found: _FilterState = state[self.name]
        codes = np.full(len(nodes), 2 if found.conflicts > 0 else 0, dtype=np.int64)
        if found.disks:
            in_use = self._in_use.of(nodes.cluster)
            in_use.catch_up(nodes.cluster)
            codes[nodes.among(in_use.conflicts(found.disks))] = 1
        names_mode = self.release_rules.read_write_once_pod_names_mode
        claim_in_use = self.REASON_READ_WRITE_ONCE_POD if names_mode else self.REASON_SAME_CLAIM
        return Verdict.choose(codes, (Status.unschedulable(self.REASON_DISK), Status.unschedulable(claim_in_use)))
