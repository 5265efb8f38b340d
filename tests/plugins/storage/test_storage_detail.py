"""Behind a storage plugin's message: the claim, the volume and the rule."""

from __future__ import annotations

from typing import Any

import pytest

from builders import ZONE, expression, make_node
from csi_objects import DRIVER, make_capacity, make_csi_node, make_driver
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.engine.release import CURRENT
from podium.framework.obstacle import RejectedNodes
from podium.model import Object, Pod
from podium.model.objects import SELECTED_NODE
from podium.plugins.storage.storage_detail import claims_detail
from storage_objects import bound, ephemeral, inline, make_claim, make_class, make_volume, on_label, pod_with, uses

NODE = make_node("n", labels={ZONE: "a"})
LOCAL, FAST = make_class("local", "kubernetes.io/no-provisioner"), make_class("fast")
ONE_POD = ("ReadWriteOncePod",)
RELEASES = ("v1.29", "v1.32", "v1.33", CURRENT)
"""Before v1.33 a volume out of reach, and before v1.34 a claim in use, has another reason."""
EBS_PLUGIN = "kubernetes.io/aws-ebs"
EBS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}


def gce(read_only: bool = False) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": "pd-1", "readOnly": read_only}}


def rbd(read_only: bool = False) -> dict[str, Any]:
    return {"rbd": {"monitors": ["m1"], "pool": "p", "image": "i", "readOnly": read_only}}


def details(pod: Pod, *objects: Object, release: str = CURRENT) -> dict[str, str]:
    cluster = Cluster.from_objects([NODE, *objects])
    scheduler = Scheduler(cluster, release=release)
    rejected = RejectedNodes(pod, scheduler.decide(pod).rejected, cluster)
    found = scheduler.framework_of(pod).obstacles(rejected)
    return {node: one.text for node, obstacles in found.items() for one in obstacles if one.kind == "volume"}


DETAILS: dict[str, tuple[Pod, list[Object], str]] = {
    "a disk that another pod writes to": (
        pod_with(inline(gce(read_only=True))),
        [pod_with(inline(gce()), "other", node="n")],
        "GCE disk pd-1 is used read-write by pod default/other",
    ),
    "a disk that another pod reads": (
        pod_with(inline(rbd())),
        [pod_with(inline(rbd(read_only=True)), "other", node="n")],
        "Ceph image p/i is used, and this pod would write to it, by pod default/other",
    ),
    "a disk that can never be shared": (
        pod_with(inline(EBS)),
        [pod_with(inline(EBS), "other", node="n")],
        "EBS volume vol-1 is used by pod default/other",
    ),
    "a claim for one pod": (
        pod_with(uses("data")),
        [
            make_claim("data", volume="v", modes=ONE_POD),
            make_volume("v", modes=ONE_POD),
            pod_with(uses("data"), "other", node="n"),
        ],
        "claim data with ReadWriteOncePod is used by pod default/other on n",
    ),
    "a driver without room": (
        pod_with(uses("new", "shared", "waiting")),
        [
            *bound("new"),
            *bound("shared"),
            FAST,
            make_claim("waiting", storage_class="fast"),
            make_csi_node("n", {DRIVER: 2}),
            pod_with(uses("shared"), "other", node="n"),
        ],
        f"driver {DRIVER}: 1 of 2 volumes in use, the pod adds 2 "
        "(claim new: new-volume; claim waiting, to be provisioned)",
    ),
    "an in-tree disk of a driver without room": (
        pod_with(inline(EBS)),
        [make_csi_node("n", {"ebs.csi.aws.com": 0})],
        "driver ebs.csi.aws.com: 0 of 0 volumes in use, the pod adds 1 (vol-1)",
    ),
    "a volume in another zone": (
        pod_with(uses("data")),
        bound("data", labels={ZONE: "c__b"}),
        "claim data (volume data-volume) is in zone b, c, the node is in a",
    ),
    "a volume in a region, where the node has none": (
        pod_with(uses("data")),
        bound("data", labels={"topology.kubernetes.io/region": "r"}),
        "claim data (volume data-volume) is in region r, the node has no label topology.kubernetes.io/region",
    ),
    "a volume with affinity to other nodes": (
        pod_with(uses("near", "far")),
        [*bound("near", nodes=on_label(ZONE, "a")), *bound("far", nodes=on_label(ZONE, "b", "c"))],
        f"claim far is bound to far-volume, whose node affinity needs {ZONE} In b,c",
    ),
    "an affinity with other operators": (
        pod_with(uses("data")),
        bound("data", nodes=[expression("disk", "Exists"), expression("slots", "Gt", "3")]),
        "claim data is bound to data-volume, whose node affinity needs disk Exists and slots Gt 3",
    ),
    "an in-tree volume that a driver serves": (
        pod_with(uses("data")),
        [*bound("data", **EBS, nodes=on_label(ZONE, "a")), make_csi_node("n", {}, migrated=[EBS_PLUGIN])],
        "claim data is bound to data-volume, whose node affinity needs topology.ebs.csi.aws.com/zone In a",
    ),
    "a volume chosen on another node": (
        pod_with(uses("data")),
        [FAST, make_claim("data", storage_class="fast", annotations={SELECTED_NODE: "m"})],
        "claim data gets its volume on node m, which was chosen for it earlier",
    ),
    "no volumes at all": (
        pod_with(uses("data")),
        [LOCAL, make_claim("data", "100Gi", storage_class="local")],
        "no PersistentVolume of class local fits claim data (100Gi)",
    ),
    "volumes that do not fit": (
        pod_with(uses("data")),
        [
            LOCAL,
            make_claim("data", "2Gi", storage_class="local"),
            *(make_volume(f"small-{number}", "1Gi", storage_class="local") for number in range(2)),
            make_volume("taken", "2Gi", storage_class="local", claim={"namespace": "default", "name": "other"}),
            make_volume("shared", "2Gi", storage_class="local", modes=["ReadOnlyMany"]),
            make_volume("raw", "2Gi", storage_class="local", volumeMode="Block", csi={"driver": "d"}),
            make_volume("failed", "2Gi", storage_class="local", phase="Failed"),
            make_volume("far", "2Gi", storage_class="local", nodes=on_label(ZONE, "b")),
            make_volume("another", "2Gi", storage_class="other"),
        ],
        "no PersistentVolume of class local fits claim data (2Gi): 2 too small, 1 not Available, "
        "1 of another volume mode, 1 without its access modes, 1 reserved for another claim, "
        "1 not usable from this node",
    ),
    "a volume that the pod's other claim takes": (
        pod_with(uses("one", "two")),
        [
            LOCAL,
            make_claim("one", storage_class="local"),
            make_claim("two", storage_class="local"),
            make_volume("only", storage_class="local"),
        ],
        "no PersistentVolume of class local fits claim two (1Gi): 1 taken by the pod's other claims",
    ),
    "a reserved volume elsewhere": (
        pod_with(uses("data")),
        [
            LOCAL,
            claim := make_claim("data", storage_class="local"),
            make_volume("far", storage_class="local", claim=claim, nodes=on_label(ZONE, "b")),
            make_volume("near", storage_class="local"),
        ],
        f"claim data waits for far, whose node affinity needs {ZONE} In b",
    ),
    "a class for other zones": (
        pod_with(uses("data")),
        [
            make_class("far", allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]),
            make_claim("data", storage_class="far"),
        ],
        f"claim data: class far provisions volumes only where {ZONE} In b",
    ),
    "a class without enough capacity": (
        pod_with(uses("data")),
        [
            FAST,
            make_driver(reports_capacity=True),
            make_capacity("left", "fast", {}, capacity="5Gi"),
            make_claim("data", "10Gi", storage_class="fast"),
        ],
        "claim data (10Gi): not enough capacity in class fast here, at most 5Gi",
    ),
    "a class without any capacity": (
        pod_with(uses("data")),
        [FAST, make_driver(reports_capacity=True), make_claim("data", "10Gi", storage_class="fast")],
        "claim data (10Gi): not enough capacity in class fast here, none",
    ),
    "two rules at once": (
        pod_with(uses("far", "data")),
        [*bound("far", nodes=on_label(ZONE, "b")), LOCAL, make_claim("data", storage_class="local")],
        f"claim far is bound to far-volume, whose node affinity needs {ZONE} In b; "
        "no PersistentVolume of class local fits claim data (1Gi)",
    ),
}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(("pod", "objects", "detail"), DETAILS.values(), ids=DETAILS)
def test_names_the_claim_the_volume_and_the_rule(pod: Pod, objects: list[Object], detail: str, release: str) -> None:
    assert details(pod, *objects, release=release) == {"n": detail}


def test_a_bound_volume_that_is_not_there_is_named_where_no_zone_is_asked_for() -> None:
    pod, claim = pod_with(ephemeral("data")), "pod-data"
    objects = [make_claim(claim, volume="gone", owner=pod)]

    assert details(pod, *objects) == {"n": "claim pod-data is bound to gone, which is not in the input"}


def test_nothing_is_said_of_other_plugins() -> None:
    assert details(pod_with([], node_selector={"disk": "ssd"})) == {}


def test_each_node_is_looked_at() -> None:
    other = make_node("m", labels={ZONE: "c"})

    found = details(pod_with(uses("data")), other, *bound("data", labels={ZONE: "b"}))

    assert {node: text.rpartition(" ")[2] for node, text in found.items()} == {"n": "a", "m": "c"}


UNUSABLE: dict[str, tuple[Pod, list[Object], str]] = {
    "no claim": (pod_with(uses("data")), [], "Volume v0 uses claim data, which is not in the input."),
    "no claim of an ephemeral volume yet": (
        pod_with(ephemeral("data")),
        [],
        "Volume data uses claim pod-data, which is not in the input.",
    ),
    "no volume": (
        pod_with(uses("data")),
        [make_claim("data", volume="gone")],
        "Claim data is bound to volume gone, which is not in the input.",
    ),
    "not bound completely": (
        pod_with(uses("data")),
        [make_claim("data", volume="v", annotations={}), make_volume("v")],
        "Claim data names volume v, but is not bound to it yet.",
    ),
    "no class": (
        pod_with(uses("data")),
        [make_claim("data")],
        "Claim data is not bound and has no storage class, so the scheduler does not bind it.",
    ),
    "a class that is not there": (
        pod_with(uses("data")),
        [make_claim("data", storage_class="gone")],
        "Claim data is not bound, and its class gone is not in the input.",
    ),
    "a class that binds at once": (
        pod_with(uses("fine", "data")),
        [*bound("fine"), make_class("slow", waits=False), make_claim("data", storage_class="slow")],
        "Claim data is not bound, and class slow binds at once: it gets a volume before its pod gets a node.",
    ),
    "the one that the message is about": (
        pod_with(uses("data", "gone")),
        [make_claim("data", storage_class="gone")],
        "Volume v1 uses claim gone, which is not in the input.",
    ),
    "nothing wrong": (pod_with(uses("data")), bound("data", labels={ZONE: "b"}), ""),
}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(("pod", "objects", "sentence"), UNUSABLE.values(), ids=UNUSABLE)
def test_names_the_claim_that_keeps_the_pod_from_every_node(
    pod: Pod, objects: list[Object], sentence: str, release: str
) -> None:
    cluster = Cluster.from_objects([NODE, *objects])
    decision = Scheduler(cluster, release=release).decide(pod)

    assert claims_detail(cluster, pod, decision.pre_filter_status) == sentence
