"""Scenarios: what each step does, and that a scenario is the same wherever it is read."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from podium.answers.applied_scenario import AppliedScenario, apply_scenario, differences
from podium.answers.scenario import BASE, Scenario, read_scenario, scenario_document
from podium.answers.simulation import simulate
from podium.cluster import Cluster
from podium.engine.scheduler import SchedulerOptions
from podium.errors import InputError
from podium.example import fleet
from podium.manifests import Objects, load
from podium.model import Node, Pod
from podium.present.scenario import effect_sentences
from podium.workloads import expand_workloads, workload_of

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "visitor", "namespace": "shop"},
    "spec": {"priorityClassName": "critical", "containers": [{"name": "c", "image": "i"}]},
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "guests", "namespace": "shop"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "guests"}},
        "template": {
            "metadata": {"labels": {"app": "guests"}},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        },
    },
}
STEPS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "cordon": ([{"do": "cordon", "nodes": ["spot-c2"]}], "1 node cordoned: spot-c2."),
    "cordon by label": ([{"do": "cordon", "nodes": ["zone=eu-1a"]}], "nodes cordoned"),
    "uncordon": ([{"do": "uncordon", "nodes": ["spot-c2"]}], "1 node uncordoned: spot-c2."),
    "drain": ([{"do": "drain", "nodes": ["spot-c2"]}], "When spot-c2 is drained"),
    "fail": ([{"do": "fail", "selector": "zone=eu-1a"}], "and 15 more fail"),
    "add nodes": ([{"do": "add-nodes", "like": "gpu-a1", "count": 3}], "3 nodes like gpu-a1 added"),
    "scale down": ([{"do": "scale", "workload": "shop/Deployment/web", "replicas": 5}], "goes from 36 pods to 5"),
    "scale up": ([{"do": "scale", "workload": "shop/Deployment/web", "replicas": 50}], "goes from 36 pods to 50"),
    "scale a set": ([{"do": "scale", "workload": "data/StatefulSet/redis", "replicas": 9}], "to 9"),
    "apply a pod": ([{"do": "apply", "objects": POD}], "1 object applied: 1 Pod."),
    "apply a workload": ([{"do": "apply", "objects": yaml.safe_dump(DEPLOYMENT)}], "1 Deployment"),
    "evict": ([{"do": "evict", "pods": ["data/redis-0"]}], "1 pod evicted: data/redis-0."),
    "place": ([{"do": "place"}], "pending pods placed"),
    "several": (
        [{"do": "add-nodes", "like": "gpu-a1", "count": 2}, {"do": "place"}, {"do": "drain", "nodes": ["gpu-a1-1"]}],
        "2 nodes like gpu-a1 added",
    ),
}


@pytest.fixture(scope="module")
def fleet_objects() -> Objects:
    return load(fleet())


def applied(objects: Objects, steps: list[dict[str, Any]]) -> AppliedScenario:
    return apply_scenario(read_scenario({"steps": steps}, "test"), objects, None, SchedulerOptions())


def nodes_of_pods(cluster: Cluster) -> dict[str, str | None]:
    return {**dict.fromkeys(cluster.pending), **{pod.key: node for pod, node in cluster.placed()}}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_says_what_it_did_and_leaves_objects_that_are_complete(name: str, fleet_objects: Objects) -> None:
    steps, said = STEPS[name]
    found = applied(fleet_objects, steps)
    assert said in " ".join(effect_sentences(found.effects[0]))
    # Controllers have nothing left to do: reading the objects again gives the same cluster.
    assert len(expand_workloads(found.objects)) == len(found.objects)
    keys = [obj.identity for obj in found.objects]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("name", STEPS)
def test_a_scenario_on_a_built_cluster_is_the_same_as_on_its_objects(name: str, fleet_objects: Objects) -> None:
    objects, options = expand_workloads(fleet_objects), SchedulerOptions()
    scenario = read_scenario({"steps": STEPS[name][0]}, "test")
    cluster = Cluster.from_objects(objects)
    before = nodes_of_pods(cluster)
    first = apply_scenario(scenario, objects, None, options, cluster=cluster)
    second = apply_scenario(scenario, fleet_objects, None, options)
    assert list(first.objects) == list(second.objects)
    assert nodes_of_pods(cluster) == before


def test_added_nodes_have_their_daemons_and_take_pods_that_wait(fleet_objects: Objects) -> None:
    found = applied(fleet_objects, [{"do": "add-nodes", "like": "gpu-a1", "count": 2}])
    cluster = Cluster.from_objects(found.objects)
    daemons = [workload_of(pod) for pod in cluster.pods_on(cluster.rows["gpu-a1-1"])]
    like = [workload_of(pod) for pod in cluster.pods_on(cluster.rows["gpu-a1"])]
    assert daemons
    assert sorted(daemons) == sorted(name for name in like if name.startswith("DaemonSet/"))
    placed = {each.pod.key: each.node for each in simulate(cluster, tie_break="first").placed}
    assert {placed["ml/train-xl-6np85"], placed["ml/train-xl-cvkvh"]} == {"gpu-a1-1", "gpu-a1-2"}


def test_steps_build_on_each_other(fleet_objects: Objects) -> None:
    steps: list[dict[str, Any]] = [
        {"do": "add-nodes", "like": "gpu-a1", "count": 2},
        {"do": "place"},
        {"do": "cordon", "nodes": ["gpu-a1-2"]},
        {"do": "fail", "nodes": ["gpu-a1-1"]},
    ]
    cluster = Cluster.from_objects(applied(fleet_objects, steps).objects)
    assert "gpu-a1-1" not in cluster.rows
    assert cluster.node("gpu-a1-2").spec.unschedulable
    waiting = {"ml/train-xl-6np85", "ml/train-xl-cvkvh"}
    assert len(waiting & cluster.pending.keys()) == 1


def test_a_pod_gets_the_priority_of_a_class_of_the_cluster(fleet_objects: Objects) -> None:
    from podium.model import PriorityClass

    wanted = max(fleet_objects.of(PriorityClass), key=lambda each: each.value)
    pod = {**POD, "spec": {**POD["spec"], "priorityClassName": wanted.name}}
    found = applied(fleet_objects, [{"do": "apply", "objects": pod}])
    assert next(each for each in found.objects.of(Pod) if each.name == "visitor").priority == wanted.value


def test_differences_name_who_moved_and_which_nodes_changed(fleet_objects: Objects) -> None:
    objects = expand_workloads(fleet_objects)
    before = Cluster.from_objects(objects)
    steps: list[dict[str, Any]] = [{"do": "drain", "nodes": ["spot-c2"]}, {"do": "add-nodes", "like": "spot-c1"}]
    after = Cluster.from_objects(applied(objects, steps).objects)
    found = differences(before, after)
    assert found.new_nodes == ("spot-c1-1",)
    assert "spot-c2" in found.changed_nodes
    moved = [each for each in found.moved if not each.is_new]
    assert {each.before for each in moved} == {"spot-c2"}
    assert all(each.after in after.rows for each in moved)


def test_weights_release_and_configuration_decide(fleet_objects: Objects) -> None:
    document = {"release": "v1.34", "settings": {"weights": {"NodeResourcesFit": 7}, "disabled": ["ImageLocality"]}}
    found = apply_scenario(read_scenario(document, "test"), fleet_objects, None, SchedulerOptions())
    weights = {ref.name: ref.weight for ref in found.options.set_up().config.profiles[0].points["score"]}
    assert weights["NodeResourcesFit"] == 7
    assert "ImageLocality" not in weights
    assert getattr(found.options.release, "name", "") == "v1.34"
    assert found.objects is fleet_objects


TITLES = [
    ({}, "base"),
    ({"steps": [{"do": "drain", "nodes": ["a3"]}], "settings": {"weights": {"Fit": 2}}}, "base + Fit 2 + drain a3"),
    ({"release": "v1.30", "settings": {"strategy": "MostAllocated"}}, "base + as v1.30 + MostAllocated"),
    ({"steps": [{"do": "fail", "selector": "zone=a"}, {"do": "place"}]}, "base + lose zone=a + place the pending pods"),
    ({"steps": [{"do": "apply", "objects": POD}]}, "base + apply Pod visitor"),
    ({"name": "monday", "steps": [{"do": "cordon", "nodes": list("abcde")}]}, "monday"),
    ({"steps": [{"do": "cordon", "nodes": list("abcde")}]}, "base + cordon a, b, c and 2 more"),
]


@pytest.mark.parametrize(("document", "title"), TITLES, ids=[title for _, title in TITLES])
def test_a_scenario_is_named_by_its_parts_and_read_as_it_was_written(document: dict[str, Any], title: str) -> None:
    scenario = read_scenario(document, "test")
    assert scenario.title == title
    assert read_scenario(yaml.safe_load(yaml.safe_dump(scenario_document(scenario))), "test") == scenario
    assert bool(scenario) == (title != "base")


def test_the_base_is_the_cluster_as_it_is(fleet_objects: Objects) -> None:
    options = SchedulerOptions()
    found = apply_scenario(BASE, fleet_objects, None, options)
    assert found.objects is fleet_objects
    assert found.options is options


BAD = [
    ([], "is not a scenario"),
    ({"kind": "Pod"}, "kind is 'Pod'"),
    ({"steps": [{"do": "explode"}]}, "steps[0].do cannot be 'explode'"),
    ({"steps": [{"do": "drain"}]}, "steps[0].nodes is missing"),
    ({"steps": [{"do": "drain", "nodes": []}]}, "steps[0].nodes is empty"),
    ({"colour": 1}, "colour is not a field that is known here"),
    ({"settings": {"weights": {"Fit": "x"}}}, "settings.weights[...] must be a whole number, not a text"),
    ({"steps": [{"do": "add-nodes", "like": "a", "count": 0}]}, "steps[0].count must be at least 1"),
]


@pytest.mark.parametrize(("document", "said"), BAD, ids=[said for _, said in BAD])
def test_what_is_wrong_with_a_scenario_is_said_in_one_line(document: object, said: str) -> None:
    with pytest.raises(InputError) as error:
        read_scenario(document, "monday.yaml")
    assert said in str(error.value)
    assert str(error.value).startswith("monday.yaml")
    assert "`" not in str(error.value)


IMPOSSIBLE = [
    ({"do": "drain", "nodes": ["nowhere"]}, "step 1, drain nowhere: node 'nowhere' is not in the cluster"),
    ({"do": "fail"}, "say which nodes fail"),
    ({"do": "scale", "workload": "a/b/c", "replicas": 1}, "has no pods in the cluster"),
    ({"do": "evict", "pods": ["a/b"]}, "pod 'a/b' runs on no node"),
    ({"do": "apply", "objects": {**POD, "spec": {"nodeName": "x", "containers": [{"name": "c"}]}}}, "is bound to node"),
    ({"do": "apply", "objects": "kind: ["}, "the objects"),
]


@pytest.mark.parametrize(("step", "said"), IMPOSSIBLE, ids=[said for _, said in IMPOSSIBLE])
def test_a_step_that_cannot_be_done_is_named(step: dict[str, Any], said: str, fleet_objects: Objects) -> None:
    with pytest.raises(InputError, match="step 1") as error:
        applied(fleet_objects, [step])
    assert said in str(error.value)


def test_unused_nodes_stay_as_they_are(fleet_objects: Objects) -> None:
    found = applied(fleet_objects, [{"do": "cordon", "nodes": ["spot-c2"]}])
    before, after = ({node.name: node for node in each.of(Node)} for each in (fleet_objects, found.objects))
    assert {name for name in before if before[name] != after[name]} == {"spot-c2"}


def test_a_scenario_can_be_compared_and_kept() -> None:
    assert Scenario() == BASE
    assert not BASE
