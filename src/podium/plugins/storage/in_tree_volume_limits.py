"""EBSLimits, GCEPDLimits, AzureDiskLimits and CinderLimits: how many in-tree disks of one kind a node can attach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from podium.cluster import NodeInfo, Nodes
from podium.cluster.store import Store
from podium.framework import Status
from podium.framework.events import Action, EventHint
from podium.framework.plugin import CycleState, FilterPlugin, PreFilterPlugin
from podium.framework.status import PASSED, SKIPPED, SUCCESS, PreFilterResult
from podium.model import CSINode, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from podium.model.objects import PersistentVolumeSpec
from podium.model.pod import Volume, claim_name
from podium.model.resources import ATTACHABLE_VOLUMES
from podium.plugins.storage.attached_volumes import INSTANCE_TYPE, NITRO, NITRO_LIMIT, STABLE_INSTANCE_TYPE
from podium.plugins.storage.claims import ForPodsWithVolumes, claim_not_found, not_owned
from podium.rules import Rules


class Disk(NamedTuple):
    """A kind of in-tree disk: how to recognise it, and how many a node takes by default."""

    provisioner: str
    limit_key: str
    limit: int
    identify: Callable[[Volume | PersistentVolumeSpec], str | None]


def _ebs(source: Volume | PersistentVolumeSpec) -> str | None:
    return source.aws_elastic_block_store.volume_id if source.aws_elastic_block_store else None


def _gce(source: Volume | PersistentVolumeSpec) -> str | None:
    return source.gce_persistent_disk.pd_name if source.gce_persistent_disk else None


def _azure(source: Volume | PersistentVolumeSpec) -> str | None:
    return source.azure_disk.disk_name if source.azure_disk else None


def _cinder(source: Volume | PersistentVolumeSpec) -> str | None:
    return source.cinder.volume_id if source.cinder else None


EBS = Disk("kubernetes.io/aws-ebs", f"{ATTACHABLE_VOLUMES}aws-ebs", 39, _ebs)
GCE_PD = Disk("kubernetes.io/gce-pd", f"{ATTACHABLE_VOLUMES}gce-pd", 16, _gce)
AZURE_DISK = Disk("kubernetes.io/azure-disk", f"{ATTACHABLE_VOLUMES}azure-disk", 16, _azure)
CINDER = Disk("kubernetes.io/cinder", f"{ATTACHABLE_VOLUMES}cinder", 256, _cinder)


class InTreeVolumeLimits(ForPodsWithVolumes, PreFilterPlugin, FilterPlugin):
    """Reject nodes without a CSINode that would have too many disks of a kind.

    On nodes with a CSINode, the disks belong to a CSI driver, and NodeVolumeLimits counts them.
    """

    DISK: Disk
    REASON = "node(s) exceed max volume count"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return frozenset() if rules.refuses_in_tree_limits else super().points(rules)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        wanted = any(self.DISK.identify(v) is not None or claim_name(pod, v) is not None for v in pod.spec.volumes)
        return PASSED if wanted else SKIPPED

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        store = node.cluster.store
        wanted = self._disks(pod, store, is_new=True)
        if isinstance(wanted, Status):
            return wanted
        if not wanted or store.of(CSINode).get(node.name) is not None:
            return SUCCESS
        there: set[str] = set()
        for other in node.pods:
            found = self._disks(other, store, is_new=False)
            if isinstance(found, Status):
                return found
            there |= found
        return Status.unschedulable(self.REASON) if len(there | wanted) > self._limit(node) else SUCCESS

    def events_to_register(self) -> Sequence[EventHint]:
        events = (EventHint("Node", Action.ADD), EventHint("Pod", Action.DELETE))
        if not self.release_rules.missing_claim_is_unresolvable:
            return events
        return (*events, EventHint("PersistentVolumeClaim", Action.ADD))

    def _limit(self, node: NodeInfo) -> int:
        if self.DISK.limit_key in node.node.allocatable:
            return node.allocatable(self.DISK.limit_key)
        instance_type = node.labels.get(INSTANCE_TYPE, node.labels.get(STABLE_INSTANCE_TYPE, ""))
        return NITRO_LIMIT if self.DISK is EBS and NITRO.search(instance_type) else self.DISK.limit

    def _disks(self, pod: Pod, store: Store, *, is_new: bool) -> set[str] | Status:
        """The pod's disks of this kind, or the status if they cannot be counted; a missing claim matters for a new pod
        only.
        """
        found: set[str] = set()
        for volume in pod.spec.volumes:
            disk, name = self.DISK.identify(volume), claim_name(pod, volume)
            if disk is not None:
                found.add(disk)
            elif name is not None:
                claim = store.of(PersistentVolumeClaim).get(name, pod.namespace)
                problem = self._problem(pod, volume, name, claim, is_new=is_new)
                if problem is not None:
                    return problem
                behind = None if claim is None else self._behind(claim, store)
                found |= set() if behind is None else {behind}
        return found

    def _problem(
        self, pod: Pod, volume: Volume, name: str, claim: PersistentVolumeClaim | None, *, is_new: bool
    ) -> Status | None:
        if not name:
            return Status.error("PersistentVolumeClaim had no name")
        if claim is None:
            message = f"looking up PVC {pod.namespace}/{name}: {claim_not_found(name)}"
            gives_up = Status.unresolvable if self.release_rules.missing_claim_is_unresolvable else Status.error
            return gives_up(message) if is_new else None
        is_ephemeral = volume.persistent_volume_claim is None
        problem = not_owned(claim, pod) if is_ephemeral else ""
        return Status.error(problem) if problem else None

    def _behind(self, claim: PersistentVolumeClaim, store: Store) -> str | None:
        """The disk of a claim; if it is not known yet, the claim's class determines whether it counts."""
        volume = store.of(PersistentVolume).get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            return self.DISK.identify(volume.spec)
        storage_class = store.of(StorageClass).get(claim.spec.storage_class_name or "")
        is_kind = storage_class is not None and storage_class.provisioner == self.DISK.provisioner
        return f"claimed by {claim.key}" if is_kind else None


class EBSLimits(InTreeVolumeLimits):
    name, DISK = "EBSLimits", EBS


class GCEPDLimits(InTreeVolumeLimits):
    name, DISK = "GCEPDLimits", GCE_PD


class AzureDiskLimits(InTreeVolumeLimits):
    name, DISK = "AzureDiskLimits", AZURE_DISK


class CinderLimits(InTreeVolumeLimits):
    name, DISK = "CinderLimits", CINDER
