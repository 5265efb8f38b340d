"""Which claims and in-tree disks the pods on each node use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from podium.cluster import Aspect, Cluster
from podium.objects import Pod, Volume
from podium.plugins.per_cluster import ChangedRows

Disk = tuple[str, ...]


class DiskUse(NamedTuple):
    """An in-tree disk, and whether it is only read."""

    disk: Disk
    read_only: bool


def disk_uses(volume: Volume) -> Iterator[DiskUse]:
    """The disks that a volume shares with others; a Ceph image is the same if it has one monitor in common."""
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
    """Disks and claims by row. It belongs to one cluster; call `catch_up` before reading."""

    def __init__(self) -> None:
        self._changed_rows = ChangedRows(Aspect.PODS)
        self._rows: dict[int, tuple[dict[Disk, bool], frozenset[tuple[str, str]]]] = {}
        self._disks: dict[Disk, dict[int, bool]] = {}
        """Per disk, the rows that use it, and whether somebody writes there."""
        self._claims: dict[tuple[str, str], set[int]] = {}

    def catch_up(self, cluster: Cluster) -> None:
        for row in self._changed_rows.take(cluster):
            pods = [placed.pod for placed in cluster.placed_on(row) if placed.info.pod.spec.volumes]
            if pods or row in self._rows:
                self._forget(row)
                self._note(row, pods)

    def conflicts(self, uses: Iterable[DiskUse]) -> Iterator[int]:
        """The rows where one of these disks is in use and not all users only read it, possibly repeated."""
        for disk, read_only in uses:
            for row, is_written in self._disks.get(disk, {}).items():
                if is_written or not read_only:
                    yield row

    def is_claim_used(self, namespace: str, name: str) -> bool:
        """Whether a pod on some node uses the claim; claims of ephemeral volumes do not count."""
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
        disks: dict[Disk, bool] = {}
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
