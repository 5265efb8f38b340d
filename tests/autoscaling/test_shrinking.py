"""Groups shrink when nodes are not needed, as cluster-autoscaler and as Karpenter do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autoscaling.scaling import CLOSED, Manifest, arrival, group, happened, member, owned, report, scaled, task

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
SAFE, DISABLED = (
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "cluster-autoscaler.kubernetes.io/scale-down-disabled",
)


def kept(folder: Path, there: list[Manifest], **settings: Any) -> bool:
    """Whether node b is still there after two hours."""
    pool = settings.pop("pool", group())
    return not happened(scaled(folder, pool, there=there, until=7200, **settings), "scale-down")


@pytest.mark.parametrize(
    ("fields", "settings", "expected"),
    [
        pytest.param({}, {}, False, id="nothing keeps it"),
        pytest.param({"cpu": 2}, {}, True, id="half used"),
        pytest.param({"cpu": 2}, {"scaleDownUtilizationThreshold": 0.6}, True, id="does not fit elsewhere"),
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


def test_empty_nodes_go_together(tmp_path: Path) -> None:
    result = scaled(tmp_path, group(), there=[member(name) for name in "abc"])
    assert [record[0] for record in happened(result, "scale-down")] == [600, 600, 600]


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


def test_karpenter_keeps_a_node_that_a_waiting_pod_is_to_get(tmp_path: Path) -> None:
    events = [arrival(0, task("p"), 200)]
    result = scaled(tmp_path, group(), there=[CLOSED], events=events, strategy="karpenter")
    assert [record[0] for record in happened(result, "scale-down")] == [260]
