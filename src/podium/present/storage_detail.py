"""Why storage rejected a node: the claim, volume and rule behind a plugin's message. Worked out when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.engine.decision import Decision
from podium.framework import Framework, Status
from podium.model import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, Volume
from podium.plugins.storage.attached_volumes import NO_LIMIT, AttachedVolumes, UncountableError
from podium.plugins.storage.claims import (
    claim_name,
    claim_not_found,
    class_not_found,
    class_of_claim,
    is_fully_bound,
    volume_not_found,
)
from podium.plugins.storage.csi_migration import DRIVERS, AttachedVolume
from podium.plugins.storage.node_volume_limits import NodeVolumeLimits
from podium.plugins.storage.volume_binding import VolumeBinding
from podium.plugins.storage.volume_binding_search import REASON_UNBOUND_IMMEDIATE
from podium.plugins.storage.volume_restrictions import READ_WRITE_ONCE_POD, Disk, VolumeRestrictions, disk_uses
from podium.plugins.storage.volume_zone import CURRENT_LABELS, Topology, VolumeZone, topologies_of
from podium.present.binding_detail import BindingDetail

_DISKS = {"gce": "GCE disk", "ebs": "EBS volume", "iscsi": "iSCSI target", "rbd": "Ceph image"}


def storage_details(cluster: Cluster, framework: Framework, pod: Pod, decision: Decision) -> dict[str, str]:
    """A sentence for each node that a storage plugin of the current release rejected, as far as there is more to say.

    The cluster must be as it was when the pod was decided.
    """
    found: dict[str, str] = {}
    detail = _StorageDetail(cluster, pod)
    for node, status in decision.rejected.items():
        rule = detail.rules.get(type(framework.plugins.get(status.plugin)))
        sentence = rule(node, status) if rule is not None else ""
        if sentence:
            found[node] = sentence
    return found


def claims_detail(cluster: Cluster, pod: Pod, decision: Decision) -> str:
    """A sentence about the claim that keeps the pod from every node, before any filter looks; empty if none does."""
    said = decision.pre_filter_message
    return next((sentence for tell, sentence in _unusable(pod, cluster) if said and tell in said), "")


class _StorageDetail:
    """One pod on one cluster; what several nodes need is worked out once."""

    def __init__(self, cluster: Cluster, pod: Pod) -> None:
        self._cluster, self._pod = cluster, pod
        self.rules: dict[type, Callable[[str, Status], str]] = {
            VolumeRestrictions: self._restrictions,
            NodeVolumeLimits: self._limits,
            VolumeBinding: self._bound_volumes,
            VolumeZone: self._zone,
        }

    @cached_property
    def _binding(self) -> BindingDetail:
        return BindingDetail(self._cluster, self._pod)

    def _bound_volumes(self, node: str, status: Status) -> str:
        return self._binding.on(node, status)

    # -- VolumeRestrictions ----------------------------------------------------------------------------------------

    def _restrictions(self, node: str, status: Status) -> str:
        if VolumeRestrictions.REASON_DISK in status.reasons:
            return self._shared_disk(node)
        return self._exclusive_claim if VolumeRestrictions.REASON_READ_WRITE_ONCE_POD in status.reasons else ""

    def _shared_disk(self, node: str) -> str:
        wanted = {use.disk: use.read_only for volume in self._pod.spec.volumes for use in disk_uses(volume)}
        for other in self._cluster.pods_on(self._cluster.rows[node]):
            for volume in other.spec.volumes:
                for disk, read_only in disk_uses(volume):
                    if disk in wanted and not (read_only and wanted[disk]):
                        return f"{_disk(disk)} {_use(disk, read_only)} by pod {other.key}"
        return ""

    @cached_property
    def _exclusive_claim(self) -> str:
        """The claim that only one pod may use, and the pod that does."""
        shelf, mine = self._cluster.store.of(PersistentVolumeClaim), set()
        for volume in self._pod.spec.volumes:
            name = volume.persistent_volume_claim.claim_name if volume.persistent_volume_claim is not None else ""
            claim = shelf.get(name, self._pod.namespace)
            if claim is not None and READ_WRITE_ONCE_POD in claim.spec.access_modes:
                mine.add(name)
        for other, node in self._cluster.placed():
            for volume in other.spec.volumes if other.namespace == self._pod.namespace else ():
                if volume.persistent_volume_claim is not None and volume.persistent_volume_claim.claim_name in mine:
                    name = volume.persistent_volume_claim.claim_name
                    return f"claim {name} with {READ_WRITE_ONCE_POD} is used by pod {other.key} on {node}"
        return ""

    # -- NodeVolumeLimits ------------------------------------------------------------------------------------------

    @cached_property
    def _attached(self) -> AttachedVolumes:
        attached = AttachedVolumes()
        attached.catch_up(self._cluster)
        return attached

    @cached_property
    def _volumes(self) -> dict[AttachedVolume, str]:
        """What the pod needs attached, and what each is called."""
        found: dict[AttachedVolume, str] = {}
        for volume in self._pod.spec.volumes:
            alone = replace(self._pod, spec=replace(self._pod.spec, volumes=[volume]))
            try:
                for one in self._attached.of_pod(alone, self._cluster.store, is_new=True, migrated=frozenset(DRIVERS)):
                    found.setdefault(one, self._called(volume, one))
            except UncountableError:
                return {}
        return found

    def _called(self, volume: Volume, attached: AttachedVolume) -> str:
        name = claim_name(self._pod, volume)
        if name is None:
            return attached.handle
        claim = self._cluster.store.of(PersistentVolumeClaim).get(name, self._pod.namespace)
        is_there = claim is not None and claim.spec.volume_name
        return f"claim {name}: {attached.handle}" if is_there else f"claim {name}, to be provisioned"

    def _limits(self, node: str, status: Status) -> str:
        row = self._cluster.rows[node]
        sentences = []
        for driver in dict.fromkeys(volume.driver for volume in self._volumes):
            limits = self._attached.limits(driver)
            limit = NO_LIMIT if limits is None else int(limits[row])
            used = int(self._attached.attached(driver)[row])
            new = [
                name
                for volume, name in self._volumes.items()
                if volume.driver == driver and row not in self._attached.rows_with(volume)
            ]
            if new and used + len(new) > limit:
                sentences.append(
                    f"driver {driver}: {used} of {limit} volumes in use, the pod adds {len(new)} ({'; '.join(new)})"
                )
        return "; ".join(sentences)

    # -- VolumeZone ------------------------------------------------------------------------------------------------

    def _zone(self, node: str, status: Status) -> str:
        labels = self._cluster.node(node).metadata.labels
        for claim, volume, topology in self._zones:
            current = CURRENT_LABELS[topology.label]
            here = labels.get(topology.label, labels.get(current))
            if here not in topology.values:
                what = current.rpartition("/")[2]
                allowed = ", ".join(sorted(topology.values))
                where = f"the node is in {here}" if here is not None else f"the node has no label {current}"
                return f"claim {claim} (volume {volume}) is in {what} {allowed}, {where}"
        return ""

    @cached_property
    def _zones(self) -> list[tuple[str, str, Topology]]:
        """Claims and their volumes, with each label that says where they are."""
        found, store = [], self._cluster.store
        for volume in self._pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                name = volume.persistent_volume_claim.claim_name
                claim = store.of(PersistentVolumeClaim).get(name, self._pod.namespace)
                topologies = topologies_of(name, self._pod.namespace, store)
                if claim is not None and not isinstance(topologies, Status):
                    found += [(name, claim.spec.volume_name, topology) for topology in topologies]
        return found


def _disk(disk: Disk) -> str:
    kind, *names = disk
    # A Ceph image goes by a monitor, its pool and its name.
    return f"{_DISKS[kind]} {'/'.join(names[1:] or names)}"


def _use(disk: Disk, read_only: bool) -> str:
    if disk[0] == "ebs":
        return "is used"
    return "is used, and this pod would write to it," if read_only else "is used read-write"


# -- claims that keep the pod from every node ----------------------------------------------------------------------


def _unusable(pod: Pod, cluster: Cluster) -> Iterator[tuple[str, str]]:
    """For each claim that is not ready: words by which a plugin tells of it, and what there is to say."""
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is None:
            continue
        claim = cluster.store.of(PersistentVolumeClaim).get(name, pod.namespace)
        if claim is None:
            sentence = f"Volume {volume.name} uses claim {name}, which is not there."
            yield claim_not_found(name), sentence
            yield f'create the persistentvolumeclaim "{name}"', sentence
        elif claim.spec.volume_name and cluster.store.of(PersistentVolume).get(claim.spec.volume_name) is None:
            sentence = f"Claim {name} is bound to volume {claim.spec.volume_name}, which is not there."
            yield volume_not_found(claim.spec.volume_name), sentence
        if claim is not None and not is_fully_bound(claim):
            for tell, why in _unbound(claim, cluster).items():
                yield tell, f"Claim {name} {why}."


def _unbound(claim: PersistentVolumeClaim, cluster: Cluster) -> Mapping[str, str]:
    """Words that tell of a claim that should be bound by now -> why it is not."""
    name = class_of_claim(claim)
    if claim.spec.volume_name:
        return {REASON_UNBOUND_IMMEDIATE: f"names volume {claim.spec.volume_name}, but is not bound to it yet"}
    if not name:
        why = "is not bound and has no storage class, so that nothing binds it with a pod"
        return {REASON_UNBOUND_IMMEDIATE: why, "had no pv name and storageClass name": why}
    storage_class = cluster.store.of(StorageClass).get(name)
    if storage_class is None:
        why = f"is not bound, and its class {name} is not there"
        return {REASON_UNBOUND_IMMEDIATE: why, class_not_found(name): why}
    if storage_class.volume_binding_mode == "Immediate":
        why = f"is not bound, and class {name} binds at once: it gets a volume before its pod gets a node"
        return {REASON_UNBOUND_IMMEDIATE: why, "PersistentVolume had no name": why}
    return {}
