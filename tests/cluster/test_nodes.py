from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import ZONE, make_node, make_pod
from cluster.facts import resources_by_state
from podium.cluster import Cluster, Nodes
from podium.cluster.nodes import FoundNodes, Representatives, ResourceStates
from podium.model import Taint
from podium.model.selectors import NodeMatcher, NodeTerm, Requirement

CLUSTER = Cluster.from_objects(
    [
        make_node("a", cpu="4", labels={ZONE: "x", "disk": "ssd"}, gpu=1),
        make_node("b", cpu="2", labels={ZONE: "y"}, taints=["t=1:NoSchedule", "u=:NoExecute"]),
        make_node("c", cpu="1", labels={"disk": "hdd"}, taints=["t=1:NoSchedule"], unschedulable=True),
        make_pod("p", node="b", requests={"cpu": "1500m", "example.com/gpu": 1}),
        make_pod("q", node="b"),
    ]
)
SOME = Nodes(CLUSTER, np.array([2, 0]))


def test_all_nodes_at_once() -> None:
    nodes = CLUSTER.nodes
    assert nodes.names == ["a", "b", "c"]
    assert nodes.allocatable("cpu").tolist() == [4000, 2000, 1000]
    assert nodes.allocatable("example.com/gpu").tolist() == [1, 0, 0]
    assert nodes.requested("cpu").tolist() == [0, 1500, 0]
    assert nodes.requested("pods").tolist() == [0, 2, 0]
    assert nodes.requested("unheard-of").tolist() == [0, 0, 0]
    assert nodes.unschedulable.tolist() == [False, False, True]


def test_what_pods_without_requests_count_for_in_scores() -> None:
    mebi = 1024 * 1024
    requested = [int(CLUSTER.nodes.non_zero_requested(name)[1]) for name in ("cpu", "memory")]
    assert requested == [1500 + 100, 2 * 200 * mebi]


def test_some_nodes_in_the_order_asked_for() -> None:
    assert len(SOME) == 2
    assert SOME.names == ["c", "a"]
    assert SOME.allocatable("cpu").tolist() == [1000, 4000]
    assert SOME.unschedulable.tolist() == [True, False]
    assert SOME.among([0, 1]).tolist() == [False, True]
    assert [node.name for node in SOME] == ["c", "a"]


def test_rows_may_be_looked_for_only_when_they_are_needed() -> None:
    asked = []

    def rows() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        asked.append(1)
        return np.array([1])

    nodes = FoundNodes(CLUSTER, rows, lambda groups: Representatives(CLUSTER, groups, np.ones(3, dtype=np.int64)))
    assert not asked
    assert len(nodes.representatives((ZONE,)).nodes) == 3
    assert not asked
    assert nodes.names == ["b"]
    assert len(nodes) == 1
    assert len(asked) == 1


def test_every_distinct_set_of_taints_is_judged_once() -> None:
    judged: list[tuple[Taint, ...]] = []

    def count(taints: tuple[Taint, ...]) -> int:
        judged.append(taints)
        return len(taints)

    assert CLUSTER.nodes.by_taints(count).tolist() == [0, 2, 1]
    assert len(judged) == 3


@pytest.mark.parametrize(
    ("matcher", "expected"),
    [
        (NodeMatcher(), ["a", "b", "c"]),
        (NodeMatcher((Requirement("disk", "Exists"),)), ["a", "c"]),
        (NodeMatcher(terms=()), []),
        (NodeMatcher(terms=(NodeTerm((Requirement(ZONE, "In", frozenset("xy")),), ()),)), ["a", "b"]),
        (NodeMatcher(terms=(NodeTerm((), (Requirement("metadata.name", "In", frozenset("b")),)),)), ["b"]),
        (NodeMatcher(terms=(NodeTerm((), (Requirement("metadata.name", "NotIn", frozenset("b")),)),)), ["a", "c"]),
        (
            NodeMatcher(
                (Requirement("disk", "NotIn", frozenset(("hdd",))),),
                (
                    NodeTerm((Requirement(ZONE, "In", frozenset("y")),), ()),
                    NodeTerm((Requirement("disk", "Exists"),), ()),
                ),
            ),
            ["a", "b"],
        ),
    ],
)
def test_matching_agrees_with_asking_one_node_after_the_other(matcher: NodeMatcher, expected: list[str]) -> None:
    nodes = CLUSTER.nodes
    assert [name for name, matches in zip(nodes.names, nodes.matching(matcher), strict=True) if matches] == expected
    assert [node.name for node in nodes if matcher.matches(node.labels, node.name)] == expected


def test_one_node() -> None:
    a, b, _ = CLUSTER.nodes
    assert a.labels == {ZONE: "x", "disk": "ssd"}
    assert a.node is CLUSTER.node("a")
    assert a.allocatable("example.com/gpu") == 1
    assert [pod.name for pod in b.pods] == ["p", "q"]
    assert b.requested("cpu") == 1500
    assert b.requested("unheard-of") == 0


def test_every_distinct_value_of_a_label_is_judged_once() -> None:
    judged: list[str | None] = []

    def size(value: str | None) -> int:
        judged.append(value)
        return -1 if value is None else len(value)

    assert CLUSTER.nodes.by_label("disk", size).tolist() == [3, -1, 3]
    assert SOME.by_label("unheard-of", size).tolist() == [-1, -1]
    assert judged == ["ssd", "hdd", None, None]


CHANGES = {
    "one pod": ["a"],
    "two alike": ["a", "a"],
    "two different ones": ["a", "b"],
    "the other way round": ["b", "a"],
    "one that comes and goes": ["a", "-a"],
    "more than are remembered as one way": ["a"] * (ResourceStates.MOST_CHANGES + 3),
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_states_after_changes_that_nobody_looked_at_in_between(changes: list[str]) -> None:
    """The second time, the way from state to state is known: it must lead to where the first one did."""
    nodes = [make_node(f"n{i}", cpu="64") for i in range(3)]
    cluster = Cluster.from_objects(nodes)
    pods = {kind: make_pod(kind, requests={"cpu": cpu}) for kind, cpu in {"a": "1", "b": "2"}.items()}
    cluster.resource_states.read()
    for row in range(3):
        for number, change in enumerate(changes if row else [*changes, "b"]):
            pod = replace(pods[change[-1]], metadata=replace(pods[change[-1]].metadata, name=f"p{row}-{number}"))
            if change == "-a":
                cluster.remove(replace(pod, metadata=replace(pod.metadata, name=f"p{row}-{number - 1}")))
            else:
                cluster.assume(pod, f"n{row}")
        assert all(len(resources) == 1 for resources in resources_by_state(cluster).values())
    states = cluster.resource_states.read().tolist()
    assert states[1] == states[2] != states[0]


STEPS = st.lists(st.tuples(st.sampled_from(["add", "remove", "read", "ask"]), st.integers(0, 2), st.integers(1, 3)))


@given(STEPS)
@example([("add", 0, 3), ("read", 0, 1), ("remove", 0, 1), ("read", 0, 1), ("add", 1, 3)])
def test_no_node_uses_more_than_the_highest_amounts(steps: list[tuple[str, int, int]]) -> None:
    """Whatever happens between two questions for the highest amounts, and whether states are read in between."""
    cluster = Cluster.from_objects([make_node(f"n{i}", cpu="64") for i in range(3)])
    cluster.resource_states.read()
    for number, (step, row, cpu) in enumerate(steps):
        pods = cluster.pods_on(row)
        if step == "add":
            cluster.assume(make_pod(f"p{number}", requests={"cpu": str(cpu)}), f"n{row}")
        elif step == "remove" and pods:
            cluster.remove(pods[0])
        elif step == "read":
            cluster.resource_states.read()
        elif step == "ask":
            assert (cluster.resource_states.most_used >= cluster.columns.used.max(axis=1)).all()
    assert (cluster.resource_states.most_used >= cluster.columns.used.max(axis=1)).all()


def test_room_that_all_nodes_have_is_known_without_a_look_at_them() -> None:
    cluster = Cluster.from_objects(make_node(name, pods=10) for name in ("a", "b"))
    cluster.add(make_pod("p", node="b", requests={"cpu": "1"}))

    assert cluster.nodes.have_room([("pods", 9), ("cpu", 3000)])
    assert not cluster.nodes.have_room([("pods", 9), ("cpu", 3001)])
    assert not cluster.nodes.have_room([("example.com/gpu", 1)])
    cluster.add(make_node("c", cpu="8", pods=10))
    assert not cluster.nodes.have_room([("cpu", 1)]), "nodes of several sizes have to be looked at"


def test_usage_of_a_resource_that_nobody_uses_yet() -> None:
    cluster = Cluster.from_objects([make_node("a")])
    cluster.resource_states.read()
    cluster.columns.resource("example.com/gpu")

    for name in ("example.com/gpu", "example.com/never"):
        usage = cluster.nodes.usage(name)
        assert (usage.capacity, usage.requested.tolist(), usage.most_requested) == (0, [0], 0)
