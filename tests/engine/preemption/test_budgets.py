"""PodDisruptionBudgets protect pods as far as possible."""

from __future__ import annotations

import pytest

from builders import make_node
from engine.preempting import FREE, PROTECTED, budget, on_a, preempt, preemptor, spared
from podium.model import Object

BUDGETS: dict[str, tuple[list[Object], list[str]]] = {
    "none": ([], ["low"]),
    "spent": ([budget("pdb", PROTECTED)], ["high"]),
    "of others": ([budget("pdb", {"app": "other"})], ["low"]),
    "not spent": ([budget("pdb", PROTECTED, allowed=1)], ["low"]),
    "about nothing": ([budget("pdb", None)], ["low"]),
    "about everything, which is nothing": ([budget("pdb", {})], ["low"]),
    "spent, but the pod is accounted for": ([budget("pdb", PROTECTED, disrupted=["low"])], ["low"]),
    "one of two spent": ([budget("full", PROTECTED, allowed=5), budget("spent", PROTECTED)], ["high"]),
}


@pytest.mark.parametrize(("budgets", "victims"), BUDGETS.values(), ids=BUDGETS)
def test_pods_protected_by_a_budget_are_spared_first(budgets: list[Object], victims: list[str]) -> None:
    pods = [on_a("high", cpu="2", priority=9, labels=FREE), on_a("low", cpu="2", priority=1, labels=PROTECTED)]

    assert spared(*pods, want="2", budgets=budgets) == victims


def test_a_budget_is_used_up_by_the_most_important_pods() -> None:
    pods = [on_a(name, labels=PROTECTED, priority=p) for name, p in (("a", 1), ("b", 3), ("c", 2), ("d", 4))]

    assert spared(*pods, want="2", budgets=[budget("pdb", PROTECTED, allowed=2)]) == ["d", "b"]


def test_victims_are_listed_by_importance_whatever_protects_them() -> None:
    pods = [on_a("high", cpu="2", priority=9, labels=FREE), on_a("low", cpu="2", priority=1, labels=PROTECTED)]

    decision = preempt([make_node("a"), *pods, budget("pdb", PROTECTED)], preemptor(cpu="4"))

    (candidate,) = decision.candidates
    assert ([pod.name for pod in candidate.victims], candidate.pdb_violations) == (["high", "low"], 1)
