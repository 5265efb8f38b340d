"""VolumeRestrictions: in-tree disks that cannot be shared, ReadWriteOncePod claims, claims that are not there."""

from __future__ import annotations

from typing import Any

import pytest

from builders import Fields, decide, make_config, make_node, rejections
from podium.cluster import Cluster, NodeInfo
from podium.framework import SKIP, CycleState
from podium.plugins.storage.volume_restrictions import VolumeRestrictions
from podium.rules import NEWEST_RULES
from storage_objects import ephemeral, inline, make_claim, make_volume, pod_with, uses

NODES = [make_node("a"), make_node("b")]
DISK = ("VolumeRestrictions", "Unschedulable", ("node(s) had no available disk",))
IN_USE = (
    "VolumeRestrictions",
    "Unschedulable",
    (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod",
    ),
)


def gce(name: str, **fields: Any) -> Fields:
    return {"gcePersistentDisk": {"pdName": name, **fields}}


def ebs(volume: str, **fields: Any) -> Fields:
    return {"awsElasticBlockStore": {"volumeID": volume, **fields}}


def iscsi(iqn: str, lun: int = 0, **fields: Any) -> Fields:
    return {"iscsi": {"targetPortal": "10.0.0.1", "iqn": iqn, "lun": lun, **fields}}


def rbd(*monitors: str, image: str = "image", **fields: Any) -> Fields:
    return {"rbd": {"monitors": list(monitors), "image": image, **fields}}


READ_ONLY: Fields = {"readOnly": True}

SHARED = {
    "the same GCE disk": (gce("x"), gce("x"), True),
    "another GCE disk": (gce("x"), gce("y"), False),
    "a GCE disk that one only reads": (gce("x", **READ_ONLY), gce("x"), True),
    "a GCE disk that the other only reads": (gce("x"), gce("x", **READ_ONLY), True),
    "a GCE disk that both only read": (gce("x", **READ_ONLY), gce("x", **READ_ONLY), False),
    "the same EBS volume": (ebs("vol-1"), ebs("vol-1"), True),
    "an EBS volume that both only read": (ebs("vol-1", **READ_ONLY), ebs("vol-1", **READ_ONLY), True),
    "one EBS volume, spelt in two ways": (ebs("vol-1"), ebs("aws:///vol-1"), False),
    "an iSCSI target": (iscsi("iqn.x"), iscsi("iqn.x"), True),
    "an iSCSI target, other unit": (iscsi("iqn.x", 0), iscsi("iqn.x", 1), True),
    "an iSCSI target that both only read": (iscsi("iqn.x", **READ_ONLY), iscsi("iqn.x", **READ_ONLY), False),
    "a Ceph image": (rbd("m1", "m2"), rbd("m2", "m3"), True),
    "a Ceph image of the same default pool": (rbd("m1"), rbd("m1", pool="rbd"), True),
    "a Ceph image of another pool": (rbd("m1"), rbd("m1", pool="other"), False),
    "a Ceph image without a monitor in common": (rbd("m1"), rbd("m2"), False),
    "another Ceph image": (rbd("m1"), rbd("m1", image="other"), False),
    "a Ceph image that both only read": (rbd("m1", **READ_ONLY), rbd("m1", **READ_ONLY), False),
    "names of different kinds": (gce("x"), ebs("x"), False),
}


@pytest.mark.parametrize(("there", "new", "conflicts"), SHARED.values(), ids=SHARED.keys())
def test_disks(there: Fields, new: Fields, conflicts: bool) -> None:
    existing = pod_with(inline(there), "existing", node="a")

    decision = decide([*NODES, existing], pod_with(inline(new)))

    assert rejections(decision) == ({"a": DISK} if conflicts else {})


def test_any_of_several_users_of_a_disk_may_be_the_writer() -> None:
    readers = [pod_with(inline(gce("x", **READ_ONLY)), f"reader-{n}", node="a") for n in range(2)]
    writer = pod_with(inline(gce("x")), "writer", node="a")
    reader = pod_with(inline(gce("x", **READ_ONLY)))

    assert rejections(decide([*NODES, *readers], reader)) == {}
    assert rejections(decide([*NODES, *readers, writer], reader)) == {"a": DISK}


def test_the_disk_is_free_again_once_its_user_is_gone() -> None:
    cluster = Cluster.from_objects([*NODES, user := pod_with(inline(gce("x")), "user", node="a")])
    pod = pod_with(inline(gce("x")))
    plugin, state = VolumeRestrictions.of_release(NEWEST_RULES), CycleState(cluster.infos.of(pod))
    plugin.pre_filter(state, pod, cluster.nodes)
    assert plugin.filter(state, pod, cluster.nodes).codes.tolist() == [1, 0]

    cluster.remove(user)

    assert plugin.filter(state, pod, cluster.nodes).codes.tolist() == [0, 0]


EXCLUSIVE = make_claim("data", modes=["ReadWriteOncePod"], volume="v", phase="Bound")


def test_an_exclusive_claim_in_use_anywhere_rules_out_every_node() -> None:
    objects = [*NODES, EXCLUSIVE, make_volume("v", claim=EXCLUSIVE, phase="Bound")]
    user = pod_with(uses("data"), "user", node="b")

    assert decide(objects, pod_with(uses("data"))).feasible == ("a", "b")
    used = decide([*objects, user], pod_with(uses("data")))

    assert rejections(used) == {"a": IN_USE, "b": IN_USE}


def test_an_exclusive_claim_of_the_same_name_in_another_namespace_is_another_one() -> None:
    cluster = Cluster.from_objects([*NODES, EXCLUSIVE, pod_with(uses("data"), "user", namespace="other", node="a")])
    pod = pod_with(uses("data"))

    outcome = VolumeRestrictions.of_release(NEWEST_RULES).pre_filter(
        CycleState(cluster.infos.of(pod)), pod, cluster.nodes
    )

    assert outcome.status == SKIP


def test_pods_added_and_removed_during_preemption_count() -> None:
    user = pod_with(uses("data"), "user", node="a")
    cluster = Cluster.from_objects([*NODES, EXCLUSIVE, user])
    pod, node = pod_with(uses("data")), NodeInfo(cluster, 0)
    plugin, state = VolumeRestrictions.of_release(NEWEST_RULES), CycleState(cluster.infos.of(pod))
    plugin.pre_filter(state, pod, cluster.nodes)
    trial = CycleState(state.info, state)

    plugin.remove_pod(trial, pod, user, node)
    assert plugin.filter(trial, pod, cluster.nodes).codes.tolist() == [0, 0]
    plugin.add_pod(trial, pod, user, node)
    assert plugin.filter(trial, pod, cluster.nodes).codes.tolist() == [2, 2]

    plugin.remove_pod(trial, pod, user, node)
    assert plugin.filter(state, pod, cluster.nodes).codes.tolist() == [2, 2]


def test_a_claim_that_is_not_there_rules_out_the_pod() -> None:
    decision = decide(NODES, pod_with(uses("nowhere")))

    assert decision.absent is not None
    assert (decision.absent.plugin, decision.absent.code.value) == (
        "VolumeRestrictions",
        "UnschedulableAndUnresolvable",
    )
    assert decision.message == '0/2 nodes are available: persistentvolumeclaim "nowhere" not found.'


@pytest.mark.parametrize("volumes", [[], [{"name": "scratch", "emptyDir": {}}], ephemeral("x")])
def test_other_volumes_are_not_its_business(volumes: list[Fields]) -> None:
    cluster, pod = Cluster.from_objects(NODES), pod_with(volumes)

    outcome = VolumeRestrictions.of_release(NEWEST_RULES).pre_filter(
        CycleState(cluster.infos.of(pod)), pod, cluster.nodes
    )

    assert outcome.status == SKIP


def test_it_can_be_disabled() -> None:
    config = make_config({"plugins": {"multiPoint": {"disabled": [{"name": "VolumeRestrictions"}]}}})
    existing = pod_with(inline(gce("x")), "existing", node="a")

    assert decide([*NODES, existing], pod_with(inline(gce("x"))), config).feasible == ("a", "b")
