"""Translates in-tree volumes to their CSI drivers: driver, volume handle and topology.

Kubernetes replaced its built-in storage plugins by CSI drivers, but objects still name the old ones. The scheduler
translates five of them; azure-file and vsphere-volume also have drivers, but it never counts their volumes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from podium.model import CSINode, NodeSelector, NodeSelectorTerm, PersistentVolume, SelectorRequirement, Volume
from podium.model.objects import BETA_REGION, BETA_ZONE, REGION, ZONE, PersistentVolumeSpec, VolumeNodeAffinity

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
