"""Limits of volumes per node: NodeVolumeLimits by CSI driver, EBSLimits and the like for in-tree disks."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from podium.cluster import Cluster, NodeInfo, Nodes
from podium.cluster.cluster import UpToDate
from podium.cluster.columns import Ints, Mask, highest, is_any
from podium.cluster.store import Store
from podium.framework.plugin import CycleState, FilterPlugin, PreFilterPlugin
from podium.framework.status import PASSED, SKIPPED, SUCCESS, PreFilterResult, Status, Verdict
from podium.framework.suggested_change import Action, EventHint, WaitingPod, always, is_placed
from podium.model import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    VolumeAttachment,
)
from podium.model.objects import PersistentVolumeSpec
from podium.model.pod import Volume
from podium.model.resources import ATTACHABLE_VOLUMES
from podium.plugins.storage._attached_volumes import AttachedVolumes, UncountableError
from podium.plugins.storage.claims import (
    ForPodsWithVolumes,
    StorageFilter,
    claim_name,
    claim_not_found,
    not_owned,
    uses_claim,
    uses_claims,
)
from podium.plugins.storage.csi_migration import AttachedVolume, in_tree_plugin, inline_volume
from podium.rules import Rules


class NodeVolumeLimits(PreFilterPlugin, StorageFilter):
    """Reject nodes whose CSINode leaves no room for the pod's volumes; volumes in use on the node do not count
    again.
    """

    name = "NodeVolumeLimits"
    REASON = "node(s) exceed max volume count"

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._attached = UpToDate(AttachedVolumes)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        counts = uses_claims(pod) or any(in_tree_plugin(volume) for volume in pod.spec.volumes)
        return PASSED if counts else SKIPPED

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        cluster, attached = nodes.cluster, self._attached.of(nodes.cluster)
        statuses = [Status.unschedulable(self.REASON)]
        codes = np.zeros(len(attached.limited), dtype=np.int64)
        for migrated, rows in attached.migrations():
            try:
                volumes = attached.of_pod(pod, cluster.store, is_new=True, migrated=migrated)
            except UncountableError as error:
                statuses.append(error.status)
                codes[rows] = len(statuses)
            else:
                self._judge(volumes, rows, attached, codes, statuses)
                if self.release_rules.limits_need_csi_driver and cluster.store.has_any(CSIDriver):
                    self._require_drivers(volumes, rows, cluster, codes, statuses)
        return Verdict.choose(nodes.take(codes), tuple(statuses)) if highest(codes) else Verdict.accept(nodes)

    def _require_drivers(
        self, volumes: tuple[AttachedVolume, ...], rows: Mask, cluster: Cluster, codes: Ints, statuses: list[Status]
    ) -> None:
        """Reject the rows that lack a driver which asks that pods avoid nodes without it."""
        drivers, installed = cluster.store.of(CSIDriver), cluster.store.of(CSINode)
        # If several drivers are missing, that of the first volume is named; upstream the choice is random.
        for name in reversed(dict.fromkeys(volume.driver for volume in volumes)):
            driver = drivers.get(name)
            if driver is None or not driver.spec.prevent_pod_scheduling_if_missing:
                continue
            statuses.append(Status.unschedulable(f"{name} CSI driver is not installed on the node"))
            for row in np.flatnonzero(rows).tolist():
                node = installed.get(cluster.names[row])
                if node is None or all(each.name != name for each in node.spec.drivers):
                    codes[row] = len(statuses)

    def _judge(
        self,
        volumes: tuple[AttachedVolume, ...],
        rows: Mask,
        attached: AttachedVolumes,
        codes: Ints,
        statuses: list[Status],
    ) -> None:
        """Reject the rows where the new volumes cannot be attached: write an index in `statuses`, counted from 1."""
        for driver in dict.fromkeys([volume.driver for volume in volumes]):
            limits = attached.limits(driver)
            if limits is None:
                continue
            wanted = [volume for volume in volumes if volume.driver == driver]
            over = attached.attached(driver) > limits - len(wanted)
            users = [using for using in map(attached.rows_with, wanted) if using]
            if users:
                new = np.full(len(codes), len(wanted))
                for using in users:
                    new[list(using)] -= 1
                # Without new volumes the limit does not matter, even if it is exceeded.
                over = (new > 0) & (attached.attached(driver) > limits - new)
            if is_any(over):
                codes[over & rows] = 1
        for row, status in attached.uncountable.items() if volumes else ():
            if attached.limited[row] and rows[row]:
                statuses.append(status)
                codes[row] = len(statuses)

    def events_to_register(self) -> Sequence[EventHint]:
        rules = self.release_rules
        events = [EventHint("CSINode", Action.ADD), EventHint("Pod", Action.DELETE, self.detaches_volumes)]
        if rules.volume_limits_may_grow:
            events.append(EventHint("CSINode", Action.UPDATE, self.limit_grew))
        if rules.missing_claim_is_unresolvable:
            events.append(EventHint("PersistentVolumeClaim", Action.ADD, uses_claim))
        if rules.counts_volume_attachments:
            hint = self.attaches_like if rules.volume_limits_may_grow else always
            events.append(EventHint("VolumeAttachment", Action.DELETE, hint))
        return events

    def limit_grew(self, waiting: WaitingPod, old: CSINode, new: CSINode) -> bool:
        """Whether a driver of the node can attach more volumes than before."""
        before = _limits(old)
        return any(limit > before.get(driver, 0) for driver, limit in _limits(new).items())

    def detaches_volumes(self, waiting: WaitingPod, old: Pod, new: None) -> bool:
        """Whether the deleted pod had volumes attached to its node."""
        attaches = uses_claims(old) or any(in_tree_plugin(volume) is not None for volume in old.spec.volumes)
        return is_placed(old) and attaches

    def attaches_like(self, waiting: WaitingPod, old: VolumeAttachment, new: None) -> bool:
        """Whether the waiting pod may need to attach a volume with the driver of the deleted VolumeAttachment."""
        for volume in waiting.pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                return True
            attached = inline_volume(volume) if in_tree_plugin(volume) is not None else None
            if attached is not None and attached.driver == old.spec.attacher:
                return True
        return False


def _limits(node: CSINode) -> dict[str, int]:
    """The limit of each driver of a node; 0 if it has none."""
    return {d.name: (d.allocatable.count or 0) if d.allocatable else 0 for d in node.spec.drivers}


NITRO, NITRO_LIMIT = re.compile(r"^[cmr]5.*|t3|z1d"), 25
INSTANCE_TYPE, STABLE_INSTANCE_TYPE = "beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"


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
