"""Which nodes of a group may go, how full they count, and whether their pods fit elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace as with_fields

from autoscaling.scaling import group
from builders import make_node, make_object, make_pod
from podium.autoscaling import read_node_groups
from podium.autoscaling._group_nodes import (
    TrialCluster,
    is_expendable,
    member,
    node_allows_removal,
    replacement_of,
    strategy_allows_eviction,
    try_removal,
)
from podium.autoscaling._groups import NodeGroups
from podium.cluster import Cluster
from podium.cluster.store import Store
from podium.engine import Scheduler
from podium.model import Node, Object, Pod, PodDisruptionBudget
from podium.workloads.disruptions import Disruptions

REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web"}
DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "log", "uid": "log"}
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


@pytest.fixture
def groups(tmp_path: Path) -> NodeGroups:
    file = tmp_path / "groups.yaml"
    file.write_text(yaml.safe_dump({"groups": [group()]}))
    return read_node_groups(str(file))


def pod(name: str = "web", annotations: dict[str, str] | None = None, **fields: Any) -> Pod:
    made = make_pod(name, **{"node": "n", "owner": REPLICA_SET, "requests": {"cpu": "1"}, **fields})
    return with_fields(made, metadata=with_fields(made.metadata, annotations=annotations or {}))


LOCAL = [{"name": "scratch", "emptyDir": {}}]
MOVABLE: dict[str, tuple[Pod, bool, bool]] = {
    "of a ReplicaSet": (pod(), True, True),
    "of nobody": (pod(owner=None), False, True),
    "of nobody, but safe": (pod(annotations={SAFE_TO_EVICT: "true"}, owner=None), True, True),
    "not safe": (pod(annotations={SAFE_TO_EVICT: "false"}), False, True),
    "neither true nor false": (pod(annotations={SAFE_TO_EVICT: "maybe"}), True, True),
    "with local storage": (pod(volumes=LOCAL), False, True),
    "with memory as storage": (pod(volumes=[{"name": "m", "emptyDir": {"medium": "Memory"}}]), True, True),
    "with local storage that may go": (
        pod(volumes=LOCAL, annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": "scratch"}),
        True,
        True,
    ),
    "of the system": (pod(namespace="kube-system"), False, True),
    "that Karpenter must not disrupt": (pod(annotations={"karpenter.sh/do-not-disrupt": "true"}), True, False),
}


@pytest.mark.parametrize(("one", "by_autoscaler", "by_karpenter"), MOVABLE.values(), ids=MOVABLE)
def test_which_pods_may_be_moved(one: Pod, by_autoscaler: bool, by_karpenter: bool, groups: NodeGroups) -> None:
    settings = groups.settings
    karpenter = replace(settings, strategy="karpenter")

    assert strategy_allows_eviction(one, settings, Disruptions(Store())) is by_autoscaler
    assert strategy_allows_eviction(one, karpenter, Disruptions(Store())) is by_karpenter


def test_a_budget_without_disruptions_left_keeps_its_pods(groups: NodeGroups) -> None:
    protected = pod(labels={"app": "web"}, phase="Running")
    disruptions = Disruptions(Store())
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    budget = make_object("PodDisruptionBudget", "web", namespace="default", spec=spec)
    assert isinstance(budget, PodDisruptionBudget)
    disruptions.on_budget_updated(budget, [(protected, True)])

    assert not strategy_allows_eviction(protected, groups.settings, disruptions)


def test_annotations_keep_a_node(groups: NodeGroups) -> None:
    node = make_node("n")
    kept = {name: with_fields(node, metadata=with_fields(node.metadata, annotations={name: "true"})) for name in KEPT}

    assert node_allows_removal(node, groups.settings)
    assert [node_allows_removal(kept[name], groups.settings) for name in KEPT] == [False, True]
    assert [node_allows_removal(kept[name], replace(groups.settings, strategy="karpenter")) for name in KEPT] == [
        True,
        False,
    ]


KEPT = ("cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt")


def test_pods_of_very_low_priority_are_expendable(groups: NodeGroups) -> None:
    assert is_expendable(pod(priority=-11), groups.settings)
    assert not is_expendable(pod(priority=-10), groups.settings)
    assert not is_expendable(pod(), groups.settings)
    assert not is_expendable(pod(priority=-11), replace(groups.settings, strategy="karpenter"))


def test_how_full_a_node_counts(groups: NodeGroups) -> None:
    node = make_node("n", cpu="4", memory="16Gi")
    pods = {
        each.key: each
        for each in (
            pod("half", requests={"cpu": "1", "memory": "8Gi"}),
            pod("daemon", owner=DAEMON_SET, requests={"cpu": "2"}),
            pod("expendable", priority=-100, requests={"cpu": "1"}),
        )
    }
    cluster = Cluster.from_objects([node, *pods.values()])
    counted = member(cluster, node, groups.groups[0], list(pods.values()), groups.settings)
    ignoring = replace(groups.settings, ignore_daemonsets_utilization=True)

    assert [each.name for each in counted.pods] == ["half"]
    assert (counted.utilization, counted.is_empty, counted.is_ready) == (0.75, False, True)
    # What a DaemonSet takes is then not offered either: 1 of 2 cpus, as much as of memory.
    assert member(cluster, node, groups.groups[0], list(pods.values()), ignoring).utilization == 0.5


def tried(*objects: Object) -> tuple[Cluster, TrialCluster]:
    cluster = Cluster.from_objects(objects)
    return cluster, TrialCluster(cluster, Scheduler, lambda node: [])


def moved(node: Node, trial: TrialCluster, groups: NodeGroups, instead: list[Node] | None = None) -> bool:
    pods = trial.cluster.pods_on(trial.cluster.rows[node.name])
    one = member(trial.cluster, node, groups.groups[0], pods, groups.settings)
    return try_removal(trial, one, instead or []) is not None


def test_a_node_can_go_if_its_pods_fit_elsewhere(groups: NodeGroups) -> None:
    node, small, other = make_node("n", cpu="4"), make_node("small", cpu="2"), make_node("other", cpu="4")
    running = [pod("one"), pod("two", requests={"cpu": "2"})]

    assert not moved(node, tried(node, small, *running)[1], groups)
    assert moved(node, tried(node, small, other, *running)[1], groups)
    assert moved(node, tried(node, small, *running)[1], groups, instead=[other])


def test_a_trial_leaves_the_cluster_as_it_is() -> None:
    node = make_node("n", cpu="2")
    cluster, trial = tried(node, pod("one"))

    assert trial.fits(replacement_of(pod("one")))
    assert not trial.fits(pod("large", node="", requests={"cpu": "1"}))
    assert [each.name for each in trial.placed["n"]] == ["one-anew"]
    assert [each.name for each in cluster.pods_on(0)] == ["one"]
