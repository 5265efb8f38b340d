from __future__ import annotations

from typing import Any

import pytest

from builders import decide, make_node, make_pod, rejections, scores


def toleration(key: str = "", operator: str = "Exists", value: str = "", effect: str = "") -> dict[str, Any]:
    return {"key": key, "operator": operator, "value": value, "effect": effect}


@pytest.mark.parametrize(
    ("taint", "tolerations", "fits"),
    [
        ("team=a:NoSchedule", [], False),
        ("team=a:NoExecute", [], False),
        ("team=a:PreferNoSchedule", [], True),
        ("team=a:NoSchedule", [toleration("team", "Equal", "a", "NoSchedule")], True),
        ("team=a:NoSchedule", [toleration("team", "", "a")], True),
        ("team=a:NoSchedule", [toleration("team", "Equal", "b")], False),
        ("team=a:NoSchedule", [toleration("team")], True),
        ("team=a:NoSchedule", [toleration("team", effect="NoExecute")], False),
        ("team=a:NoSchedule", [toleration("other")], False),
        ("team=a:NoSchedule", [toleration()], True),
        ("team=a:NoSchedule", [toleration("other"), toleration("team")], True),
    ],
)
def test_untolerated_taints_keep_pods_away(taint: str, tolerations: list[Any], fits: bool) -> None:
    decision = decide([make_node("n", taints=[taint])], make_pod(tolerations=tolerations))
    assert (decision.node == "n") is fits


def test_evicting_pods_does_not_help() -> None:
    decision = decide([make_node("n", taints=["a=:NoSchedule", "b=:NoExecute"])], make_pod())
    expected = ("TaintToleration", "UnschedulableAndUnresolvable", ("node(s) had untolerated taint(s)",))
    assert rejections(decision) == {"n": expected}


SPOTTY = [
    make_node("none"),
    make_node("one", taints=["spot=:PreferNoSchedule"]),
    make_node("two", taints=["spot=:PreferNoSchedule", "old=:PreferNoSchedule"]),
]


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        # 0, 1 and 2 taints are not tolerated; the most is 2.
        pytest.param([], {"none": 100, "one": 50, "two": 0}, id="nothing tolerated"),
        pytest.param([toleration("spot")], {"none": 100, "one": 100, "two": 0}, id="one tolerated"),
        pytest.param([toleration()], {"none": 100, "one": 100, "two": 100}, id="all tolerated"),
        pytest.param(
            [toleration("spot", effect="NoSchedule")], {"none": 100, "one": 50, "two": 0}, id="for another effect"
        ),
    ],
)
def test_nodes_with_fewer_untolerated_soft_taints_score_higher(
    tolerations: list[Any], expected: dict[str, int]
) -> None:
    assert scores(decide(SPOTTY, make_pod(tolerations=tolerations)), "TaintToleration") == expected


def test_its_weight_is_three() -> None:
    (found,) = (each for each in decide(SPOTTY, make_pod()).scores if each.plugin == "TaintToleration")
    assert found.raw == {"none": 0, "one": 1, "two": 2}
    assert found.weighted == {"none": 300, "one": 150, "two": 0}
