"""PodDisruptionBudgets: how they count, what they block, and what violates them."""

from __future__ import annotations

from typing import Any

import pytest

from answers.losing import budget, drained, failed, fates, nodes, replica_set, web
from podium.answers import Fate
from podium.cluster import Cluster
from podium.cluster.budgets import BudgetHealth

HEALTH: dict[str, tuple[dict[str, Any], int, tuple[int, int, int], int]] = {
    "a number to stay": ({"minAvailable": 2}, 3, (3, 2, 3), 1),
    "a share to stay, of what is wanted": ({"minAvailable": "50%"}, 5, (3, 3, 5), 0),
    "a number that may go": ({"maxUnavailable": 1}, 3, (3, 2, 3), 1),
    "of which some are gone already": ({"maxUnavailable": 1}, 4, (3, 3, 4), 0),
    "a share that may go, rounded up": ({"maxUnavailable": "10%"}, 3, (3, 2, 3), 1),
    "more than there are": ({"minAvailable": 9}, 3, (3, 9, 3), 0),
    "nothing said": ({}, 3, (3, 0, 0), 0),
}


@pytest.mark.parametrize(("spec", "replicas", "health", "allowed"), HEALTH.values(), ids=HEALTH)
def test_budgets_count_as_the_controller_does(
    spec: dict[str, Any], replicas: int, health: tuple[int, int, int], allowed: int
) -> None:
    pods = [web(f"w{number}", "a1") for number in range(3)]
    cluster = Cluster.from_objects([*nodes("a1"), replica_set(replicas), budget(**spec), *pods])

    found = BudgetHealth(cluster).health("default/web", cluster)

    assert found == health
    assert found.allowed == allowed


def test_a_budget_cannot_count_on_the_scale_of_a_job() -> None:
    job = web("j", "a1", owner={"kind": "Job", "name": "j"})
    found = drained(*nodes("a1 a2"), job, budget(maxUnavailable=1))

    assert fates(found) == {"j": ("blocked", None)}
    assert found.pods[0].reason.startswith("PodDisruptionBudget default/web allows nothing")


def test_a_drain_takes_as_many_as_the_budget_allows_at_a_time() -> None:
    # Each may go once the one before it runs again elsewhere.
    objects = [*nodes("a1 a2"), *(web(f"w{number}", "a1") for number in range(3)), budget(minAvailable=2)]

    found = drained(*objects)

    assert {fate for fate, _ in fates(found).values()} == {"moves"}
    (impact,) = found.budgets
    assert (impact.before.healthy, impact.worst.healthy, impact.after.healthy) == (3, 2, 3)
    assert not impact.violated


def test_a_drain_ends_where_the_budget_says_so() -> None:
    # The second fits nowhere else, so the third has to stay.
    objects = [
        *nodes("a1", cpu="8"),
        *nodes("a2"),
        *(web(f"w{n}", "a1", cpu="3") for n in range(3)),
        budget(minAvailable=2),
    ]

    found = drained(*objects)

    assert fates(found) == {"w0": ("moves", "a2"), "w1": ("pending", None), "w2": ("blocked", None)}
    assert found.of(Fate.BLOCKED)[0].reason == "PodDisruptionBudget default/web needs 2 healthy pods and has 2"
    assert found.budgets[0].blocks == ("default/w2",)
    assert not found.harmless


def test_two_budgets_for_a_pod_block_it() -> None:
    found = drained(*nodes("a1 a2"), web("w", "a1"), budget("one", minAvailable=0), budget("two", minAvailable=0))

    assert fates(found) == {"w": ("blocked", None)}
    assert "more than one PodDisruptionBudget" in found.pods[0].reason


def test_a_failure_does_not_ask_budgets_and_violates_them() -> None:
    found = failed(*nodes("a1 a2"), web("w0", "a1"), web("w1", "a1"), budget(minAvailable=1))

    assert fates(found) == {"w0": ("moves", "a2"), "w1": ("moves", "a2")}
    (impact,) = found.budgets
    assert (impact.worst.healthy, impact.after.healthy, impact.violated) == (0, 2, True)
    assert found.values["violated"] == 1
