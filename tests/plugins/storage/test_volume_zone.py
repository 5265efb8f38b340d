"""VolumeZone: zones and regions that volumes are labelled with."""

from __future__ import annotations

import pytest

from builders import ZONE, decide, make_config, make_node, rejections
from podium.cluster import Cluster
from podium.framework import SKIP, CycleState
from podium.model import Object
from podium.plugins.storage.volume_zone import VolumeZone
from podium.rules import NEWEST_RULES
from storage_objects import bound, ephemeral, make_claim, make_class, pod_with, uses

REGION = "topology.kubernetes.io/region"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
ELSEWHERE = ("VolumeZone", "UnschedulableAndUnresolvable", ("node(s) had no available volume zone",))
ALONE = make_config(
    {
        "plugins": {
            "multiPoint": {
                "disabled": [{"name": name} for name in ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding")]
            }
        }
    }
)

NODES = [
    make_node("a", labels={ZONE: "a", REGION: "r"}),
    make_node("b", labels={ZONE: "b", REGION: "r"}),
    make_node("nowhere"),
    make_node("old-a", labels={OLD_ZONE: "a"}),
    make_node("other", labels={REGION: "s"}),
]

LABELLED: dict[str, tuple[dict[str, str], set[str]]] = {
    "a zone": ({ZONE: "a"}, {"a", "nowhere"}),
    "two zones": ({ZONE: "a__b"}, {"a", "b", "nowhere"}),
    "a region": ({REGION: "s"}, {"nowhere", "other"}),
    "zone and region": ({ZONE: "a", REGION: "s"}, {"nowhere"}),
    "an old zone label, which current ones answer": ({OLD_ZONE: "a"}, {"a", "nowhere", "old-a"}),
    "an old region label": ({OLD_REGION: "r"}, {"a", "b", "nowhere"}),
    "no label": ({}, {"a", "b", "nowhere", "old-a", "other"}),
    "a list with a gap, which means nothing": ({ZONE: "a__"}, {"a", "b", "nowhere", "old-a", "other"}),
    "another label": ({"disk": "ssd"}, {"a", "b", "nowhere", "old-a", "other"}),
}


@pytest.mark.parametrize(("labels", "feasible"), LABELLED.values(), ids=LABELLED.keys())
def test_labels_of_the_volume(labels: dict[str, str], feasible: set[str]) -> None:
    decision = decide([*NODES, *bound(labels=labels)], pod_with(uses("data")))

    assert set(decision.feasible) == feasible
    assert rejections(decision) == dict.fromkeys({node.name for node in NODES} - feasible, ELSEWHERE)


def test_all_volumes_must_be_there() -> None:
    objects = [*NODES, *bound("data", labels={ZONE: "a__b"}), *bound("more", labels={ZONE: "b"})]

    assert decide(objects, pod_with(uses("data", "more"))).feasible == ("b", "nowhere")


REFUSED: dict[str, tuple[list[Object], str, str]] = {
    "a claim without name": ([], "", "PersistentVolumeClaim had no name"),
    "a claim that is not there": ([], "data", 'persistentvolumeclaim "data" not found'),
    "a volume that is not there": ([make_claim("data", volume="gone")], "data", 'persistentvolume "gone" not found'),
    "no class": (
        [make_claim("data", storage_class=None)],
        "data",
        "PersistentVolumeClaim had no pv name and storageClass name",
    ),
    "a class that is not there": (
        [make_claim("data", storage_class="c")],
        "data",
        'storageclass.storage.k8s.io "c" not found',
    ),
    "a class that should have bound it": (
        [make_claim("data", storage_class="c"), make_class("c", waits=False)],
        "data",
        "PersistentVolume had no name",
    ),
}


@pytest.mark.parametrize(("objects", "claim", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_pods_that_cannot_go_anywhere(objects: list[Object], claim: str, reason: str) -> None:
    decision = decide([*NODES, *objects], pod_with(uses(claim)), ALONE)

    assert decision.absent is not None
    assert (decision.absent.plugin, decision.absent.reasons) == ("VolumeZone", (reason,))


@pytest.mark.parametrize(("objects", "claim", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_where_it_runs_at_filter_alone_it_rejects_the_nodes(objects: list[Object], claim: str, reason: str) -> None:
    plugins = ALONE["profiles"][0]["plugins"]
    config = make_config({"plugins": {**plugins, "preFilter": {"disabled": [{"name": "VolumeZone"}]}}})

    decision = decide([*NODES, *objects], pod_with(uses(claim)), config)

    rejected = ("VolumeZone", "UnschedulableAndUnresolvable", (reason,))
    assert rejections(decision) == {node.name: rejected for node in NODES}


@pytest.mark.parametrize(
    "volumes", [[], uses("data"), ephemeral("scratch")], ids=["none", "a waiting claim", "an ephemeral volume"]
)
def test_what_it_does_not_look_at(volumes: list[dict[str, object]]) -> None:
    cluster = Cluster.from_objects([*NODES, make_claim("data", storage_class="c"), make_class("c")])
    pod = pod_with(volumes)

    plugin, state = VolumeZone.of_release(NEWEST_RULES), CycleState(cluster.infos.of(pod))
    outcome = plugin.pre_filter(state, pod, cluster.nodes)

    assert outcome.status == SKIP
