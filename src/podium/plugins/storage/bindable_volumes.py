"""The PersistentVolumes that a claim may be bound to, smallest first."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from podium.cluster import Aspect, Cluster, Nodes
from podium.cluster.columns import Interned, Ints
from podium.cluster.store import Store
from podium.model import PersistentVolume, PersistentVolumeClaim, Quantity
from podium.model.objects import PersistentVolumeSpec, VolumeNodeAffinity, storage_class_of
from podium.model.pod import PersistentVolumeClaimSpec
from podium.model.quantity import parse_quantity
from podium.model.selectors import EVERYTHING, NodeMatcher, NodeTerm, label_selector, node_terms
from podium.plugins.storage.claims import STORAGE, is_bound_to
from podium.rules import Rules

Terms = tuple[NodeTerm, ...]
Kind = tuple[str, str]
"""Volume mode and attributes class: a volume and its claim must have the same."""

AVAILABLE = "Available"

_size = attrgetter("size")


@lru_cache(maxsize=65_536)
def nanos(quantity: Quantity) -> int:
    """The quantity as an integer in billionths, the finest unit, so that it can be compared exactly."""
    return int(parse_quantity(quantity) * 10**9)


def volume_affinity_terms(affinity: VolumeNodeAffinity | None) -> Terms | None:
    """The terms of which a node's labels must meet one; None for a volume that can be used everywhere.

    Volumes match labels only: fields of the node are ignored.
    """
    if affinity is None or affinity.required is None:
        return None
    return tuple(term._replace(names=()) for term in node_terms(affinity.required))


class BindableVolume(NamedTuple):
    """A volume with the data that matching needs; sorts by size, then by name."""

    size: int
    """In billionths of a byte."""
    name: str
    serial: int
    """Identifies the volume in arrays; a changed volume gets a new serial."""
    volume: PersistentVolume
    kind: Kind
    modes: frozenset[str]
    reach: int
    """Identifies the nodes that can use the volume: equal for equal node affinity."""


def _kind(spec: PersistentVolumeSpec | PersistentVolumeClaimSpec) -> Kind:
    return spec.volume_mode, spec.volume_attributes_class_name or ""


class BindableVolumes:
    """All volumes of one cluster by class, as of the last `catch_up`."""

    def __init__(self) -> None:
        self._rules: Rules
        """The rules of the last `catch_up`."""
        self._version = -1
        self._next_serial = 0
        self._known: dict[str, BindableVolume] = {}
        self._unclaimed: dict[tuple[str, str], list[BindableVolume]] = {}
        """By class and phase."""
        self._reserved: dict[tuple[str, str], dict[str, BindableVolume]] = {}
        self._reaches: Interned[Terms | None] = Interned()
        self._labels_head = -1
        self._rows: dict[int, Ints] = {}
        self.by_serial: dict[int, BindableVolume] = {}

    def reserved_for(self, claim: PersistentVolumeClaim) -> Iterator[BindableVolume]:
        """The volumes that are reserved for this claim and fit it, ordered by size and name."""
        found = self._reserved.get((claim.namespace, claim.name))
        if found:
            wanted_class, size, kind = storage_class_of(claim), claim_size(claim), _kind(claim.spec)
            for candidate in sorted(found.values()):
                volume = candidate.volume
                if (
                    storage_class_of(volume) == wanted_class
                    and is_bound_to(volume, claim)
                    and candidate.size >= size
                    and self._agree(candidate.kind, kind)
                    and volume.metadata.deletion_timestamp is None
                ):
                    yield candidate

    def available_for(self, claim: PersistentVolumeClaim) -> Iterator[BindableVolume]:
        """The unreserved volumes that fit the claim on the nodes that can use them, smallest first."""
        volumes, size = self._unclaimed.get((storage_class_of(claim), AVAILABLE), []), claim_size(claim)
        modes, kind = frozenset(claim.spec.access_modes), _kind(claim.spec)
        selector = EVERYTHING if claim.spec.selector is None else label_selector(claim.spec.selector)
        for candidate in islice(volumes, bisect_left(volumes, size, key=_size), None):
            if self._agree(candidate.kind, kind) and modes <= candidate.modes:
                volume = candidate.volume
                if volume.metadata.deletion_timestamp is None and selector.matches(volume.metadata.labels):
                    yield candidate

    def _agree(self, volume: Kind, claim: Kind) -> bool:
        """Whether the kind of a volume fits the kind of a claim, by the checks of the release."""
        if self._rules.volume_attributes_class:
            return volume == claim
        # With the feature off, no claim gets a volume with a class; earlier releases did not check.
        return volume[0] == claim[0] and not (self._rules.knows_volume_attributes_class and volume[1])

    def rows(self, reach: int, cluster: Cluster) -> Ints:
        """The rows that can use volumes with this reach."""
        head = cluster.logs[Aspect.LABELS].head
        if head != self._labels_head:
            self._rows.clear()
            self._labels_head = head
        found = self._rows.get(reach)
        if found is None:
            mask = Nodes(cluster).matching(NodeMatcher((), self._reaches.values[reach]))
            found = self._rows[reach] = np.flatnonzero(mask)
        return found

    def catch_up(self, store: Store, rules: Rules) -> None:
        self._rules = rules
        if self._version == store.version:
            return
        changed = store.since(self._version)
        self._version = store.version
        shelf = store.of(PersistentVolume)
        if changed is None:
            for name in list(self._known):
                self._remove(name)
            for volume in shelf:
                self._add(volume)
        else:
            for name in {item.name for item in changed if isinstance(item, PersistentVolume)}:
                self._remove(name)
                volume_now = shelf.get(name)
                if volume_now is not None:
                    self._add(volume_now)

    def _add(self, volume: PersistentVolume) -> None:
        spec, serial = volume.spec, self._next_serial
        self._next_serial += 1
        size, modes = nanos(spec.capacity.get(STORAGE, 0)), frozenset(spec.access_modes)
        reach = self._reaches.code(volume_affinity_terms(spec.node_affinity))
        candidate = BindableVolume(size, volume.name, serial, volume, _kind(spec), modes, reach)
        self._known[volume.name] = self.by_serial[serial] = candidate
        if spec.claim_ref is None:
            insort(self._unclaimed.setdefault(_shelf(volume), []), candidate)
        else:
            claim = (spec.claim_ref.namespace, spec.claim_ref.name)
            self._reserved.setdefault(claim, {})[volume.name] = candidate

    def _remove(self, name: str) -> None:
        candidate = self._known.pop(name, None)
        if candidate is None:
            return
        del self.by_serial[candidate.serial]
        reference = candidate.volume.spec.claim_ref
        if reference is None:
            volumes = self._unclaimed[_shelf(candidate.volume)]
            del volumes[bisect_left(volumes, candidate)]
        else:
            del self._reserved[reference.namespace, reference.name][name]


def _shelf(volume: PersistentVolume) -> tuple[str, str]:
    return storage_class_of(volume), volume.status.phase


def claim_size(claim: PersistentVolumeClaim) -> int:
    """The claim's requested size, in billionths of a byte."""
    return nanos(claim.spec.resources.requests.get(STORAGE, 0))
