"""Nominated pods: who is nominated where, who yields to whom, and what becomes of nominations."""

from __future__ import annotations

from typing import Any

import pytest

from builders import HOSTNAME, affinity, make_node, pod_term, rejections, spread
from engine.preempting import nominated, preemptor, running, scheduler_on
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.engine._nominations import Nominations
from podium.model import Object, Pod

LOW, HIGH = preemptor("low", priority=10), preemptor("high", priority=90)


def names(pods: list[Pod]) -> list[str]:
    return [pod.name for pod in pods]


# -- the book of nominations ---------------------------------------------------------------------------------------


def test_a_pod_is_nominated_to_one_node_at_most() -> None:
    nominations = Nominations()

    nominations.nominate(LOW, "a")
    nominations.nominate(LOW, "b")

    assert (nominations.node_of(LOW), names(nominations.on("a")), names(nominations.on("b"))) == ("b", [], ["low"])
    assert nominations.nodes() == ["b"]


def test_a_nomination_may_stand_in_the_status_until_it_is_taken_back() -> None:
    pod = nominated(LOW, "a")
    nominations = Nominations([pod, HIGH])
    assert (nominations.node_of(pod), names(nominations.on("a"))) == ("a", ["low"])

    nominations.nominate(pod, "")

    assert (nominations.node_of(pod), nominations.on("a"), bool(nominations)) == ("", [], False)


def test_what_is_forgotten_is_as_if_it_had_never_been_said() -> None:
    nominations = Nominations()
    nominations.nominate(LOW, "a")

    nominations.forget(LOW)
    nominations.forget(HIGH)

    assert (nominations.node_of(LOW), bool(nominations)) == ("", False)


def test_a_pod_yields_to_others_with_at_least_its_priority() -> None:
    nominations = Nominations()
    equal = preemptor("equal", priority=10)
    for pod in (LOW, equal, HIGH, preemptor("lowest", priority=1)):
        nominations.nominate(pod, "a")

    assert names(nominations.ahead_of(LOW, "a")) == ["equal", "high"]
    assert names(nominations.ahead_of(HIGH, "a")) == []
    assert names(nominations.ahead_of(LOW, "b")) == []


def test_lower_nominations_are_cleared() -> None:
    nominations = Nominations()
    nominations.nominate(LOW, "a")
    nominations.nominate(HIGH, "a")

    assert names(nominations.clear_lower("a", 90)) == ["low"]
    assert (nominations.node_of(LOW), names(nominations.on("a"))) == ("", ["high"])


def test_changes_are_told_once() -> None:
    nominations = Nominations()
    nominations.nominate(LOW, "a")
    nominations.nominate(LOW, "b")

    assert nominations.take_changed() == {"a", "b"}
    assert nominations.take_changed() == set()


# -- deciding with nominations -------------------------------------------------------------------------------------


def room_on_a(nominee: Pod, **node: Any) -> Scheduler:
    """Two nodes with room for one more pod each, and a pod nominated to the first."""
    nodes: list[Object] = [make_node(name, cpu="1", labels={HOSTNAME: name}, **node) for name in ("a", "b")]
    scheduler = scheduler_on(nodes)
    scheduler.nominations.nominate(nominee, "a")
    return scheduler


def test_a_pod_yields_the_room_that_was_made_for_another_one() -> None:
    scheduler = room_on_a(HIGH)

    decision = scheduler.decide(LOW)

    assert (decision.node, decision.feasible) == ("b", ("b",))
    assert rejections(decision) == {"a": ("NodeResourcesFit", "Unschedulable", ("Insufficient cpu",))}
    assert scheduler.schedule(LOW) == "b"


@pytest.mark.parametrize("nominee", [LOW, HIGH], ids=["of the same priority", "of higher priority"])
def test_who_is_yielded_to(nominee: Pod) -> None:
    assert room_on_a(nominee).decide(preemptor("other", priority=10)).feasible == ("b",)


def test_a_pod_takes_the_room_of_a_less_important_one() -> None:
    assert room_on_a(LOW).decide(HIGH).feasible == ("a", "b")


def test_a_pod_does_not_yield_to_itself_and_goes_where_it_is_nominated() -> None:
    decision = room_on_a(LOW).decide(LOW)

    assert (decision.node, decision.feasible, decision.rejected) == ("a", ("a",), {})


def test_a_pod_that_no_longer_fits_its_node_goes_elsewhere() -> None:
    scheduler = room_on_a(LOW)
    scheduler.cluster.add(running("intruder", "a"))

    assert scheduler.decide(LOW).node == "b"


def test_a_nomination_in_the_status_counts() -> None:
    nodes = [make_node(name, cpu="1") for name in ("a", "b")]
    waiting = nominated(HIGH, "b")

    assert scheduler_on([*nodes, waiting]).decide(LOW).feasible == ("a",)
    assert scheduler_on(nodes).decide(waiting).feasible == ("b",)


def test_a_pod_must_fit_with_and_without_the_nominated_ones() -> None:
    """Otherwise it would rely on a pod that may never come."""
    company = affinity(required=[pod_term(HOSTNAME, {"app": "web"})])
    scheduler = room_on_a(preemptor("web", priority=90, labels={"app": "web"}), pods=5)

    assert scheduler.decide(preemptor("fan", cpu="0", priority=10, affinity=company)).feasible == ()


def test_anti_affinity_of_a_nominated_pod_counts_where_anti_affinity_matters_at_all() -> None:
    """As kube-scheduler: a plugin that skipped at PreFilter goes on skipping."""
    hermit = affinity(required=[pod_term(HOSTNAME, {"app": "web"})], anti=True)
    nominee = preemptor("hermit", cpu="0", priority=90, affinity=hermit)
    web = preemptor("web", cpu="0", priority=10, labels={"app": "web"})

    assert room_on_a(nominee).decide(web).feasible == ("a", "b")

    scheduler = room_on_a(nominee)
    scheduler.cluster.add(make_node("c", labels={HOSTNAME: "c"}))
    scheduler.cluster.add(running("other-hermit", "c", affinity=hermit))
    assert scheduler.decide(web).feasible == ("b",)


def test_spreading_over_all_pods_counts_nominated_ones_only() -> None:
    """As kube-scheduler: an empty selector counts no pod at PreFilter, but every pod that comes after it."""
    scheduler = room_on_a(HIGH, pods=5)
    scheduler.cluster.add(running("other", "b", cpu="0"))
    pod = preemptor("new", cpu="0", priority=10, topology_spread_constraints=[spread(HOSTNAME, {}, min_domains=3)])

    assert scheduler.decide(pod).feasible == ("b",)


# -- carrying out --------------------------------------------------------------------------------------------------


def full(node: str, priority: int = 0) -> list[Object]:
    return [make_node(node, cpu="1"), running(f"on-{node}", node, priority=priority)]


def test_placing_with_preemption_evicts_nominates_and_then_places() -> None:
    scheduler = scheduler_on(full("a"))

    first = scheduler.place(HIGH, preempt=True)
    assert (first.nominated, scheduler.cluster.find_pod("default/on-a")) == ("a", None)
    assert scheduler.nominations.node_of(HIGH) == "a"
    assert scheduler.decide(LOW, preempt=True).nominated is None

    assert scheduler.place(HIGH, preempt=True).node == "a"
    assert not scheduler.nominations


def test_victims_may_be_left_to_the_caller() -> None:
    scheduler = scheduler_on(full("a"))

    decision = scheduler.place(HIGH, preempt=True, evict=False)

    assert decision.victims == ("default/on-a",)
    assert scheduler.cluster.find_pod("default/on-a") is not None
    assert scheduler.nominations.node_of(HIGH) == "a"


def test_a_more_important_pod_takes_over_the_node_and_clears_the_nomination() -> None:
    scheduler = scheduler_on(full("a"))
    scheduler.place(LOW, preempt=True, evict=False)

    scheduler.place(HIGH, preempt=True)

    assert (scheduler.nominations.node_of(LOW), scheduler.nominations.node_of(HIGH)) == ("", "a")


def test_a_nomination_that_does_not_help_any_more_is_cleared() -> None:
    scheduler = scheduler_on(full("a", priority=100))
    pod = nominated(LOW, "a")

    decision = scheduler.place(pod, preempt=True)

    assert (decision.nominated, decision.clears_nomination) == (None, True)
    assert scheduler.nominations.node_of(pod) == ""


def test_a_pod_that_must_not_preempt_keeps_its_nomination() -> None:
    pod = nominated(preemptor("low", priority=10, preemption_policy="Never"), "a")
    scheduler = scheduler_on(full("a"))

    assert not scheduler.place(pod, preempt=True).clears_nomination
    assert scheduler.nominations.node_of(pod) == "a"


def test_without_nodes_the_nomination_is_void() -> None:
    scheduler = scheduler_on([])
    pod = nominated(LOW, "a")

    assert scheduler.place(pod, preempt=True).message == "no nodes available to schedule pods"
    assert scheduler.nominations.node_of(pod) == ""


def test_deciding_changes_nothing() -> None:
    objects = [item for node in "abcdefgh" for item in full(node)]
    scheduler = Scheduler(Cluster.from_objects(objects), tie_break="random", seed=3)

    decisions = [scheduler.decide(HIGH, preempt=True) for _ in range(3)]

    assert decisions[0] == decisions[1] == decisions[2] == scheduler.place(HIGH, preempt=True, evict=False)
    assert len(scheduler.cluster.pods_on(0)) == 1
