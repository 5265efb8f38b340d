"""Priorities of one's own in the three forms: Map, Map and Reduce, and Function."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from builders import make_node, make_pod, scores
from podium.cluster import NodeInfo
from podium.framework import Registry, ScorePlugin
from podium.model import Pod
from podium.plugins import IN_TREE
from podium.releases import FunctionPriority, HostPriority, MapPriority, MapReducePriority, normalize_reduce
from releases.releasing import decide_as, policy


class Quiet(MapPriority):
    """Ten points less one for every pod that is there."""

    name = "Quiet"

    def map(self, pod: Pod, node: NodeInfo) -> int:
        return 10 - len(node.pods)


class Crowded(MapReducePriority):
    """The more pods are there, the better."""

    name = "Crowded"

    def map(self, pod: Pod, node: NodeInfo) -> int:
        return len(node.pods) * 100

    def reduce(self, pod: Pod, scores: Sequence[HostPriority]) -> Sequence[HostPriority]:
        return normalize_reduce(scores)


class Alphabetical(FunctionPriority):
    """The first node by name gets most, the next one less."""

    name = "Alphabetical"

    def function(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[HostPriority]:
        ordered = sorted((node.name for node in nodes), reverse=True)
        return [HostPriority(name, place) for place, name in enumerate(ordered)]


class Forgetful(FunctionPriority):
    name = "Forgetful"

    def function(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[HostPriority]:
        return [HostPriority(nodes[0].name, 1)]


class Beyond(MapPriority):
    name = "Beyond"

    def map(self, pod: Pod, node: NodeInfo) -> int:
        return -1000 if node.name == "a" else 1000


REGISTRY = Registry((*IN_TREE.values(), Quiet, Crowded, Alphabetical, Forgetful, Beyond))
OBJECTS = [
    *(make_node(name) for name in "abc"),
    make_pod("p1", node="a"),
    make_pod("p2", node="a"),
    make_pod("p3", node="b"),
]


@pytest.mark.parametrize("release", ["v1.8", "v1.14"])
@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        (Quiet, {"a": 8, "b": 9, "c": 10}),
        (Crowded, {"a": 10, "b": 5, "c": 0}),
        (Alphabetical, {"a": 2, "b": 1, "c": 0}),
        # Old releases hold scores to no range.
        (Beyond, {"a": -1000, "b": 1000, "c": 1000}),
    ],
)
def test_the_three_forms(release: str, priority: type[ScorePlugin], expected: dict[str, int]) -> None:
    document = policy((), [{"name": priority.name, "weight": 3}])

    decision = decide_as(release, OBJECTS, make_pod(), document, registry=REGISTRY)

    assert scores(decision, priority.name) == expected
    assert decision.totals == {node: 3 * score for node, score in expected.items()}


def test_they_run_in_v1_18_too_which_holds_them_to_a_hundred() -> None:
    decision = decide_as("v1.18", OBJECTS, make_pod(), policy((), ["Quiet"]), registry=REGISTRY)
    assert scores(decision, "Quiet") == {"a": 8, "b": 9, "c": 10}

    too_much = decide_as("v1.18", OBJECTS, make_pod(), policy((), ["Beyond"]), registry=REGISTRY)
    assert "returns an invalid score -1000" in too_much.error


def test_a_node_that_gets_no_score_is_an_error_that_names_it() -> None:
    decision = decide_as("v1.14", OBJECTS, make_pod(), policy((), ["Forgetful"]), registry=REGISTRY)

    assert decision.error == (
        "plugin 'Forgetful' must return from function one score for each node it was given; check b, c"
    )
