"""Queueing hints of the plugins that look at volumes."""

from __future__ import annotations

from podium.framework.events import Action
from podium.loop.registration import Registration, Rejected, is_placed
from podium.model import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    VolumeAttachment,
)
from podium.model.quantity import value
from podium.plugins.storage.claims import WAIT_FOR_FIRST_CONSUMER, claim_name
from podium.plugins.storage.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, in_tree_plugin, inline_volume
from podium.plugins.storage.volume_restrictions import disk_uses

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
ADD, UPDATE, DELETE = Action.ADD, Action.UPDATE, Action.DELETE


def uses_claim(rejected: Rejected, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    """The claim is one the pod uses, be it of a generic ephemeral volume."""
    pod = rejected.pod
    return pod.namespace == new.namespace and any(claim_name(pod, v) == new.name for v in pod.spec.volumes)


def names_claim(rejected: Rejected, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    """The claim is one the pod names itself."""
    claims = (volume.persistent_volume_claim for volume in rejected.pod.spec.volumes)
    return rejected.pod.namespace == new.namespace and any(c is not None and c.claim_name == new.name for c in claims)


# -- VolumeBinding ---------------------------------------------------------------------------------------------------


def class_allows_more(rejected: Rejected, old: StorageClass | None, new: StorageClass) -> bool:
    return old is None or old.allowed_topologies != new.allowed_topologies


def migration_changed(rejected: Rejected, old: CSINode | None, new: CSINode) -> bool:
    if old is None:
        return True
    return old.metadata.annotations.get(MIGRATED_PLUGINS) != new.metadata.annotations.get(MIGRATED_PLUGINS)


def capacity_no_longer_counts(rejected: Rejected, old: CSIDriver, new: CSIDriver) -> bool:
    if not old.spec.storage_capacity or new.spec.storage_capacity:
        return False
    return any(v.csi is not None and v.csi.driver == new.name for v in rejected.pod.spec.volumes)


def capacity_grew(rejected: Rejected, old: CSIStorageCapacity | None, new: CSIStorageCapacity) -> bool:
    if old is None:
        return True
    before, after = _volume_limit(old), _volume_limit(new)
    return after is not None and (before is None or after > before)


def _volume_limit(capacity: CSIStorageCapacity) -> int | None:
    limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return None if limit is None else value(limit)


# -- VolumeZone ------------------------------------------------------------------------------------------------------


def class_waits_for_pods(rejected: Rejected, old: StorageClass | None, new: StorageClass) -> bool:
    return new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def volume_moved(rejected: Rejected, old: PersistentVolume | None, new: PersistentVolume) -> bool:
    labels = (BETA_ZONE, BETA_REGION, ZONE, REGION)
    return old is None or any(old.metadata.labels.get(key) != new.metadata.labels.get(key) for key in labels)


# -- VolumeRestrictions ----------------------------------------------------------------------------------------------


def frees_disk_or_claim(rejected: Rejected, old: Pod, new: None) -> bool:
    """The pod that is gone shared a disk or a claim with the waiting one."""
    pod = rejected.pod
    if old.namespace != pod.namespace:
        return False
    held: dict[tuple[str, ...], bool] = {}
    for disk, read_only in (use for volume in old.spec.volumes for use in disk_uses(volume)):
        held[disk] = held.get(disk, True) and read_only
    wanted = (use for volume in pod.spec.volumes for use in disk_uses(volume))
    if any(disk in held and not (read_only and held[disk]) for disk, read_only in wanted):
        return True
    return bool(_claims_named(old) & _claims_named(pod))


def _claims_named(pod: Pod) -> set[str]:
    claims = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return {claim.claim_name for claim in claims if claim is not None}


# -- NodeVolumeLimits ------------------------------------------------------------------------------------------------


def detaches_volumes(rejected: Rejected, old: Pod, new: None) -> bool:
    if not is_placed(old):
        return False
    return any(
        v.persistent_volume_claim is not None or v.ephemeral is not None or in_tree_plugin(v) is not None
        for v in old.spec.volumes
    )


def attaches_like(rejected: Rejected, old: VolumeAttachment, new: None) -> bool:
    for volume in rejected.pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return True
        attached = inline_volume(volume) if in_tree_plugin(volume) is not None else None
        if attached is not None and attached.driver == old.spec.attacher:
            return True
    return False


def limit_grew(rejected: Rejected, old: CSINode, new: CSINode) -> bool:
    before = _limits(old)
    return any(limit > before.get(driver, 0) for driver, limit in _limits(new).items())


def _limits(node: CSINode) -> dict[str, int]:
    return {d.name: (d.allocatable.count or 0) if d.allocatable else 0 for d in node.spec.drivers}


STORAGE_HINTS: dict[str, tuple[Registration, ...]] = {
    "VolumeBinding": (
        Registration("StorageClass", ADD | UPDATE, class_allows_more),
        Registration("PersistentVolumeClaim", ADD | UPDATE, uses_claim),
        Registration("PersistentVolume", ADD | UPDATE),
        Registration("Node", ADD | Action.UPDATE_NODE_LABEL),
        Registration("CSINode", ADD | UPDATE, migration_changed),
        Registration("CSIDriver", UPDATE, capacity_no_longer_counts),
        Registration("CSIStorageCapacity", ADD | UPDATE, capacity_grew),
    ),
    "VolumeZone": (
        Registration("StorageClass", ADD, class_waits_for_pods),
        Registration("Node", ADD | Action.UPDATE_NODE_LABEL),
        Registration("PersistentVolumeClaim", ADD | UPDATE, names_claim),
        Registration("PersistentVolume", ADD | UPDATE, volume_moved),
    ),
    "VolumeRestrictions": (
        Registration("Pod", DELETE, frees_disk_or_claim),
        Registration("Node", ADD),
        Registration("PersistentVolumeClaim", ADD, names_claim),
    ),
    "NodeVolumeLimits": (
        Registration("CSINode", ADD),
        Registration("CSINode", UPDATE, limit_grew),
        Registration("Pod", DELETE, detaches_volumes),
        Registration("PersistentVolumeClaim", ADD, uses_claim),
        Registration("VolumeAttachment", DELETE, attaches_like),
    ),
}
