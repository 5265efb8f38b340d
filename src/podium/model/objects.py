"""Nodes, storage objects, and the controllers and policies that create, group, rank or protect pods; only the fields
that scheduling reads.
"""

from __future__ import annotations

import math
import re

import msgspec

from podium.errors import InputError
from podium.model.meta import (
    Count,
    Int32,
    Int64,
    LabelSelector,
    NodeSelector,
    Object,
    Quantity,
    ResourceList,
    Struct,
    integer,
)
from podium.model.pod import InTreeVolumeSources, PersistentVolumeClaimSpec, PodTemplateSpec

HOSTNAME = "kubernetes.io/hostname"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
"""The names of zone and region before v1.17; volumes and old nodes still have them."""
NODE_GROUP = "podium/node-group"
"""The label with the node group of a node, for groups that grow and shrink."""
PRICE_PER_HOUR = "podium/price-per-hour"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
"""The label with the price of a node, as a number."""


class Taint(Struct, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Struct, frozen=True):
    unschedulable: bool = False
    taints: list[Taint] = []


class ContainerImage(Struct, frozen=True):
    names: list[str] = []
    size_bytes: Int64 = 0


class NodeCondition(Struct, frozen=True):
    type: str = ""
    status: str = ""


class NodeSystemInfo(Struct, frozen=True):
    kubelet_version: str = ""


class NodeStatus(Struct, frozen=True):
    allocatable: ResourceList | None = None
    capacity: ResourceList = {}
    images: list[ContainerImage] = []
    conditions: list[NodeCondition] = []
    declared_features: list[str] = []
    node_info: NodeSystemInfo = NodeSystemInfo()


class Node(Object, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def allocatable(self) -> ResourceList:
        """What pods may use; the capacity if the API object does not say."""
        return self.status.capacity if self.status.allocatable is None else self.status.allocatable


class ObjectReference(Struct, frozen=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class CSIPersistentVolumeSource(Struct, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Struct, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(InTreeVolumeSources, frozen=True):
    capacity: ResourceList = {}
    access_modes: list[str] = []
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CSIPersistentVolumeSource | None = None


class PersistentVolumeStatus(Struct, frozen=True):
    phase: str = ""


class PersistentVolume(Object, frozen=True):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class PersistentVolumeClaimStatus(Struct, frozen=True):
    phase: str = ""
    capacity: ResourceList = {}


class PersistentVolumeClaim(Object, frozen=True):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"


BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotations of a claim that is being bound or is bound."""


def storage_class_of(item: PersistentVolumeClaim | PersistentVolume) -> str:
    """The storage class of a claim or volume, "" if it has none; the old annotation takes precedence."""
    return item.metadata.annotations.get(BETA_STORAGE_CLASS, item.spec.storage_class_name or "")


class TopologySelectorLabelRequirement(Struct, frozen=True):
    key: str = ""
    values: list[str] = []


class TopologySelectorTerm(Struct, frozen=True):
    match_label_expressions: list[TopologySelectorLabelRequirement] = []


class StorageClass(Object, frozen=True):
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: list[TopologySelectorTerm] = []
    parameters: dict[str, str] = {}


class VolumeNodeResources(Struct, frozen=True):
    count: Int32 | None = None


class CSINodeDriver(Struct, frozen=True):
    name: str = ""
    node_id: str = msgspec.field(name="nodeID", default="")
    topology_keys: list[str] = []
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Struct, frozen=True):
    drivers: list[CSINodeDriver] = []


class CSINode(Object, frozen=True):
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Struct, frozen=True):
    attach_required: bool = True
    storage_capacity: bool = False
    prevent_pod_scheduling_if_missing: bool = False


class CSIDriver(Object, frozen=True):
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Object, frozen=True):
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(Struct, frozen=True):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Struct, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachmentStatus(Struct, frozen=True):
    attached: bool = False


class VolumeAttachment(Object, frozen=True):
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()


_PERCENT = re.compile(r"([0-9]{1,9})%")


class Namespace(Object, frozen=True):
    """A namespace; its labels are matched by namespaceSelectors."""


class ServiceSpec(Struct, frozen=True):
    selector: dict[str, str] | None = None


class Service(Object, frozen=True):
    spec: ServiceSpec = ServiceSpec()


class PriorityClass(Object, frozen=True):
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None


class PodDisruptionBudgetSpec(Struct, frozen=True):
    selector: LabelSelector | None = None
    min_available: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Struct, frozen=True):
    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str | None] = {}


class PodDisruptionBudget(Object, frozen=True):
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class WorkloadSpec(Struct, frozen=True):
    """Deployment, ReplicaSet: a number of pods from one template."""

    replicas: Count = 1
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class RollingUpdate(Struct, frozen=True):
    """The bounds of a rolling update; for a StatefulSet, `partition` is the lowest ordinal that it updates."""

    max_surge: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None
    partition: Count = 0


class UpdateStrategy(Struct, frozen=True):
    """RollingUpdate, Recreate (of a Deployment) or OnDelete (of a StatefulSet or DaemonSet)."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class DeploymentSpec(WorkloadSpec, frozen=True):
    strategy: UpdateStrategy = UpdateStrategy()
    paused: bool = False


class Deployment(Object, frozen=True):
    spec: DeploymentSpec = DeploymentSpec()


class ReplicaSet(Object, frozen=True):
    spec: WorkloadSpec = WorkloadSpec()


class StatefulSetOrdinals(Struct, frozen=True):
    start: Count = 0


class StatefulSetSpec(WorkloadSpec, frozen=True):
    volume_claim_templates: list[PersistentVolumeClaim] = []
    ordinals: StatefulSetOrdinals = StatefulSetOrdinals()
    update_strategy: UpdateStrategy = UpdateStrategy()
    pod_management_policy: str = "OrderedReady"


class StatefulSet(Object, frozen=True):
    spec: StatefulSetSpec = StatefulSetSpec()


class ReplicationControllerSpec(Struct, frozen=True):
    replicas: Count = 1
    selector: dict[str, str] = {}
    template: PodTemplateSpec | None = None


class ReplicationController(Object, frozen=True):
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class DaemonSetSpec(Struct, frozen=True):
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    update_strategy: UpdateStrategy = UpdateStrategy()


class DaemonSet(Object, frozen=True):
    spec: DaemonSetSpec = DaemonSetSpec()


class JobSpec(Struct, frozen=True):
    parallelism: Count = 1
    completions: Count | None = None
    suspend: bool = False
    template: PodTemplateSpec = PodTemplateSpec()


class JobStatus(Struct, frozen=True):
    succeeded: Count = 0


class Job(Object, frozen=True):
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplateSpec(Struct, frozen=True):
    spec: JobSpec = JobSpec()


class CronJobSpec(Struct, frozen=True):
    suspend: bool = False
    job_template: JobTemplateSpec = JobTemplateSpec()


class CronJob(Object, frozen=True):
    spec: CronJobSpec = CronJobSpec()


Scaled = Deployment | ReplicaSet | ReplicationController | StatefulSet
SCALED = (Deployment, ReplicaSet, ReplicationController, StatefulSet)
"""The workloads with a number of replicas."""
TEMPLATED = (*SCALED, DaemonSet)
"""The workloads that replace their pods when their template changes."""
WORKLOADS = (*TEMPLATED, Job)
"""The workloads that own pods or ReplicaSets."""


class CrossVersionObjectReference(Struct, frozen=True):
    kind: str = ""
    name: str = ""


class HorizontalPodAutoscalerSpec(Struct, frozen=True):
    scale_target_ref: CrossVersionObjectReference = CrossVersionObjectReference()
    min_replicas: Count | None = None
    max_replicas: Count = 0


class HorizontalPodAutoscaler(Object, frozen=True):
    """Its bounds limit how many pods a workload may have."""

    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()


class LimitRangeItem(Struct, frozen=True):
    """The limits of one type of object: Container, Pod or PersistentVolumeClaim."""

    type: str = ""
    max: ResourceList = {}
    min: ResourceList = {}
    default: ResourceList = {}
    default_request: ResourceList = {}
    max_limit_request_ratio: ResourceList = {}


class LimitRangeSpec(Struct, frozen=True):
    limits: list[LimitRangeItem] = []


class LimitRange(Object, frozen=True):
    """Bounds of what a container or pod of a namespace asks for, and the defaults."""

    spec: LimitRangeSpec = LimitRangeSpec()


class ScopedResourceSelectorRequirement(Struct, frozen=True):
    scope_name: str = ""
    operator: str = ""
    values: list[str] = []


class ScopeSelector(Struct, frozen=True):
    match_expressions: list[ScopedResourceSelectorRequirement] = []


class ResourceQuotaSpec(Struct, frozen=True):
    hard: ResourceList = {}
    scopes: list[str] = []
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Struct, frozen=True):
    used: ResourceList = {}


class ResourceQuota(Object, frozen=True):
    """How much the pods of a namespace may ask for in total."""

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


def int_or_percent(value: int | str, of: int, *, up: bool) -> int:
    """A number as it is, or a percentage of `of` rounded up or down; InputError for anything else."""
    if isinstance(value, int):
        return value
    match = _PERCENT.fullmatch(value.strip())
    if match is None:
        raise InputError(f"{value!r} must be a number or a percentage such as 50%")
    percent = integer(match[1])
    return math.ceil(percent * of / 100) if up else percent * of // 100
