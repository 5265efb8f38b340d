"""Groups grow for pods that fit nowhere, if a node of the group would take them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autoscaling.scaling import CLOSED, Manifest, arrival, group, happened, member, report, scaled, task
from cli.running import node
from podium.errors import InputError


def test_pods_that_fit_nowhere_get_as_many_nodes_as_they_need(tmp_path: Path) -> None:
    events = [arrival(5, task(f"p{n}"), 100) for n in range(10)]
    result = scaled(tmp_path, group(), there=[CLOSED], events=events, until=300)
    assert happened(result, "scale-up") == [(10, "scale-up", "pool", 3, 10)]
    assert happened(result, "add")[-3:] == [(70, "add", "Node", f"pool-{n}") for n in (1, 2, 3)]
    assert {life.bound for life in result.lives} == {70}


def test_a_group_does_not_grow_beyond_its_maximum(tmp_path: Path) -> None:
    result = scaled(tmp_path, group(maxSize=2), events=[arrival(0, task(f"p{n}")) for n in range(10)])
    assert happened(result, "scale-up") == [(0, "scale-up", "pool", 2, 8)]
    assert len(result.unplaced) == 2


def test_nodes_that_are_on_their_way_are_not_asked_for_twice(tmp_path: Path) -> None:
    events = [arrival(time, task(f"p{time}")) for time in (0, 10, 20, 30)]
    assert happened(scaled(tmp_path, group(), events=events), "scale-up") == [(0, "scale-up", "pool", 1, 1)]


@pytest.mark.parametrize(
    ("template", "fields"),
    [
        pytest.param({}, {"cpu": 5}, id="too large for a node of the group"),
        pytest.param({}, {"nodeSelector": {"disk": "ssd"}}, id="another label"),
        pytest.param({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}, {}, id="a taint"),
    ],
)
def test_a_group_does_not_grow_in_vain(tmp_path: Path, template: dict[str, Any], fields: dict[str, Any]) -> None:
    result = scaled(tmp_path, group(template=template), events=[arrival(0, task("p", **fields))])
    assert happened(result, "scale-up") == []
    assert len(result.unplaced) == 1


def test_pods_of_daemon_sets_take_room_on_new_nodes(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"app": "d"}}, "spec": task("d", 3)["spec"]}
    daemons = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": template},
    }
    result = scaled(tmp_path, group(), there=[daemons], events=[arrival(0, task(f"p{n}")) for n in range(2)])
    assert happened(result, "scale-up") == [(0, "scale-up", "pool", 2, 2)]


@pytest.mark.parametrize(
    ("expander", "chosen"),
    [
        ("least-waste", "small"),
        ("price", "cheap"),
        ("priority", "first"),
        ("most-pods", "large"),
        ("least-nodes", "first"),
        ("most-pods,price", "large"),
        ("least-nodes, price", "cheap"),
    ],
)
def test_expanders_choose_a_group(tmp_path: Path, expander: str, chosen: str) -> None:
    groups = [
        group("first", 8, pricePerHour=9, priority=5, maxSize=1),
        group("large", 16, pricePerHour=9, maxSize=10),
        group("cheap", 8, pricePerHour=0.1, maxSize=1),
        group("small", 3, pricePerHour=9, maxSize=1),
    ]
    events = [arrival(0, task(f"p{n}", 3)) for n in range(3)]
    result = scaled(tmp_path, *groups, events=events, expander=expander, until=5)
    assert happened(result, "scale-up")[0][2] == chosen


def test_waste_is_what_the_pods_leave_of_the_capacity(tmp_path: Path) -> None:
    """As cluster-autoscaler has it, without pods of DaemonSets, and of all that a node has."""
    template = {"metadata": {"labels": {"app": "d"}}, "spec": task("d", 2, nodeSelector={"big": "yes"})["spec"]}
    daemons = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": template},
    }
    status = {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}}
    groups = [
        group("reserved", template={"status": status | {"capacity": {"cpu": "8", "memory": "16Gi"}}}),
        group("big", template={"metadata": {"labels": {"big": "yes"}}, "status": status}),
        group("exact", 3),
    ]
    for names, chosen in ((("reserved", "big"), "big"), (("big", "exact"), "exact")):
        some = [each for each in groups if each["name"] in names]
        result = scaled(tmp_path, *some, there=[daemons, CLOSED], events=[arrival(0, task("p", 2))], until=5)
        assert happened(result, "scale-up")[0][2] == chosen


def test_a_group_grows_from_nothing_in_an_empty_cluster(tmp_path: Path) -> None:
    """Without any node kube-scheduler still tries the pods, and a template says what a node would offer."""
    offers = {"cpu": "4", "memory": "16Gi", "pods": "110", "example.com/card": "2"}
    cards = group("cards", template={"metadata": {"labels": {"disk": "ssd"}}, "status": {"allocatable": offers}})
    wants = task("p", nodeSelector={"disk": "ssd"})
    for kind in ("requests", "limits"):
        wants["spec"]["containers"][0]["resources"].setdefault(kind, {})["example.com/card"] = "2"
    result = scaled(tmp_path, group(), cards, events=[arrival(0, wants)], until=600)
    assert happened(result, "scale-up") == [(0, "scale-up", "cards", 1, 1)]
    assert [life.node for life in result.lives] == ["cards-1"]


def test_a_random_choice_is_the_same_for_a_seed(tmp_path: Path) -> None:
    groups = [group(f"g{n}") for n in range(5)]
    events = [arrival(0, task("p"))]
    chosen = {
        seed: [happened(scaled(tmp_path, *groups, events=events, expander="random", seed=seed), "scale-up")[0][2]] * 2
        for seed in range(8)
    }
    assert len({tuple(names) for names in chosen.values()}) > 1
    again = scaled(tmp_path, *groups, events=events, expander="random", seed=3)
    assert happened(again, "scale-up")[0][2] == chosen[3][0]


def test_a_new_node_does_not_take_the_name_of_another(tmp_path: Path) -> None:
    there = [CLOSED, member("pool-1", unschedulable=True)]
    result = scaled(tmp_path, group(), there=there, events=[arrival(0, task("p"))])
    assert [record[3] for record in happened(result, "bind")] == ["pool-2"]


RESOURCE = {"apiVersion": "resource.k8s.io/v1"}
GPU_CLASS = {**RESOURCE, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
ONE_GPU = {
    **RESOURCE,
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one-gpu", "namespace": "default"},
    "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}},
}


def test_devices_come_and_go_with_the_nodes_of_their_group(tmp_path: Path) -> None:
    """A node has one device, so that two pods that want one each get a node each."""
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    events = [arrival(0, task(name, resourceClaims=claims), lifetime=100) for name in "pq"]
    pool = group(resourceSlices=[{"driver": "gpu.example.com", "devices": [{"name": "d0"}]}])
    result = scaled(tmp_path, pool, there=[CLOSED, GPU_CLASS, ONE_GPU], events=events, until=1000)
    assert happened(result, "scale-up") == [(0, "scale-up", "pool", 2, 2)]
    assert sorted(record[3] for record in happened(result, "bind")) == ["pool-1", "pool-2"]
    slices = [record for record in happened(result, "add", "delete") if record[2] == "ResourceSlice"]
    assert slices == [
        (60, "add", "ResourceSlice", "pool-1-0"),
        (60, "add", "ResourceSlice", "pool-2-0"),
        (760, "delete", "ResourceSlice", "pool-1-0"),
        (760, "delete", "ResourceSlice", "pool-2-0"),
    ]


def test_young_pods_can_be_made_to_wait(tmp_path: Path) -> None:
    result = scaled(tmp_path, group(), events=[arrival(5, task("p"))], newPodScaleUpDelay="30s", until=100)
    assert happened(result, "scale-up") == [(40, "scale-up", "pool", 1, 1)]


def test_the_minimum_is_there_from_the_beginning_and_paid_for(tmp_path: Path) -> None:
    result = scaled(tmp_path, group(minSize=3, pricePerHour=2), there=[member("old")], until=3600)
    assert {name for _, _, _, name in happened(result, "add")} == {"pool-1", "pool-2", "other"}
    assert report(result)["nodeHours"] == pytest.approx(3)
    assert report(result)["cost"] == pytest.approx(6)
    assert report(result)["groups"]["pool"]["most"] == 3


def test_nodes_are_paid_for_from_when_they_are_asked_for(tmp_path: Path) -> None:
    result = scaled(tmp_path, group(pricePerHour=1), events=[arrival(0, task("p"))], until=1800)
    assert report(result)["cost"] == pytest.approx(0.5)


@pytest.mark.parametrize(("priority", "nodes"), [(-10, 1), (-11, 0)])
def test_no_node_comes_for_a_pod_of_very_low_priority(tmp_path: Path, priority: int, nodes: int) -> None:
    events = [arrival(0, task("low", priority=priority))]
    result = scaled(tmp_path, group(), there=[CLOSED], events=events, until=600)
    assert report(result)["added"] == nodes


TAINTED = {"spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}}
TOLERANT = {"tolerations": [{"key": "gpu", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("priorities", "bought"),
    [
        pytest.param((0, 0), [(0, "costly"), (10, "cheap")], id="the older pod keeps the node on its way"),
        pytest.param((5, 0), [(0, "costly"), (10, "cheap")], id="so does the more important one"),
        pytest.param((0, 5), [(0, "costly"), (10, "costly")], id="a more important one that came later takes it"),
    ],
)
def test_waiting_pods_are_tried_by_priority_and_arrival(
    tmp_path: Path, priorities: tuple[int, int], bought: list[tuple[int, str]]
) -> None:
    groups = [group("cheap", pricePerHour=0.1, template=TAINTED), group("costly", pricePerHour=1)]
    events = [
        arrival(0, task("first", priority=priorities[0])),
        arrival(7, task("second", 4, priority=priorities[1], **TOLERANT)),
    ]
    result = scaled(tmp_path, *groups, events=events, expander="price", until=50)
    assert [(time, name) for time, _, name, *_ in happened(result, "scale-up")] == bought


def about_node(time: float, verb: str, name: str, **manifest: Any) -> Manifest:
    return {"time": time, "event": verb, "object": node(name, **manifest)}


@pytest.mark.parametrize("verb", ["fail", "cordon", "uncordon", "drain", "delete"])
def test_events_may_be_about_the_nodes_of_a_minimum(tmp_path: Path, verb: str) -> None:
    result = scaled(tmp_path, group(minSize=1), events=[about_node(30, verb, "pool-1")], until=60)
    assert happened(result, verb) == [(30, verb, "Node", "pool-1")]
    assert result.warnings == ()


def test_an_update_is_of_the_node_that_a_group_added(tmp_path: Path) -> None:
    events = [about_node(30, "update", "pool-1", unschedulable=True), arrival(40, task("p"))]
    result = scaled(tmp_path, group(minSize=1, maxSize=1), events=events, until=60)
    assert [life.pod for life in result.unplaced] == ["default/p"]


@pytest.mark.parametrize("verb", ["fail", "cordon", "drain", "delete", "update"])
def test_an_event_about_a_node_that_no_group_added_is_noticed(tmp_path: Path, verb: str) -> None:
    result = scaled(tmp_path, group(), events=[about_node(30, verb, "pool-7")], until=60)
    assert result.warnings == (f"event 1: {verb} of Node pool-7 has no effect: the object did not exist at that time",)
    assert result.samples[-1].nodes == 0


@pytest.mark.parametrize("name", ["pool", "pool-0", "pool-x", "pool-01", "pools-1"])
def test_an_event_about_a_node_that_no_group_can_add_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=f"event 1: fail of Node {name}, which is neither in the cluster nor added"):
        scaled(tmp_path, group(), events=[about_node(30, "fail", name)])


@pytest.mark.parametrize("least", [0, 1])
def test_a_group_leaves_out_the_names_that_events_add(tmp_path: Path, least: int) -> None:
    events = [arrival(0, task("p", 3)), about_node(30, "add", "pool-1")]
    result = scaled(tmp_path, group(minSize=least), events=events, until=300)
    assert [name for *_, kind, name in happened(result, "add") if kind == "Node"] == (
        ["pool-2", "pool-1"] if least else ["pool-1", "pool-2"]
    )


def test_trials_do_not_clash_with_the_nodes_of_another_group(tmp_path: Path) -> None:
    groups = [group("pool"), group("pool-new", minSize=3)]
    events = [arrival(0, task(f"p{n}", 4)) for n in range(8)]
    assert not scaled(tmp_path, *groups, events=events, until=300).unplaced
