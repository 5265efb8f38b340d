"""VolumeBinding: bound claims keep their pod near the volume, waiting ones are bound where the pod goes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from podium.cluster import Cluster, Nodes, PodInfo
from podium.cluster.columns import Ints
from podium.config.args import VolumeBindingArgs
from podium.framework.plugin import (
    CycleState,
    FilterPlugin,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)
from podium.framework.status import SKIP, SUCCESS, Status, Verdict
from podium.objects import PersistentVolume, PersistentVolumeClaim, Pod
from podium.objects.storage import ObjectReference
from podium.plugins.claims import BOUND_BY_CONTROLLER, SELECTED_NODE, is_bound_to, uses_claims
from podium.plugins.per_cluster import PerCluster
from podium.plugins.volume_binding_claims import PodClaims, claims_of
from podium.plugins.volume_binding_score import CapacityScorer
from podium.plugins.volume_binding_search import FoundVolumes, Storage, find_volumes
from podium.rules import Rules

SKIPPED = PreFilterResult(SKIP)

Stored = PersistentVolume | PersistentVolumeClaim


@dataclass(slots=True)
class _PodVolumes:
    """What is known of one pod's volumes in the course of one decision."""

    claims: PodClaims
    cluster: Cluster
    found: FoundVolumes | None = None
    assumed: list[tuple[Stored, Stored]] = field(default_factory=list)
    """Objects before and after Reserve changed them."""


class VolumeBinding(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, ReservePlugin, PreBindPlugin):
    """Reject nodes where a claim's volume cannot be used, found or provisioned; reserve volumes where the pod goes."""

    name = "VolumeBinding"

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        shape = args.shape if isinstance(args, VolumeBindingArgs) else None
        self._scorer = CapacityScorer(shape) if shape else None
        self._storage = PerCluster(Storage)

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        points = super().points(rules)
        return points if rules.volume_binding_skips_score else points - {"preScore"}

    def concerns(self, info: PodInfo, cluster: Cluster) -> bool:
        # Where capacity counts, a pod without volumes gets scores as well.
        scores = self._scorer is not None or not self.release_rules.volume_binding_skips_score
        return bool(info.pod.spec.volumes) or scores

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        if not uses_claims(pod):
            return SKIPPED
        claims = claims_of(pod, nodes.cluster.store)
        if isinstance(claims, Status):
            return PreFilterResult(claims)
        state[self.name] = _PodVolumes(claims, nodes.cluster)
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        volumes: _PodVolumes = state[self.name]
        if volumes.found is None:
            volumes.found = find_volumes(volumes.claims, nodes.cluster, self._storage.of(nodes.cluster))
        return Verdict(nodes.take(volumes.found.codes), volumes.found.describe)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        return SKIP if self._scorer is None else SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        volumes: _PodVolumes | None = state.get(self.name)
        if self._scorer is None or volumes is None or volumes.found is None:
            return np.zeros(len(nodes), dtype=np.int64)
        return nodes.take(self._scorer.score(volumes.found, nodes.cluster, self._storage.of(nodes.cluster)))

    # -- reserving -------------------------------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Let the next pod see what this one takes: volumes reserved for its claims, a node chosen for the others."""
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
            # Whoever changed the object since knows better.
            if store.of(type(after)).get(after.name, after.namespace) is after:
                volumes.cluster.update(before)

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Nothing to do: what Reserve changed is in the cluster already, and the rest is the controllers' work."""
        return SUCCESS

    @staticmethod
    def _assume(volumes: _PodVolumes, before: Stored, after: Stored) -> None:
        if after != before:
            volumes.cluster.update(after)
            volumes.assumed.append((before, after))


def _reserved_for(claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolume:
    """The volume with a reference to the claim; marked as the scheduler's doing unless it was reserved before."""
    metadata = volume.metadata
    if not is_bound_to(volume, claim) and BOUND_BY_CONTROLLER not in metadata.annotations:
        metadata = replace(metadata, annotations={**metadata.annotations, BOUND_BY_CONTROLLER: "yes"})
    reference = ObjectReference(namespace=claim.namespace, name=claim.name, uid=claim.metadata.uid)
    return replace(volume, metadata=metadata, spec=replace(volume.spec, claim_ref=reference))
