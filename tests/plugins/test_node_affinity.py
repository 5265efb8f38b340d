from __future__ import annotations

from typing import Any

import pytest

from builders import decide, expression, make_node, make_pod, node_affinity, rejections, scores, with_args

NODES = [
    make_node("ssd", labels={"disk": "ssd", "cores": "16"}),
    make_node("hdd", labels={"disk": "hdd", "cores": "4"}),
    make_node("bare"),
]
REASON = "node(s) didn't match Pod's node affinity/selector"


def term(*expressions: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": list(expressions)}


def named(name: str, operator: str = "In") -> dict[str, Any]:
    return {"matchFields": [expression("metadata.name", operator, name)]}


@pytest.mark.parametrize(
    ("required", "feasible"),
    [
        pytest.param([term(expression("disk", "In", "ssd", "nvme"))], ("ssd",), id="In"),
        pytest.param([term(expression("disk", "NotIn", "ssd"))], ("bare", "hdd"), id="NotIn takes absence"),
        pytest.param([term(expression("disk", "Exists"))], ("hdd", "ssd"), id="Exists"),
        pytest.param([term(expression("disk", "DoesNotExist"))], ("bare",), id="DoesNotExist"),
        pytest.param([term(expression("cores", "Gt", "4"))], ("ssd",), id="Gt"),
        pytest.param([term(expression("cores", "Lt", "16"))], ("hdd",), id="Lt"),
        pytest.param([term(expression("disk", "Gt", "1"))], (), id="Gt of no number"),
        pytest.param(
            [term(expression("disk", "Exists"), expression("cores", "Gt", "8"))], ("ssd",), id="all of a term"
        ),
        pytest.param(
            [term(expression("disk", "In", "ssd")), term(expression("disk", "DoesNotExist"))],
            ("bare", "ssd"),
            id="any of the terms",
        ),
        pytest.param([{}, term(expression("disk", "In", "ssd"))], ("ssd",), id="an empty term matches nothing"),
        pytest.param([named("ssd", "NotIn")], ("bare", "hdd"), id="not a name"),
    ],
)
def test_required_terms(required: list[Any], feasible: tuple[str, ...]) -> None:
    decision = decide(NODES, make_pod(affinity=node_affinity(required=required)))
    assert decision.feasible == feasible
    rejected = {name for name in ("ssd", "hdd", "bare") if name not in feasible}
    assert rejections(decision) == dict.fromkeys(rejected, ("NodeAffinity", "UnschedulableAndUnresolvable", (REASON,)))


def test_the_node_selector_must_match_as_well() -> None:
    pod = make_pod(
        node_selector={"disk": "ssd"}, affinity=node_affinity(required=[term(expression("cores", "Exists"))])
    )
    assert decide(NODES, pod).feasible == ("ssd",)


def test_terms_that_all_name_nodes_leave_the_others_unseen() -> None:
    decision = decide(NODES, make_pod(affinity=node_affinity(required=[named("ssd"), named("hdd")])))
    assert decision.feasible == ("hdd", "ssd")
    assert rejections(decision) == {}
    assert decision.absent is not None
    assert decision.absent.reasons == ("node(s) didn't satisfy plugin(s) [NodeAffinity]",)


def test_a_term_that_names_two_nodes_cannot_be_met() -> None:
    both = {"matchFields": [*named("ssd")["matchFields"], *named("hdd")["matchFields"]]}
    decision = decide(NODES, make_pod(affinity=node_affinity(required=[both])))
    assert decision.message == "0/3 nodes are available: pod affinity terms conflict."


@pytest.mark.parametrize(
    ("preferred", "expected"),
    [
        # The weights of the terms a node meets add up; the highest sum becomes 100.
        (
            [(30, term(expression("disk", "Exists"))), (10, term(expression("cores", "Gt", "8")))],
            {"ssd": 100, "hdd": 75, "bare": 0},
        ),
        ([(1, term(expression("disk", "DoesNotExist")))], {"ssd": 0, "hdd": 0, "bare": 100}),
        ([(7, term(expression("unheard", "Exists")))], {"ssd": 0, "hdd": 0, "bare": 0}),
        ([(7, {})], {"ssd": 0, "hdd": 0, "bare": 0}),
        ([], None),
    ],
)
def test_preferred_terms(preferred: list[Any], expected: dict[str, int] | None) -> None:
    pod = make_pod(affinity=node_affinity(preferred=preferred))
    assert scores(decide(NODES, pod), "NodeAffinity") == expected


ADDED = with_args(
    "NodeAffinity",
    addedAffinity=node_affinity(
        required=[term(expression("disk", "Exists"))], preferred=[(5, term(expression("disk", "In", "hdd")))]
    )["nodeAffinity"],
)


def test_the_added_affinity_holds_for_every_pod() -> None:
    decision = decide(NODES, make_pod(), ADDED)
    assert scores(decision, "NodeAffinity") == {"ssd": 0, "hdd": 100}
    reason = "node(s) didn't match scheduler-enforced node affinity"
    assert rejections(decision) == {"bare": ("NodeAffinity", "UnschedulableAndUnresolvable", (reason,))}


def test_the_added_affinity_is_judged_before_the_pods_own() -> None:
    decision = decide(NODES, make_pod(node_selector={"disk": "ssd"}), ADDED)
    assert {name: status.reasons[0] for name, status in decision.rejected.items()} == {
        "bare": "node(s) didn't match scheduler-enforced node affinity",
        "hdd": REASON,
    }
