"""A pod's claims, and the volumes they may get: PersistentVolumes, smallest first, or volumes that CSI drivers can
provision. In-tree volumes are translated to their CSI drivers: driver, volume handle and topology.

Kubernetes replaced its built-in storage plugins by CSI drivers, but objects still name the old ones. The scheduler
translates five of them; azure-file and vsphere-volume also have drivers, but it never counts their volumes.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np
from msgspec.structs import replace

from podium.cluster import Aspect, Cluster, Nodes
from podium.cluster.columns import Interned, Ints, Mask
from podium.cluster.store import Store, is_owned_by
from podium.framework import PodView
from podium.framework.fast_paths import ForSomePods
from podium.framework.plugin import FilterPlugin, WaitingPod
from podium.framework.suggested_change import Obstacle, RejectedNodes, SpecPart
from podium.model import (
    CSINode,
    CSIStorageCapacity,
    NodeSelector,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Quantity,
    SelectorRequirement,
    StorageClass,
    Volume,
)
from podium.model.objects import (
    BETA_REGION,
    BETA_ZONE,
    BIND_COMPLETED,
    REGION,
    ZONE,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
    storage_class_of,
)
from podium.model.pod import PersistentVolumeClaimSpec, claim_name
from podium.model.quantity import parse_quantity, value
from podium.model.selectors import EVERYTHING, NodeMatcher, NodeTerm, Selector, label_selector, node_terms
from podium.rules import NEWEST_RULES, Rules

# -- in-tree volumes and their CSI drivers -----------------------------------------------------------------------------


ZONE_DELIMITER = "__"

AWS_EBS, GCE_PD = "kubernetes.io/aws-ebs", "kubernetes.io/gce-pd"
AZURE_DISK, CINDER, PORTWORX = "kubernetes.io/azure-disk", "kubernetes.io/cinder", "kubernetes.io/portworx-volume"

DRIVERS = {
    AWS_EBS: "ebs.csi.aws.com",
    GCE_PD: "pd.csi.storage.gke.io",
    AZURE_DISK: "disk.csi.azure.com",
    CINDER: "cinder.csi.openstack.org",
    PORTWORX: "pxd.portworx.com",
}
"""In-tree plugin -> the CSI driver that replaced it."""

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"

NEVER_COUNTED = frozenset({"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"})
"""In-tree plugins whose CSI driver the scheduler ignores."""

_TOPOLOGY_KEYS = {
    AWS_EBS: "topology.ebs.csi.aws.com/zone",
    GCE_PD: "topology.gke.io/zone",
    CINDER: "topology.cinder.csi.openstack.org/zone",
}

_EBS_VOLUME = re.compile(r"vol-[^/]*")


class TranslationError(Exception):
    """An in-tree volume that its CSI driver cannot serve; the text is the scheduler's own."""


class AttachedVolume(NamedTuple):
    """A volume as NodeVolumeLimits counts it."""

    driver: str
    handle: str


def migrated_plugins(node: CSINode) -> list[str]:
    """The in-tree plugins that CSI drivers serve on a node, as its CSINode says."""
    return node.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")


def in_tree_plugin(source: Volume | PersistentVolumeSpec) -> str | None:
    """The in-tree plugin of a volume, if the scheduler translates it, else None."""
    if source.aws_elastic_block_store is not None:
        return AWS_EBS
    if source.gce_persistent_disk is not None:
        return GCE_PD
    if source.azure_disk is not None:
        return AZURE_DISK
    if source.cinder is not None:
        return CINDER
    return PORTWORX if source.portworx_volume is not None else None


def inline_volume(volume: Volume) -> AttachedVolume | None:
    """An in-tree volume of a pod's spec as its CSI driver names it; None for volumes without a replacing driver."""
    plugin = in_tree_plugin(volume)
    return None if plugin is None else AttachedVolume(DRIVERS[plugin], _handle(volume, ""))


def persistent_volume(volume: PersistentVolume) -> AttachedVolume | None:
    """A PersistentVolume as its CSI driver names it; None for a volume without a driver."""
    spec = volume.spec
    if spec.csi is not None:
        return AttachedVolume(spec.csi.driver, spec.csi.volume_handle)
    plugin = in_tree_plugin(spec)
    if plugin is None:
        return None
    labels = volume.metadata.labels
    return AttachedVolume(DRIVERS[plugin], _handle(spec, labels.get(BETA_ZONE) or labels.get(ZONE, "")))


def translate_affinity(volume: PersistentVolume) -> VolumeNodeAffinity | None:
    """The node affinity of an in-tree volume in its CSI driver's topology; TranslationError if it has no handle there.

    The zone moves to the driver's label: from the affinity, or else from the volume's own labels.
    """
    persistent_volume(volume)
    affinity = volume.spec.node_affinity
    plugin = in_tree_plugin(volume.spec)
    topology_key = _TOPOLOGY_KEYS.get(plugin or "")
    if topology_key is None:
        return affinity
    terms = affinity.required.node_selector_terms if affinity and affinity.required else []
    zone, region = _topology_labels(terms, volume.metadata.labels)
    if _values(terms, zone):
        terms = _renamed(terms, zone, topology_key)
    elif zone in volume.metadata.labels:
        terms = _narrowed(terms, topology_key, volume.metadata.labels[zone].split(ZONE_DELIMITER))
    if region == BETA_REGION and _values(terms, region):
        terms = _renamed(terms, region, REGION)
    if not terms:
        return affinity
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))


def _handle(source: Volume | PersistentVolumeSpec, zones_label: str) -> str:
    if source.aws_elastic_block_store is not None:
        return _ebs_handle(source.aws_elastic_block_store.volume_id)
    if source.gce_persistent_disk is not None:
        return _gce_handle(source.gce_persistent_disk.pd_name, zones_label)
    if source.azure_disk is not None:
        if source.azure_disk.kind.lower() != "managed":
            raise TranslationError(f"kind({source.azure_disk.kind}) is not supported in csi migration")
        return source.azure_disk.disk_uri
    if source.cinder is not None:
        return source.cinder.volume_id
    return source.portworx_volume.volume_id if source.portworx_volume is not None else ""


def _ebs_handle(volume_id: str) -> str:
    """`vol-1` of `vol-1`, `aws:///vol-1` and `aws://zone/vol-1`."""
    if not volume_id.startswith("aws://"):
        return volume_id
    try:
        handle = urlsplit(volume_id).path.strip("/")
    except ValueError:
        handle = ""
    if not _EBS_VOLUME.fullmatch(handle):
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({volume_id})"
        )
    return handle


def _gce_handle(disk: str, zones_label: str) -> str:
    zones = zones_label.split(ZONE_DELIMITER)
    if len(zones) > 1:
        return f"projects/UNSPECIFIED/regions/{_gce_region(zones)}/disks/{disk}"
    return f"projects/UNSPECIFIED/zones/{zones[0] or 'UNSPECIFIED'}/disks/{disk}"


def _gce_region(zones: Iterable[str]) -> str:
    """The common region of zones of the form locale-region-zone."""
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            expected = "zone in unexpected format, expected: {locale}-{region}-{zone}, got"
            raise TranslationError(f"failed to get region from zones: {expected}: {zone}")
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        names = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise TranslationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: map[{names}]"
        )
    return regions.pop()


# -- topology ------------------------------------------------------------------------------------------------------


def _topology_labels(terms: list[NodeSelectorTerm], labels: dict[str, str]) -> tuple[str, str]:
    """The zone and region labels that a volume uses: current labels before old ones; affinity before labels."""
    keys = {expression.key for term in terms for expression in term.match_expressions}
    for found in (keys, labels):
        if ZONE in found:
            return ZONE, REGION
        if BETA_ZONE in found:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _values(terms: list[NodeSelectorTerm], key: str) -> set[str]:
    return {value for term in terms for e in term.match_expressions if e.key == key for value in e.values}


def _renamed(terms: list[NodeSelectorTerm], old: str, new: str) -> list[NodeSelectorTerm]:
    return [
        replace(term, match_expressions=[replace(e, key=new) if e.key == old else e for e in term.match_expressions])
        for term in terms
    ]


def _narrowed(terms: list[NodeSelectorTerm], key: str, zones: list[str]) -> list[NodeSelectorTerm]:
    """Every term, with the zones as an additional requirement; blank zones are ignored."""
    values = sorted({zone.strip() for zone in zones} - {""})
    if not values:
        return terms
    expression = SelectorRequirement(key=key, operator="In", values=values)
    return [
        replace(term, match_expressions=[*term.match_expressions, expression]) for term in terms or [NodeSelectorTerm()]
    ]


# -- claims ------------------------------------------------------------------------------------------------------------


STORAGE = "storage"

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


class ForPodsWithVolumes(ForSomePods):
    """A plugin that does not concern pods without volumes."""

    constraint = SpecPart.VOLUME

    def concerns(self, pod: PodView, cluster: Cluster) -> bool:
        return bool(pod.spec.volumes)


class StorageFilter(ForPodsWithVolumes, FilterPlugin):
    """A filter for volumes that names the claim, the volume and the rule behind its message."""

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        from podium.plugins.storage.storage_detail import storage_obstacles  # loaded when somebody asks

        return storage_obstacles(self, rejected)


def uses_claims(pod: Pod) -> bool:
    return any(v.persistent_volume_claim is not None or v.ephemeral is not None for v in pod.spec.volumes)


def names_claim(waiting: WaitingPod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    """The hint for claims that the waiting pod names itself; generic ephemeral volumes are ignored."""
    return waiting.pod.namespace == new.namespace and new.name in claims_named(waiting.pod)


def uses_claim(waiting: WaitingPod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    """The hint for claims that the waiting pod uses, including those of generic ephemeral volumes."""
    pod = waiting.pod
    return pod.namespace == new.namespace and any(claim_name(pod, v) == new.name for v in pod.spec.volumes)


def claims_named(pod: Pod) -> set[str]:
    """The claims that the pod's volumes name, without those of generic ephemeral volumes."""
    claims = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return {claim.claim_name for claim in claims if claim is not None}


def not_owned(claim: PersistentVolumeClaim, pod: Pod) -> str:
    """The error if the claim of an ephemeral volume is not owned by the pod; empty if it is."""
    if is_owned_by(claim, pod):
        return ""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim names its volume, and the binding is complete on both sides."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def waits_for_consumer(claim: PersistentVolumeClaim, store: Store) -> bool:
    """Whether the claim's class delays binding until a pod needs it; False if the class does not exist."""
    name = storage_class_of(claim)
    storage_class = store.of(StorageClass).get(name) if name else None
    return storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is reserved for this claim; a reservation without uid holds for any claim with the name."""
    reference = volume.spec.claim_ref
    if reference is None or (reference.namespace, reference.name) != (claim.namespace, claim.name):
        return False
    return reference.uid in ("", claim.metadata.uid)


def claim_not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def ephemeral_claim_not_found(name: str) -> str:
    return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'


def volume_not_found(name: str) -> str:
    return f'persistentvolume "{name}" not found'


def class_not_found(name: str) -> str:
    return f'storageclass.storage.k8s.io "{name}" not found'


REASON_UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
REASON_NO_CLASS_NAME = "PersistentVolumeClaim had no pv name and storageClass name"
REASON_NO_VOLUME_NAME = "PersistentVolume had no name"


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
        self._rules = NEWEST_RULES
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

    # -- reading ---------------------------------------------------------------------------------------------------

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

    # -- catching up -----------------------------------------------------------------------------------------------

    def catch_up(self, store: Store, rules: Rules = NEWEST_RULES) -> None:
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


NONE = -1


class _Pool(NamedTuple):
    """One CSIStorageCapacity: the largest volume and the total capacity in bytes, and the nodes it is for."""

    limit: int
    capacity: int
    nodes: Selector


def volume_limit(raw: CSIStorageCapacity) -> int | None:
    """The largest possible volume in bytes; None if the object does not say."""
    limit = raw.capacity if raw.maximum_volume_size is None else raw.maximum_volume_size
    return None if limit is None else value(limit)


def _pool(raw: CSIStorageCapacity) -> _Pool:
    capacity, limit = NONE if raw.capacity is None else value(raw.capacity), volume_limit(raw)
    return _Pool(NONE if limit is None else limit, capacity, label_selector(raw.node_topology))


def _matching(selector: Selector, nodes: Nodes) -> Mask:
    mask = np.full(len(nodes), not selector.nothing)
    for requirement in selector.requirements:
        mask &= nodes.satisfying(requirement)
    return mask


class StorageCapacities:
    """Capacities by storage class and row. It belongs to one cluster."""

    def __init__(self) -> None:
        self._version = -1
        self._labels_head = -1
        self._pools: dict[str, list[_Pool]] = {}
        self._largest: dict[str, Ints] = {}

    def largest(self, storage_class: str, cluster: Cluster) -> Ints:
        """The largest volume of a class that each row can get, in bytes; -1 if it can get none."""
        self._catch_up(cluster)
        found = self._largest.get(storage_class)
        if found is None:
            nodes = Nodes(cluster)
            found = self._largest[storage_class] = np.full(len(nodes), NONE, dtype=np.int64)
            for pool in self._pools.get(storage_class, ()):
                np.maximum(found, pool.limit, out=found, where=_matching(pool.nodes, nodes))
        return found

    def chosen(self, storage_class: str, size: int, cluster: Cluster) -> Ints:
        """The total capacity where each row finds room for a volume of `size` bytes; -1 if it finds none."""
        self._catch_up(cluster)
        nodes = Nodes(cluster)
        found, undecided = np.full(len(nodes), NONE, dtype=np.int64), np.ones(len(nodes), dtype=np.bool_)
        for pool in self._pools.get(storage_class, ()):
            if pool.limit >= size:
                here = undecided & _matching(pool.nodes, nodes)
                found[here] = pool.capacity
                undecided &= ~here
        return found

    def _catch_up(self, cluster: Cluster) -> None:
        store, head = cluster.store, cluster.logs[Aspect.LABELS].head
        if head != self._labels_head:
            self._labels_head = head
            self._largest.clear()
        if store.version == self._version:
            return
        changed = store.since(self._version)
        self._version = store.version
        if changed is not None and not any(isinstance(item, CSIStorageCapacity) for item in changed):
            return
        self._largest.clear()
        self._pools.clear()
        for raw in store.of(CSIStorageCapacity):
            self._pools.setdefault(raw.storage_class_name, []).append(_pool(raw))
