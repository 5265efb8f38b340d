"""Limits of disks per node: MaxEBSVolumeCount and the like for each kind of disk, and MaxCSIVolumeCount."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from podium.cluster import Aspect, Cluster, NodeInfo
from podium.framework import Status
from podium.model import CSINode, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from podium.model.objects import storage_class_of
from podium.model.resources import ATTACHABLE_VOLUMES, csi_limit_key
from podium.plugins.storage.node_volume_limits import (
    AZURE_DISK,
    CINDER,
    EBS,
    GCE_PD,
    INSTANCE_TYPE,
    NITRO,
    NITRO_LIMIT,
    STABLE_INSTANCE_TYPE,
    Disk,
)
from podium.releases._volume_predicates import VolumeClaimError, VolumePredicate, required_claim_name
from podium.releases.rules import MAX_VOLUMES, rejection_status

MOST_FROM_ENVIRONMENT = "KUBE_MAX_PD_VOLS"

_IN_TREE_PROVISIONERS = frozenset(
    f"kubernetes.io/{name}" for name in ("aws-ebs", "gce-pd", "cinder", "azure-disk", "azure-file")
)


@dataclass(frozen=True, kw_only=True)
class VolumeLimitArgs:
    """The limit from the environment, which replaces the defaults; None if there is none."""

    most: int | None = None

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> VolumeLimitArgs:
        """The limit from KUBE_MAX_PD_VOLS; ignored unless it is a positive number."""
        text = env.get(MOST_FROM_ENVIRONMENT) or ""
        number = int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else 0
        return cls(most=number if number > 0 else None)


class MaxVolumeCount(VolumePredicate):
    """Reject nodes that would exceed their limit of disks of a kind; a disk of several pods counts once."""

    reads = Aspect.PODS | Aspect.LABELS | Aspect.OBJECTS
    DISK: Disk

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._most = args.most if isinstance(args, VolumeLimitArgs) else None

    def check(self, pod: Pod, node: NodeInfo) -> Status | None:
        try:
            wanted = self._disks([pod], node.cluster)
            if not wanted:
                return None
            there = self._disks(node.pods, node.cluster)
        except VolumeClaimError as error:
            return Status.error(str(error))
        return rejection_status([MAX_VOLUMES], self.rules) if len(there | wanted) > self._limit(node) else None

    def _limit(self, node: NodeInfo) -> int:
        if self.rules.limits_from_node and self.DISK.limit_key in node.node.allocatable:
            return node.allocatable(self.DISK.limit_key)
        if self._most is not None:
            return self._most
        if self.rules.limits_from_node and self.DISK is EBS and NITRO.search(self._instance_type(node)):
            return NITRO_LIMIT
        return self.DISK.limit

    def _instance_type(self, node: NodeInfo) -> str:
        stable = node.labels.get(STABLE_INSTANCE_TYPE, "") if self.rules.unbound_disks_by_provisioner else ""
        return node.labels.get(INSTANCE_TYPE, stable)

    def _disks(self, pods: Iterable[Pod], cluster: Cluster) -> set[object]:
        """The disks of this kind that pods use; disks known only by their claim are distinct from disks known by id."""
        found: set[object] = set()
        for pod in pods:
            for place, volume in enumerate(pod.spec.volumes):
                disk = self.DISK.identify(volume)
                if disk is None and volume.persistent_volume_claim is not None:
                    disk_of_claim, is_missing = self._placed_claim(pod, required_claim_name(volume), cluster)
                    if is_missing and self.rules.claims_must_be_bound:
                        # The release invents an id for it, and ignores the pod's further volumes.
                        found.add((pod.key, place))
                        break
                    found |= {disk_of_claim} - {None}
                elif disk is not None:
                    found.add(disk)
        return found

    def _placed_claim(self, pod: Pod, name: str, cluster: Cluster) -> tuple[object, bool]:
        """The disk of a claim, None for another kind; and whether the claim or its volume is missing."""
        by_claim = (pod.namespace, name, "claim")
        claim = cluster.store.of(PersistentVolumeClaim).get(name, pod.namespace)
        if claim is None:
            return (None if self.rules.unbound_disks_by_provisioner else by_claim), True
        if not claim.spec.volume_name and self.rules.claims_must_be_bound:
            raise VolumeClaimError(f'PersistentVolumeClaim is not bound: "{name}"')
        volume = cluster.store.of(PersistentVolume).get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            return self.DISK.identify(volume.spec), False
        is_kind = not self.rules.unbound_disks_by_provisioner or self._provisions(claim, cluster)
        return (by_claim if is_kind else None), True

    def _provisions(self, claim: PersistentVolumeClaim, cluster: Cluster) -> bool:
        """Whether the claim's storage class provisions disks of this kind."""
        if claim.spec.storage_class_name is None:
            return False
        found = cluster.store.of(StorageClass).get(claim.spec.storage_class_name)
        return found is not None and found.provisioner == self.DISK.provisioner


class MaxEBSVolumeCount(MaxVolumeCount):
    name = "MaxEBSVolumeCount"
    DISK = EBS


class MaxGCEPDVolumeCount(MaxVolumeCount):
    name = "MaxGCEPDVolumeCount"
    DISK = GCE_PD


class MaxAzureDiskVolumeCount(MaxVolumeCount):
    name = "MaxAzureDiskVolumeCount"
    DISK = AZURE_DISK


class MaxCinderVolumeCount(MaxVolumeCount):
    name = "MaxCinderVolumeCount"
    DISK = CINDER


class MaxCSIVolumeCount(VolumePredicate):
    """Reject nodes that would exceed their limit of volumes of a CSI driver."""

    name = "MaxCSIVolumeCountPred"
    reads = Aspect.PODS | Aspect.LABELS | Aspect.OBJECTS

    def check(self, pod: Pod, node: NodeInfo) -> Status | None:
        limits = self._limits(node, node.cluster)
        if not limits:
            return None
        try:
            wanted = self._volumes([pod], node.cluster)
            there = self._volumes(node.pods, node.cluster) if wanted else {}
        except VolumeClaimError as error:
            return Status.error(str(error))
        new = [key for volume, key in wanted.items() if volume not in there]
        attached = list(there.values())
        too_many = any(attached.count(key) + new.count(key) > limits[key] for key in set(new) & limits.keys())
        return rejection_status([MAX_VOLUMES], self.rules) if too_many else None

    def _limits(self, node: NodeInfo, cluster: Cluster) -> dict[str, int]:
        """The limit per kind of volume: from the node, and in v1.18 preferably from its CSINode."""
        names = (name for name in node.node.allocatable if name.startswith(ATTACHABLE_VOLUMES))
        limits = {name: node.allocatable(name) for name in names}
        csi_node = cluster.store.of(CSINode).get(node.name) if self.rules.unbound_disks_by_provisioner else None
        for driver in csi_node.spec.drivers if csi_node else ():
            if driver.allocatable is not None and driver.allocatable.count is not None:
                limits[csi_limit_key(driver.name)] = driver.allocatable.count
        return limits

    def _volumes(self, pods: Iterable[Pod], cluster: Cluster) -> dict[object, str]:
        """The CSI volumes that pods use through claims, each with the key of its limit."""
        found: dict[object, str] = {}
        for pod in pods:
            for volume in pod.spec.volumes:
                if volume.persistent_volume_claim is None:
                    continue
                claim = cluster.store.of(PersistentVolumeClaim).get(required_claim_name(volume), pod.namespace)
                driver, handle = ("", "") if claim is None else self._driver(claim, cluster)
                if driver and handle:
                    unique = (driver, handle) if self.rules.unbound_disks_by_provisioner else handle
                    found[unique] = csi_limit_key(driver)
        return found

    def _driver(self, claim: PersistentVolumeClaim, cluster: Cluster) -> tuple[str, object]:
        """The driver and the volume of a claim; empty for a volume that is not a CSI volume."""
        name = claim.spec.volume_name
        volume = cluster.store.of(PersistentVolume).get(name) if name else None
        if volume is not None:
            return (volume.spec.csi.driver, volume.spec.csi.volume_handle) if volume.spec.csi else ("", "")
        if not self.rules.unbound_disks_by_provisioner:
            return "", ""
        storage_class = cluster.store.of(StorageClass).get(storage_class_of(claim))
        if storage_class is None or storage_class.provisioner in _IN_TREE_PROVISIONERS:
            return "", ""
        return storage_class.provisioner, (claim.key, "claim")
