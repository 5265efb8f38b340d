"""Why VolumeBinding rejected a node: which claim, which volume, which rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from podium.cluster import Cluster
from podium.cluster.columns import Ints
from podium.framework import Status
from podium.model import CSINode, PersistentVolume, PersistentVolumeClaim, Pod, SelectorRequirement, StorageClass
from podium.model.quantity import format_quantity
from podium.model.selectors import EVERYTHING, NodeMatcher, label_selector
from podium.model.storage import TopologySelectorTerm, VolumeNodeAffinity
from podium.plugins.storage.bindable_volumes import AVAILABLE, affinity_terms, claim_size, nanos
from podium.plugins.storage.claims import SELECTED_NODE, STORAGE, class_of_claim, class_of_volume, is_bound_to
from podium.plugins.storage.csi_migration import TranslationError, in_tree_plugin, translate_affinity
from podium.plugins.storage.volume_binding_search import (
    MIGRATED_PLUGINS,
    NO_PROVISIONER,
    REASONS,
    PodClaims,
    Storage,
    checked_size,
    claims_of,
    find_volumes,
)

_OPERATORS = {"In": "in", "NotIn": "not in", "Gt": ">", "Lt": "<"}


class BindingDetail:
    """What VolumeBinding found for one pod, looked at again to say why."""

    def __init__(self, cluster: Cluster, pod: Pod) -> None:
        self._cluster, self._storage = cluster, Storage()
        claims = claims_of(pod, cluster.store)
        self._claims = PodClaims() if isinstance(claims, Status) else claims
        self._found = find_volumes(self._claims, cluster, self._storage)
        self._candidates: dict[str, _Candidates] = {}

    def on(self, node: str, status: Status) -> str:
        """What made the plugin give this status to a node."""
        node_conflict, bind_conflict, not_enough_space, not_there = REASONS
        rules = {
            node_conflict: self._out_of_reach,
            bind_conflict: self._not_to_be_had,
            not_enough_space: self._no_room,
            not_there: self._not_there,
        }
        found = (next(rules[reason](node), "") for reason in status.reasons if reason in rules)
        return "; ".join(filter(None, found))

    # -- bound claims ----------------------------------------------------------------------------------------------

    def _out_of_reach(self, node: str) -> Iterator[str]:
        for claim in self._claims.bound:
            volume = self._cluster.store.of(PersistentVolume).get(claim.spec.volume_name)
            affinity = None if volume is None else self._affinity(volume, node)
            if volume is not None and not self._reaches(affinity, node):
                yield f"claim {claim.name} is bound to {volume.name}, whose node affinity needs {_needs(affinity)}"

    def _not_there(self, node: str) -> Iterator[str]:
        known = self._cluster.store.of(PersistentVolume)
        for claim in self._claims.bound:
            if known.get(claim.spec.volume_name) is None:
                yield f"claim {claim.name} is bound to {claim.spec.volume_name}, which is not there"

    def _affinity(self, volume: PersistentVolume, node: str) -> VolumeNodeAffinity | None:
        """Where a volume can be used from, in the words of the driver that serves it on the node."""
        plugin, csi_node = in_tree_plugin(volume.spec), self._cluster.store.of(CSINode).get(node)
        migrated = "" if csi_node is None else csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "")
        if plugin not in migrated.split(","):
            return volume.spec.node_affinity
        try:
            return translate_affinity(volume)
        except TranslationError:
            return volume.spec.node_affinity

    def _reaches(self, affinity: VolumeNodeAffinity | None, node: str) -> bool:
        labels = self._cluster.node(node).metadata.labels
        return NodeMatcher((), affinity_terms(affinity)).matches(labels, node)

    # -- waiting claims --------------------------------------------------------------------------------------------

    def _not_to_be_had(self, node: str) -> Iterator[str]:
        for claim in self._claims.waiting:
            selected = claim.metadata.annotations.get(SELECTED_NODE, node)
            if selected != node:
                yield f"claim {claim.name} gets its volume on node {selected}, which was chosen for it earlier"
        for claim, storage_class in self._to_provision(node):
            if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
                yield self._no_volume(claim, node)
            elif not _allows(storage_class.allowed_topologies, self._cluster.node(node).metadata.labels):
                allowed = _topologies(storage_class.allowed_topologies)
                yield f"claim {claim.name}: class {storage_class.name} provisions volumes only where {allowed}"

    def _no_room(self, node: str) -> Iterator[str]:
        for claim, storage_class in self._to_provision(node):
            size = None if storage_class is None else checked_size(claim, storage_class, self._cluster.store)
            if storage_class is None or size is None:
                continue
            largest = int(self._storage.capacities.largest(storage_class.name, self._cluster)[self._cluster.rows[node]])
            if largest < size:
                left = f"at most {format_quantity(largest, binary=True)}" if largest >= 0 else "none"
                yield f"claim {_asking(claim)}: not enough capacity in class {storage_class.name} here, {left}"

    def _to_provision(self, node: str) -> Iterator[tuple[PersistentVolumeClaim, StorageClass | None]]:
        """The claims for which the node has no volume, with their classes."""
        for claim in self._found.provisions_on(self._cluster.rows[node]):
            yield claim, self._cluster.store.of(StorageClass).get(class_of_claim(claim))

    def _no_volume(self, claim: PersistentVolumeClaim, node: str) -> str:
        """Why none of the existing volumes is right, which alone could be."""
        of_class = f"of class {class_of_claim(claim)}"
        reserved = list(self._storage.volumes.reserved_for(claim))
        if reserved and SELECTED_NODE not in claim.metadata.annotations:
            volume = reserved[0].volume
            return f"claim {claim.name} waits for {volume.name}, whose node affinity needs " + _needs(
                volume.spec.node_affinity
            )
        if claim.key not in self._candidates:
            self._candidates[claim.key] = _Candidates(claim, self._cluster, self._storage)
        others = self._candidates[claim.key].others(self._cluster.rows[node])
        why = ", ".join(f"{number:,} {what}" for what, number in others.items())
        return f"no PersistentVolume {of_class} fits claim {_asking(claim)}" + (f": {why}" if why else "")


class _Candidates:
    """The volumes of a claim's class, counted by what is wrong with them."""

    def __init__(self, claim: PersistentVolumeClaim, cluster: Cluster, storage: Storage) -> None:
        self._wrong: Counter[str] = Counter()
        for volume in cluster.store.of(PersistentVolume):
            if class_of_volume(volume) == class_of_claim(claim) and (wrong := _wrong(volume, claim)):
                self._wrong[wrong] += 1
        fitting = list(storage.volumes.available_for(claim))
        self._fitting = len(fitting)
        self._reaching: Ints = np.zeros(cluster.columns.size, dtype=np.int64)
        for candidate in fitting:
            self._reaching[storage.volumes.rows(candidate.reach, cluster)] += 1

    def others(self, row: int) -> dict[str, int]:
        """How many volumes a row cannot have, by reason, most first."""
        reaching = int(self._reaching[row])
        counts = self._wrong + Counter(
            {"not usable from this node": self._fitting - reaching, "taken by the pod's other claims": reaching}
        )
        return dict(counts.most_common())


def _wrong(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
    """Why a volume of the right class is not for a claim, whatever the node; empty if it is."""
    spec, wanted = volume.spec, claim.spec
    selector = EVERYTHING if wanted.selector is None else label_selector(wanted.selector)
    checks = {
        "reserved for another claim": spec.claim_ref is None or is_bound_to(volume, claim),
        "being deleted": volume.metadata.deletion_timestamp is None,
        f"not {AVAILABLE}": volume.status.phase == AVAILABLE,
        "too small": nanos(spec.capacity.get(STORAGE, 0)) >= claim_size(claim),
        "of another volume mode": spec.volume_mode == wanted.volume_mode,
        "of another attributes class": (spec.volume_attributes_class_name or "")
        == (wanted.volume_attributes_class_name or ""),
        "without its access modes": set(wanted.access_modes) <= set(spec.access_modes),
        "not selected by its selector": selector.matches(volume.metadata.labels),
    }
    return next((wrong for wrong, is_right in checks.items() if not is_right), "")


# -- in words ------------------------------------------------------------------------------------------------------


def _asking(claim: PersistentVolumeClaim) -> str:
    """`data (10Gi)`"""
    size = claim.spec.resources.requests.get(STORAGE)
    return claim.name if size is None else f"{claim.name} ({size})"


def _needs(affinity: VolumeNodeAffinity | None) -> str:
    """`zone in [a, b] and disk exists, or zone in [c]`: the terms of a volume's node affinity."""
    terms = affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else []
    parts = [" and ".join(map(_expression, term.match_expressions)) for term in terms if term.match_expressions]
    return ", or ".join(parts) or "what no node has"


def _expression(raw: SelectorRequirement) -> str:
    if raw.operator in ("Exists", "DoesNotExist"):
        return f"{raw.key} {'present' if raw.operator == 'Exists' else 'absent'}"
    values = ", ".join(raw.values)
    operator = _OPERATORS.get(raw.operator, raw.operator)
    return f"{raw.key} {operator} {values if raw.operator in ('Gt', 'Lt') else f'[{values}]'}"


def _allows(terms: list[TopologySelectorTerm], labels: dict[str, str]) -> bool:
    return not terms or any(
        term.match_label_expressions and all(labels.get(e.key) in e.values for e in term.match_label_expressions)
        for term in terms
    )


def _topologies(terms: list[TopologySelectorTerm]) -> str:
    parts = [" and ".join(f"{e.key} in [{', '.join(e.values)}]" for e in t.match_label_expressions) for t in terms]
    return ", or ".join(filter(None, parts))
