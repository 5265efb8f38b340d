"""NodeVolumeLimits: how many volumes of a CSI driver a node can attach."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster import Cluster, Nodes
from podium.cluster.cluster import UpToDate
from podium.cluster.columns import Ints, Mask, highest, is_any
from podium.framework import Status
from podium.framework.events import Action, EventHint, WaitingPod, always
from podium.framework.plugin import CycleState, PreFilterPlugin
from podium.framework.status import PASSED, SKIPPED, PreFilterResult, Verdict
from podium.model import CSIDriver, CSINode, Pod, VolumeAttachment
from podium.model.pod import is_placed
from podium.plugins.storage.attached_volumes import AttachedVolumes, UncountableError
from podium.plugins.storage.claims import StorageFilter, uses_claim, uses_claims
from podium.plugins.storage.csi_translation import AttachedVolume, in_tree_plugin, inline_volume


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
