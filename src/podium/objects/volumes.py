"""A pod's volumes: the sources that decide where it can go."""

from __future__ import annotations

import msgspec

from podium.objects.meta import Int32, LabelSelector, ObjectMeta, ResourceList, Struct


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


class Volume(Struct, frozen=True):
    name: str = ""
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: Cinder | None = None
    iscsi: ISCSI | None = None
    rbd: RBD | None = None
    csi: CSIVolumeSource | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    image: ImageVolumeSource | None = None
