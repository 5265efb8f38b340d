"""Scores nodes by how much of their storage the pod's volumes would use."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster import Cluster
from podium.cluster.columns import Ints, Mask, round_half_away
from podium.config.plugin_args import UtilizationShapePoint, value_on_shape
from podium.model import PersistentVolumeClaim, StorageClass
from podium.model.objects import storage_class_of
from podium.model.quantity import value
from podium.plugins.storage.claims import STORAGE
from podium.plugins.storage.volume_search import UNMATCHED, FoundVolumes, Storage, checked_size

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
