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
from podium.autoscaling import NodeGroup, read_node_groups
from podium.autoscaling._group_nodes import may_be_moved, member, try_removal
from podium.autoscaling.cluster_autoscaler import ClusterAutoscaler
from podium.autoscaling.karpenter import Karpenter
from podium.autoscaling.strategy import Strategy
from podium.autoscaling.trial_cluster import TrialCluster, replacement_of
from podium.cluster import Cluster
from podium.cluster.store import Store
from podium.engine import Scheduler
from podium.model import Node, Object, Pod, PodDisruptionBudget
from podium.workloads.disruptions import Disruptions

REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web"}
DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "log", "uid": "log"}
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def read(folder: Path, **fields: Any) -> tuple[NodeGroup, Strategy]:
    file = folder / "groups.yaml"
    file.write_text(yaml.safe_dump({"groups": [group()], **fields}))
    groups = read_node_groups(str(file))
    return groups.groups[0], groups.settings.strategy


@pytest.fixture
def pool(tmp_path: Path) -> NodeGroup:
    return read(tmp_path)[0]


@pytest.fixture
def autoscaler(tmp_path: Path) -> ClusterAutoscaler:
    strategy = read(tmp_path)[1]
    assert isinstance(strategy, ClusterAutoscaler)
    return strategy


@pytest.fixture
def karpenter(tmp_path: Path) -> Karpenter:
    strategy = read(tmp_path, strategy="karpenter")[1]
    assert isinstance(strategy, Karpenter)
    return strategy


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
def test_which_pods_may_be_moved(
    one: Pod, by_autoscaler: bool, by_karpenter: bool, autoscaler: ClusterAutoscaler, karpenter: Karpenter
) -> None:
    assert may_be_moved(one, autoscaler, Disruptions(Store())) is by_autoscaler
    assert may_be_moved(one, karpenter, Disruptions(Store())) is by_karpenter


def test_a_budget_without_disruptions_left_keeps_its_pods(autoscaler: ClusterAutoscaler, karpenter: Karpenter) -> None:
    protected = pod(labels={"app": "web"}, phase="Running")
    disruptions = Disruptions(Store())
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    budget = make_object("PodDisruptionBudget", "web", namespace="default", spec=spec)
    assert isinstance(budget, PodDisruptionBudget)
    disruptions.on_budget_updated(budget, [(protected, True)])

    assert not may_be_moved(protected, autoscaler, disruptions)
    assert not may_be_moved(protected, karpenter, disruptions)


def test_annotations_keep_a_node(autoscaler: ClusterAutoscaler, karpenter: Karpenter) -> None:
    node = make_node("n")
    kept = {name: with_fields(node, metadata=with_fields(node.metadata, annotations={name: "true"})) for name in KEPT}

    assert autoscaler.allows_removal(node)
    assert [autoscaler.allows_removal(kept[name]) for name in KEPT] == [False, True]
    assert [karpenter.allows_removal(kept[name]) for name in KEPT] == [True, False]


KEPT = ("cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt")


def test_pods_of_very_low_priority_are_expendable(autoscaler: ClusterAutoscaler, karpenter: Karpenter) -> None:
    assert autoscaler.is_expendable(pod(priority=-11))
    assert not autoscaler.is_expendable(pod(priority=-10))
    assert not autoscaler.is_expendable(pod())
    assert not karpenter.is_expendable(pod(priority=-11))


def test_how_full_a_node_counts(pool: NodeGroup, autoscaler: ClusterAutoscaler) -> None:
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
    counted = member(cluster, node, pool, list(pods.values()), autoscaler)
    ignoring = replace(autoscaler, ignore_daemonsets_utilization=True)

    assert [each.name for each in counted.pods] == ["half"]
    assert (counted.utilization, counted.is_empty, counted.is_ready) == (0.75, False, True)
    # What a DaemonSet takes is then not offered either: 1 of 2 cpus, as much as of memory.
    assert member(cluster, node, pool, list(pods.values()), ignoring).utilization == 0.5


def tried(*objects: Object) -> tuple[Cluster, TrialCluster]:
    cluster = Cluster.from_objects(objects)
    return cluster, TrialCluster(cluster, Scheduler, lambda node: [])


def test_a_node_can_go_if_its_pods_fit_elsewhere(pool: NodeGroup, autoscaler: ClusterAutoscaler) -> None:
    def moved(trial: TrialCluster, *instead: Node) -> bool:
        pods = trial.cluster.pods_on(trial.cluster.rows["n"])
        return try_removal(trial, member(trial.cluster, node, pool, pods, autoscaler), instead) is not None

    node, small, other = make_node("n", cpu="4"), make_node("small", cpu="2"), make_node("other", cpu="4")
    running = [pod("one"), pod("two", requests={"cpu": "2"})]

    assert not moved(tried(node, small, *running)[1])
    assert moved(tried(node, small, other, *running)[1])
    assert moved(tried(node, small, *running)[1], other)


def test_a_trial_leaves_the_cluster_as_it_is() -> None:
    node = make_node("n", cpu="2")
    cluster, trial = tried(node, pod("one"))

    assert trial.fits(replacement_of(pod("one")))
    assert not trial.fits(pod("large", node="", requests={"cpu": "1"}))
    assert [each.name for each in trial.placed["n"]] == ["one-anew"]
    assert [each.name for each in cluster.pods_on(0)] == ["one"]
