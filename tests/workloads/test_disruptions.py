"""Budgets: how many more pods may go, as pods come, fall ill and go."""

from __future__ import annotations

from typing import Any

import pytest

from builders import make_object, make_pod
from podium.cluster.store import Store
from podium.errors import InputError
from podium.model import Pod, PodDisruptionBudget
from podium.workloads.disruptions import Disruptions


def budget(app: str = "web", **fields: Any) -> PodDisruptionBudget:
    spec = {"selector": {"matchLabels": {"app": app}}, **fields}
    made = make_object("PodDisruptionBudget", "b", namespace="default", spec=spec)
    assert isinstance(made, PodDisruptionBudget)
    return made


def pods(number: int, app: str = "web") -> list[Pod]:
    return [
        make_pod(f"{app}-{each}", labels={"app": app}, owner={"kind": "ReplicaSet", "name": app}, node="n")
        for each in range(number)
    ]


@pytest.mark.parametrize(
    ("spec", "healthy", "ill", "allowed"),
    [
        ({"minAvailable": 2}, 3, 0, 1),
        ({"minAvailable": 2}, 2, 1, 0),
        ({"minAvailable": 5}, 3, 0, 0),
        ({"minAvailable": "50%"}, 3, 0, 1),
        ({"minAvailable": "100%"}, 3, 0, 0),
        ({"minAvailable": 0}, 3, 0, 3),
        ({"maxUnavailable": 1}, 3, 0, 1),
        ({"maxUnavailable": 1}, 2, 1, 0),
        ({"maxUnavailable": "34%"}, 3, 0, 2),
        ({"maxUnavailable": "10%"}, 3, 1, 0),
        ({"maxUnavailable": 9}, 3, 0, 3),
        ({"maxUnavailable": 1}, 0, 0, 0),
    ],
)
def test_a_budget_allows_what_its_spec_leaves(spec: dict[str, Any], healthy: int, ill: int, allowed: int) -> None:
    disruptions = Disruptions(Store())
    disruptions.on_budget_updated(budget(**spec), [])
    for number, pod in enumerate(pods(healthy + ill)):
        disruptions.on_pod_updated(pod, is_healthy=number < healthy)
    found = list(disruptions.take_changed())
    assert [each.status.disruptions_allowed for each in found] == ([allowed] if allowed else [])
    if healthy:
        assert disruptions.may_evict(pods(1)[0]) == (allowed > 0)


def test_pods_of_others_are_not_protected() -> None:
    disruptions = Disruptions(Store())
    disruptions.on_budget_updated(budget(minAvailable=1), [(pod, True) for pod in pods(1)])
    assert not disruptions.may_evict(pods(1)[0])
    assert disruptions.may_evict(make_pod("db-0", labels={"app": "db"}, node="n"))
    assert disruptions.may_evict(make_pod("web-0", namespace="team", labels={"app": "web"}, node="n"))


def test_pods_that_go_are_no_longer_counted() -> None:
    disruptions = Disruptions(Store())
    first, second, third = pods(3)
    disruptions.on_budget_updated(budget(minAvailable=1), [(pod, True) for pod in (first, second, third)])
    assert [each.status.disruptions_allowed for each in disruptions.take_changed()] == [2]
    disruptions.on_pod_deleted(first)
    disruptions.on_pod_updated(make_pod("web-1", labels={"app": "web"}, node="n", deleted=True), is_healthy=False)
    assert [each.status.disruptions_allowed for each in disruptions.take_changed()] == [0]
    assert not disruptions.may_evict(third)
    disruptions.on_budget_deleted(budget())
    assert disruptions.may_evict(third)
    assert not disruptions


def test_a_share_that_is_none_is_refused() -> None:
    disruptions = Disruptions(Store())
    disruptions.on_budget_updated(budget(minAvailable="many"), [(pod, True) for pod in pods(1)])
    with pytest.raises(InputError, match="PodDisruptionBudget default/b: 'many' must be a number or a percentage"):
        disruptions.may_evict(pods(1)[0])
