"""In-tree volumes in the words of their CSI drivers."""

from __future__ import annotations

from typing import Any

import pytest

from builders import ZONE, Fields, expression
from podium.model import NodeSelectorTerm
from podium.plugins.storage.csi_translation import (
    AttachedVolume,
    TranslationError,
    inline_volume,
    persistent_volume,
    translate_affinity,
)
from storage_objects import inline, make_volume, on_label, pod_with

REGION = "topology.kubernetes.io/region"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
EBS, GKE, CINDER = (
    "topology.ebs.csi.aws.com/zone",
    "topology.gke.io/zone",
    "topology.cinder.csi.openstack.org/zone",
)

SOURCES: dict[str, tuple[Fields, AttachedVolume | None]] = {
    "EBS": ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, AttachedVolume("ebs.csi.aws.com", "vol-1")),
    "EBS with its zone": (
        {"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-1"}},
        AttachedVolume("ebs.csi.aws.com", "vol-1"),
    ),
    "EBS as an URL": (
        {"awsElasticBlockStore": {"volumeID": "aws:///vol-1"}},
        AttachedVolume("ebs.csi.aws.com", "vol-1"),
    ),
    "GCE": (
        {"gcePersistentDisk": {"pdName": "disk"}},
        AttachedVolume("pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk"),
    ),
    "Azure": (
        {"azureDisk": {"diskName": "d", "diskURI": "uri", "kind": "Managed"}},
        AttachedVolume("disk.csi.azure.com", "uri"),
    ),
    "Cinder": ({"cinder": {"volumeID": "id"}}, AttachedVolume("cinder.csi.openstack.org", "id")),
    "Portworx": ({"portworxVolume": {"volumeID": "id"}}, AttachedVolume("pxd.portworx.com", "id")),
    "vSphere": ({"vsphereVolume": {"volumePath": "path"}}, None),
    "NFS": ({"nfs": {"server": "s", "path": "/"}}, None),
}


@pytest.mark.parametrize(("source", "expected"), SOURCES.values(), ids=SOURCES.keys())
def test_volumes(source: Fields, expected: AttachedVolume | None) -> None:
    # One that no plugin can know more of than its name is left out when pods are loaded.
    volumes = pod_with(inline(source)).spec.volumes
    assert [inline_volume(volume) for volume in volumes] == [expected] * len(volumes)
    assert len(volumes) == ("nfs" not in source)
    assert persistent_volume(make_volume("v", **source)) == expected


REFUSED: dict[str, Fields] = {
    "an EBS id that is none": {"awsElasticBlockStore": {"volumeID": "aws://zone/disk"}},
    "an EBS id with more of a path": {"awsElasticBlockStore": {"volumeID": "aws://zone/a/vol-1"}},
    "an EBS id that is no URL": {"awsElasticBlockStore": {"volumeID": "aws://["}},
    "an Azure disk without kind, which is Shared": {"azureDisk": {"diskURI": "uri"}},
    "a dedicated Azure disk": {"azureDisk": {"diskURI": "uri", "kind": "Dedicated"}},
}


@pytest.mark.parametrize("source", REFUSED.values(), ids=REFUSED.keys())
def test_volumes_that_cannot_be_translated(source: Fields) -> None:
    with pytest.raises(TranslationError):
        persistent_volume(make_volume("v", **source))


HANDLES = {
    "a zone": ({ZONE: "us-east1-b"}, "projects/UNSPECIFIED/zones/us-east1-b/disks/disk"),
    "the old label before the current one": (
        {ZONE: "us-east1-b", OLD_ZONE: "us-east1-c"},
        "projects/UNSPECIFIED/zones/us-east1-c/disks/disk",
    ),
    "two zones of a region": ({ZONE: "us-east1-b__us-east1-c"}, "projects/UNSPECIFIED/regions/us-east1/disks/disk"),
}


@pytest.mark.parametrize(("labels", "handle"), HANDLES.values(), ids=HANDLES.keys())
def test_a_gce_disk_is_known_by_its_zone(labels: dict[str, str], handle: str) -> None:
    volume = make_volume("v", labels=labels, gcePersistentDisk={"pdName": "disk"})

    assert persistent_volume(volume) == AttachedVolume("pd.csi.storage.gke.io", handle)


@pytest.mark.parametrize("zones", ["us-east1-b__us-west1-c", "us-east1-b__somewhere"])
def test_a_gce_disk_of_zones_that_share_no_region(zones: str) -> None:
    with pytest.raises(TranslationError):
        persistent_volume(make_volume("v", labels={ZONE: zones}, gcePersistentDisk={"pdName": "disk"}))


GCE_DISK: Fields = {"gcePersistentDisk": {"pdName": "disk"}}
EBS_DISK: Fields = {"awsElasticBlockStore": {"volumeID": "vol-1"}}

TOPOLOGIES: dict[str, tuple[dict[str, Any], list[list[Fields]] | None]] = {
    "nothing said": (EBS_DISK, None),
    "a zone": ({"nodes": on_label(ZONE, "x"), **EBS_DISK}, [on_label(EBS, "x")]),
    "a zone on GCE": ({"nodes": on_label(ZONE, "x"), **GCE_DISK}, [on_label(GKE, "x")]),
    "a zone on Cinder": ({"nodes": on_label(ZONE, "x"), "cinder": {"volumeID": "v"}}, [on_label(CINDER, "x")]),
    "an old zone": ({"nodes": on_label(OLD_ZONE, "x"), **EBS_DISK}, [on_label(EBS, "x")]),
    "an old region beside an old zone": (
        {"nodes": [*on_label(OLD_ZONE, "x"), *on_label(OLD_REGION, "r")], **EBS_DISK},
        [[*on_label(EBS, "x"), *on_label(REGION, "r")]],
    ),
    "a zone that is excluded": (
        {"nodes": [expression(ZONE, "NotIn", "x")], **EBS_DISK},
        [[expression(EBS, "NotIn", "x")]],
    ),
    "zones of the labels": ({"labels": {ZONE: "y__x"}, **EBS_DISK}, [on_label(EBS, "x", "y")]),
    "zones of the labels, besides what else is asked": (
        {"labels": {ZONE: "x"}, "nodes": on_label("disk", "ssd"), **EBS_DISK},
        [[*on_label("disk", "ssd"), *on_label(EBS, "x")]],
    ),
    "a blank label": ({"labels": {ZONE: ""}, **EBS_DISK}, None),
    "Azure, which keeps its own": (
        {"nodes": on_label(ZONE, "x"), "azureDisk": {"diskURI": "u", "kind": "Managed"}},
        [on_label(ZONE, "x")],
    ),
}


@pytest.mark.parametrize(("volume", "expected"), TOPOLOGIES.values(), ids=TOPOLOGIES.keys())
def test_topology(volume: dict[str, Any], expected: list[list[Fields]] | None) -> None:
    affinity = translate_affinity(make_volume("v", **volume))

    assert (expected is None) == (affinity is None)
    if affinity is not None and expected is not None:
        assert affinity.required is not None
        assert affinity.required.node_selector_terms == [_term(expressions) for expressions in expected]


def _term(expressions: list[Fields]) -> NodeSelectorTerm:
    affinity = make_volume("v", nodes=expressions).spec.node_affinity
    assert affinity is not None
    assert affinity.required is not None
    (term,) = affinity.required.node_selector_terms
    return term
