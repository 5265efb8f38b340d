"""VolumeBinding: rejects nodes where a claim gets no volume, and binds the claims on the chosen node."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from podium.cluster import Cluster, NodeInfo, Nodes
from podium.cluster.cluster import PerCluster
from podium.cluster.columns import Ints, is_any, rounded
from podium.config.plugin_args import VolumeBindingArgs
from podium.framework.events import Action, EventHint, WaitingPod
from podium.framework.plugin import (
    CycleState,
    PreBindPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)
from podium.framework.status import PASSED, SKIP, SKIPPED, SUCCESS, PreFilterResult, Status, Verdict
from podium.model import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from podium.model.amounts import amount
from podium.model.objects import BOUND_BY_CONTROLLER, SELECTED_NODE, ObjectReference
from podium.model.resources import MEMORY
from podium.plugins.storage.claims import StorageFilter, is_bound_to, uses_claim, uses_claims
from podium.plugins.storage.csi_translation import MIGRATED_PLUGINS
from podium.plugins.storage.storage_capacities import volume_limit
from podium.plugins.storage.volume_capacity_score import CapacityScorer
from podium.plugins.storage.volume_search import FoundVolumes, PodClaims, Storage, find_volumes, volume_claims_of
from podium.rules import Rules

Stored = PersistentVolume | PersistentVolumeClaim


@dataclass(slots=True)
class _PodVolumes:
    """The state of one pod's volumes during one decision."""

    claims: PodClaims
    cluster: Cluster
    found: FoundVolumes | None = None
    assumed: list[tuple[Stored, Stored]] = field(default_factory=list)
    """Objects before and after Reserve changed them."""


class VolumeBinding(PreFilterPlugin, StorageFilter, PreScorePlugin, ScorePlugin, ReservePlugin, PreBindPlugin):
    """Reject nodes where a claim's volume cannot be used, found or provisioned; reserve volumes on the chosen node."""

    name = "VolumeBinding"
    title = "Volume"

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        shape = args.shape if isinstance(args, VolumeBindingArgs) else None
        self._scorer = CapacityScorer(shape) if shape else None
        self._storage = PerCluster(Storage)

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        points = super().points(rules)
        return points if rules.volume_binding_skips_score else points - {"preScore"}

    @property
    def needs(self) -> Set[tuple[str, str]]:
        scores = ("preScore", "score") if self._scorer is not None else ()
        return frozenset((point, "preFilter") for point in ("filter", *scores, "reserve"))

    @property
    def scores_other_pods(self) -> bool:
        return self._scorer is not None or not self.release_rules.volume_binding_skips_score

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        if not uses_claims(pod):
            return SKIPPED
        claims = volume_claims_of(pod, nodes.cluster.store)
        if isinstance(claims, Status):
            return PreFilterResult(claims)
        state[self.name] = _PodVolumes(claims, nodes.cluster)
        return PASSED

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        volumes: _PodVolumes = state[self.name]
        if volumes.found is None:
            volumes.found = find_volumes(volumes.claims, nodes.cluster, self._storage.of(nodes.cluster))
        codes = nodes.take(volumes.found.codes)
        return Verdict(codes, volumes.found.describe) if is_any(codes != 0) else Verdict.accept(nodes)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        return SKIP if self._scorer is None else SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        volumes: _PodVolumes | None = state.get(self.name)
        found = None if volumes is None else volumes.found
        # Bound claims have no score, and most pods have no others.
        if self._scorer is None or found is None or not (found.to_match or found.to_provision):
            return np.zeros(len(nodes), dtype=np.int64)
        cluster, provisions = nodes.cluster, self.release_rules.scores_storage_capacity
        return nodes.take(self._scorer.score(found, cluster, self._storage.of(cluster), provisions=provisions))

    def score_lines(self, state: CycleState, pod: Pod, node: NodeInfo) -> Sequence[str]:
        volumes: _PodVolumes | None = state.get(self.name)
        found = None if volumes is None else volumes.found
        if self._scorer is None or found is None or not (found.to_match or found.to_provision):
            return ["no claim waits for its volume: 0"]
        storage, provisions = self._storage.of(node.cluster), self.release_rules.scores_storage_capacity
        parts = self._scorer.parts_on(node.row, found, node.cluster, storage, provisions=provisions)
        lines = [
            f"{name or 'no class'}: {amount(MEMORY, asked)} of {amount(MEMORY, there)}: {score}"
            for name, asked, there, score in parts
        ]
        mean = rounded(sum(score for *_, score in parts) / max(len(parts), 1))
        return [*lines, f"the mean of the classes: {mean}" if parts else "nothing is known of the capacity: 0"]

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Make the pod's choice visible to the next pod: volumes reserved for its claims, a node chosen for the
        others.
        """
        volumes: _PodVolumes | None = state.get(self.name)
        if volumes is None or volumes.found is None or not volumes.claims.waiting:
            return SUCCESS
        cluster, row = volumes.cluster, volumes.cluster.rows[node_name]
        for claim, candidate in volumes.found.bindings_on(row, self._storage.of(cluster).volumes):
            self._assume(volumes, candidate.volume, _reserved_for(claim, candidate.volume))
        for claim in volumes.found.provisions_on(row):
            annotations = {**claim.metadata.annotations, SELECTED_NODE: node_name}
            self._assume(volumes, claim, replace(claim, metadata=replace(claim.metadata, annotations=annotations)))
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        volumes: _PodVolumes | None = state.get(self.name)
        if volumes is None:
            return
        store = volumes.cluster.store
        while volumes.assumed:
            before, after = volumes.assumed.pop()
            # A later change of the object by somebody else stays.
            if store.of(type(after)).get(after.name, after.namespace) is after:
                volumes.cluster.update(before)

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Nothing to do: Reserve's changes are in the cluster already, and controllers do the rest."""
        return SUCCESS

    @classmethod
    def reserved(cls, state: CycleState) -> list[tuple[Stored, Stored]]:
        """The objects that Reserve changed for a pod, each before and after."""
        volumes: _PodVolumes | None = state.get(cls.name)
        return [] if volumes is None else list(volumes.assumed)

    @staticmethod
    def _assume(volumes: _PodVolumes, before: Stored, after: Stored) -> None:
        if after != before:
            volumes.cluster.update(after)
            volumes.assumed.append((before, after))

    def events_to_register(self) -> Sequence[EventHint]:
        of_drivers = Action.UPDATE
        if not self.release_rules.node_updates_name_their_part:
            of_drivers |= Action.ADD
        return (
            EventHint("StorageClass", Action.ADD | Action.UPDATE, self.topologies_changed),
            EventHint("PersistentVolumeClaim", Action.ADD | Action.UPDATE, uses_claim),
            EventHint("PersistentVolume", Action.ADD | Action.UPDATE),
            EventHint("Node", Action.ADD | Action.UPDATE_NODE_LABEL),
            EventHint("CSINode", Action.ADD | Action.UPDATE, self.migration_changed),
            EventHint("CSIDriver", of_drivers, self.capacity_no_longer_counts),
            EventHint("CSIStorageCapacity", Action.ADD | Action.UPDATE, self.capacity_grew),
        )

    def topologies_changed(self, waiting: WaitingPod, old: StorageClass | None, new: StorageClass) -> bool:
        """Whether the storage class is new or allows other topologies than before."""
        return old is None or old.allowed_topologies != new.allowed_topologies

    def migration_changed(self, waiting: WaitingPod, old: CSINode | None, new: CSINode) -> bool:
        """Whether the CSINode is new, or other in-tree volumes are migrated to CSI there."""
        if old is None:
            return True
        return old.metadata.annotations.get(MIGRATED_PLUGINS) != new.metadata.annotations.get(MIGRATED_PLUGINS)

    def capacity_no_longer_counts(self, waiting: WaitingPod, old: CSIDriver, new: CSIDriver) -> bool:
        """Whether a driver of the waiting pod's inline volumes stopped reporting capacity."""
        if not old.spec.storage_capacity or new.spec.storage_capacity:
            return False
        return any(v.csi is not None and v.csi.driver == new.name for v in waiting.pod.spec.volumes)

    def capacity_grew(self, waiting: WaitingPod, old: CSIStorageCapacity | None, new: CSIStorageCapacity) -> bool:
        """Whether larger volumes can be provisioned than before."""
        if old is None:
            return True
        before, after = volume_limit(old), volume_limit(new)
        return after is not None and (before is None or after > before)


def _reserved_for(claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolume:
    """The volume with a reference to the claim; marked as bound by the scheduler unless it was reserved before."""
    metadata = volume.metadata
    if not is_bound_to(volume, claim) and BOUND_BY_CONTROLLER not in metadata.annotations:
        metadata = replace(metadata, annotations={**metadata.annotations, BOUND_BY_CONTROLLER: "yes"})
    reference = ObjectReference(namespace=claim.namespace, name=claim.name, uid=claim.metadata.uid)
    return replace(volume, metadata=metadata, spec=replace(volume.spec, claim_ref=reference))
