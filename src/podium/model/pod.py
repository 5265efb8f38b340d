"""Pod: the parts of its spec and status that scheduling reads, and functions that tell kinds of pods apart."""

from __future__ import annotations

import msgspec

from podium.model.meta import (
    Int32,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Object,
    ObjectMeta,
    ResourceList,
    Struct,
)


class GCEPersistentDisk(Struct, frozen=True):
    pd_name: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AWSElasticBlockStore(Struct, frozen=True):
    volume_id: str = msgspec.field(name="volumeID", default="")
    partition: Int32 = 0
    read_only: bool = False


class AzureDisk(Struct, frozen=True):
    disk_name: str = ""
    disk_uri: str = msgspec.field(name="diskURI", default="")
    kind: str = "Shared"
    read_only: bool | None = None


class AzureFile(Struct, frozen=True):
    secret_name: str = ""
    share_name: str = ""
    read_only: bool = False


class Cinder(Struct, frozen=True):
    volume_id: str = msgspec.field(name="volumeID", default="")
    read_only: bool = False


class ISCSI(Struct, frozen=True):
    target_portal: str = ""
    iqn: str = ""
    lun: Int32 = 0
    read_only: bool = False


class RBD(Struct, frozen=True):
    monitors: list[str] = []
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class CSIVolumeSource(Struct, frozen=True):
    """An inline CSI volume of a pod."""

    driver: str = ""
    read_only: bool | None = None


class PersistentVolumeClaimVolumeSource(Struct, frozen=True):
    claim_name: str = ""
    read_only: bool = False


class PersistentVolumeClaimResources(Struct, frozen=True):
    requests: ResourceList = {}
    limits: ResourceList = {}


class PersistentVolumeClaimSpec(Struct, frozen=True):
    access_modes: list[str] = []
    selector: LabelSelector | None = None
    resources: PersistentVolumeClaimResources = PersistentVolumeClaimResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimTemplate(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(Struct, frozen=True):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class ImageVolumeSource(Struct, frozen=True):
    reference: str = ""


class VsphereVolume(Struct, frozen=True):
    volume_path: str = ""


class PortworxVolume(Struct, frozen=True):
    volume_id: str = msgspec.field(name="volumeID", default="")


class EmptyDirVolumeSource(Struct, frozen=True):
    medium: str = ""


class HostPathVolumeSource(Struct, frozen=True):
    path: str = ""


class InTreeVolumeSources(Struct, frozen=True):
    """The in-tree disks that a pod's volume and a PersistentVolume name in the same way; at most one is set."""

    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: Cinder | None = None
    iscsi: ISCSI | None = None
    rbd: RBD | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None


class Volume(InTreeVolumeSources, frozen=True):
    name: str = ""
    empty_dir: EmptyDirVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    image: ImageVolumeSource | None = None


class ContainerPort(Struct, frozen=True):
    container_port: Int32 = 0
    host_port: Int32 = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(name="hostIP", default="")


class ContainerClaim(Struct, frozen=True):
    name: str = ""
    request: str = ""


class ResourceRequirements(Struct, frozen=True):
    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: list[ContainerClaim] = []


class ContainerRestartRule(Struct, frozen=True):
    action: str = ""


class Container(Struct, frozen=True):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: list[ContainerPort] = []
    restart_policy: str = ""
    restart_policy_rules: list[ContainerRestartRule] = []


class Toleration(Struct, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class PreferredSchedulingTerm(Struct, frozen=True):
    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Struct, frozen=True):
    required: NodeSelector | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: list[PreferredSchedulingTerm] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default_factory=list
    )


class PodAffinityTerm(Struct, frozen=True):
    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(Struct, frozen=True):
    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Struct, frozen=True):
    """Pod affinity or anti-affinity: the two have the same shape."""

    required: list[PodAffinityTerm] = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default_factory=list
    )
    preferred: list[WeightedPodAffinityTerm] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default_factory=list
    )


class Affinity(Struct, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Struct, frozen=True):
    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] = []


class PodSchedulingGate(Struct, frozen=True):
    name: str = ""


class PodResourceClaim(Struct, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Struct, frozen=True):
    """The PodGroup that a pod belongs to, in the pod's namespace."""

    pod_group_name: str = ""


DEFAULT_SCHEDULER_NAME = "default-scheduler"


class PodSpec(Struct, frozen=True):
    node_name: str = ""
    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    containers: list[Container] = []
    init_containers: list[Container] = []
    resources: ResourceRequirements | None = None
    overhead: ResourceList = {}
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    scheduling_gates: list[PodSchedulingGate] = []
    scheduling_group: PodSchedulingGroup | None = None
    resource_claims: list[PodResourceClaim] = []
    volumes: list[Volume] = []
    host_network: bool = False
    host_users: bool | None = None
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None


class ContainerStatus(Struct, frozen=True):
    """The part of a container's status that in-place resizing sets."""

    name: str = ""
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None


class PodCondition(Struct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""


class PodResourceClaimStatus(Struct, frozen=True):
    """The claim that was created for an entry of spec.resourceClaims; None if none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Struct, frozen=True):
    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(Struct, frozen=True):
    request_mappings: list[ContainerExtendedResourceRequest] = []
    resource_claim_name: str = ""


class PodStatus(Struct, frozen=True):
    phase: str = ""
    nominated_node_name: str = ""
    start_time: str | None = None
    conditions: list[PodCondition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None
    resource_claim_statuses: list[PodResourceClaimStatus] = []
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class Pod(Object, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def finished(self) -> bool:
        """Whether the pod has succeeded or failed: the scheduler ignores finished pods."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def group_key(self) -> str:
        """Namespace and name of the PodGroup that the pod belongs to; empty for a pod without one."""
        group = self.spec.scheduling_group
        return "" if group is None else f"{self.metadata.namespace}/{group.pod_group_name}"


class PodTemplateSpec(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
"""The annotation of a mirror pod: the API server's copy of a static pod, which its kubelet runs from a file."""


def is_static(pod: Pod) -> bool:
    """Whether the pod is the mirror of a static pod: its node runs it, and deleting the mirror does not end it."""
    owner = pod.metadata.controller
    return MIRROR_ANNOTATION in pod.metadata.annotations or (owner is not None and owner.kind == "Node")


def is_of_daemon_set(pod: Pod) -> bool:
    """Whether a DaemonSet controls the pod: there is one on each eligible node."""
    owner = pod.metadata.controller
    return owner is not None and owner.kind == "DaemonSet"


def belongs_to_node(pod: Pod) -> bool:
    """Whether the pod comes and goes with its node: a DaemonSet's pod, or a mirror pod.

    A drain leaves it where it is, and no replacement is created for another node.
    """
    return is_static(pod) or is_of_daemon_set(pod)


def ends_with_node(pod: Pod) -> bool:
    """Whether a pod is not moved when its node is drained or removed: it belongs to the node or is terminating."""
    return pod.terminating or belongs_to_node(pod)


def is_reported_ready(pod: Pod) -> bool:
    """Whether no condition says that the pod is not ready; pods that are written by hand have no conditions."""
    return next((each.status for each in pod.status.conditions if each.type == "Ready"), "True") == "True"


def is_recreated(pod: Pod) -> bool:
    """Whether a controller creates a new pod when this one is evicted or lost: any controller but a kubelet.

    Custom controllers count, for example those of Argo Rollouts. A DaemonSet creates its new pod for the same node.
    """
    return pod.metadata.controller is not None and not is_static(pod)


def has_objects_of_its_own(pod: Pod) -> bool:
    """Whether the pod uses objects that are created for it alone and found by its name.

    These are the claims of generic ephemeral volumes. Two of these pods with equal specs need not fit the same nodes.
    """
    return any(volume.ephemeral is not None for volume in pod.spec.volumes)


def is_placed(pod: Pod) -> bool:
    """Whether a pod occupies a node, or will once preemption has made room."""
    return bool(pod.spec.node_name or pod.status.nominated_node_name)


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """The name of a volume's claim; None for a volume without a claim.

    The claim of a generic ephemeral volume is named after the pod and the volume.
    """
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else None
