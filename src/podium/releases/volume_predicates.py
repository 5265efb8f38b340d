"""NoDiskConflict, NoVolumeZoneConflict and NoVolumeNodeConflict."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import msgspec

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes, PodInfo
from podium.errors import SelectorError
from podium.framework import CycleState, PreFilterPlugin, PreFilterResult, Status
from podium.framework.plugin import PodView
from podium.model import NodeAffinity, NodeSelectorTerm, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from podium.model.node import BETA_REGION, BETA_ZONE
from podium.model.pod import Volume
from podium.model.selectors import node_term
from podium.plugins.storage.claims import BETA_STORAGE_CLASS, WAIT_FOR_FIRST_CONSUMER
from podium.releases.reasons import DISK_CONFLICT, VOLUME_NODE, VOLUME_ZONE, NodePredicate, rejection


class ClaimError(Exception):
    """What a claim refers to is not there, or not as it has to be; the pod cannot be decided."""


def claims(pod: Pod) -> Iterator[str]:
    """The names of the claims the pod's volumes use; a volume without a claim has none."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield claim_name(volume)


def claim_name(volume: Volume) -> str:
    source = volume.persistent_volume_claim
    if source is None or not source.claim_name:
        raise ClaimError("PersistentVolumeClaim had no name")
    return source.claim_name


def find_claim(cluster: Cluster, namespace: str, name: str) -> PersistentVolumeClaim:
    found = cluster.store.of(PersistentVolumeClaim).get(name, namespace)
    if found is None:
        raise ClaimError(f'persistentvolumeclaim "{name}" not found')
    return found


def find_volume(cluster: Cluster, name: str) -> PersistentVolume:
    found = cluster.store.of(PersistentVolume).get(name)
    if found is None:
        raise ClaimError(f'persistentvolume "{name}" not found')
    return found


def class_of(item: PersistentVolumeClaim | PersistentVolume) -> str:
    """The storage class an object names: by its old annotation, or else in its spec."""
    annotated = item.metadata.annotations.get(BETA_STORAGE_CLASS)
    return annotated if annotated is not None else item.spec.storage_class_name or ""


def waits_for_consumer(cluster: Cluster, claim: PersistentVolumeClaim) -> bool:
    """Whether the claim is to be bound only once its pod has a node."""
    found = cluster.store.of(StorageClass).get(class_of(claim))
    return found is not None and found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


ZONE_LABELS = (BETA_ZONE, BETA_REGION)
NODE_AFFINITY = "volume.alpha.kubernetes.io/node-affinity"


class PodPassesBasicChecks(PreFilterPlugin):
    """Fail pods whose claims are not there, or are about to go, before any node is looked at."""

    name = "PodPassesBasicChecks"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        for volume in pod.spec.volumes:
            source = volume.persistent_volume_claim
            if source is None:
                continue
            claim = nodes.cluster.store.of(PersistentVolumeClaim).get(source.claim_name, pod.namespace)
            if claim is None:
                return PreFilterResult(Status.error(f'persistentvolumeclaim "{source.claim_name}" not found'))
            if claim.metadata.deletion_timestamp is not None:
                return PreFilterResult(Status.error(f'persistentvolumeclaim "{claim.name}" is being deleted'))
        return PreFilterResult()


class VolumePredicate(NodePredicate):
    """A predicate about the pod's volumes; pods without any pass everywhere."""

    def sign(self, pod: PodView) -> Hashable:
        volumes = pod.spec.volumes
        return (pod.namespace, msgspec.json.encode(volumes)) if volumes else None

    def concerns(self, info: PodInfo, cluster: Cluster) -> bool:
        return bool(info.pod.spec.volumes)


class NoDiskConflict(VolumePredicate):
    """Reject nodes where a pod has mounted a disk that this pod wants, unless both can share it."""

    name = "NoDiskConflict"
    reads = Aspect.PODS

    def check(self, pod: Pod, node: NodeInfo) -> Status | None:
        mounted = [volume for other in node.pods for volume in other.spec.volumes]
        conflicts = any(_conflict(volume, other) for volume in pod.spec.volumes for other in mounted)
        return rejection([DISK_CONFLICT], self.rules) if conflicts else None


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
    """Reject nodes outside the zones that the pod's bound volumes are labelled with."""

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
                    return rejection([VOLUME_ZONE], self.rules)
        except ClaimError as error:
            return Status.error(str(error))
        return None

    def _volume(self, cluster: Cluster, namespace: str, name: str) -> PersistentVolume | None:
        """The volume a claim is bound to; None for one that waits for its pod to be placed."""
        claim = find_claim(cluster, namespace, name)
        if claim.spec.volume_name:
            return find_volume(cluster, claim.spec.volume_name)
        if self.rules.claims_must_be_bound or not waits_for_consumer(cluster, claim):
            raise ClaimError(f'PersistentVolumeClaim is not bound: "{name}"')
        return None


def _is_elsewhere(volume: PersistentVolume, constraints: dict[str, str]) -> bool:
    """Whether a zone label of the volume names neither of the node's; one that cannot be read says nothing."""
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
    """Reject nodes that do not have the labels a bound local volume is annotated with."""

    name = "NoVolumeNodeConflict"
    reads = Aspect.LABELS | Aspect.OBJECTS

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._enabled = isinstance(args, LocalVolumeArgs) and args.enabled

    def concerns(self, info: PodInfo, cluster: Cluster) -> bool:
        return self._enabled and super().concerns(info, cluster)

    def check(self, pod: Pod, node: NodeInfo) -> Status | None:
        try:
            for name in claims(pod):
                claim = find_claim(node.cluster, pod.namespace, name)
                if not claim.spec.volume_name:
                    raise ClaimError(f'PersistentVolumeClaim is not bound: "{name}"')
                if not _is_for_node(find_volume(node.cluster, claim.spec.volume_name), node):
                    return rejection([VOLUME_NODE], self.rules)
        except ClaimError as error:
            return Status.error(str(error))
        return None


def _is_for_node(volume: PersistentVolume, node: NodeInfo) -> bool:
    """Whether the node meets all terms, not any, of the volume's annotated affinity."""
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
