"""NodeVolumeLimits: how many volumes a node's CSI drivers can attach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from podium.cluster import Cluster, Nodes, PodInfo
from podium.cluster.columns import Ints, Mask
from podium.framework.events import Action, EventHint, WaitingPod, is_placed
from podium.framework.fast_paths import ForSomePods
from podium.framework.plugin import CycleState, FilterPlugin, PreFilterPlugin, PreFilterResult
from podium.framework.status import SKIP, Status, Verdict
from podium.model import CSIDriver, CSINode, Pod, VolumeAttachment
from podium.plugins.per_cluster import PerCluster
from podium.plugins.storage.attached_volumes import AttachedVolumes, UncountableError
from podium.plugins.storage.claims import uses_claim, uses_claims
from podium.plugins.storage.csi_migration import AttachedVolume, in_tree_plugin, inline_volume

SKIPPED = PreFilterResult(SKIP)
PASSED = PreFilterResult()


class NodeVolumeLimits(ForSomePods, PreFilterPlugin, FilterPlugin):
    """Reject nodes whose CSINode leaves no room for the pod's volumes; a volume in use there already costs nothing."""

    name = "NodeVolumeLimits"
    REASON = "node(s) exceed max volume count"

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._attached = PerCluster(AttachedVolumes)

    def concerns(self, info: PodInfo, cluster: Cluster) -> bool:
        return bool(info.pod.spec.volumes)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        counts = uses_claims(pod) or any(in_tree_plugin(volume) for volume in pod.spec.volumes)
        return PASSED if counts else SKIPPED

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        attached, store = self._attached.of(nodes.cluster), nodes.cluster.store
        attached.catch_up(nodes.cluster)
        statuses = [Status.unschedulable(self.REASON)]
        codes = np.zeros(len(attached.limited), dtype=np.int64)
        for migrated, rows in attached.migrations():
            try:
                volumes = attached.of_pod(pod, store, is_new=True, migrated=migrated)
            except UncountableError as error:
                statuses.append(error.status)
                codes[rows] = len(statuses)
            else:
                codes[rows] = self._judge(volumes, attached, statuses)[rows]
                if self.release_rules.limits_need_csi_driver:
                    self._require_drivers(volumes, rows, nodes.cluster, codes, statuses)
        return Verdict.choose(nodes.take(codes), tuple(statuses))

    def _require_drivers(
        self, volumes: tuple[AttachedVolume, ...], rows: Mask, cluster: Cluster, codes: Ints, statuses: list[Status]
    ) -> None:
        """Reject the rows that lack a driver which says that pods must not go where it is missing."""
        drivers, installed = cluster.store.of(CSIDriver), cluster.store.of(CSINode)
        # Of several missing drivers that of the first volume is named; upstream it is chance which.
        for name in reversed(dict.fromkeys(volume.driver for volume in volumes)):
            driver = drivers.get(name)
            if driver is None or not driver.spec.prevent_pod_scheduling_if_missing:
                continue
            statuses.append(Status.unschedulable(f"{name} CSI driver is not installed on the node"))
            for row in np.flatnonzero(rows).tolist():
                node = installed.get(cluster.names[row])
                if node is None or all(each.name != name for each in node.spec.drivers):
                    codes[row] = len(statuses)

    def _judge(self, volumes: tuple[AttachedVolume, ...], attached: AttachedVolumes, statuses: list[Status]) -> Ints:
        """A code per row: 0 if the new volumes can be attached, otherwise a place in `statuses`, counted from 1."""
        codes = np.zeros(len(attached.limited), dtype=np.int64)
        for driver, count in Counter(volume.driver for volume in volumes).items():
            limits = attached.limits(driver)
            if limits is not None:
                over = attached.attached(driver) > limits - count
                users = [rows for volume in volumes if volume.driver == driver and (rows := attached.rows_with(volume))]
                if users:
                    new = np.full(len(codes), count)
                    for rows in users:
                        new[list(rows)] -= 1
                    # Where nothing is new the limit does not matter, not even one that is exceeded.
                    over = (new > 0) & (attached.attached(driver) > limits - new)
                codes[over] = 1
        if volumes:
            for row, status in attached.uncountable.items():
                if attached.limited[row]:
                    statuses.append(status)
                    codes[row] = len(statuses)
        return codes

    def events_to_register(self) -> Sequence[EventHint]:
        return (
            EventHint("CSINode", Action.ADD),
            EventHint("CSINode", Action.UPDATE, self.limit_grew),
            EventHint("Pod", Action.DELETE, self.detaches_volumes),
            EventHint("PersistentVolumeClaim", Action.ADD, uses_claim),
            EventHint("VolumeAttachment", Action.DELETE, self.attaches_like),
        )

    def limit_grew(self, waiting: WaitingPod, old: CSINode, new: CSINode) -> bool:
        """Whether a driver of the node can attach more volumes than before."""
        before = _limits(old)
        return any(limit > before.get(driver, 0) for driver, limit in _limits(new).items())

    def detaches_volumes(self, waiting: WaitingPod, old: Pod, new: None) -> bool:
        """Whether the deleted pod had volumes attached to its node."""
        attaches = uses_claims(old) or any(in_tree_plugin(volume) is not None for volume in old.spec.volumes)
        return is_placed(old) and attaches

    def attaches_like(self, waiting: WaitingPod, old: VolumeAttachment, new: None) -> bool:
        """Whether the waiting pod may want to attach a volume with the driver that detached one."""
        for volume in waiting.pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                return True
            attached = inline_volume(volume) if in_tree_plugin(volume) is not None else None
            if attached is not None and attached.driver == old.spec.attacher:
                return True
        return False


def _limits(node: CSINode) -> dict[str, int]:
    """How many volumes each driver of a node can attach; 0 where it does not say."""
    return {d.name: (d.allocatable.count or 0) if d.allocatable else 0 for d in node.spec.drivers}
