from __future__ import annotations

from typing import Any

import pytest

from builders import decide, expression, make_node, make_pod, node_affinity
from podium.engine import Decision, PluginScores
from podium.framework import Status

SMALL, LARGE = make_node("small", cpu="1"), make_node("large", cpu="4")


def test_a_pod_that_fits_has_no_message() -> None:
    assert decide([LARGE], make_pod()).message == ""


@pytest.mark.parametrize(
    ("nodes", "requests", "message"),
    [
        ([], {}, "no nodes available to schedule pods"),
        ([SMALL], {"cpu": "2"}, "0/1 nodes are available: 1 Insufficient cpu."),
        (
            [SMALL, LARGE],
            {"cpu": "5", "memory": "9Gi"},
            "0/2 nodes are available: 2 Insufficient cpu, 2 Insufficient memory.",
        ),
        (
            [SMALL, make_node("tainted", taints=["a=:NoSchedule"]), make_node("cordoned", unschedulable=True)],
            {"cpu": "2"},
            "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s), "
            "1 node(s) were unschedulable.",
        ),
        (
            [make_node(f"n{number}", cpu="1") for number in range(11)] + [make_node("t", taints=["a=:NoSchedule"])],
            {"cpu": "2"},
            # Sorted as text, as kube-scheduler does.
            "0/12 nodes are available: 1 node(s) had untolerated taint(s), 11 Insufficient cpu.",
        ),
    ],
)
def test_the_message_counts_reasons(nodes: list[Any], requests: dict[str, str], message: str) -> None:
    decision = decide(nodes, make_pod(requests=requests))
    assert decision.node is None
    assert decision.message == message


def test_nodes_nobody_looked_at_count_as_well() -> None:
    named = node_affinity(required=[{"matchFields": [expression("metadata.name", "In", "small")]}])
    decision = decide([SMALL, LARGE, make_node("third")], make_pod(affinity=named, requests={"cpu": "2"}))
    assert decision.message == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_the_first_filter_in_the_profile_gives_the_reason() -> None:
    node = make_node("n", cpu="1", taints=["a=:NoSchedule"], unschedulable=True)
    (status,) = decide([node], make_pod(requests={"cpu": "2"}, node_selector={"x": "y"})).rejected.values()
    assert status.plugin == "NodeUnschedulable"


def test_names_are_sorted_everywhere() -> None:
    nodes = [make_node(name, unschedulable=name in "xz") for name in "zyxba"]
    decision = decide(nodes, make_pod())
    assert decision.feasible == ("a", "b", "y")
    assert list(decision.rejected) == ["x", "z"]
    assert list(decision.totals) == ["a", "b", "y"]
    assert decision.ties == ("a", "b", "y")
    assert decision.node == "a"


def test_totals_are_the_sum_of_weighted_scores() -> None:
    nodes = [LARGE, make_node("tainted", taints=["a=:PreferNoSchedule"])]
    decision = decide(nodes, make_pod(requests={"cpu": "1"}))
    for node, total in decision.totals.items():
        assert total == sum(scores.weighted[node] for scores in decision.scores)
    assert decision.node == "large"


def test_a_single_node_is_taken_without_scoring() -> None:
    decision = decide([SMALL, LARGE], make_pod(requests={"cpu": "2"}))
    assert decision.node == "large"
    assert decision.ties == ("large",)
    assert decision.scores == ()
    assert decision.totals == {}


def test_as_plain_data() -> None:
    scored = Decision(
        "default/p",
        "a",
        feasible=("a", "b"),
        rejected={"c": Status.unschedulable("too small")._replace(plugin="Mine")},
        absent=Status.unresolvable("not asked for"),
        scores=(PluginScores("Mine", 2, {"a": 7, "b": 3}, {"a": 100, "b": 40}),),
        totals={"a": 200, "b": 80},
        ties=("a",),
        node_count=4,
    )
    assert scored.to_dict() == {
        "pod": "default/p",
        "feasible": ["a", "b"],
        "rejected": {"c": {"plugin": "Mine", "code": "Unschedulable", "reasons": ["too small"]}},
        "absent": {"plugin": "", "code": "UnschedulableAndUnresolvable", "reasons": ["not asked for"]},
        "scores": {"a": {"Mine": 200}, "b": {"Mine": 80}},
        "totals": {"a": 200, "b": 80},
        "ties": ["a"],
        "node": "a",
    }


def test_a_pod_that_fits_nowhere_as_plain_data() -> None:
    assert decide([SMALL], make_pod(requests={"cpu": "2"})).to_dict() == {
        "pod": "default/pod",
        "feasible": [],
        "rejected": {
            "small": {
                "plugin": "NodeResourcesFit",
                "code": "UnschedulableAndUnresolvable",
                "reasons": ["Insufficient cpu"],
            }
        },
        "message": "0/1 nodes are available: 1 Insufficient cpu.",
    }


def test_an_error_says_nothing_else() -> None:
    assert Decision("default/p", None, error="broken").to_dict() == {"pod": "default/p", "error": "broken"}
