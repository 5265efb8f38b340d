from __future__ import annotations

from builders import decide, make_node, make_pod, rejections

NODES = [make_node("a"), make_node("b")]
REASON = "node(s) didn't match the requested node name"


def test_a_pod_that_names_no_node_may_go_anywhere() -> None:
    assert decide(NODES, make_pod()).feasible == ("a", "b")


def test_a_pod_that_names_a_node_goes_there() -> None:
    decision = decide(NODES, make_pod(node="b"))
    assert decision.node == "b"
    assert rejections(decision) == {"a": ("NodeName", "UnschedulableAndUnresolvable", (REASON,))}


def test_a_pod_that_names_an_unknown_node_goes_nowhere() -> None:
    assert decide(NODES, make_pod(node="c")).message == f"0/2 nodes are available: 2 {REASON}."
