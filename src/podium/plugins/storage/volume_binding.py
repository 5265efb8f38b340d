"""VolumeBinding: a pod goes where its bound volumes can be used; waiting claims are bound where the pod goes."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from podium.cluster import Cluster, Nodes
from podium.cluster.cluster import PerCluster
from podium.cluster.columns import Ints, Mask, is_any, round_half_away
from podium.cluster.store import Store
from podium.config.plugin_args import UtilizationShapePoint, VolumeBindingArgs, value_on_shape
from podium.framework.plugin import (
    Action,
    CycleState,
    EventHint,
    PreBindPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
    WaitingPod,
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
    Volume,
)
from podium.model.objects import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    ObjectReference,
    TopologySelectorTerm,
    VolumeNodeAffinity,
    storage_class_of,
)
from podium.model.pod import claim_name
from podium.model.quantity import value
from podium.model.selectors import NodeMatcher, Requirement
from podium.plugins.storage.claims import (
    MIGRATED_PLUGINS,
    NO_PROVISIONER,
    PORTWORX,
    REASON_UNBOUND_IMMEDIATE,
    STORAGE,
    BindableVolume,
    BindableVolumes,
    StorageCapacities,
    StorageFilter,
    TranslationError,
    claim_not_found,
    claim_size,
    ephemeral_claim_not_found,
    in_tree_plugin,
    is_bound_to,
    is_fully_bound,
    migrated_plugins,
    not_owned,
    translate_affinity,
    uses_claim,
    uses_claims,
    volume_affinity_terms,
    volume_limit,
    waits_for_consumer,
)
from podium.rules import Rules

# -- the search --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PodClaims:
    """A pod's claims in the order of its volumes; a claim used twice is listed twice."""

    bound: list[PersistentVolumeClaim] = field(default_factory=list)
    waiting: list[PersistentVolumeClaim] = field(default_factory=list)
    """Unbound claims that wait for their first consumer."""


def volume_claims_of(pod: Pod, store: Store) -> PodClaims | Status:
    """The pod's claims, or the status if it cannot go to any node yet."""
    claims = []
    for volume in pod.spec.volumes:
        found = _usable_claim(pod, volume, store)
        if isinstance(found, Status):
            return found
        if found is not None:
            claims.append(found)
    sorted_claims = PodClaims()
    for claim in claims:
        if is_fully_bound(claim):
            sorted_claims.bound.append(claim)
        elif not claim.spec.volume_name and waits_for_consumer(claim, store):
            sorted_claims.waiting.append(claim)
        else:
            # The volume controller has not bound it yet, but will.
            return Status.unresolvable(REASON_UNBOUND_IMMEDIATE)
    return sorted_claims


def _usable_claim(pod: Pod, volume: Volume, store: Store) -> PersistentVolumeClaim | Status | None:
    """The claim of a volume; None for a volume without a claim, a status if the claim cannot be used."""
    name = claim_name(pod, volume)
    if name is None:
        return None
    is_ephemeral = volume.persistent_volume_claim is None
    claim = store.of(PersistentVolumeClaim).get(name, pod.namespace)
    if claim is None:
        if is_ephemeral:
            return Status.unresolvable(ephemeral_claim_not_found(name))
        return Status.unresolvable(claim_not_found(name))
    if claim.status.phase == "Lost":
        lost = f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
        return Status.unresolvable(lost)
    if claim.metadata.deletion_timestamp is not None:
        return Status.unresolvable(f'persistentvolumeclaim "{name}" is being deleted')
    problem = not_owned(claim, pod) if is_ephemeral else ""
    return Status.unresolvable(problem) if problem else claim


REASONS = (
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) did not have enough free storage",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
)
OLD_REASONS = ("node(s) had volume node affinity conflict", *REASONS[1:])
NODE_CONFLICT, BIND_CONFLICT, NOT_ENOUGH_SPACE, VOLUME_NOT_EXIST = (1 << bit for bit in range(4))
ERROR = -1


UNMATCHED = -1
FEW_ROWS = 4


class Storage:
    """The storage data of a cluster that VolumeBinding keeps."""

    def __init__(self) -> None:
        self.volumes = BindableVolumes()
        self.capacities = StorageCapacities()


@dataclass(slots=True)
class FoundVolumes:
    """The result of the search for a pod, on every row of the cluster."""

    codes: Ints
    """0 if all claims can be satisfied, otherwise one bit per reason, or ERROR."""
    reasons: tuple[str, ...] = REASONS
    """The reason for each bit."""
    error: Status | None = None
    to_match: list[PersistentVolumeClaim] = field(default_factory=list)
    """Claims that may get an existing volume, smallest first."""
    matched: list[Ints] = field(default_factory=list)
    """Per claim in `to_match`, the serial of each row's volume; UNMATCHED if a volume must be provisioned."""
    to_provision: list[PersistentVolumeClaim] = field(default_factory=list)
    """Claims for which a node was chosen earlier."""

    def describe(self, code: int) -> Status:
        if code == ERROR and self.error is not None:
            return self.error
        return Status.unresolvable(*(reason for bit, reason in enumerate(self.reasons) if code & (1 << bit)))

    def bindings_on(self, row: int, volumes: BindableVolumes) -> list[tuple[PersistentVolumeClaim, BindableVolume]]:
        """The existing volumes that claims would get on a row."""
        return [
            (claim, volumes.by_serial[int(serials[row])])
            for claim, serials in zip(self.to_match, self.matched, strict=True)
            if serials[row] != UNMATCHED
        ]

    def provisions_on(self, row: int) -> list[PersistentVolumeClaim]:
        """The claims whose volumes would be provisioned for a row."""
        unmatched = (c for c, serials in zip(self.to_match, self.matched, strict=True) if serials[row] == UNMATCHED)
        return [*self.to_provision, *unmatched]


def find_volumes(claims: PodClaims, cluster: Cluster, storage: Storage) -> FoundVolumes:
    """Look for volumes on all rows at once."""
    storage.volumes.catch_up(cluster.store, cluster.rules)
    reasons = REASONS if cluster.rules.volume_conflict_names_affinity else OLD_REASONS
    found = FoundVolumes(np.zeros(cluster.columns.size, dtype=np.int64), reasons)
    _check_bound(claims.bound, cluster, found)
    if claims.waiting:
        _find_waiting(claims.waiting, cluster, storage, found)
    return found


# -- bound claims --------------------------------------------------------------------------------------------------


def _check_bound(claims: list[PersistentVolumeClaim], cluster: Cluster, found: FoundVolumes) -> None:
    """Mark the rows where a bound volume cannot be used; the first claim that fails on a row decides."""
    for claim in claims:
        volume = cluster.store.of(PersistentVolume).get(claim.spec.volume_name)
        if volume is None:
            found.codes[found.codes == 0] = VOLUME_NOT_EXIST
            return
        usable = _usable(volume.spec.node_affinity, cluster)
        plugin = in_tree_plugin(volume.spec)
        translates = plugin != PORTWORX or cluster.rules.migrates_portworx
        migrated = _migrated_rows(plugin, cluster) if plugin and translates else []
        if migrated:
            usable = np.ones(cluster.columns.size, dtype=np.bool_) if usable is None else usable
            try:
                translated = _usable(translate_affinity(volume), cluster)
                usable[migrated] = True if translated is None else translated[migrated]
            except TranslationError as error:
                found.error = Status.error(f"could not translate pv: {error}")
                failed = np.zeros(cluster.columns.size, dtype=np.bool_)
                failed[migrated] = True
                found.codes[failed & (found.codes == 0)] = ERROR
        if usable is not None:
            found.codes[~usable & (found.codes == 0)] = NODE_CONFLICT


def _usable(affinity: VolumeNodeAffinity | None, cluster: Cluster) -> Mask | None:
    """The rows that meet a volume's node affinity; None for all."""
    terms = volume_affinity_terms(affinity)
    return None if terms is None else Nodes(cluster).matching(NodeMatcher((), terms))


def _migrated_rows(plugin: str, cluster: Cluster) -> list[int]:
    """The rows whose CSINode says that a CSI driver serves an in-tree plugin there."""
    nodes, rows = cluster.store.of(CSINode), cluster.rows
    return [rows[node.name] for node in nodes if node.name in rows and plugin in migrated_plugins(node)]


# -- waiting claims ------------------------------------------------------------------------------------------------


def _find_waiting(claims: list[PersistentVolumeClaim], cluster: Cluster, storage: Storage, found: FoundVolumes) -> None:
    """Match claims with volumes, or check whether volumes can be provisioned for them."""
    open_rows = found.codes != ERROR
    for claim in claims:
        selected = claim.metadata.annotations.get(SELECTED_NODE)
        if selected is None:
            found.to_match.append(claim)
        else:
            found.to_provision.append(claim)
            elsewhere = np.ones(cluster.columns.size, dtype=np.bool_)
            if selected in cluster.rows:
                elsewhere[cluster.rows[selected]] = False
            found.codes[open_rows & elsewhere] |= BIND_CONFLICT
            open_rows &= ~elsewhere
    found.to_match.sort(key=claim_size)
    if _refuse_attributes_classes(found, open_rows, cluster):
        return
    for claim in found.to_match:
        found.matched.append(_match(claim, found.matched, cluster, storage.volumes))
    for claim in found.to_provision:
        open_rows &= ~_provision(claim, open_rows, cluster, storage, found)
    for claim, serials in zip(found.to_match, found.matched, strict=True):
        open_rows &= ~_provision(claim, open_rows & (serials == UNMATCHED), cluster, storage, found)


def _refuse_attributes_classes(found: FoundVolumes, rows: Mask, cluster: Cluster) -> bool:
    """Fail if a claim names a VolumeAttributesClass, in a release that knows the field and has the feature off."""
    rules = cluster.rules
    if rules.volume_attributes_class or not rules.knows_volume_attributes_class:
        return False
    named = next((claim for claim in found.to_match if claim.spec.volume_attributes_class_name), None)
    if named is None:
        return False
    off = "when the feature-gate VolumeAttributesClass is disabled"
    found.error = Status.error(f"unsupported volumeAttributesClassName is set on claim {named.key} {off}")
    found.codes[rows] = ERROR
    found.matched += [np.full(len(found.codes), UNMATCHED, dtype=np.int64) for _ in found.to_match]
    return True


def _match(claim: PersistentVolumeClaim, earlier: list[Ints], cluster: Cluster, volumes: BindableVolumes) -> Ints:
    """The serial of the volume that a claim gets on each row, without volumes of earlier claims; UNMATCHED if none.

    A volume reserved for the claim is the only one it can get; otherwise it gets the smallest.
    """
    matching = _Matching(cluster.columns.size, earlier)
    for reserved in volumes.reserved_for(claim):
        matching.offer_alone(reserved.serial, volumes.rows(reserved.reach, cluster))
    offered: dict[int, int] = {}
    for available in volumes.available_for(claim) if matching.left else ():
        times = offered[available.reach] = offered.get(available.reach, 0) + 1
        # Each earlier claim took at most one volume per row, so after that many volumes of one reach all its rows are
        # decided.
        if times <= len(earlier) + 1:
            matching.offer(available.serial, volumes.rows(available.reach, cluster))
            if not matching.left:
                break
    matching.settle()
    return matching.matched


class _Matching:
    """One claim's search on all rows: volumes are offered in order, and each row takes the first it can have."""

    def __init__(self, size: int, earlier: list[Ints]) -> None:
        self.matched: Ints = np.full(size, UNMATCHED, dtype=np.int64)
        self.left = size
        """How many rows are undecided, without counting offers that are not settled yet."""
        self._undecided: Mask = np.ones(size, dtype=np.bool_)
        self._earlier = earlier
        self._rows: list[int] = []
        self._serials: list[int] = []

    def offer_alone(self, serial: int, rows: Ints) -> None:
        """Offer a volume as the only choice: these rows get it, all others get none, except rows where an earlier claim
        took it.
        """
        free = self._undecided.copy()
        for other in self._earlier:
            free &= other != serial
        here = np.zeros(len(free), dtype=np.bool_)
        here[rows] = True
        self.matched[free & here] = serial
        self._undecided &= ~free
        self.left = int(np.count_nonzero(self._undecided))

    def offer(self, serial: int, rows: Ints) -> None:
        """Offer a volume to some rows; offers to few rows are collected and settled together."""
        if len(rows) <= FEW_ROWS:
            self._rows += rows.tolist()
            self._serials += [serial] * len(rows)
        else:
            self.settle()
            self._decide(rows, np.full(len(rows), serial))

    def settle(self) -> None:
        """Decide the collected offers."""
        if self._rows:
            self._decide(np.array(self._rows), np.array(self._serials))
            self._rows, self._serials = [], []

    def _decide(self, rows: Ints, serials: Ints) -> None:
        """Give each undecided row the first of its offers that no earlier claim took."""
        takes = self._undecided[rows]
        for other in self._earlier:
            takes &= other[rows] != serials
        rows, first = np.unique(rows[takes], return_index=True)
        self.matched[rows] = serials[takes][first]
        self._undecided[rows] = False
        self.left -= len(rows)


# -- provisioning --------------------------------------------------------------------------------------------------


def _provision(
    claim: PersistentVolumeClaim, needed: Mask, cluster: Cluster, storage: Storage, found: FoundVolumes
) -> Mask:
    """Mark and return the rows that need a volume provisioned for the claim but cannot have it."""
    if not needed.any():
        return needed
    storage_class = cluster.store.of(StorageClass).get(storage_class_of(claim))
    if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
        found.codes[needed] |= BIND_CONFLICT
        return needed
    allowed = _allowed(storage_class.allowed_topologies, cluster)
    found.codes[needed & ~allowed] |= BIND_CONFLICT
    has_room = allowed
    size = checked_size(claim, storage_class, cluster.store)
    if size is not None:
        has_room = storage.capacities.largest(storage_class.name, cluster) >= size
        found.codes[needed & allowed & ~has_room] |= NOT_ENOUGH_SPACE
    return needed & ~(allowed & has_room)


def _allowed(terms: list[TopologySelectorTerm], cluster: Cluster) -> Mask:
    """The rows in the topologies that a class allows; without terms, all rows."""
    nodes = Nodes(cluster)
    allowed = np.full(len(nodes), not terms)
    for term in terms:
        if term.match_label_expressions:
            here = np.ones(len(nodes), dtype=np.bool_)
            for expression in term.match_label_expressions:
                here &= nodes.satisfying(Requirement(expression.key, "In", frozenset(expression.values)))
            allowed |= here
    return allowed


def checked_size(claim: PersistentVolumeClaim, storage_class: StorageClass, store: Store) -> int | None:
    """The bytes that a driver must have left for a claim; None if the driver reports no capacity, so nothing is
    checked.
    """
    size = claim.spec.resources.requests.get(STORAGE)
    driver = store.of(CSIDriver).get(storage_class.provisioner)
    return None if size is None or driver is None or not driver.spec.storage_capacity else value(size)


# -- the plugin --------------------------------------------------------------------------------------------------------


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
