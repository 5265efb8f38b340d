"""Queueing hints of the plugins that look at volumes."""

from __future__ import annotations

from typing import Any

import pytest

from builders import ZONE, make_node, make_object, make_pod
from loop.test_hints import wakes
from podium.model import Object, Pod


def claim(name: str = "data", namespace: str = "default") -> Object:
    return make_object("PersistentVolumeClaim", name, namespace=namespace, spec={"accessModes": ["ReadWriteOnce"]})


def volume(**labels: str) -> Object:
    return make_object("PersistentVolume", "pv", labels=labels, spec={"capacity": {"storage": "1Gi"}})


def storage(kind: str, name: str, **fields: Any) -> Object:
    return make_object(kind, name, **fields)


def using(*volumes: dict[str, Any], name: str = "waiting", **fields: Any) -> Pod:
    return make_pod(name, volumes=[{"name": f"v{number}", **one} for number, one in enumerate(volumes)], **fields)


DATA = {"persistentVolumeClaim": {"claimName": "data"}}
SCRATCH = {"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}}
EBS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
GCE_READ = {"gcePersistentDisk": {"pdName": "disk", "readOnly": True}}
POD = using(DATA)
WAITS, AT_ONCE = (
    make_object("StorageClass", "fast", volumeBindingMode=mode, provisioner="x")
    for mode in ("WaitForFirstConsumer", "Immediate")
)
TOPOLOGY = make_object(
    "StorageClass",
    "fast",
    provisioner="x",
    volumeBindingMode="Immediate",
    allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}],
)


def capacity(size: str | None, largest: str | None = None) -> Object:
    fields = {"capacity": size, "maximumVolumeSize": largest}
    given = {name: value for name, value in fields.items() if value is not None}
    return storage("CSIStorageCapacity", "c", namespace="default", storageClassName="fast", **given)


def csi_node(count: int | None, **annotations: str) -> Object:
    allocatable = {} if count is None else {"allocatable": {"count": count}}
    spec = {"drivers": [{"name": "csi.x", "nodeID": "n", **allocatable}]}
    return storage("CSINode", "n", annotations=annotations, spec=spec)


def driver(*, capacity: bool) -> Object:
    return storage("CSIDriver", "csi.x", spec={"storageCapacity": capacity})


def attachment(attacher: str) -> Object:
    return storage("VolumeAttachment", "a", spec={"attacher": attacher, "nodeName": "n"})


@pytest.mark.parametrize(
    ("plugin", "pod", "old", "new", "expected"),
    [
        ("VolumeBinding", POD, None, claim(), True),
        ("VolumeBinding", POD, claim(), claim(), True),
        ("VolumeBinding", POD, None, claim("other"), False),
        ("VolumeBinding", POD, None, claim(namespace="team"), False),
        ("VolumeBinding", using(SCRATCH), None, claim("waiting-v0"), True),
        ("VolumeBinding", POD, None, volume(), True),
        ("VolumeBinding", POD, None, AT_ONCE, True),
        ("VolumeBinding", POD, AT_ONCE, TOPOLOGY, True),
        ("VolumeBinding", POD, AT_ONCE, AT_ONCE, False),
        ("VolumeBinding", POD, None, capacity("1Gi"), True),
        ("VolumeBinding", POD, capacity("1Gi"), capacity("2Gi"), True),
        ("VolumeBinding", POD, capacity("2Gi"), capacity("1Gi"), False),
        ("VolumeBinding", POD, capacity("2Gi", "1Gi"), capacity("3Gi", "1Gi"), False),
        ("VolumeBinding", POD, capacity(None), capacity("1Gi"), True),
        ("VolumeBinding", POD, None, csi_node(1), True),
        ("VolumeBinding", POD, csi_node(1), csi_node(2), False),
        ("VolumeBinding", POD, csi_node(1), csi_node(1, **{"storage.alpha.kubernetes.io/migrated-plugins": "x"}), True),
        ("VolumeBinding", using({"csi": {"driver": "csi.x"}}), driver(capacity=True), driver(capacity=False), True),
        ("VolumeBinding", POD, driver(capacity=True), driver(capacity=False), False),
        ("VolumeBinding", using({"csi": {"driver": "csi.x"}}), driver(capacity=False), driver(capacity=True), False),
        ("VolumeBinding", POD, None, make_node("n"), True),
        ("VolumeBinding", POD, make_pod("other", node="n"), None, False),
        ("VolumeZone", POD, None, WAITS, True),
        ("VolumeZone", POD, None, AT_ONCE, False),
        ("VolumeZone", POD, None, claim(), True),
        ("VolumeZone", using(SCRATCH), None, claim("waiting-v0"), False),
        ("VolumeZone", POD, None, volume(), True),
        ("VolumeZone", POD, volume(**{ZONE: "a"}), volume(**{ZONE: "b"}), True),
        ("VolumeZone", POD, volume(**{ZONE: "a"}), volume(**{ZONE: "a", "x": "y"}), False),
        ("VolumeRestrictions", POD, using(DATA, name="other", node="n"), None, True),
        ("VolumeRestrictions", POD, using(DATA, name="other", node="n", namespace="team"), None, False),
        ("VolumeRestrictions", POD, make_pod("other", node="n"), None, False),
        ("VolumeRestrictions", using(EBS), using(EBS, name="other", node="n"), None, True),
        ("VolumeRestrictions", using(GCE_READ), using(GCE_READ, name="other", node="n"), None, False),
        ("VolumeRestrictions", POD, None, claim(), True),
        ("VolumeRestrictions", POD, None, make_node("n"), True),
        ("NodeVolumeLimits", POD, None, csi_node(1), True),
        ("NodeVolumeLimits", POD, csi_node(1), csi_node(2), True),
        ("NodeVolumeLimits", POD, csi_node(None), csi_node(1), True),
        ("NodeVolumeLimits", POD, csi_node(2), csi_node(1), False),
        ("NodeVolumeLimits", POD, using(DATA, name="other", node="n"), None, True),
        ("NodeVolumeLimits", POD, using(EBS, name="other", node="n"), None, True),
        ("NodeVolumeLimits", POD, using({"csi": {"driver": "x"}}, name="other", node="n"), None, False),
        ("NodeVolumeLimits", POD, using(DATA, name="other"), None, False),
        ("NodeVolumeLimits", POD, None, claim(), True),
        ("NodeVolumeLimits", POD, attachment("any"), None, True),
        ("NodeVolumeLimits", using(EBS), attachment("ebs.csi.aws.com"), None, True),
        ("NodeVolumeLimits", using(EBS), attachment("pd.csi.storage.gke.io"), None, False),
        ("NodeVolumeLimits", POD, None, make_node("n"), False),
    ],
)
def test_an_event_is_worth_another_try(
    plugin: str, pod: Pod, old: Object | None, new: Object | None, expected: bool
) -> None:
    assert wakes(plugin, pod, old, new) == expected
