"""PersistentVolume, PersistentVolumeClaim, StorageClass and the CSI objects."""

from __future__ import annotations

import msgspec

from podium.model.meta import Int32, LabelSelector, NodeSelector, Object, Quantity, ResourceList, Struct
from podium.model.pod import (
    ISCSI,
    RBD,
    AWSElasticBlockStore,
    AzureDisk,
    AzureFile,
    Cinder,
    GCEPersistentDisk,
    PersistentVolumeClaimSpec,
    PortworxVolume,
    VsphereVolume,
)


class ObjectReference(Struct, frozen=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class CSIPersistentVolumeSource(Struct, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Struct, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Struct, frozen=True):
    capacity: ResourceList = {}
    access_modes: list[str] = []
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CSIPersistentVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: Cinder | None = None
    iscsi: ISCSI | None = None
    rbd: RBD | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None


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
