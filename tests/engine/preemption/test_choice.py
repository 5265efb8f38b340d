"""Which of the nodes is taken, and what extenders have to say about it."""

from __future__ import annotations

from typing import Any

import pytest

from engine.preempting import EARLY, LATE, PROTECTED, budget, preempt, preemptor, running, small
from podium.cluster import Cluster
from podium.engine.dry_runs import CRITERIA, Candidate
from podium.engine.preemption import ask_extenders
from podium.errors import ExtenderError
from podium.extenders import Victims
from podium.model import Pod

HALF: dict[str, Any] = {"cpu": "1"}

CHOICES: dict[str, tuple[str, list[Pod], str]] = {
    CRITERIA[0]: (
        "b",
        [running("x", "a", cpu="2", labels=PROTECTED, priority=1), running("y", "b", cpu="2", priority=50)],
        CRITERIA[0],
    ),
    CRITERIA[1]: (
        "b",
        [
            running("x", "a", cpu="2", priority=50),
            running("y", "b", **HALF, priority=40),
            running("z", "b", **HALF, priority=40),
        ],
        CRITERIA[1],
    ),
    CRITERIA[2]: (
        "b",
        [
            running("w", "a", **HALF, priority=40),
            running("x", "a", **HALF, priority=30),
            running("y", "b", **HALF, priority=40),
            running("z", "b", **HALF, priority=20),
        ],
        CRITERIA[2],
    ),
    "fewer pods of negative priority": (
        "b",
        [
            running("w", "a", **HALF, priority=-5),
            running("x", "a", **HALF, priority=-5),
            running("y", "b", cpu="2", priority=-5),
        ],
        CRITERIA[2],
    ),
    CRITERIA[4]: (
        "b",
        [running("x", "a", cpu="2", started=EARLY), running("y", "b", cpu="2", started=LATE)],
        CRITERIA[4],
    ),
    "not started yet": (
        "b",
        [running("x", "a", cpu="2", started=LATE), running("y", "b", cpu="2", started=None)],
        CRITERIA[4],
    ),
    "only the most important victims' start counts": (
        "b",
        [
            running("w", "a", **HALF, priority=9, started=EARLY),
            running("x", "a", **HALF, priority=1, started=LATE),
            running("y", "b", **HALF, priority=9, started=LATE),
            running("z", "b", **HALF, priority=1, started=EARLY),
        ],
        CRITERIA[4],
    ),
    "tie": ("a", [running("x", "a", cpu="2"), running("y", "b", cpu="2")], "tie among equals"),
    "no choice": ("a", [running("x", "a", cpu="2"), running("y", "b", cpu="2", priority=200)], "only candidate"),
}


@pytest.mark.parametrize(("node", "pods", "reason"), CHOICES.values(), ids=CHOICES)
def test_which_node_is_taken(node: str, pods: list[Pod], reason: str) -> None:
    decision = preempt([small("a"), small("b"), *pods, budget("pdb", PROTECTED)], preemptor(cpu="2"))

    assert (decision.nominated, decision.chosen_by) == (node, reason)


def test_fewest_victims_decides_between_equal_sums() -> None:
    """Only victims below every priority there is can sum up to the same: each counts 2**31 more than its priority."""
    one, two = (
        Candidate("a", (running("x", "a", priority=1),)),
        Candidate("b", (running("y", "b", priority=1), running("z", "b", priority=-(2**31)))),
    )

    assert one.costs[:3] == two.costs[:3]
    assert one.costs < two.costs


class FakeExtender:
    """An extender that answers preempt calls with what it is told to, or fails."""

    name = "http://extender"
    supports_preemption = True

    def __init__(self, answer: dict[str, list[Pod]] | None, *, ignorable: bool = False) -> None:
        self._answer, self.ignorable = answer, ignorable

    def is_interested(self, pod: Pod) -> bool:
        return True

    def preempt(self, pod: Pod, victims: dict[str, Victims], pods_by_node: dict[str, list[Pod]]) -> dict[str, Victims]:
        if self._answer is None:
            raise ExtenderError(self.name, "is down")
        return {node: Victims(pods) for node, pods in self._answer.items()}


X, Y = running("x", "a"), running("y", "b")

EXTENDERS: dict[str, tuple[list[FakeExtender], dict[str, list[str]] | str]] = {
    "none": ([], {"a": ["x"], "b": ["y"]}),
    "one that agrees to one node": ([FakeExtender({"b": [Y]})], {"b": ["y"]}),
    "one that agrees to none": ([FakeExtender({}), FakeExtender({"b": [Y]})], {}),
    "two, the last has its way": ([FakeExtender({"a": [X], "b": [Y]}), FakeExtender({"a": [X]})], {"a": ["x"]}),
    "one that fails": ([FakeExtender(None)], "is down"),
    "one that fails and may": ([FakeExtender(None, ignorable=True)], {"a": ["x"], "b": ["y"]}),
    "one without victims": ([FakeExtender({"a": []})], 'expected at least one victim pod on node "a"'),
    "one without victims that may": ([FakeExtender({"a": [], "b": [Y]}, ignorable=True)], {"b": ["y"]}),
}


@pytest.mark.parametrize(("extenders", "expected"), EXTENDERS.values(), ids=EXTENDERS)
def test_extenders(extenders: list[Any], expected: dict[str, list[str]] | str) -> None:
    cluster = Cluster.from_objects([small("a"), small("b"), X, Y])
    candidates = [Candidate("a", (X,)), Candidate("b", (Y,))]

    if isinstance(expected, str):
        with pytest.raises(ExtenderError, match=expected):
            ask_extenders(extenders, preemptor(), candidates, cluster)
    else:
        found = ask_extenders(extenders, preemptor(), candidates, cluster)
        assert {one.node: [victim.name for victim in one.victims] for one in found} == expected
