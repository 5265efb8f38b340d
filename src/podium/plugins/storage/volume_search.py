"""Searches a volume for each of a pod's claims, on every node at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from podium.cluster import Cluster, Nodes
from podium.cluster.columns import Ints, Mask
from podium.cluster.store import Store
from podium.framework.status import Status
from podium.model import CSIDriver, CSINode, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, Volume
from podium.model.objects import SELECTED_NODE, TopologySelectorTerm, VolumeNodeAffinity, storage_class_of
from podium.model.pod import claim_name
from podium.model.quantity import value
from podium.model.selectors import NodeMatcher, Requirement
from podium.plugins.storage.bindable_volumes import BindableVolume, BindableVolumes, claim_size, volume_affinity_terms
from podium.plugins.storage.claims import (
    NO_PROVISIONER,
    REASON_UNBOUND_IMMEDIATE,
    STORAGE,
    claim_not_found,
    ephemeral_claim_not_found,
    is_fully_bound,
    not_owned,
    waits_for_consumer,
)
from podium.plugins.storage.csi_translation import (
    PORTWORX,
    TranslationError,
    in_tree_plugin,
    migrated_plugins,
    translate_affinity,
)
from podium.plugins.storage.storage_capacities import StorageCapacities


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
