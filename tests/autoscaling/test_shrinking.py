"""Groups shrink when nodes are not needed, as cluster-autoscaler and as Karpenter do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autoscaling.scaling import CLOSED, Manifest, arrival, group, happened, member, owned, report, scaled, task
from cli.running import node
from podium.model.objects import NODE_GROUP

LABELS = {"app": "web"}


def replica_set(replicas: int) -> Manifest:
    template = {"metadata": {"labels": LABELS}, "spec": task("x")["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template},
    }


def two_nodes(**fields: Any) -> list[Manifest]:
    """A node with three pods and one with a single pod, which would fit on the first."""
    moving = owned("p3", "b", labels=LABELS, **fields)
    return [member("a"), member("b"), replica_set(4), *(owned(f"p{n}", "a", labels=LABELS) for n in range(3)), moving]


def test_a_node_that_is_little_used_goes_after_ten_minutes(tmp_path: Path) -> None:
    result = scaled(tmp_path, group(pricePerHour=6), there=two_nodes())
    assert happened(result, "scale-down") == [(600, "scale-down", "b", "pool", "underutilized")]
    assert happened(result, "evict") == [(600, "evict", "default/p3", "b", "drain")]
    assert happened(result, "delete")[-1] == (610, "delete", "Node", "b")
    assert not result.unplaced
    assert report(result)["removed"] == 1


BUDGET: Manifest = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"minAvailable": 4, "selector": {"matchLabels": LABELS}},
}
SAFE, SAFE_VOLUMES, DISABLED = (
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes",
    "cluster-autoscaler.kubernetes.io/scale-down-disabled",
)
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
STORAGE = {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]}


def kept(folder: Path, there: list[Manifest], **settings: Any) -> bool:
    """Whether node b is still there after two hours."""
    pool = settings.pop("pool", group())
    return not happened(scaled(folder, pool, there=there, until=7200, **settings), "scale-down")


@pytest.mark.parametrize(
    ("fields", "settings", "expected"),
    [
        pytest.param({}, {}, False, id="nothing keeps it"),
        pytest.param({}, {"scaleDownUtilizationThreshold": 0.2}, True, id="too much used"),
        pytest.param({"cpu": 2}, {}, True, id="does not fit elsewhere"),
        pytest.param({"annotations": {SAFE: "false"}}, {}, True, id="not safe to evict"),
        pytest.param({"volumes": [{"name": "v", "emptyDir": {}}]}, {}, True, id="local storage"),
        pytest.param({"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}, {}, True, id="a path of the host"),
        pytest.param({"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]}, {}, False, id="memory"),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}}], "annotations": {SAFE: "true"}}, {}, False, id="safe to evict"
        ),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}}]}, {"skipNodesWithLocalStorage": False}, False, id="not skipped"
        ),
        pytest.param(STORAGE | {"annotations": {SAFE_VOLUMES: "v,w"}}, {}, False, id="volumes that may be lost"),
        pytest.param(STORAGE | {"annotations": {SAFE_VOLUMES: "v"}}, {}, True, id="one that may not"),
        pytest.param({"annotations": {DO_NOT_DISRUPT: "true"}}, {}, False, id="for karpenter only"),
        pytest.param({}, {"scaleDownEnabled": False}, True, id="not enabled"),
        pytest.param({}, {"pool": group(minSize=2)}, True, id="the minimum"),
        pytest.param({}, {"scaleDownUnneededTime": "3h"}, True, id="not for long enough"),
    ],
)
def test_what_keeps_a_node(tmp_path: Path, fields: dict[str, Any], settings: dict[str, Any], expected: bool) -> None:
    assert kept(tmp_path, two_nodes(**fields), **settings) is expected


def test_a_budget_keeps_a_node(tmp_path: Path) -> None:
    assert kept(tmp_path, [*two_nodes(), BUDGET])
    assert not kept(tmp_path, [*two_nodes(), BUDGET | {"spec": BUDGET["spec"] | {"minAvailable": 3}}])


def test_a_pod_that_nobody_would_make_anew_keeps_a_node(tmp_path: Path) -> None:
    there = [member("a"), member("b"), task("alone", nodeName="b")]
    result = scaled(tmp_path, group(), there=there, until=7200)
    assert happened(result, "scale-down") == [(600, "scale-down", "a", "pool", "empty")]


def test_a_pod_of_a_controller_that_nobody_knows_keeps_a_node(tmp_path: Path) -> None:
    there = two_nodes()
    there[-1]["metadata"]["ownerReferences"][0] |= {"apiVersion": "example.com/v1", "kind": "Training"}
    there[2] = replica_set(3)
    assert kept(tmp_path, there)


ROOMY = node("roomy", allocatable={"cpu": "64", "memory": "64Gi"})
"""A node of no group that takes whatever has to move."""


@pytest.mark.parametrize(("cpu", "expected"), [(2, False), (3, True)])
def test_a_node_goes_at_the_threshold_and_not_above(tmp_path: Path, cpu: int, expected: bool) -> None:
    there = [ROOMY, member("a"), replica_set(1), owned("p", "a", cpu, labels=LABELS)]
    assert kept(tmp_path, there) is expected


@pytest.mark.parametrize(("threshold", "expected"), [(0.24, True), (0.25, False), (0.26, False)])
def test_the_threshold_is_compared_with_the_larger_share(tmp_path: Path, threshold: float, expected: bool) -> None:
    # A quarter of the cpu, a sixteenth of the memory.
    there = [ROOMY, member("a"), replica_set(1), owned("p", "a", labels=LABELS)]
    assert kept(tmp_path, there, scaleDownUtilizationThreshold=threshold) is expected


@pytest.mark.parametrize(
    ("gpus", "settings", "expected"),
    [(2, {}, True), (1, {}, False), (2, {"scaleDownGpuUtilizationThreshold": 1}, False)],
)
def test_a_node_with_gpus_goes_by_their_use(tmp_path: Path, gpus: int, settings: Any, expected: bool) -> None:
    offers = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "2"}
    there = [node(name, labels={NODE_GROUP: "pool"}, allocatable=offers) for name in "ab"]
    moving = owned("p", "a", labels=LABELS)
    moving["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": str(gpus)}
    moving["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = str(gpus)
    there[1]["metadata"]["labels"] = {}
    assert kept(tmp_path, [*there, replica_set(1), moving], **settings) is expected


@pytest.mark.parametrize(
    ("kind", "setting"), [("DaemonSet", "ignoreDaemonsetsUtilization"), ("mirror", "ignoreMirrorPodsUtilization")]
)
def test_pods_that_belong_to_a_node_can_be_left_out_of_its_use(tmp_path: Path, kind: str, setting: str) -> None:
    belonging = owned("d", "a", cpu=2)
    if kind == "mirror":
        belonging["metadata"] |= {"annotations": {"kubernetes.io/config.mirror": "x"}, "ownerReferences": []}
    else:
        belonging["metadata"]["ownerReferences"][0]["kind"] = kind
    there = [ROOMY, member("a"), replica_set(1), owned("p", "a", labels=LABELS), belonging]
    # 3 of 4 are requested, and 1 of the 2 that the other pod leaves.
    assert kept(tmp_path, there)
    assert not kept(tmp_path, there, **{setting: True})
    other = {"ignoreDaemonsetsUtilization", "ignoreMirrorPodsUtilization"} - {setting}
    assert kept(tmp_path, there, **{other.pop(): True})


@pytest.mark.parametrize("kind", ["DaemonSet", "Node", "mirror"])
def test_a_drained_node_goes_with_the_pods_that_belong_to_it(tmp_path: Path, kind: str) -> None:
    belonging = owned("its-own", "b", cpu=0)
    if kind == "mirror":
        belonging["metadata"] |= {"annotations": {"kubernetes.io/config.mirror": "x"}, "ownerReferences": []}
    else:
        belonging["metadata"]["ownerReferences"][0] |= {"kind": kind, "name": "its"}
    result = scaled(tmp_path, group(pricePerHour=6), there=[*two_nodes(), belonging], until=7200)
    assert happened(result, "evict") == [(600, "evict", "default/p3", "b", "drain")]
    assert happened(result, "delete")[-1] == (610, "delete", "Node", "b")
    assert report(result)["removed"] == 1


def test_a_pod_that_would_move_twice_needs_room_at_the_end(tmp_path: Path) -> None:
    full = [owned(f"f{n}", "c", labels=LABELS) for n in range(3)]
    there = [*map(member, "abc"), replica_set(5), *(owned(f"p{at}", at, labels=LABELS) for at in "ab"), *full]
    result = scaled(tmp_path, group(), there=there, until=1000, maxDrainParallelism=2)
    assert len(happened(result, "scale-down")) == 1


def test_pods_do_not_move_to_a_node_that_is_not_there_yet(tmp_path: Path) -> None:
    there = [member("a"), replica_set(1), owned("p", "a", labels=LABELS)]
    events = [arrival(0, task("big", 4)), arrival(0, node("late", labels={NODE_GROUP: "pool"}, unschedulable=True))]
    settings = {"scaleDownDelayAfterAdd": "0s", "scaleDownUnneededTime": "60s"}
    slow = group("large", 8, bootTime="10m", maxSize=1)
    result = scaled(tmp_path, group(maxSize=2), slow, there=there, events=events, until=900, **settings)
    assert [record[0] for record in happened(result, "scale-down") if record[2] == "a"] == [660]


def test_nodes_that_failed_go_after_twenty_minutes(tmp_path: Path) -> None:
    events = [{"time": 0, "event": "fail", "object": member("a")}]
    result = scaled(tmp_path, group(), there=[CLOSED, member("a"), member("b")], events=events, until=7200)
    assert [record[:3] for record in happened(result, "scale-down")] == [
        (600, "scale-down", "b"),
        (1200, "scale-down", "a"),
    ]


def test_a_node_that_fails_when_it_is_unneeded_goes_by_the_time_for_failed_ones(tmp_path: Path) -> None:
    events = [arrival(0, task("p"), 100), {"time": 300, "event": "fail", "object": node("pool-1")}]
    result = scaled(tmp_path, group(), events=events, scaleDownUnneededTime="5h")
    [(arrived, *_)] = happened(result, "finish")
    # It is unneeded since the first look after its pod is done.
    since = -(-arrived // 10) * 10
    assert happened(result, "scale-down") == [(since + 1200, "scale-down", "pool-1", "pool", "empty")]


def test_no_more_than_ten_nodes_go_at_a_time(tmp_path: Path) -> None:
    result = scaled(tmp_path, group(maxSize=20), there=[member(f"n{n}") for n in range(12)])
    assert [record[0] for record in happened(result, "scale-down")] == [600] * 10 + [610] * 2


def test_a_pod_of_the_system_keeps_a_node(tmp_path: Path) -> None:
    there = two_nodes()
    there[2] = replica_set(3)
    there[-1]["metadata"]["namespace"] = "kube-system"
    assert kept(tmp_path, there)
    assert not kept(tmp_path, there, skipNodesWithSystemPods=False)
    allowing = {"metadata": {"name": "web", "namespace": "kube-system"}, "spec": BUDGET["spec"] | {"minAvailable": 0}}
    assert not kept(tmp_path, [*there, BUDGET | allowing])


def test_a_pod_of_very_low_priority_keeps_no_node(tmp_path: Path) -> None:
    there = [member("a"), member("b"), task("alone", nodeName="b", priority=-20, cpu=3)]
    result = scaled(tmp_path, group(), there=there, until=7200)
    assert happened(result, "scale-down") == [
        (600, "scale-down", "a", "pool", "empty"),
        (600, "scale-down", "b", "pool", "empty"),
    ]
    kept_by_it = scaled(tmp_path, group(), there=there, until=7200, expendablePodsPriorityCutoff=-30)
    assert happened(kept_by_it, "scale-down") == [(600, "scale-down", "a", "pool", "empty")]


def test_an_annotation_keeps_a_node(tmp_path: Path) -> None:
    there = two_nodes()
    there[1]["metadata"]["annotations"] = {DISABLED: "true"}
    assert kept(tmp_path, there)


def test_nodes_of_no_group_stay(tmp_path: Path) -> None:
    assert kept(tmp_path, two_nodes(), pool=group("another"))


def test_nothing_goes_within_ten_minutes_after_nodes_came(tmp_path: Path) -> None:
    events = [arrival(300, task("big", 4), 60)]
    result = scaled(tmp_path, group(maxSize=3), there=two_nodes(), events=events)
    assert happened(result, "scale-up") == [(300, "scale-up", "pool", 1, 1)]
    assert happened(result, "scale-down")[0][:3] == (900, "scale-down", "b")


@pytest.mark.parametrize(
    ("delay", "at"),
    [
        # Unneeded for a minute at 60 already; a node is asked for at 30.
        pytest.param("0s", 60, id="no delay"),
        pytest.param("2m", 150, id="from when the node is asked for"),
        pytest.param("20m", 1230, id="longer than anything else"),
    ],
)
def test_nothing_goes_for_a_time_after_nodes_came(tmp_path: Path, delay: str, at: int) -> None:
    result = scaled(
        tmp_path,
        group(maxSize=3),
        there=two_nodes(),
        events=[arrival(30, task("big", 4))],
        scaleDownUnneededTime="1m",
        scaleDownDelayAfterAdd=delay,
        until=1300,
    )
    assert happened(result, "scale-up") == [(30, "scale-up", "pool", 1, 1)]
    assert happened(result, "scale-down") == [(at, "scale-down", "b", "pool", "underutilized")]


def test_empty_nodes_go_together(tmp_path: Path) -> None:
    result = scaled(tmp_path, group(), there=[member(name) for name in "abc"])
    assert [record[0] for record in happened(result, "scale-down")] == [600, 600, 600]


@pytest.mark.parametrize(("most", "times"), [(30, [600, 600]), (1, [600, 1210])])
def test_only_so_many_nodes_with_pods_are_looked_at(tmp_path: Path, most: int, times: list[int]) -> None:
    there = [member(name) for name in "abc"] + [owned("p0", "a"), owned("p1", "b"), owned("p2", "c", 2)]
    settings: dict[str, Any] = {"scaleDownNonEmptyCandidatesCount": most, "maxDrainParallelism": 5}
    result = scaled(tmp_path, group(), there=there, **settings)
    assert [record[0] for record in happened(result, "scale-down")] == times


def test_a_node_that_is_needed_again_begins_anew(tmp_path: Path) -> None:
    events = [arrival(300, task("busy", 3), 60)]
    result = scaled(tmp_path, group(), there=[member("a")], events=events)
    assert [record[0] for record in happened(result, "scale-down")] == [960]


def test_karpenter_deletes_a_node_whose_pods_fit_elsewhere(tmp_path: Path) -> None:
    result = scaled(tmp_path, group(), there=two_nodes(), strategy="karpenter")
    assert happened(result, "scale-down") == [(0, "scale-down", "b", "pool", "underutilized")]
    assert not result.unplaced


def test_karpenter_replaces_a_node_by_a_cheaper_one(tmp_path: Path) -> None:
    groups = [group("pool", pricePerHour=1), group("cheap", 2, pricePerHour=0.3), group("dear", 8, pricePerHour=3)]
    there = [member("a"), replica_set(1), owned("p0", "a", labels=LABELS)]
    result = scaled(tmp_path, *groups, there=there, strategy="karpenter")
    assert happened(result, "replace") == [(0, "replace", "a", "cheap")]
    assert happened(result, "evict") == [(60, "evict", "default/p0", "a", "drain")]
    assert happened(result, "delete")[-1][2:] == ("Node", "a")
    assert [life.node for life in result.lives] == ["a", "cheap-1"]


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"consolidationPolicy": "WhenEmpty"}, id="only empty ones"),
        pytest.param({"scaleDownEnabled": False}, id="not enabled"),
        pytest.param({"consolidateAfter": "3h"}, id="not for long enough"),
    ],
)
def test_what_keeps_karpenter_from_it(tmp_path: Path, settings: dict[str, Any]) -> None:
    assert kept(tmp_path, two_nodes(), strategy="karpenter", **settings)


@pytest.mark.parametrize(
    ("fields", "gone"),
    [
        pytest.param(STORAGE, "b", id="local storage"),
        pytest.param({"annotations": {SAFE: "false"}}, "b", id="not safe for cluster-autoscaler"),
        pytest.param({"annotations": {DO_NOT_DISRUPT: "true"}}, "a", id="not to be disrupted"),
    ],
)
def test_karpenter_takes_the_node_that_nothing_keeps(tmp_path: Path, fields: dict[str, Any], gone: str) -> None:
    result = scaled(tmp_path, group(), there=two_nodes(**fields), strategy="karpenter")
    assert [record[2] for record in happened(result, "scale-down")] == [gone]


def test_karpenter_leaves_nodes_alone_that_are_not_to_be_disrupted(tmp_path: Path) -> None:
    for annotation, expected in ((DO_NOT_DISRUPT, ["a"]), (DISABLED, ["a", "b"])):
        there = [member("a"), member("b")]
        there[1]["metadata"]["annotations"] = {annotation: "true"}
        result = scaled(tmp_path, group(), there=there, strategy="karpenter")
        assert [record[2] for record in happened(result, "scale-down")] == expected


@pytest.mark.parametrize(
    ("settings", "times"),
    [
        pytest.param({}, [0, 10], id="a tenth, rounded up, by default"),
        pytest.param({"budgets": [{"nodes": "100%"}]}, [0, 0], id="all"),
        pytest.param({"budgets": [{"nodes": "100%"}, {"nodes": 1}]}, [0, 10], id="the strictest counts"),
        pytest.param({"budgets": [{"nodes": 0, "reasons": ["Underutilized"]}]}, [0, 0], id="for another reason"),
        pytest.param({"budgets": [{"nodes": 0}]}, [], id="none"),
        pytest.param({"budgets": []}, [0, 0], id="no budget"),
        pytest.param({"consolidateAfter": "Never"}, [], id="never"),
    ],
)
def test_karpenter_keeps_its_budgets(tmp_path: Path, settings: dict[str, Any], times: list[int]) -> None:
    result = scaled(tmp_path, group(), there=[member("a"), member("b")], strategy="karpenter", **settings)
    assert [record[0] for record in happened(result, "scale-down")] == times


def test_a_budget_for_nodes_with_pods_leaves_them_alone(tmp_path: Path) -> None:
    budget = [{"nodes": 0, "reasons": ["Underutilized"]}]
    assert kept(tmp_path, two_nodes(), strategy="karpenter", budgets=budget)


def test_karpenter_keeps_a_node_that_a_waiting_pod_is_to_get(tmp_path: Path) -> None:
    events = [arrival(0, task("p"), 200)]
    result = scaled(tmp_path, group(), there=[CLOSED], events=events, strategy="karpenter")
    assert [record[0] for record in happened(result, "scale-down")] == [260]
