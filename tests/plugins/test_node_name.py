from __future__ import annotations

from builders import decide, make_node, make_pod, rejections
from podium.framework import Status

NODES = [make_node("a"), make_node("b")]
REASON = "node(s) didn't match the requested node name"
LEFT_OUT = "node(s) didn't satisfy plugin(s) [NodeName]"


def test_a_pod_that_names_no_node_may_go_anywhere() -> None:
    assert decide(NODES, make_pod()).feasible == ("a", "b")


def test_a_pod_that_names_a_node_goes_there() -> None:
    decision = decide(NODES, make_pod(node="b"))
    assert decision.node == "b"
    assert rejections(decision) == {}
    assert decision.absent == Status.unresolvable(LEFT_OUT)


def test_a_pod_that_names_an_unknown_node_goes_nowhere() -> None:
    assert decide(NODES, make_pod(node="c")).message == f"0/2 nodes are available: 2 {LEFT_OUT}."


def test_other_nodes_are_rejected_one_by_one_before_v1_37() -> None:
    decision = decide(NODES, make_pod(node="b"), release="v1.36")
    assert decision.node == "b"
    assert rejections(decision) == {"a": ("NodeName", "UnschedulableAndUnresolvable", (REASON,))}
    assert decide(NODES, make_pod(node="c"), release="v1.36").message == f"0/2 nodes are available: 2 {REASON}."
