"""Explains why storage rejected a node: the claim, volume and rule behind a plugin's message. Computed on demand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

import numpy as np
from msgspec.structs import replace

from podium.cluster import Cluster
from podium.cluster.columns import Ints
from podium.framework.obstacle import Obstacle, RejectedNodes
from podium.framework.plugin import Plugin
from podium.framework.status import Code, Status
from podium.model import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    SelectorRequirement,
    StorageClass,
    Volume,
)
from podium.model.objects import SELECTED_NODE, TopologySelectorTerm, VolumeNodeAffinity, storage_class_of
from podium.model.pod import claim_name
from podium.model.quantity import format_quantity
from podium.model.selectors import EVERYTHING, NodeMatcher, label_selector, requirement_text
from podium.plugins.storage.attached_volumes import NO_LIMIT, AttachedVolumes, UncountableError
from podium.plugins.storage.bindable_volumes import AVAILABLE, claim_size, nanos, volume_affinity_terms
from podium.plugins.storage.claims import (
    NO_PROVISIONER,
    REASON_NO_CLASS_NAME,
    REASON_NO_VOLUME_NAME,
    REASON_UNBOUND_IMMEDIATE,
    STORAGE,
    claim_not_found,
    class_not_found,
    ephemeral_claim_not_found,
    is_bound_to,
    is_fully_bound,
    volume_not_found,
)
from podium.plugins.storage.csi_translation import (
    DRIVERS,
    AttachedVolume,
    TranslationError,
    in_tree_plugin,
    migrated_plugins,
    translate_affinity,
)
from podium.plugins.storage.node_volume_limits import NodeVolumeLimits
from podium.plugins.storage.volume_binding import VolumeBinding
from podium.plugins.storage.volume_restrictions import READ_WRITE_ONCE_POD, DiskIdentity, VolumeRestrictions, disk_uses
from podium.plugins.storage.volume_search import (
    BIND_CONFLICT,
    ERROR,
    NODE_CONFLICT,
    NOT_ENOUGH_SPACE,
    VOLUME_NOT_EXIST,
    PodClaims,
    Storage,
    checked_size,
    find_volumes,
    volume_claims_of,
)
from podium.plugins.storage.volume_zone import CURRENT_LABELS, Topology, VolumeZone, topologies_of


class BindingDetail:
    """VolumeBinding's result for one pod, examined again to explain it."""

    def __init__(self, cluster: Cluster, pod: Pod) -> None:
        self._cluster, self._storage = cluster, Storage()
        claims = volume_claims_of(pod, cluster.store)
        self._claims = PodClaims() if isinstance(claims, Status) else claims
        self._found = find_volumes(self._claims, cluster, self._storage)
        self._candidates: dict[str, _Candidates] = {}

    def on(self, node: str) -> str:
        """Why the plugin rejects a node."""
        rules = {
            NODE_CONFLICT: self._out_of_reach,
            BIND_CONFLICT: self._not_to_be_had,
            NOT_ENOUGH_SPACE: self._no_room,
            VOLUME_NOT_EXIST: self._not_there,
        }
        code = int(self._found.codes[self._cluster.rows[node]])
        found = (next(rule(node), "") for bit, rule in rules.items() if code != ERROR and code & bit)
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
                yield f"claim {claim.name} is bound to {claim.spec.volume_name}, which is not in the input"

    def _affinity(self, volume: PersistentVolume, node: str) -> VolumeNodeAffinity | None:
        """The node affinity of a volume, translated for the driver that serves it on the node."""
        plugin, csi_node = in_tree_plugin(volume.spec), self._cluster.store.of(CSINode).get(node)
        if csi_node is None or plugin not in migrated_plugins(csi_node):
            return volume.spec.node_affinity
        try:
            return translate_affinity(volume)
        except TranslationError:
            return volume.spec.node_affinity

    def _reaches(self, affinity: VolumeNodeAffinity | None, node: str) -> bool:
        labels = self._cluster.node(node).metadata.labels
        return NodeMatcher((), volume_affinity_terms(affinity)).matches(labels, node)

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
            yield claim, self._cluster.store.of(StorageClass).get(storage_class_of(claim))

    def _no_volume(self, claim: PersistentVolumeClaim, node: str) -> str:
        """Why none of the existing volumes fits, for a claim that can get no other."""
        of_class = f"of class {storage_class_of(claim)}"
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
            if storage_class_of(volume) == storage_class_of(claim) and (wrong := _wrong(volume, claim)):
                self._wrong[wrong] += 1
        fitting = list(storage.volumes.available_for(claim))
        self._fitting = len(fitting)
        self._reaching: Ints = np.zeros(cluster.columns.size, dtype=np.int64)
        for candidate in fitting:
            self._reaching[storage.volumes.rows(candidate.reach, cluster)] += 1

    def others(self, row: int) -> dict[str, int]:
        """The number of volumes that a row cannot have, by reason, most frequent first."""
        reaching = int(self._reaching[row])
        counts = self._wrong + Counter(
            {"not usable from this node": self._fitting - reaching, "taken by the pod's other claims": reaching}
        )
        return dict(counts.most_common())


def _wrong(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
    """Why a volume of the right class does not fit a claim, on any node; empty if it does."""
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
    """The claim and its size: `data (10Gi)`."""
    size = claim.spec.resources.requests.get(STORAGE)
    return claim.name if size is None else f"{claim.name} ({size})"


def _needs(affinity: VolumeNodeAffinity | None) -> str:
    """The terms of a volume's node affinity: `zone In a,b and disk Exists, or zone In c`."""
    terms = affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else []
    parts = [" and ".join(map(requirement_text, term.match_expressions)) for term in terms if term.match_expressions]
    return ", or ".join(parts) or "what no node has"


def _allows(terms: list[TopologySelectorTerm], labels: dict[str, str]) -> bool:
    return not terms or any(
        term.match_label_expressions and all(labels.get(e.key) in e.values for e in term.match_label_expressions)
        for term in terms
    )


def _topologies(terms: list[TopologySelectorTerm]) -> str:
    wanted = [[SelectorRequirement(e.key, "In", e.values) for e in term.match_label_expressions] for term in terms]
    return ", or ".join(" and ".join(map(requirement_text, each)) for each in wanted if each)


_DISKS = {"gce": "GCE disk", "ebs": "EBS volume", "iscsi": "iSCSI target", "rbd": "Ceph image"}


def storage_obstacles(plugin: Plugin, rejected: RejectedNodes) -> dict[str, list[Obstacle]]:
    """A sentence for each node that a storage plugin rejected, if there is more to say than its reason."""
    rule = _StorageDetail(rejected.cluster, rejected.pod).rules[type(plugin)]
    # An error is not about a volume on a node.
    nodes = [node for node, status in rejected.statuses.items() if status.code is not Code.ERROR]
    sentences = {node: rule(node) for node in nodes}
    return {node: [Obstacle("volume", sentence)] for node, sentence in sentences.items() if sentence}


def claims_detail(cluster: Cluster, pod: Pod, status: Status | None) -> str:
    """A sentence about the claim for which PreFilter gave the pod this status; empty if it was not for a claim."""
    if status is None:
        return ""
    return next((sentence for reason, sentence in _unusable(pod, cluster) if reason in status.reasons), "")


class _StorageDetail:
    """Explains one pod on one cluster; data that several nodes need is computed once."""

    def __init__(self, cluster: Cluster, pod: Pod) -> None:
        self._cluster, self._pod = cluster, pod
        self.rules: dict[type, Callable[[str], str]] = {
            VolumeRestrictions: self._restrictions,
            NodeVolumeLimits: self._limits,
            VolumeBinding: self._bound_volumes,
            VolumeZone: self._zone,
        }

    @cached_property
    def _binding(self) -> BindingDetail:
        return BindingDetail(self._cluster, self._pod)

    def _bound_volumes(self, node: str) -> str:
        return self._binding.on(node)

    # -- VolumeRestrictions ----------------------------------------------------------------------------------------

    def _restrictions(self, node: str) -> str:
        return self._shared_disk(node) or self._exclusive_claim

    def _shared_disk(self, node: str) -> str:
        wanted = {use.disk: use.read_only for volume in self._pod.spec.volumes for use in disk_uses(volume)}
        for other in self._cluster.pods_on(self._cluster.rows[node]):
            for volume in other.spec.volumes:
                for disk, read_only in disk_uses(volume):
                    if disk in wanted and not (read_only and wanted[disk]):
                        return f"{_disk(disk)} {_use(disk, read_only)} by pod {other.key}"
        return ""

    @cached_property
    def _exclusive_claim(self) -> str:
        """The claim that only one pod may use, and the pod that uses it."""
        shelf, mine = self._cluster.store.of(PersistentVolumeClaim), set()
        for volume in self._pod.spec.volumes:
            name = volume.persistent_volume_claim.claim_name if volume.persistent_volume_claim is not None else ""
            claim = shelf.get(name, self._pod.namespace)
            if claim is not None and READ_WRITE_ONCE_POD in claim.spec.access_modes:
                mine.add(name)
        for other, node in self._cluster.placed():
            for volume in other.spec.volumes if other.namespace == self._pod.namespace else ():
                if volume.persistent_volume_claim is not None and volume.persistent_volume_claim.claim_name in mine:
                    name = volume.persistent_volume_claim.claim_name
                    return f"claim {name} with {READ_WRITE_ONCE_POD} is used by pod {other.key} on {node}"
        return ""

    # -- NodeVolumeLimits ------------------------------------------------------------------------------------------

    @cached_property
    def _attached(self) -> AttachedVolumes:
        attached = AttachedVolumes()
        attached.catch_up(self._cluster)
        return attached

    @cached_property
    def _volumes(self) -> dict[AttachedVolume, str]:
        """The volumes that must be attached for the pod, and the name of each."""
        found: dict[AttachedVolume, str] = {}
        for volume in self._pod.spec.volumes:
            alone = replace(self._pod, spec=replace(self._pod.spec, volumes=[volume]))
            try:
                for one in self._attached.of_pod(alone, self._cluster.store, is_new=True, migrated=frozenset(DRIVERS)):
                    found.setdefault(one, self._called(volume, one))
            except UncountableError:
                return {}
        return found

    def _called(self, volume: Volume, attached: AttachedVolume) -> str:
        name = claim_name(self._pod, volume)
        if name is None:
            return attached.handle
        claim = self._cluster.store.of(PersistentVolumeClaim).get(name, self._pod.namespace)
        is_there = claim is not None and claim.spec.volume_name
        return f"claim {name}: {attached.handle}" if is_there else f"claim {name}, to be provisioned"

    def _limits(self, node: str) -> str:
        row = self._cluster.rows[node]
        sentences = []
        for driver in dict.fromkeys(volume.driver for volume in self._volumes):
            limits = self._attached.limits(driver)
            limit = NO_LIMIT if limits is None else int(limits[row])
            used = int(self._attached.attached(driver)[row])
            new = [
                name
                for volume, name in self._volumes.items()
                if volume.driver == driver and row not in self._attached.rows_with(volume)
            ]
            if new and used + len(new) > limit:
                sentences.append(
                    f"driver {driver}: {used} of {limit} volumes in use, the pod adds {len(new)} ({'; '.join(new)})"
                )
        return "; ".join(sentences)

    # -- VolumeZone ------------------------------------------------------------------------------------------------

    def _zone(self, node: str) -> str:
        labels = self._cluster.node(node).metadata.labels
        for claim, volume, topology in self._zones:
            current = CURRENT_LABELS[topology.label]
            here = labels.get(topology.label, labels.get(current))
            if here not in topology.values:
                what = current.rpartition("/")[2]
                allowed = ", ".join(sorted(topology.values))
                where = f"the node is in {here}" if here is not None else f"the node has no label {current}"
                return f"claim {claim} (volume {volume}) is in {what} {allowed}, {where}"
        return ""

    @cached_property
    def _zones(self) -> list[tuple[str, str, Topology]]:
        """The claims and their volumes, with each zone or region label."""
        found, store = [], self._cluster.store
        for volume in self._pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                name = volume.persistent_volume_claim.claim_name
                claim = store.of(PersistentVolumeClaim).get(name, self._pod.namespace)
                topologies = topologies_of(name, self._pod.namespace, store)
                if claim is not None and not isinstance(topologies, Status):
                    found += [(name, claim.spec.volume_name, topology) for topology in topologies]
        return found


def _disk(disk: DiskIdentity) -> str:
    kind, *names = disk
    # A Ceph image is identified by a monitor, its pool and its name.
    return f"{_DISKS[kind]} {'/'.join(names[1:] or names)}"


def _use(disk: DiskIdentity, read_only: bool) -> str:
    if disk[0] == "ebs":
        return "is used"
    return "is used, and this pod would write to it," if read_only else "is used read-write"


# -- claims that keep the pod from every node ----------------------------------------------------------------------


def _unusable(pod: Pod, cluster: Cluster) -> Iterator[tuple[str, str]]:
    """For each claim that is not ready: the reason that a plugin gives for it, and the explanation."""
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is None:
            continue
        claim = cluster.store.of(PersistentVolumeClaim).get(name, pod.namespace)
        if claim is None:
            sentence = f"Volume {volume.name} uses claim {name}, which is not in the input."
            yield claim_not_found(name), sentence
            yield ephemeral_claim_not_found(name), sentence
        elif claim.spec.volume_name and cluster.store.of(PersistentVolume).get(claim.spec.volume_name) is None:
            sentence = f"Claim {name} is bound to volume {claim.spec.volume_name}, which is not in the input."
            yield volume_not_found(claim.spec.volume_name), sentence
        if claim is not None and not is_fully_bound(claim):
            for reason, why in _unbound(claim, cluster).items():
                yield reason, f"Claim {name} {why}."


def _unbound(claim: PersistentVolumeClaim, cluster: Cluster) -> Mapping[str, str]:
    """For a claim that should be bound by now: the reason that a plugin gives -> why it is not bound."""
    name = storage_class_of(claim)
    if claim.spec.volume_name:
        return {REASON_UNBOUND_IMMEDIATE: f"names volume {claim.spec.volume_name}, but is not bound to it yet"}
    if not name:
        why = "is not bound and has no storage class, so the scheduler does not bind it"
        return {REASON_UNBOUND_IMMEDIATE: why, REASON_NO_CLASS_NAME: why}
    storage_class = cluster.store.of(StorageClass).get(name)
    if storage_class is None:
        why = f"is not bound, and its class {name} is not in the input"
        return {REASON_UNBOUND_IMMEDIATE: why, class_not_found(name): why}
    if storage_class.volume_binding_mode == "Immediate":
        why = f"is not bound, and class {name} binds at once: it gets a volume before its pod gets a node"
        return {REASON_UNBOUND_IMMEDIATE: why, REASON_NO_VOLUME_NAME: why}
    return {}
