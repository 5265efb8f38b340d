"""VolumeZone: volumes that can be used only in their zone or region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from podium.cluster import Nodes
from podium.cluster.columns import Mask
from podium.cluster.store import Store
from podium.framework.events import Action, EventHint, WaitingPod
from podium.framework.plugin import CycleState, PreFilterPlugin
from podium.framework.status import PASSED, SKIPPED, PreFilterResult, Status, Verdict
from podium.model import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from podium.model.objects import BETA_REGION, BETA_ZONE, REGION, ZONE, storage_class_of
from podium.model.selectors import Requirement
from podium.plugins.storage.claims import (
    REASON_NO_CLASS_NAME,
    REASON_NO_VOLUME_NAME,
    WAIT_FOR_FIRST_CONSUMER,
    StorageFilter,
    claim_not_found,
    class_not_found,
    names_claim,
    volume_not_found,
)
from podium.plugins.storage.csi_translation import ZONE_DELIMITER

CURRENT_LABELS = {BETA_ZONE: ZONE, BETA_REGION: REGION, ZONE: ZONE, REGION: REGION}
"""Every zone or region label of a volume -> its current name."""


class Topology(NamedTuple):
    """The values that one topology label of a volume allows."""

    label: str
    values: frozenset[str]


class VolumeZone(PreFilterPlugin, StorageFilter):
    """Reject nodes outside the zones and regions of the pod's bound volumes; nodes without zone labels pass."""

    name = "VolumeZone"
    REASON = "node(s) had no available volume zone"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        topologies = _topologies(pod, nodes.cluster.store)
        if isinstance(topologies, Status):
            return PreFilterResult(topologies)
        if not topologies:
            return SKIPPED
        state[self.name] = topologies
        return PASSED

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        # The profile may leave out PreFilter.
        topologies: list[Topology] | Status = state.get(self.name) or _topologies(pod, nodes.cluster.store)
        if isinstance(topologies, Status):
            return Verdict.choose(np.ones(len(nodes), dtype=np.int64), (topologies,))
        labelled, matches = np.zeros(len(nodes), dtype=np.bool_), np.ones(len(nodes), dtype=np.bool_)
        for label in CURRENT_LABELS:
            labelled |= nodes.codes(label) >= 0
        for topology in topologies:
            matches &= _matching(topology, nodes)
        return Verdict.unresolvable(labelled & ~matches, self.REASON)

    def events_to_register(self) -> Sequence[EventHint]:
        changes = Action.UPDATE if self.release_rules.pod_updates_name_their_part else Action(0)
        return (
            EventHint("StorageClass", Action.ADD, self.waits_for_pods),
            EventHint("Node", Action.ADD | Action.UPDATE_NODE_LABEL),
            EventHint("PersistentVolumeClaim", Action.ADD | changes, names_claim),
            EventHint("PersistentVolume", Action.ADD | Action.UPDATE, self.volume_moved),
        )

    def waits_for_pods(self, waiting: WaitingPod, old: StorageClass | None, new: StorageClass) -> bool:
        """Whether the storage class waits for the first consumer."""
        return new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    def volume_moved(self, waiting: WaitingPod, old: PersistentVolume | None, new: PersistentVolume) -> bool:
        """Whether the volume is new or has other zone or region labels than before."""
        return old is None or any(old.metadata.labels.get(k) != new.metadata.labels.get(k) for k in CURRENT_LABELS)


def _topologies(pod: Pod, store: Store) -> list[Topology] | Status:
    """The topologies of all volumes of a pod's claims, or the status if a claim is not usable."""
    topologies: list[Topology] = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            found = topologies_of(volume.persistent_volume_claim.claim_name, pod.namespace, store)
            if isinstance(found, Status):
                return found
            topologies += found
    return topologies


def _matching(topology: Topology, nodes: Nodes) -> Mask:
    """Whether each node is where the volume is; a node that lacks an old label is matched by its current label."""
    here = nodes.satisfying(Requirement(topology.label, "In", topology.values))
    current = CURRENT_LABELS[topology.label]
    if current == topology.label:
        return here
    return here | ((nodes.codes(topology.label) < 0) & nodes.satisfying(Requirement(current, "In", topology.values)))


def topologies_of(claim_name: str, namespace: str, store: Store) -> list[Topology] | Status:
    """The topologies of the volume of a claim; none for a claim that waits for its first consumer."""
    if not claim_name:
        return Status.unresolvable("PersistentVolumeClaim had no name")
    claim = store.of(PersistentVolumeClaim).get(claim_name, namespace)
    if claim is None:
        return Status.unresolvable(claim_not_found(claim_name))
    if not claim.spec.volume_name:
        return _unbound(claim, store)
    volume = store.of(PersistentVolume).get(claim.spec.volume_name)
    if volume is None:
        return Status.unresolvable(volume_not_found(claim.spec.volume_name))
    return [
        Topology(label, zones)
        for label in CURRENT_LABELS
        if label in volume.metadata.labels and (zones := _zones(volume.metadata.labels[label]))
    ]


def _unbound(claim: PersistentVolumeClaim, store: Store) -> list[Topology] | Status:
    name = storage_class_of(claim)
    if not name:
        return Status.unresolvable(REASON_NO_CLASS_NAME)
    storage_class = store.of(StorageClass).get(name)
    if storage_class is None:
        return Status.unresolvable(class_not_found(name))
    if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
        return []
    return Status.unresolvable(REASON_NO_VOLUME_NAME)


def _zones(label: str) -> frozenset[str]:
    """The zones in a label value like `a__b`; none if one of them is empty, which makes the label invalid."""
    zones = frozenset(zone.strip() for zone in label.split(ZONE_DELIMITER))
    return frozenset() if "" in zones else zones
