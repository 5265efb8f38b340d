"""Who may preempt, and on which nodes it could help."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from builders import make_node
from engine.preempting import nominated, preempt, preempted, preemptor, running, scheduler_on, small, victims_by_node
from podium.model import Object, Pod

NO_CLAIMS = "no new claims to deallocate"
PLACED = "preemption: found a potential placement for pod on node a, preempting 1 victims"


def test_a_pod_that_fits_preempts_nobody() -> None:
    decision = preempt([small("a"), running("low", "a")], preemptor())

    assert (decision.node, decision.nominated, decision.victims) == ("a", None, ())


def test_a_pod_that_fits_nowhere_is_nominated_where_pods_can_go() -> None:
    decision = preempt([small("a"), running("low", "a", cpu="2")], preemptor())

    assert (decision.node, decision.nominated, decision.victims) == (None, "a", ("default/low",))
    assert decision.message == f"0/1 nodes are available: 1 Insufficient cpu. {PLACED}"
    assert decision.to_dict() == {
        "pod": "default/new",
        "feasible": [],
        "rejected": {"a": {"plugin": "NodeResourcesFit", "code": "Unschedulable", "reasons": ["Insufficient cpu"]}},
        "message": f"0/1 nodes are available: 1 Insufficient cpu. {PLACED}",
        "nominated": "a",
        "victims": ["default/low"],
        "postmsg": PLACED,
    }


def test_success_has_no_words_before_v1_37() -> None:
    decision = preempt([small("a"), running("low", "a", cpu="2")], preemptor(), release="v1.36")

    assert (decision.nominated, decision.post_filter_message) == ("a", "")


@pytest.mark.parametrize(("release", "victims"), [("v1.34", ("default/low",)), ("v1.35", ())])
def test_victims_that_are_terminating_are_deleted_again_before_v1_35(release: str, victims: tuple[str, ...]) -> None:
    decision = preempt([small("a"), running("low", "a", cpu="2", deleted=True)], preemptor(), release=release)

    assert (decision.nominated, decision.victims) == ("a", victims)


@pytest.mark.parametrize(("release", "said"), [("v1.33", ""), ("v1.34", f"{NO_CLAIMS}, "), ("v1.37", "")])
def test_what_devices_say_first(release: str, said: str) -> None:
    decision = preempt([small("a"), running("low", "a", priority=200, cpu="2")], preemptor(), release=release)

    assert decision.post_filter_message.startswith(f"{said}preemption: ")


def test_without_being_asked_nothing_is_preempted() -> None:
    decision = scheduler_on([small("a"), running("low", "a", cpu="2")]).decide(preemptor())

    assert (decision.nominated, decision.post_filter_message) == (None, "")


BUSY = (small("a"), small("b"), running("low", "a", cpu="2"), running("high", "b", cpu="2", priority=200))
WAITING = [small("a"), preempted(running("low", "a", cpu="2")), small("b"), running("other", "b", cpu="2")]

REFUSALS: dict[str, tuple[Sequence[Object], Pod, str]] = {
    "preemptionPolicy Never": (
        BUSY,
        preemptor(preemption_policy="Never"),
        "not eligible due to preemptionPolicy=Never.",
    ),
    "its victims are still going": (
        WAITING,
        nominated(preemptor(), "a"),
        "not eligible due to a terminating pod on the nominated node.",
    ),
    "only pods of the same priority": (
        [small("a"), running("same", "a", cpu="2", priority=100)],
        preemptor(),
        "0/1 nodes are available: 1 No preemption victims found for incoming pod.",
    ),
    "too large even for an empty node": (
        [small("a"), running("low", "a", cpu="2")],
        preemptor(cpu="3"),
        "0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
    ),
    "what has to go may not": (
        [small("a"), running("low", "a"), running("high", "a", priority=200)],
        preemptor(cpu="2"),
        "0/1 nodes are available: 1 Insufficient cpu.",
    ),
    "one of each": (
        [
            *(small("b"), running("high", "b", cpu="2", priority=200)),
            *(small("c", taints=["team=a:NoSchedule"]), running("low", "c", cpu="2")),
            *(small("d"), running("mine", "d"), running("theirs", "d", priority=200)),
        ],
        preemptor(cpu="2"),
        "0/3 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling.",
    ),
}


@pytest.mark.parametrize(("objects", "pod", "why"), REFUSALS.values(), ids=REFUSALS)
def test_refusals(objects: Sequence[Object], pod: Pod, why: str) -> None:
    decision = preempt(objects, pod)

    assert (decision.nominated, decision.victims) == (None, ())
    assert decision.post_filter_message == f"preemption: {why}"
    assert decision.message.endswith(f". preemption: {why}")
    assert decision.to_dict()["postmsg"] == decision.post_filter_message


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param(
            [small("a"), running("low", "a", cpu="2", deleted=True), *WAITING[2:]], id="going for another reason"
        ),
        pytest.param([small("a", unschedulable=True), *WAITING[1:]], id="the node is of no use any more"),
        pytest.param(WAITING[2:], id="the node is gone"),
    ],
)
def test_a_nominated_pod_may_preempt_again(objects: Sequence[Object]) -> None:
    assert preempt(objects, nominated(preemptor(), "a")).nominated is not None


def test_nodes_that_eviction_cannot_change_are_no_candidates() -> None:
    objects = [
        make_node("tainted", cpu="2", taints=["team=a:NoSchedule"]),
        make_node("cordoned", cpu="2", unschedulable=True),
        make_node("tiny", cpu="500m"),
        small("useful"),
        *(running(f"on-{node}", node, cpu="2") for node in ("tainted", "cordoned", "useful")),
    ]

    assert victims_by_node(preempt(objects, preemptor())) == {"useful": ["on-useful"]}
