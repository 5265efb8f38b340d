"""VolumeBinding's score: how well the volumes on a node fit what the claims ask for.

It counts only where the feature StorageCapacityScoring is on, which gives the plugin's arguments a shape.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster import Cluster
from podium.cluster.columns import Ints, Mask
from podium.config.args import UtilizationShapePoint
from podium.framework.plugin import MAX_NODE_SCORE
from podium.objects import PersistentVolumeClaim, StorageClass
from podium.plugins.claims import STORAGE, class_of_claim
from podium.plugins.normalize import round_half_away
from podium.plugins.volume_binding_search import UNMATCHED, FoundVolumes, Storage, checked_size
from podium.quantity import value

MAX_UTILIZATION = 100


class CapacityScorer:
    """A shape made ready: the score at each utilization of 0..100 percent."""

    def __init__(self, shape: Sequence[UtilizationShapePoint]) -> None:
        points = [(point.utilization, point.score * (MAX_NODE_SCORE // 10)) for point in shape]
        self._curve: Ints = np.array([_on_lines(points, at) for at in range(MAX_UTILIZATION + 1)], dtype=np.int64)

    def score(self, found: FoundVolumes, cluster: Cluster, storage: Storage) -> Ints:
        """The mean over storage classes, per row: of matched volumes, or else of those to be provisioned."""
        matched = _matched_amounts(found, storage, cluster.columns.size)
        score = self._mean(matched, cluster.columns.size)
        has_match = np.zeros(cluster.columns.size, dtype=np.bool_)
        for serials in found.matched:
            has_match |= serials != UNMATCHED
        if has_match.all():
            return score
        return np.where(has_match, score, self._mean(_provisioned_amounts(found, cluster, storage), len(score)))

    def _mean(self, amounts: dict[str, tuple[Mask, Ints, Ints]], size: int) -> Ints:
        total, classes = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        for counted, requested, capacity in amounts.values():
            fits = (capacity != 0) & (requested <= capacity)
            percent = np.where(fits, requested * MAX_UTILIZATION // np.maximum(capacity, 1), MAX_UTILIZATION)
            total += np.where(counted, np.take(self._curve, percent, mode="clip"), 0)
            classes += counted
        return round_half_away(total / np.maximum(classes, 1))


def _on_lines(points: list[tuple[int, int]], at: int) -> int:
    """The value on the straight lines between points, cut off towards zero; flat outside."""
    for (x0, y0), (x1, y1) in zip([points[0], *points], points, strict=False):
        if at <= x1:
            return y1 if x0 == x1 else y0 + int((y1 - y0) * (at - x0) / (x1 - x0))
    return points[-1][1]


def _matched_amounts(found: FoundVolumes, storage: Storage, size: int) -> dict[str, tuple[Mask, Ints, Ints]]:
    """Per class: the rows with matched volumes, what was asked for there and how large the volumes are, in bytes."""
    amounts: dict[str, tuple[Mask, Ints, Ints]] = {}
    for claim, serials in zip(found.to_match, found.matched, strict=True):
        here = serials != UNMATCHED
        sizes = {
            int(serial): value(storage.volumes.by_serial[int(serial)].volume.spec.capacity.get(STORAGE, 0))
            for serial in np.unique(serials[here])
        }
        given = np.array([sizes.get(int(serial), 0) for serial in serials], dtype=np.int64)
        counted, requested, capacity = _of_class(amounts, class_of_claim(claim), size)
        counted |= here
        requested += np.where(here, _requested(claim), 0)
        capacity += given
    return amounts


def _provisioned_amounts(found: FoundVolumes, cluster: Cluster, storage: Storage) -> dict[str, tuple[Mask, Ints, Ints]]:
    """Per class: the rows where a known capacity would be used, what is asked for and how much there is, in bytes."""
    amounts: dict[str, tuple[Mask, Ints, Ints]] = {}
    needed = [(claim, np.ones(cluster.columns.size, dtype=np.bool_)) for claim in found.to_provision]
    needed += [(c, serials == UNMATCHED) for c, serials in zip(found.to_match, found.matched, strict=True)]
    for claim, rows in needed:
        storage_class = cluster.store.of(StorageClass).get(class_of_claim(claim))
        size = None if storage_class is None else checked_size(claim, storage_class, cluster.store)
        if storage_class is None or size is None:
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
