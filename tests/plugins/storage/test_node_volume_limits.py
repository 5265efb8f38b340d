"""NodeVolumeLimits: what a node's CSINode allows, and what counts against it."""

from __future__ import annotations

import pytest

from builders import Fields, decide, make_config, make_node, rejections
from csi_objects import DRIVER, make_attachment, make_csi_node
from podium.cluster import Cluster, Nodes
from podium.framework import SKIP, CycleState
from podium.model import Object, Pod
from podium.plugins.storage.node_volume_limits import NodeVolumeLimits
from podium.rules import NEWEST_RULES
from storage_objects import bound, ephemeral, inline, make_claim, make_class, make_volume, pod_with, uses

NODE = make_node("a")
FULL = ("NodeVolumeLimits", "Unschedulable", ("node(s) exceed max volume count",))
EBS, GCE, AZURE = "ebs.csi.aws.com", "pd.csi.storage.gke.io", "disk.csi.azure.com"

ONLY_LIMITS = make_config(
    {
        "plugins": {
            "multiPoint": {
                "disabled": [{"name": name} for name in ("VolumeRestrictions", "VolumeBinding", "VolumeZone")]
            }
        }
    }
)
"""The other storage plugins would reject what is worth asking here."""


def is_full(objects: list[Object], pod: Pod) -> bool:
    decision = decide([NODE, *objects], pod, ONLY_LIMITS)
    assert decision.error == ""
    assert rejections(decision) in ({}, {"a": FULL})
    return bool(decision.rejected)


def limit(count: int | None, driver: str = DRIVER) -> Object:
    return make_csi_node("a", {driver: count})


def there(volumes: list[Fields], name: str = "there") -> Pod:
    return pod_with(volumes, name, node="a")


TWO_BOUND = [*bound("data"), *bound("more")]
EBS_DISK = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
OTHER_EBS_DISK = {"awsElasticBlockStore": {"volumeID": "vol-2"}}
GCE_DISK = {"gcePersistentDisk": {"pdName": "disk", "readOnly": True}}

COUNTED: dict[str, tuple[list[Object], list[Fields], bool]] = {
    "room for one": ([limit(1), *bound()], uses("data"), False),
    "no room": ([limit(0), *bound()], uses("data"), True),
    "a volume too many of one pod": ([limit(1), *TWO_BOUND], uses("data", "more"), True),
    "a claim used twice is one volume": ([limit(1), *bound()], uses("data", "data"), False),
    "the place is taken": ([limit(1), *TWO_BOUND, there(uses("data"))], uses("more"), True),
    "the volume is there already": ([limit(1), *bound(), there(uses("data"))], uses("data"), False),
    "the volume is there, above the limit": ([limit(0), *bound(), there(uses("data"))], uses("data"), False),
    "one of two is there already": ([limit(2), *TWO_BOUND, there(uses("data"))], uses("data", "more"), False),
    "a volume shared by pods counts once": (
        [limit(2), *TWO_BOUND, there(uses("data"), "x"), there(uses("data"), "y")],
        uses("more"),
        False,
    ),
    "no CSINode": ([*bound()], uses("data"), False),
    "the CSINode of another node": ([make_csi_node("b", {DRIVER: 0}), *bound()], uses("data"), False),
    "no limit": ([limit(None), *bound()], uses("data"), False),
    "a limit of another driver": ([limit(0, EBS), *bound()], uses("data"), False),
    "a claim yet to be bound": ([limit(0), make_class("c"), make_claim("data", storage_class="c")], uses("data"), True),
    "a claim yet to be bound, there already": (
        [limit(1), make_class("c"), make_claim("data", storage_class="c"), there(uses("data"))],
        uses("data"),
        False,
    ),
    "a claim whose class is not there": ([limit(0), make_claim("data", storage_class="c")], uses("data"), False),
    "a claim without class": ([limit(0), make_claim("data", storage_class=None)], uses("data"), False),
    "a claim whose volume is not there": (
        [limit(0), make_class("c"), make_claim("data", storage_class="c", volume="gone")],
        uses("data"),
        True,
    ),
    "a volume without driver": (
        [limit(0), make_claim("data", volume="v"), make_volume("v", local={"path": "/disk"})],
        uses("data"),
        False,
    ),
    "an in-tree class": (
        [limit(0, EBS), make_class("c", "kubernetes.io/aws-ebs"), make_claim("data", storage_class="c")],
        uses("data"),
        True,
    ),
    "an in-tree class that is never counted": (
        [
            limit(0, "csi.vsphere.vmware.com"),
            make_class("c", "kubernetes.io/vsphere-volume"),
            make_claim("data", storage_class="c"),
        ],
        uses("data"),
        False,
    ),
    "an in-tree volume": (
        [limit(0, GCE), make_claim("data", volume="v"), make_volume("v", gcePersistentDisk={"pdName": "disk"})],
        uses("data"),
        True,
    ),
    "an in-tree volume that cannot be translated": (
        [limit(0, AZURE), make_claim("data", volume="v"), make_volume("v", azureDisk={"diskURI": "uri"})],
        uses("data"),
        False,
    ),
    "an inline in-tree disk": ([limit(0, EBS)], inline(EBS_DISK), True),
    "the same inline in-tree disk": ([limit(1, GCE), there(inline(GCE_DISK))], inline(GCE_DISK), False),
    "another inline in-tree disk": ([limit(1, EBS), there(inline(OTHER_EBS_DISK))], inline(EBS_DISK), True),
    "an attachment of an unused volume": (
        [limit(1), *TWO_BOUND, make_attachment("x", "a", "more-volume")],
        uses("data"),
        True,
    ),
    "an attachment of a volume in use": (
        [limit(2), *TWO_BOUND, there(uses("more")), make_attachment("x", "a", "more-volume")],
        uses("data"),
        False,
    ),
    # The scheduler takes off only what pods use, so such a volume counts twice.
    "an attachment of the new volume itself": (
        [limit(1), *bound(), make_attachment("x", "a", "data-volume")],
        uses("data"),
        True,
    ),
    "an attachment of another node": (
        [limit(1), *TWO_BOUND, make_attachment("x", "b", "more-volume")],
        uses("data"),
        False,
    ),
    "an attachment without attacher": (
        [limit(1), *TWO_BOUND, make_attachment("x", "a", "more-volume", "")],
        uses("data"),
        False,
    ),
    "an attachment without volume": ([limit(1), *TWO_BOUND, make_attachment("x", "a", None)], uses("data"), False),
    "an attachment of a volume that is gone": (
        [limit(1), *TWO_BOUND, make_attachment("x", "a", "gone")],
        uses("data"),
        False,
    ),
    "a pod there whose claim is not": ([limit(1), *bound(), there(uses("gone"))], uses("data"), False),
}


@pytest.mark.parametrize(("objects", "volumes", "full"), COUNTED.values(), ids=COUNTED.keys())
def test_counting(objects: list[Object], volumes: list[Fields], full: bool) -> None:
    assert is_full(objects, pod_with(volumes)) is full


def test_an_ephemeral_volume_counts_like_its_claim() -> None:
    pod = pod_with(ephemeral("scratch"))
    claim = make_claim("pod-scratch", storage_class="c", owner=pod)

    assert is_full([limit(0), make_class("c"), claim], pod)
    assert not is_full([limit(1), make_class("c"), claim], pod)


def test_another_pods_ephemeral_claim_is_an_error() -> None:
    objects = [NODE, limit(1), make_class("c"), make_claim("pod-scratch", storage_class="c")]

    decision = decide(objects, pod_with(ephemeral("scratch")), ONLY_LIMITS)

    assert "PVC default/pod-scratch was not created for pod default/pod (pod is not owner)" in decision.error


def test_a_pod_there_with_anothers_ephemeral_claim_is_an_error_where_there_are_limits() -> None:
    stranger = there(ephemeral("scratch"), "stranger")
    objects = [NODE, *bound(), make_claim("stranger-scratch", storage_class="c"), stranger]

    assert "pod is not owner" in decide([*objects, limit(5)], pod_with(uses("data")), ONLY_LIMITS).error
    assert decide([*objects, limit(None)], pod_with(uses("data")), ONLY_LIMITS).node == "a"


def test_a_claim_that_is_not_there_rules_out_all_nodes() -> None:
    decision = decide([NODE, make_node("b"), limit(1)], pod_with(uses("gone")), ONLY_LIMITS)

    reason = 'looking up PVC default/gone: persistentvolumeclaim "gone" not found'
    rejected = ("NodeVolumeLimits", "UnschedulableAndUnresolvable", (reason,))
    assert rejections(decision) == {"a": rejected, "b": rejected}


def test_an_inline_disk_that_cannot_be_translated_is_an_error_only_where_it_would_be() -> None:
    pod = pod_with(inline({"awsElasticBlockStore": {"volumeID": "aws://zone/disk"}}))

    assert "converting volume(v0) from inline to csi" in decide([NODE, limit(1)], pod, ONLY_LIMITS).error
    assert decide([NODE], pod, ONLY_LIMITS).node == "a"


def test_what_is_known_of_nodes_follows_every_change() -> None:
    cluster = Cluster.from_objects([NODE, make_node("b"), limit(1), *TWO_BOUND, user := there(uses("more"))])
    pod = pod_with(uses("data"))
    plugin, state = NodeVolumeLimits.of_release(NEWEST_RULES), CycleState(cluster.infos.of(pod))

    def full() -> list[bool]:
        return [code != 0 for code in plugin.filter(state, pod, Nodes(cluster)).codes]

    assert full() == [True, False]
    cluster.update(limit(2))
    assert full() == [False, False]
    cluster.add(make_csi_node("b", {DRIVER: 1}))
    cluster.add(attachment := make_attachment("x", "b", "more-volume"))
    assert full() == [False, True]
    cluster.remove(attachment)
    assert full() == [False, False]
    cluster.update(limit(1))
    assert full() == [True, False]
    cluster.update(make_claim("more", volume="data-volume"))
    assert full() == [False, False]
    cluster.update(make_claim("more", volume="more-volume"))
    assert full() == [True, False]
    cluster.update(make_volume("more-volume", local={"path": "/disk"}))
    assert full() == [False, False]
    cluster.update(make_volume("more-volume"))
    assert full() == [True, False]
    cluster.remove(user)
    assert full() == [False, False]
    cluster.add(make_node("c"))
    cluster.add(make_csi_node("c", {DRIVER: 0}))
    assert full() == [False, False, True]
    cluster.remove(make_node("a"))
    cluster.add(make_node("d"))
    assert full() == [False, False, True]


def test_a_volume_that_turns_up_counts_instead_of_the_class() -> None:
    claim = make_claim("data", storage_class="c", volume="v")
    cluster, pod = Cluster.from_objects([NODE, limit(0), make_class("c"), claim]), pod_with(uses("data"))
    plugin, state = NodeVolumeLimits.of_release(NEWEST_RULES), CycleState(cluster.infos.of(pod))
    assert plugin.filter(state, pod, cluster.nodes).codes.tolist() == [1]

    cluster.add(make_volume("v", local={"path": "/disk"}))

    assert plugin.filter(state, pod, cluster.nodes).codes.tolist() == [0]


@pytest.mark.parametrize("volumes", [[], [{"name": "scratch", "emptyDir": {}}]])
def test_other_volumes_are_not_its_business(volumes: list[Fields]) -> None:
    cluster, pod = Cluster.from_objects([NODE]), pod_with(volumes)

    outcome = NodeVolumeLimits.of_release(NEWEST_RULES).pre_filter(
        CycleState(cluster.infos.of(pod)), pod, cluster.nodes
    )

    assert outcome.status == SKIP
