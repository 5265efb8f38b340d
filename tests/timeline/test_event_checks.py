"""Events about what is not there: refused where they cannot be meant, noticed where they come too late."""

from __future__ import annotations

import pytest

from builders import make_node
from podium.errors import InputError
from timeline.test_timeline import Fields, at, budget, node, pod, simulate, workload

ADDED = at(0, "add", node("b"))
GONE = (at(0, "add", node("b")), at(1, "delete", node("b")))
RECORD = {"time": 1, "event": "Delete", "resource": pod("p")}


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ((at(1, "fail", node("b")),), "event 1: fail of Node b, which is neither in the cluster nor added before"),
        ((at(1, "cordon", node("b")),), "event 1: cordon of Node b"),
        ((at(1, "uncordon", node("b")),), "event 1: uncordon of Node b"),
        ((at(1, "drain", node("b")),), "event 1: drain of Node b"),
        ((at(1, "delete", node("b")),), "event 1: delete of Node b"),
        ((at(1, "delete", pod("p")),), "event 1: delete of Pod default/p"),
        ((at(1, "delete", budget("web", "web")),), "event 1: delete of PodDisruptionBudget default/web"),
        ((at(1, "delete", workload("Deployment", "web", 1)),), "event 1: delete of Deployment default/web"),
        (
            (at(5, "drain", node("b")), at(7, "add", node("b")), at(9, "update", node("b"))),
            "event 1: drain at 5s of Node b, which comes at 7s: change one of the times",
        ),
        (
            (at(0, "add", workload("Deployment", "web", 1)), at(5, "delete", pod("webber"))),
            "event 2: delete of Pod default/webber",
        ),
    ],
)
def test_what_was_never_there_cannot_be_meant(events: tuple[Fields, ...], problem: str) -> None:
    with pytest.raises(InputError) as error:
        simulate([make_node("a")], *events)
    assert str(error.value).startswith(problem)


@pytest.mark.parametrize(
    ("events", "warnings"),
    [
        ((ADDED, at(1, "drain", node("b")), at(2, "uncordon", node("b")), at(3, "fail", node("b"))), ()),
        ((at(0, "drain", node("a")),), ()),
        (
            (*GONE, at(2, "drain", node("b")), at(3, "fail", node("b")), at(4, "drain", node("b"))),
            ("event 3: drain of Node b has no effect: the object did not exist at that time; 2 more like it",),
        ),
        (
            (at(0, "add", pod("p"), lifetime=3), at(9, "delete", pod("p"))),
            ("event 2: delete of Pod default/p has no effect: the object did not exist at that time",),
        ),
        (
            (at(0, "add", workload("Deployment", "web", 1)), at(5, "delete", pod("web-oops"))),
            ("event 2: delete of Pod default/web-oops has no effect: the object did not exist at that time",),
        ),
        (
            (at(0, "add", pod("p"), lifetime=9), at(5, "update", pod("p"), lifetime=3)),
            ("event 2: lifetime of Pod default/p has no effect: the pod exists already and keeps its lifetime",),
        ),
        ((at(0, "add", pod("p", annotations={"podium/lifetime": "9s"})), at(5, "update", pod("p"))), ()),
        (
            (at(0, "add", pod("p", nodeName="nowhere")),),
            (
                "event 1: Pod default/p is bound to Node nowhere, which does not exist: the pod uses no resources "
                "until the node is added",
            ),
        ),
        ((ADDED, at(0, "add", pod("p", nodeName="b"))), ()),
        ((RECORD,), ("event 1: delete of Pod default/p has no effect: the object did not exist at that time",)),
    ],
)
def test_what_may_come_too_late_is_noticed(events: tuple[Fields, ...], warnings: tuple[str, ...]) -> None:
    assert simulate([make_node("a", cpu="4")], *events).warnings == warnings
