"""Which nodes can go: no fewer than brute force finds, no budget violated, and the loop ends where the plan says."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import msgspec
import pytest

from builders import make_node, make_object, make_pod
from cli.running import run
from podium.answers import DisruptionSettings, drain
from podium.answers.consolidation import Consolidation, ConsolidationLimits, consolidate, play_consolidation
from podium.cluster import Cluster
from podium.engine.scheduler import SchedulerOptions
from podium.model import Object, Pod

OPTIONS = SchedulerOptions.steady(None)


def owned(name: str, app: str, **fields: Any) -> Pod:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app}
    return make_pod(name, **{"owner": owner, "labels": {"app": app}, **fields})


def replica_set(app: str, replicas: int, **requests: str) -> Object:
    container = {"name": "main", "image": "main", "resources": {"requests": requests}}
    template = {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": app}}, "template": template}
    return make_object("ReplicaSet", app, namespace="default", uid=app, spec=spec)


def random_cluster(seed: int) -> list[Object]:
    """Up to seven nodes of three sizes that are half full, some with budgets that leave no room."""
    chance = random.Random(seed)
    nodes = [
        make_node(
            f"n{number}", cpu=str(chance.choice((2, 4, 8))), memory="16Gi", pods=20, labels={"zone": f"z{number % 2}"}
        )
        for number in range(chance.randint(3, 7))
    ]
    objects: list[Object] = [*nodes]
    for app in range(chance.randint(2, 5)):
        name, cpu = f"app{app}", f"{chance.choice((250, 500, 1000, 1500))}m"
        there = [chance.choice(nodes).name for _ in range(chance.randint(1, 4))]
        pods = [owned(f"{name}-{place}", name, node=node, requests={"cpu": cpu}) for place, node in enumerate(there)]
        objects += [replica_set(name, len(pods), cpu=cpu), *pods]
        if chance.random() < 0.3:
            spec = {"maxUnavailable": chance.choice((0, 1)), "selector": {"matchLabels": {"app": name}}}
            objects.append(make_object("PodDisruptionBudget", name, namespace="default", spec=spec))
    return objects


def planned(objects: list[Object], **limits: Any) -> Consolidation:
    return consolidate(Cluster.from_objects(objects), OPTIONS, ConsolidationLimits(**limits))


def most_that_can_go(objects: list[Object]) -> int:
    """The largest set of nodes whose pods all move when it is drained at once."""
    cluster = Cluster.from_objects(objects)
    names = sorted(cluster.rows)
    for size in range(len(names), 0, -1):
        for nodes in combinations(names, size):
            found = drain(cluster, nodes, DisruptionSettings(preempt=False))
            if found.harmless:
                return size
    return 0


def test_as_many_nodes_as_brute_force() -> None:
    found = {
        seed: (len(planned(random_cluster(seed)).steps), most_that_can_go(random_cluster(seed))) for seed in range(20)
    }

    fewer = [seed for seed, (planned_nodes, most) in found.items() if planned_nodes < most]
    assert len(fewer) <= 2, found
    assert any(most for _, most in found.values())


@pytest.mark.parametrize("seed", range(12))
def test_the_loop_confirms_every_plan(seed: int) -> None:
    objects = random_cluster(seed)
    plan = planned(objects)

    assert play_consolidation(objects, plan, OPTIONS) == []
    assert plan.nodes_left >= plan.fewest
    gone = {step.node for step in plan.steps}
    assert {move.to for step in plan.steps for move in step.moves} & gone == set()
    assert gone & {kept.node for kept in plan.kept} == set()
    assert len(plan.steps) + len(plan.kept) == plan.node_count


def test_pods_that_wait_and_fit_get_their_node_first() -> None:
    objects: list[Object] = [make_node("n1", cpu="2"), make_node("n2", cpu="2"), replica_set("web", 2, cpu="2")]
    objects += [owned("web-0", "web", node="n1", requests={"cpu": "2"}), owned("web-1", "web", requests={"cpu": "2"})]

    assert planned(objects).steps == ()


CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
KEPT: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "control plane": (
        {"taints": ["node-role.kubernetes.io/control-plane:NoSchedule"]},
        {},
        "part of the control plane",
    ),
    "no controller": ({}, {"owner": None}, "a pod would be lost: no controller makes it again"),
}


@pytest.mark.parametrize(("of_node", "of_pod", "reason"), KEPT.values(), ids=KEPT)
def test_why_a_node_stays(of_node: dict[str, Any], of_pod: dict[str, Any], reason: str) -> None:
    objects: list[Object] = [
        make_node("n1", **of_node),
        make_node("n2"),
        owned("web-0", "web", **{"node": "n1", **of_pod}),
    ]

    assert [kept.reason for kept in planned(objects).kept if kept.node == "n1"] == [reason]


def test_prices_decide_which_node_goes() -> None:
    labels = {"node.kubernetes.io/instance-type": "large"}
    objects: list[Object] = [
        make_node("cheap", cpu="4"),
        make_node("dear", cpu="4", labels=labels),
        replica_set("web", 2, cpu="1"),
    ]
    objects += [owned("web-0", "web", node="cheap", requests={"cpu": "1"})]
    objects += [owned("web-1", "web", node="dear", requests={"cpu": "1"})]

    plan = planned(objects, prices={"large": 3.5})

    assert [(step.node, step.price) for step in plan.steps] == [("dear", 3.5)]
    assert (plan.saves, plan.cost_before, plan.covers_all_sets) == (3.5, 4.5, True)
    assert planned(objects, nodes=["cheap"]).steps[0].node == "cheap"
    assert planned(objects, most_moves=0).steps == ()


def test_the_command(tmp_path: Any) -> None:
    file = tmp_path / "cluster.json"
    pods = [owned(f"web-{number}", "web", node=f"n{number}", requests={"cpu": "1"}) for number in (1, 2)]
    items: list[Object] = [make_node("n1"), make_node("n2"), replica_set("web", 2, cpu="1"), *pods]
    documents = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", **msgspec.to_builtins(items[2])}]
    documents += [{"apiVersion": "v1", "kind": "Node", **msgspec.to_builtins(each)} for each in items[:2]]
    documents += [{"apiVersion": "v1", "kind": "Pod", **msgspec.to_builtins(each)} for each in pods]
    file.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": documents}))

    said = run("plan", "consolidate", "-f", str(file), "--commands")
    assert (said.exit_code, said.stdout.splitlines()[0]) == (0, "kubectl cordon n1")
    assert run("plan", "consolidate", "-f", str(file), "--max-moves", "0").exit_code == 1
    wrong = run("plan", "consolidate", "-f", str(file), "--price", "large")
    assert (wrong.exit_code, wrong.stderr) == (
        2,
        "podium: --price 'large' needs an instance type and a price per hour, such as m6i.large=0.107\n",
    )
