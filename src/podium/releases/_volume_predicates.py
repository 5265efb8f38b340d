"""Predicates about volumes: NoDiskConflict, NoVolumeZoneConflict, NoVolumeNodeConflict and CheckVolumeBinding, and the
limits of disks per node: MaxEBSVolumeCount and the like, and MaxCSIVolumeCount.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import msgspec
from msgspec.structs import replace

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes
from podium.errors import SelectorError
from podium.framework import SUCCESS, CycleState, PreFilterPlugin, PreFilterResult, ReservePlugin, Status
from podium.framework.plugin import PodView
from podium.framework.status import PASSED
from podium.model import (
    CSINode,
    Node,
    NodeAffinity,
    NodeSelectorTerm,
    Object,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from podium.model.objects import BETA_REGION, BETA_ZONE, SELECTED_NODE, ObjectReference, storage_class_of
from podium.model.pod import Volume
from podium.model.quantity import parse_quantity
from podium.model.resources import ATTACHABLE_VOLUMES, csi_limit_key
from podium.model.selectors import label_selector, node_term, node_terms
from podium.plugins.storage.attached_volumes import INSTANCE_TYPE, NITRO, NITRO_LIMIT, STABLE_INSTANCE_TYPE
from podium.plugins.storage.claims import (
    NO_PROVISIONER,
    ForPodsWithVolumes,
    claim_not_found,
    is_bound_to,
    is_fully_bound,
    volume_not_found,
    waits_for_consumer,
)
from podium.plugins.storage.in_tree_volume_limits import AZURE_DISK, CINDER, EBS, GCE_PD, Disk
from podium.releases.rules import (
    DISK_CONFLICT,
    MAX_VOLUMES,
    UNBOUND_CLAIMS,
    VOLUME_BINDING,
    VOLUME_MISSING,
    VOLUME_NODE,
    VOLUME_ZONE,
    NodePredicate,
    Reason,
    rejection_status,
)


class VolumeClaimError(Exception):
    """An object that a claim refers to is missing or invalid; the pod cannot be decided."""


def claims(pod: Pod) -> Iterator[str]:
    """The names of the claims that the pod's volumes use."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield required_claim_name(volume)


def required_claim_name(volume: Volume) -> str:
    source = volume.persistent_volume_claim
    if source is None or not source.claim_name:
        raise VolumeClaimError("PersistentVolumeClaim had no name")
    return source.claim_name


def find_claim(cluster: Cluster, namespace: str, name: str) -> PersistentVolumeClaim:
    found = cluster.store.of(PersistentVolumeClaim).get(name, namespace)
    if found is None:
        raise VolumeClaimError(claim_not_found(name))
    return found


def find_volume(cluster: Cluster, name: str) -> PersistentVolume:
    found = cluster.store.of(PersistentVolume).get(name)
    if found is None:
        raise VolumeClaimError(volume_not_found(name))
    return found


ZONE_LABELS = (BETA_ZONE, BETA_REGION)
NODE_AFFINITY = "volume.alpha.kubernetes.io/node-affinity"


class PodPassesBasicChecks(PreFilterPlugin):
    """Fail pods with missing or terminating claims before any node is checked."""

    name = "PodPassesBasicChecks"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        for volume in pod.spec.volumes:
            source = volume.persistent_volume_claim
            if source is None:
                continue
            claim = nodes.cluster.store.of(PersistentVolumeClaim).get(source.claim_name, pod.namespace)
            if claim is None:
                return PreFilterResult(Status.error(claim_not_found(source.claim_name)))
            if claim.metadata.deletion_timestamp is not None:
                return PreFilterResult(Status.error(f'persistentvolumeclaim "{claim.name}" is being deleted'))
        return PASSED


class VolumePredicate(ForPodsWithVolumes, NodePredicate):
    """A predicate about the pod's volumes; pods without volumes pass everywhere."""

    def sign(self, pod: PodView) -> Hashable:
        volumes = pod.spec.volumes
        return (pod.namespace, msgspec.json.encode(volumes)) if volumes else None


class NoDiskConflict(VolumePredicate):
    """Reject nodes where another pod has mounted a disk of this pod, unless both can share it."""

    name = "NoDiskConflict"
    reads = Aspect.PODS

    def check(self, pod: Pod, node: NodeInfo) -> Status | None:
        mounted = [volume for other in node.pods for volume in other.spec.volumes]
        conflicts = any(_conflict(volume, other) for volume in pod.spec.volumes for other in mounted)
        return rejection_status([DISK_CONFLICT], self.rules) if conflicts else None


def _conflict(volume: Volume, other: Volume) -> bool:
    """Whether two volumes are the same disk and cannot be mounted together."""
    if volume.gce_persistent_disk and other.gce_persistent_disk:
        disk, second = volume.gce_persistent_disk, other.gce_persistent_disk
        return disk.pd_name == second.pd_name and not (disk.read_only and second.read_only)
    if volume.aws_elastic_block_store and other.aws_elastic_block_store:
        return volume.aws_elastic_block_store.volume_id == other.aws_elastic_block_store.volume_id
    if volume.iscsi and other.iscsi:
        return volume.iscsi.iqn == other.iscsi.iqn and not (volume.iscsi.read_only and other.iscsi.read_only)
    if volume.rbd and other.rbd:
        image, same = volume.rbd, other.rbd
        shared = (image.pool, image.image) == (same.pool, same.image)
        overlap = not set(image.monitors).isdisjoint(same.monitors)
        return shared and overlap and not (image.read_only and same.read_only)
    return False


class NoVolumeZoneConflict(VolumePredicate):
    """Reject nodes outside the zones in the labels of the pod's bound volumes."""

    name = "NoVolumeZoneConflict"
    reads = Aspect.LABELS | Aspect.OBJECTS

    def check(self, pod: Pod, node: NodeInfo) -> Status | None:
        constraints = {label: node.labels[label] for label in ZONE_LABELS if label in node.labels}
        if not constraints:
            return None
        try:
            for name in claims(pod):
                volume = self._volume(node.cluster, pod.namespace, name)
                if volume is not None and _is_elsewhere(volume, constraints):
                    return rejection_status([VOLUME_ZONE], self.rules)
        except VolumeClaimError as error:
            return Status.error(str(error))
        return None

    def _volume(self, cluster: Cluster, namespace: str, name: str) -> PersistentVolume | None:
        """The volume that a claim is bound to; None for a claim that waits for its first consumer."""
        claim = find_claim(cluster, namespace, name)
        if claim.spec.volume_name:
            return find_volume(cluster, claim.spec.volume_name)
        if self.rules.claims_must_be_bound or not waits_for_consumer(claim, cluster.store):
            raise VolumeClaimError(f'PersistentVolumeClaim is not bound: "{name}"')
        return None


def _is_elsewhere(volume: PersistentVolume, constraints: dict[str, str]) -> bool:
    """Whether a zone label of the volume matches neither of the node's; an invalid label is ignored."""
    for label in ZONE_LABELS:
        if label in volume.metadata.labels:
            zones = [zone.strip() for zone in volume.metadata.labels[label].split("__")]
            if "" not in zones and constraints.get(label, "") not in zones:
                return True
    return False


@dataclass(frozen=True, kw_only=True)
class LocalVolumeArgs:
    """Whether the feature PersistentLocalVolumes is on."""

    enabled: bool = False


class NoVolumeNodeConflict(VolumePredicate):
    """Reject nodes without the labels in a bound local volume's annotation."""

    name = "NoVolumeNodeConflict"
    reads = Aspect.LABELS | Aspect.OBJECTS

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._enabled = isinstance(args, LocalVolumeArgs) and args.enabled

    def concerns(self, pod: PodView, cluster: Cluster) -> bool:
        return self._enabled and super().concerns(pod, cluster)

    def check(self, pod: Pod, node: NodeInfo) -> Status | None:
        try:
            for name in claims(pod):
                claim = find_claim(node.cluster, pod.namespace, name)
                if not claim.spec.volume_name:
                    raise VolumeClaimError(f'PersistentVolumeClaim is not bound: "{name}"')
                if not _is_for_node(find_volume(node.cluster, claim.spec.volume_name), node):
                    return rejection_status([VOLUME_NODE], self.rules)
        except VolumeClaimError as error:
            return Status.error(str(error))
        return None


def _is_for_node(volume: PersistentVolume, node: NodeInfo) -> bool:
    """Whether the node meets all terms, not just one, of the volume's annotated affinity."""
    text = volume.metadata.annotations.get(NODE_AFFINITY, "")
    if not text:
        return True
    try:
        affinity = msgspec.json.decode(text, type=NodeAffinity)
        terms = affinity.required.node_selector_terms if affinity.required else []
        compiled = [node_term(NodeSelectorTerm(match_expressions=term.match_expressions)) for term in terms]
    except (msgspec.DecodeError, SelectorError):
        return False
    return all(term is not None and term.matches(node.labels, node.name) for term in compiled)


@dataclass(slots=True)
class _Bindings:
    """The result of binding a pod's claims on one node."""

    reasons: list[Reason] = field(default_factory=list)
    matched: list[tuple[PersistentVolumeClaim, PersistentVolume]] = field(default_factory=list)
    provisioned: list[PersistentVolumeClaim] = field(default_factory=list)


class CheckVolumeBinding(VolumePredicate, PreFilterPlugin, ReservePlugin):
    """Reject nodes where bound volumes cannot be used, or where unbound claims find no volume."""

    name = "CheckVolumeBinding"
    reads = Aspect.LABELS | Aspect.OBJECTS

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        state[self.name] = nodes.cluster  # Reserve is not told on which cluster it reserves
        return PASSED

    def check(self, pod: Pod, node: NodeInfo) -> Status | None:
        try:
            reasons = self._bind(pod, node.node, node.cluster).reasons
        except VolumeClaimError as error:
            return Status.error(str(error))
        return rejection_status(reasons, self.rules) if reasons else None

    def _bind(self, pod: Pod, node: Node, cluster: Cluster) -> _Bindings:
        found = _Bindings()
        bound, waiting, immediate = _sorted_claims(pod, cluster)
        if immediate:
            if self.rules.missing_volume_is_error:
                raise VolumeClaimError(UNBOUND_CLAIMS.sentence)
            found.reasons = [UNBOUND_CLAIMS]
            return found
        found.reasons += self._check_bound(bound, node, cluster)
        if not self._can_bind(waiting, node, cluster, found):
            found.reasons.append(VOLUME_BINDING)
        return found

    def _check_bound(self, bound: list[PersistentVolumeClaim], node: Node, cluster: Cluster) -> list[Reason]:
        for claim in bound:
            volume = cluster.store.of(PersistentVolume).get(claim.spec.volume_name)
            if volume is None:
                if self.rules.missing_volume_is_error:
                    raise VolumeClaimError(f'could not find v1.PersistentVolume "{claim.spec.volume_name}"')
                return [VOLUME_MISSING]
            if not _reaches(volume, node):
                return [VOLUME_NODE]
        return []

    def _can_bind(self, waiting: list[PersistentVolumeClaim], node: Node, cluster: Cluster, found: _Bindings) -> bool:
        """Whether each waiting claim matches a volume, or can get a new one on this node."""
        chosen: set[str] = set()
        to_provision: list[PersistentVolumeClaim] = []
        to_match: list[PersistentVolumeClaim] = []
        for claim in waiting:
            selected = claim.metadata.annotations.get(SELECTED_NODE)
            if selected is not None and selected != node.name:
                return False
            (to_match if selected is None else to_provision).append(claim)
        for claim in sorted(to_match, key=_size):
            volume = _best_volume(claim, node, cluster, chosen, self._class_of(claim))
            if volume is None:
                to_provision.append(claim)
            else:
                chosen.add(volume.name)
                found.matched.append((claim, volume))
        for claim in to_provision:
            if not _can_provision(claim, node, cluster):
                return False
        found.provisioned = to_provision
        return True

    def _class_of(self, claim: PersistentVolumeClaim) -> str:
        """The class whose volumes are searched; before v1.18 the old annotation is ignored here."""
        return claim.spec.storage_class_name or "" if self.rules.missing_volume_is_error else storage_class_of(claim)

    # -- reserving

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Reserve the volumes for the claims, and set the selected node on claims that get a new one."""
        if not pod.spec.volumes:
            return SUCCESS
        cluster: Cluster = state[self.name]
        bindings = self._bind(pod, cluster.node(node_name), cluster)
        before: list[Object] = [volume for _, volume in bindings.matched]
        before += bindings.provisioned
        state[f"{self.name}/before"] = before
        for claim, volume in bindings.matched:
            reference = ObjectReference(namespace=claim.namespace, name=claim.name, uid=claim.metadata.uid)
            cluster.store.put(replace(volume, spec=replace(volume.spec, claim_ref=reference)))
        for claim in bindings.provisioned:
            annotations = {**claim.metadata.annotations, SELECTED_NODE: node_name}
            cluster.store.put(replace(claim, metadata=replace(claim.metadata, annotations=annotations)))
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        for item in state.pop(f"{self.name}/before", ()):
            state[self.name].store.put(item)


def _sorted_claims(
    pod: Pod, cluster: Cluster
) -> tuple[list[PersistentVolumeClaim], list[PersistentVolumeClaim], list[PersistentVolumeClaim]]:
    """The pod's claims: bound; waiting for their first consumer; and those that should be bound already."""
    bound, waiting, immediate = [], [], []
    for name in claims(pod):
        claim = cluster.store.of(PersistentVolumeClaim).get(name, pod.namespace)
        if claim is None:
            raise VolumeClaimError(f'error getting PVC "{pod.namespace}/{name}": could not find it')
        if is_fully_bound(claim):
            bound.append(claim)
        elif waits_for_consumer(claim, cluster.store) and not claim.spec.volume_name:
            waiting.append(claim)
        else:
            immediate.append(claim)
    return bound, waiting, immediate


def _reaches(volume: PersistentVolume, node: Node) -> bool:
    """Whether the node's labels meet the volume's node affinity."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    # The scheduler compares labels only: for a term about a node's name, every node has an empty name.
    return any(term.matches(node.metadata.labels, "") for term in node_terms(affinity.required))


def _size(claim: PersistentVolumeClaim) -> Fraction:
    return parse_quantity(claim.spec.resources.requests.get("storage", 0))


def _capacity(volume: PersistentVolume) -> Fraction:
    return parse_quantity(volume.spec.capacity.get("storage", 0))


def _best_volume(
    claim: PersistentVolumeClaim, node: Node, cluster: Cluster, taken: set[str], class_name: str
) -> PersistentVolume | None:
    """The volume that is already bound to the claim, or else the smallest that fits."""
    best: PersistentVolume | None = None
    for volume in cluster.store.of(PersistentVolume):
        if (
            storage_class_of(volume) != class_name
            or volume.name in taken
            or volume.metadata.deletion_timestamp is not None
        ):
            continue
        if volume.spec.volume_mode != claim.spec.volume_mode or _capacity(volume) < _size(claim):
            continue
        if is_bound_to(volume, claim):
            return volume if _reaches(volume, node) else None
        if _is_available(volume, claim) and _reaches(volume, node):
            best = volume if best is None or _capacity(volume) < _capacity(best) else best
    return best


def _is_available(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is free and fits the claim, apart from its size."""
    selector = claim.spec.selector
    return (
        volume.status.phase == "Available"
        and volume.spec.claim_ref is None
        and (selector is None or label_selector(selector).matches(volume.metadata.labels))
        and storage_class_of(volume) == storage_class_of(claim)
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def _can_provision(claim: PersistentVolumeClaim, node: Node, cluster: Cluster) -> bool:
    """Whether the claim's class provisions volumes, and does so for the node's topology."""
    class_name = storage_class_of(claim)
    if not class_name:
        raise VolumeClaimError(f'no class for claim "{claim.key}"')
    found = cluster.store.of(StorageClass).get(class_name)
    if found is None:
        raise VolumeClaimError(f'failed to find storage class "{class_name}"')
    if found.provisioner in ("", NO_PROVISIONER):
        return False
    topologies = [term.match_label_expressions for term in found.allowed_topologies]
    labels = node.metadata.labels
    return not topologies or any(
        term and all(labels.get(each.key) in each.values for each in term) for term in topologies
    )


# -- limits of disks per node ------------------------------------------------------------------------------------------


MOST_FROM_ENVIRONMENT = "KUBE_MAX_PD_VOLS"

_IN_TREE_PROVISIONERS = frozenset(
    f"kubernetes.io/{name}" for name in ("aws-ebs", "gce-pd", "cinder", "azure-disk", "azure-file")
)


@dataclass(frozen=True, kw_only=True)
class VolumeLimitArgs:
    """The limit from the environment, which replaces the defaults; None if there is none."""

    most: int | None = None

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> VolumeLimitArgs:
        """The limit from KUBE_MAX_PD_VOLS; ignored unless it is a positive number."""
        text = env.get(MOST_FROM_ENVIRONMENT) or ""
        number = int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else 0
        return cls(most=number if number > 0 else None)


class MaxVolumeCount(VolumePredicate):
    """Reject nodes that would exceed their limit of disks of a kind; a disk of several pods counts once."""

    reads = Aspect.PODS | Aspect.LABELS | Aspect.OBJECTS
    DISK: Disk

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._most = args.most if isinstance(args, VolumeLimitArgs) else None

    def check(self, pod: Pod, node: NodeInfo) -> Status | None:
        try:
            wanted = self._disks([pod], node.cluster)
            if not wanted:
                return None
            there = self._disks(node.pods, node.cluster)
        except VolumeClaimError as error:
            return Status.error(str(error))
        return rejection_status([MAX_VOLUMES], self.rules) if len(there | wanted) > self._limit(node) else None

    def _limit(self, node: NodeInfo) -> int:
        if self.rules.limits_from_node and self.DISK.limit_key in node.node.allocatable:
            return node.allocatable(self.DISK.limit_key)
        if self._most is not None:
            return self._most
        if self.rules.limits_from_node and self.DISK is EBS and NITRO.search(self._instance_type(node)):
            return NITRO_LIMIT
        return self.DISK.limit

    def _instance_type(self, node: NodeInfo) -> str:
        stable = node.labels.get(STABLE_INSTANCE_TYPE, "") if self.rules.unbound_disks_by_provisioner else ""
        return node.labels.get(INSTANCE_TYPE, stable)

    def _disks(self, pods: Iterable[Pod], cluster: Cluster) -> set[object]:
        """The disks of this kind that pods use; disks known only by their claim are distinct from disks known by id."""
        found: set[object] = set()
        for pod in pods:
            for place, volume in enumerate(pod.spec.volumes):
                disk = self.DISK.identify(volume)
                if disk is None and volume.persistent_volume_claim is not None:
                    disk_of_claim, is_missing = self._placed_claim(pod, required_claim_name(volume), cluster)
                    if is_missing and self.rules.claims_must_be_bound:
                        # The release invents an id for it, and ignores the pod's further volumes.
                        found.add((pod.key, place))
                        break
                    found |= {disk_of_claim} - {None}
                elif disk is not None:
                    found.add(disk)
        return found

    def _placed_claim(self, pod: Pod, name: str, cluster: Cluster) -> tuple[object, bool]:
        """The disk of a claim, None for another kind; and whether the claim or its volume is missing."""
        by_claim = (pod.namespace, name, "claim")
        claim = cluster.store.of(PersistentVolumeClaim).get(name, pod.namespace)
        if claim is None:
            return (None if self.rules.unbound_disks_by_provisioner else by_claim), True
        if not claim.spec.volume_name and self.rules.claims_must_be_bound:
            raise VolumeClaimError(f'PersistentVolumeClaim is not bound: "{name}"')
        volume = cluster.store.of(PersistentVolume).get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            return self.DISK.identify(volume.spec), False
        is_kind = not self.rules.unbound_disks_by_provisioner or self._provisions(claim, cluster)
        return (by_claim if is_kind else None), True

    def _provisions(self, claim: PersistentVolumeClaim, cluster: Cluster) -> bool:
        """Whether the claim's storage class provisions disks of this kind."""
        if claim.spec.storage_class_name is None:
            return False
        found = cluster.store.of(StorageClass).get(claim.spec.storage_class_name)
        return found is not None and found.provisioner == self.DISK.provisioner


class MaxEBSVolumeCount(MaxVolumeCount):
    name = "MaxEBSVolumeCount"
    DISK = EBS


class MaxGCEPDVolumeCount(MaxVolumeCount):
    name = "MaxGCEPDVolumeCount"
    DISK = GCE_PD


class MaxAzureDiskVolumeCount(MaxVolumeCount):
    name = "MaxAzureDiskVolumeCount"
    DISK = AZURE_DISK


class MaxCinderVolumeCount(MaxVolumeCount):
    name = "MaxCinderVolumeCount"
    DISK = CINDER


class MaxCSIVolumeCount(VolumePredicate):
    """Reject nodes that would exceed their limit of volumes of a CSI driver."""

    name = "MaxCSIVolumeCountPred"
    reads = Aspect.PODS | Aspect.LABELS | Aspect.OBJECTS

    def check(self, pod: Pod, node: NodeInfo) -> Status | None:
        limits = self._limits(node, node.cluster)
        if not limits:
            return None
        try:
            wanted = self._volumes([pod], node.cluster)
            there = self._volumes(node.pods, node.cluster) if wanted else {}
        except VolumeClaimError as error:
            return Status.error(str(error))
        new = [key for volume, key in wanted.items() if volume not in there]
        attached = list(there.values())
        too_many = any(attached.count(key) + new.count(key) > limits[key] for key in set(new) & limits.keys())
        return rejection_status([MAX_VOLUMES], self.rules) if too_many else None

    def _limits(self, node: NodeInfo, cluster: Cluster) -> dict[str, int]:
        """The limit per kind of volume: from the node, and in v1.18 preferably from its CSINode."""
        names = (name for name in node.node.allocatable if name.startswith(ATTACHABLE_VOLUMES))
        limits = {name: node.allocatable(name) for name in names}
        csi_node = cluster.store.of(CSINode).get(node.name) if self.rules.unbound_disks_by_provisioner else None
        for driver in csi_node.spec.drivers if csi_node else ():
            if driver.allocatable is not None and driver.allocatable.count is not None:
                limits[csi_limit_key(driver.name)] = driver.allocatable.count
        return limits

    def _volumes(self, pods: Iterable[Pod], cluster: Cluster) -> dict[object, str]:
        """The CSI volumes that pods use through claims, each with the key of its limit."""
        found: dict[object, str] = {}
        for pod in pods:
            for volume in pod.spec.volumes:
                if volume.persistent_volume_claim is None:
                    continue
                claim = cluster.store.of(PersistentVolumeClaim).get(required_claim_name(volume), pod.namespace)
                driver, handle = ("", "") if claim is None else self._driver(claim, cluster)
                if driver and handle:
                    unique = (driver, handle) if self.rules.unbound_disks_by_provisioner else handle
                    found[unique] = csi_limit_key(driver)
        return found

    def _driver(self, claim: PersistentVolumeClaim, cluster: Cluster) -> tuple[str, object]:
        """The driver and the volume of a claim; empty for a volume that is not a CSI volume."""
        name = claim.spec.volume_name
        volume = cluster.store.of(PersistentVolume).get(name) if name else None
        if volume is not None:
            return (volume.spec.csi.driver, volume.spec.csi.volume_handle) if volume.spec.csi else ("", "")
        if not self.rules.unbound_disks_by_provisioner:
            return "", ""
        storage_class = cluster.store.of(StorageClass).get(storage_class_of(claim))
        if storage_class is None or storage_class.provisioner in _IN_TREE_PROVISIONERS:
            return "", ""
        return storage_class.provisioner, (claim.key, "claim")
