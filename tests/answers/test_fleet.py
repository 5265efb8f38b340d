"""The example fleet is what the documentation says it is, the same in every run, and has no loose ends."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import pytest
import yaml

from podium.answers.simulation import simulate
from podium.cluster import Cluster
from podium.example import fleet, fleet_text, shop_text
from podium.manifests import Objects, load
from podium.model import (
    CSINode,
    DaemonSet,
    Deployment,
    Job,
    Node,
    Object,
    PersistentVolume,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    Service,
    StatefulSet,
)
from podium.plugins.topology_spread_constraints import HARD
from podium.workloads import expand_workloads


@pytest.fixture(scope="module")
def objects() -> Objects:
    return load(fleet())


def test_has_60_nodes_in_3_zones(objects: Objects) -> None:
    zones = Counter(node.metadata.labels["topology.kubernetes.io/zone"] for node in objects.of(Node))

    assert sum(zones.values()) >= 60
    assert len(zones) == 3


def test_nodes_differ(objects: Objects) -> None:
    nodes = objects.of(Node)

    assert len({node.metadata.labels["node.kubernetes.io/instance-type"] for node in nodes}) >= 5
    assert len({taint.effect for node in nodes for taint in node.spec.taints}) == 2
    assert sum("nvidia.com/gpu" in node.allocatable for node in nodes) == 6
    assert [node.name for node in nodes if node.spec.unschedulable] == ["general-b5"]


KINDS = (
    CSINode,
    DaemonSet,
    Deployment,
    Job,
    PersistentVolume,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    Service,
    StatefulSet,
)


@pytest.mark.parametrize("kind", KINDS)
def test_has_some_of_everything(kind: type[Object], objects: Objects) -> None:
    assert objects.of(kind)


def test_pods_make_use_of_what_there_is(objects: Objects) -> None:
    pods = objects.of(Pod)

    assert any(each.when_unsatisfiable == HARD for pod in pods for each in pod.spec.topology_spread_constraints)
    assert any(pod.spec.affinity and pod.spec.affinity.pod_anti_affinity for pod in pods)
    assert any(pod.spec.volumes for pod in pods)
    assert len({pod.priority for pod in pods}) >= 4


def test_everything_that_is_referred_to_is_there(objects: Objects) -> None:
    assert objects.warnings == ()
    assert Cluster.from_objects(objects).stranded == []


def test_no_workload_lacks_pods(objects: Objects) -> None:
    assert len(expand_workloads(objects)) == len(objects)


def test_no_node_has_more_on_it_than_fits(objects: Objects) -> None:
    columns = Cluster.from_objects(objects).columns

    assert (columns.requested <= columns.allocatable).all()


def test_of_the_pending_pods_some_fit(objects: Objects) -> None:
    simulation = simulate(Cluster.from_objects(objects))

    assert simulation.placed
    assert simulation.pending


def test_is_the_same_every_time() -> None:
    assert fleet_text() == fleet_text()


@pytest.mark.parametrize("text", [fleet_text, shop_text])
def test_json_and_yaml_say_the_same(text: Callable[..., str]) -> None:
    assert list(load(yaml.safe_load(text()))) == list(load(json.loads(text(json=True))))
