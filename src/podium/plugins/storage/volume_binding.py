"""VolumeBinding: a pod goes where its bound volumes can be used; waiting claims are bound where the pod goes."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from podium.cluster import Cluster, Nodes
from podium.cluster.cluster import PerCluster
from podium.cluster.columns import Ints, Mask, is_any, round_half_away
from podium.config.plugin_args import UtilizationShapePoint, VolumeBindingArgs, value_on_shape
from podium.framework.plugin import (
    CycleState,
    PreBindPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)
from podium.framework.status import PASSED, SKIP, SKIPPED, SUCCESS, PreFilterResult, Status, Verdict
from podium.framework.suggested_change import Action, EventHint, WaitingPod
from podium.model import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from podium.model.objects import ObjectReference, storage_class_of
from podium.model.quantity import value
from podium.plugins.storage._volume_binding_search import (
    UNMATCHED,
    FoundVolumes,
    PodClaims,
    Storage,
    checked_size,
    find_volumes,
    volume_claims_of,
)
from podium.plugins.storage.claims import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    STORAGE,
    StorageFilter,
    is_bound_to,
    uses_claim,
    uses_claims,
    volume_limit,
)
from podium.plugins.storage.csi_migration import MIGRATED_PLUGINS
from podium.rules import Rules

MAX_UTILIZATION = 100


class CapacityScorer:
    """A compiled shape: the score at each utilization of 0..100 percent."""

    def __init__(self, shape: Sequence[UtilizationShapePoint]) -> None:
        self._curve: Ints = np.array([value_on_shape(shape, at) for at in range(MAX_UTILIZATION + 1)], dtype=np.int64)

    def score(self, found: FoundVolumes, cluster: Cluster, storage: Storage, *, provisions: bool = True) -> Ints:
        """The mean score over storage classes, per row: of matched volumes, or with `provisions` of volumes to
        provision.
        """
        if not found.to_match and not found.to_provision:
            return np.zeros(cluster.columns.size, dtype=np.int64)  # all claims are bound
        score = self._mean(_matched_amounts(found, storage, cluster.columns.size), cluster.columns.size)
        has_match = np.zeros(cluster.columns.size, dtype=np.bool_)
        for serials in found.matched:
            has_match |= serials != UNMATCHED
        if has_match.all() or not provisions:
            return score
        return np.where(has_match, score, self._mean(_provisioned_amounts(found, cluster, storage), len(score)))

    def parts_on(
        self, row: int, found: FoundVolumes, cluster: Cluster, storage: Storage, *, provisions: bool
    ) -> list[tuple[str, int, int, int]]:
        """Per storage class that counts on a row: requested bytes, available bytes, and the score."""
        has_match = any(serials[row] != UNMATCHED for serials in found.matched)
        amounts = _matched_amounts(found, storage, cluster.columns.size)
        if not has_match:
            amounts = _provisioned_amounts(found, cluster, storage) if provisions else {}
        return [
            (name, int(requested[row]), int(capacity[row]), int(self._scores(requested, capacity)[row]))
            for name, (counted, requested, capacity) in amounts.items()
            if counted[row]
        ]

    def _scores(self, requested: Ints, capacity: Ints) -> Ints:
        fits = (capacity != 0) & (requested <= capacity)
        percent = np.where(fits, requested * MAX_UTILIZATION // np.maximum(capacity, 1), MAX_UTILIZATION)
        return np.take(self._curve, percent, mode="clip")

    def _mean(self, amounts: dict[str, tuple[Mask, Ints, Ints]], size: int) -> Ints:
        total, classes = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        if not amounts:
            return total
        for counted, requested, capacity in amounts.values():
            total += np.where(counted, self._scores(requested, capacity), 0)
            classes += counted
        return round_half_away(total / np.maximum(classes, 1))


def _matched_amounts(found: FoundVolumes, storage: Storage, size: int) -> dict[str, tuple[Mask, Ints, Ints]]:
    """Per class: the rows with matched volumes, the requested bytes there, and the size of the volumes in bytes."""
    amounts: dict[str, tuple[Mask, Ints, Ints]] = {}
    for claim, serials in zip(found.to_match, found.matched, strict=True):
        if claim.spec.storage_class_name is None:
            continue  # named by an annotation, if at all, for which v1.37 would crash
        here = serials != UNMATCHED
        sizes = {
            int(serial): value(storage.volumes.by_serial[int(serial)].volume.spec.capacity.get(STORAGE, 0))
            for serial in np.unique(serials[here])
        }
        given = np.array([sizes.get(int(serial), 0) for serial in serials], dtype=np.int64)
        counted, requested, capacity = _of_class(amounts, storage_class_of(claim), size)
        counted |= here
        requested += np.where(here, _requested(claim), 0)
        capacity += given
    return amounts


def _provisioned_amounts(found: FoundVolumes, cluster: Cluster, storage: Storage) -> dict[str, tuple[Mask, Ints, Ints]]:
    """Per class: the rows where a known capacity would be used, the requested bytes, and the available bytes."""
    amounts: dict[str, tuple[Mask, Ints, Ints]] = {}
    needed = [(claim, np.ones(cluster.columns.size, dtype=np.bool_)) for claim in found.to_provision]
    needed += [(c, serials == UNMATCHED) for c, serials in zip(found.to_match, found.matched, strict=True)]
    for claim, rows in needed:
        storage_class = cluster.store.of(StorageClass).get(storage_class_of(claim))
        size = None if storage_class is None else checked_size(claim, storage_class, cluster.store)
        if storage_class is None or size is None or claim.spec.storage_class_name is None:
            continue
        available = storage.capacities.chosen(storage_class.name, size, cluster)
        here = rows & (available >= 0)
        counted, requested, capacity = _of_class(amounts, storage_class.name, cluster.columns.size)
        counted |= here
        requested += np.where(here, size, 0)
        # Claims of a class share its capacity: it does not grow with their number.
        capacity[here] = available[here]
    return amounts


def _of_class(amounts: dict[str, tuple[Mask, Ints, Ints]], storage_class: str, size: int) -> tuple[Mask, Ints, Ints]:
    nothing = np.zeros(size, dtype=np.int64)
    return amounts.setdefault(storage_class, (np.zeros(size, dtype=np.bool_), nothing, nothing.copy()))


def _requested(claim: PersistentVolumeClaim) -> int:
    return value(claim.spec.resources.requests.get(STORAGE, 0))


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

    def score_parts(self, state: CycleState, cluster: Cluster, row: int) -> list[tuple[str, int, int, int]]:
        """The parts whose mean is the score of a row: per storage class, requested bytes, available bytes, and
        the score.
        """
        volumes: _PodVolumes | None = state.get(self.name)
        if self._scorer is None or volumes is None or volumes.found is None:
            return []
        provisions = self.release_rules.scores_storage_capacity
        return self._scorer.parts_on(row, volumes.found, cluster, self._storage.of(cluster), provisions=provisions)

    # -- reserving -------------------------------------------------------------------------------------------------

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
