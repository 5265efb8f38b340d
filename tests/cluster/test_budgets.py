"""PodDisruptionBudgets: whom they cover, how many pods they expect and need, and which evictions they refuse."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_node, make_object, make_pod
from podium.cluster import Cluster
from podium.cluster.budgets import SEVERAL, Budget, BudgetHealth, Health, is_healthy, owner_of
from podium.model import LabelSelector, Node, Object, Pod, PodDisruptionBudget, SelectorRequirement
from podium.model.objects import PodDisruptionBudgetSpec

WEB = {"app": "web"}
UNREACHABLE = "node.kubernetes.io/unreachable=:NoExecute"


def budget(name: str = "web", **spec: Any) -> PodDisruptionBudget:
    spec = {"selector": {"matchLabels": WEB}, **spec}
    made = make_object("PodDisruptionBudget", name, namespace="default", spec=spec)
    assert isinstance(made, PodDisruptionBudget)
    return made


def web(name: str, kind: str = "ReplicaSet", owner: str = "web", **fields: Any) -> Pod:
    controller = {"kind": kind, "name": owner} if kind else None
    return make_pod(name, labels=WEB, node="n", owner=controller, **fields)


def scaled(kind: str, name: str, replicas: int, deployment: str = "") -> Object:
    template = {"metadata": {"labels": WEB}, "spec": {"containers": [{"name": "main", "image": "app"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": WEB}, "template": template}
    owner = {"kind": "Deployment", "name": deployment} if deployment else None
    return make_object(kind, name, namespace="default", owner=owner, spec=spec)


EXPECTED: dict[str, tuple[dict[str, Any], list[Pod], list[Object], tuple[int, int]]] = {
    "a plain minimum: the pods there are": ({"minAvailable": 1}, [web("a"), web("b", "")], [], (2, 1)),
    "a percentage: what controllers want": (
        {"minAvailable": "50%"},
        [web("a"), web("b")],
        [scaled("ReplicaSet", "web", 5)],
        (5, 3),
    ),
    "a maximum: what controllers want": (
        {"maxUnavailable": "30%"},
        [web("a"), web("b", "StatefulSet", "db")],
        [scaled("ReplicaSet", "web", 3), scaled("StatefulSet", "db", 2)],
        (5, 3),
    ),
    "two ReplicaSets of one Deployment": (
        {"maxUnavailable": 1},
        [web("a", owner="new"), web("b", owner="old")],
        [
            scaled("Deployment", "web", 4),
            scaled("ReplicaSet", "new", 3, "web"),
            scaled("ReplicaSet", "old", 2, "web"),
        ],
        (4, 3),
    ),
    "a Deployment that is not in the input": (
        {"maxUnavailable": 1},
        [web("a", owner="new")],
        [scaled("ReplicaSet", "new", 3, "web")],
        (3, 2),
    ),
    "a controller that is not in the input": ({"maxUnavailable": 1}, [web("a"), web("b")], [], (2, 1)),
    "an operator": ({"maxUnavailable": 1}, [web("a", "Rollout"), web("b", "Rollout")], [], (2, 1)),
    "pods without a controller": ({"maxUnavailable": 1}, [web("a"), web("b", "")], [], (1, 0)),
    "a Job": ({"maxUnavailable": 1}, [web("a"), web("b", "Job", "j")], [], (0, 0)),
    "a DaemonSet": ({"minAvailable": "50%"}, [web("a", "DaemonSet", "d")], [], (0, 0)),
    "mirror pods": ({"maxUnavailable": "50%"}, [web("a", "Node", "n")], [], (0, 0)),
    "no bound": ({}, [web("a")], [scaled("ReplicaSet", "web", 3)], (0, 0)),
    "a maximum above what is expected": ({"maxUnavailable": 9}, [web("a")], [], (1, 0)),
}


@pytest.mark.parametrize(("spec", "pods", "objects", "found"), EXPECTED.values(), ids=EXPECTED)
def test_how_many_pods_a_budget_expects_and_needs(
    spec: dict[str, Any], pods: list[Pod], objects: list[Object], found: tuple[int, int]
) -> None:
    store = Cluster.from_objects(objects).store
    health = Budget.of(budget(**spec)).health(1, Counter(map(owner_of, pods)), store)

    assert (health.expected, health.desired) == found


HEALTHY: dict[str, tuple[Pod, Node | None, bool]] = {
    "on a node": (web("a"), make_node("n"), True),
    "on none": (web("a"), None, False),
    "ready": (web("a", ready=True), make_node("n"), True),
    "not ready": (web("a", ready=False), make_node("n"), False),
    "terminating": (web("a", deleted=True), make_node("n"), False),
    "on a node that cannot be reached": (web("a", ready=True), make_node("n", taints=[UNREACHABLE]), False),
}


@pytest.mark.parametrize(("pod", "node", "healthy"), HEALTHY.values(), ids=HEALTHY)
def test_which_pods_are_healthy(pod: Pod, node: Node | None, healthy: bool) -> None:
    assert is_healthy(pod, node) is healthy


REFUSED: dict[str, tuple[dict[str, Any], Health, dict[str, Any], bool]] = {
    "healthy, and one may go": ({}, Health(3, 2, 3), {}, False),
    "healthy, and none may go": ({}, Health(2, 2, 3), {}, True),
    "nothing is expected": ({}, Health(2, 0, 0), {}, True),
    "not ready, and enough others are": ({}, Health(2, 2, 3), {"ready": False}, False),
    "not ready, and too few others are": ({}, Health(1, 2, 3), {"ready": False}, True),
    "not ready, and none has to be": ({}, Health(0, 0, 3), {"ready": False}, True),
    "not ready, which the policy allows": (
        {"unhealthyPodEvictionPolicy": "AlwaysAllow"},
        Health(1, 2, 3),
        {"ready": False},
        False,
    ),
    "ready, which the policy is not about": (
        {"unhealthyPodEvictionPolicy": "AlwaysAllow"},
        Health(1, 2, 3),
        {"ready": True},
        True,
    ),
    "not started": ({}, Health(1, 2, 3), {"ready": False, "phase": "Pending"}, False),
    "not started, as far as a file says": ({}, Health(1, 2, 3), {"phase": "Pending"}, True),
}


@pytest.mark.parametrize(("spec", "health", "fields", "refused"), REFUSED.values(), ids=REFUSED)
def test_which_evictions_a_budget_refuses(
    spec: dict[str, Any], health: Health, fields: dict[str, Any], refused: bool
) -> None:
    pod = web("a", **fields)
    found = Budget.of(budget(minAvailable=2, **spec)).refusal(pod, health, healthy=is_healthy(pod, make_node("n")))

    assert bool(found) is refused


INVALID = PodDisruptionBudgetSpec(
    selector=LabelSelector(match_expressions=[SelectorRequirement(key="app", operator="In")]), min_available=9
)
"""In takes at least one value."""
REASONS: dict[str, tuple[list[Object], str]] = {
    "none": ([], ""),
    "another namespace": ([make_object("PodDisruptionBudget", "b", namespace="x", spec={"selector": {}})], ""),
    "an invalid selector": ([replace(budget(), spec=INVALID)], ""),
    "too few": ([budget(minAvailable=9)], "PodDisruptionBudget default/web needs 9 healthy pods and has 1"),
    "the last one": ([budget(minAvailable=1)], "PodDisruptionBudget default/web needs 1 healthy pod and has 1"),
    "two": ([budget("one", minAvailable=0), budget("two", minAvailable=0)], SEVERAL),
    "no bound": (
        [budget()],
        "PodDisruptionBudget default/web allows nothing: it has neither minAvailable nor maxUnavailable",
    ),
}


@pytest.mark.parametrize(("budgets", "reason"), REASONS.values(), ids=REASONS)
def test_why_an_eviction_is_refused(budgets: list[Object], reason: str) -> None:
    cluster = Cluster.from_objects([make_node("n"), web("a"), *budgets])

    assert BudgetHealth(cluster).refusal(web("a"), cluster) == reason


@pytest.mark.parametrize("number", [1, 2])
def test_budgets_do_not_keep_a_pod_that_has_not_started(number: int) -> None:
    starting = web("a", ready=False)
    starting = replace(starting, status=replace(starting.status, phase="Pending"))
    budgets = [budget(f"b{place}", minAvailable=1) for place in range(number)]
    cluster = Cluster.from_objects([make_node("n"), starting, *budgets])

    assert BudgetHealth(cluster).refusal(starting, cluster) == ""
