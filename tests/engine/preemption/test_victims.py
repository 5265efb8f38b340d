"""Which pods of a node have to go."""

from __future__ import annotations

from typing import Any

import pytest

from builders import HOSTNAME, ZONE, affinity, make_node, pod_term, spread
from engine.preempting import APP, EARLY, LATE, PORT, on_a, preempt, preemptor, running, spared, victims_by_node
from podium.model import Pod


def test_the_least_important_pods_go() -> None:
    pods = [on_a("a", priority=5), on_a("b", priority=1), on_a("c", priority=9), on_a("d", priority=3)]

    assert spared(*pods, want="2") == ["d", "b"]


def test_a_later_pod_is_spared_when_an_earlier_one_is_too_large() -> None:
    assert spared(on_a("large", cpu="3", priority=5), on_a("tiny", priority=1), want="2") == ["large"]


def test_of_equal_priority_who_started_later_goes() -> None:
    assert spared(on_a("late", cpu="2", started=LATE), on_a("early", cpu="2", started=EARLY), want="1") == ["late"]


def test_who_has_not_started_goes_before_who_has() -> None:
    assert spared(on_a("waiting", cpu="2", started=None), on_a("started", cpu="2", started=LATE), want="1") == [
        "waiting"
    ]


def test_of_pods_that_have_not_started_the_first_goes() -> None:
    pods = [on_a(name, cpu="2", started=None) for name in ("first", "second")]

    assert spared(*pods, want="1") == ["first"]


def test_of_pods_that_started_together_the_last_goes() -> None:
    assert spared(*(on_a(name, cpu="2") for name in ("first", "second")), want="1") == ["second"]


def test_a_start_time_that_is_none_is_reported() -> None:
    decision = preempt([make_node("a", cpu="1"), on_a("low", started="yesterday")], preemptor())

    assert "pod default/low: status.startTime 'yesterday' is not a time" in decision.error


def test_pods_that_are_going_anyway_are_victims_but_are_not_evicted() -> None:
    decision = preempt([make_node("a", cpu="1"), on_a("going", deleted=True)], preemptor())

    assert (decision.nominated, decision.victims) == ("a", ())
    assert victims_by_node(decision) == {"a": ["going"]}


OTHER_REASONS: dict[str, tuple[list[Pod], dict[str, Any], list[str]]] = {
    "a host port": ([on_a("other"), on_a("taken", ports=PORT)], {"ports": PORT}, ["taken"]),
    "its anti-affinity": (
        [on_a("web", labels=APP), on_a("other")],
        {"affinity": affinity(required=[pod_term(HOSTNAME, APP)], anti=True)},
        ["web"],
    ),
    "the anti-affinity of others": (
        [on_a("hater", affinity=affinity(required=[pod_term(HOSTNAME, APP)], anti=True)), on_a("other")],
        {"labels": APP},
        ["hater"],
    ),
    "as many pods as the node takes": (
        [on_a("one", cpu="0"), on_a("two", cpu="0", priority=5)],
        {},
        ["one"],
    ),
}


@pytest.mark.parametrize(("pods", "fields", "victims"), OTHER_REASONS.values(), ids=OTHER_REASONS)
def test_who_is_in_the_way(pods: list[Pod], fields: dict[str, Any], victims: list[str]) -> None:
    node = make_node("a", cpu="4", pods=2 if victims == ["one"] else 110, labels={HOSTNAME: "a"})

    assert victims_by_node(preempt([node, *pods], preemptor(**fields))) == {"a": victims}


def test_a_pod_whose_company_would_have_to_go_is_not_helped() -> None:
    pod = preemptor(cpu="2", affinity=affinity(required=[pod_term(HOSTNAME, APP)]))

    decision = preempt([make_node("a", cpu="2", labels={HOSTNAME: "a"}), on_a("web", labels=APP)], pod)

    assert decision.post_filter_message.endswith("1 node(s) didn't match pod affinity rules.")


def test_spreading_counts_without_the_victims() -> None:
    nodes = [make_node(name, labels={ZONE: zone}) for name, zone in (("a", "1"), ("b", "2"), ("c", "3"))]
    pods = [running(f"web-{node}-{i}", node, labels=APP) for node in ("a", "b") for i in range(2)]
    pod = preemptor(labels=APP, topology_spread_constraints=[spread(ZONE, APP)], node_selector={ZONE: "1"})
    pod_ignoring_c = preemptor(
        labels=APP,
        topology_spread_constraints=[spread(ZONE, APP, node_affinity_policy="Ignore")],
        node_selector={ZONE: "1"},
    )

    assert preempt([*nodes, *pods], pod).node == "a"
    assert victims_by_node(preempt([*nodes, *pods], pod_ignoring_c)) == {"a": ["web-a-0", "web-a-1"]}


def test_spreading_counts_that_a_terminating_pod_goes_though_it_did_not_count_the_pod() -> None:
    """As kube-scheduler: without `going` there is one pod less than none, so `web` may stay."""
    constraint = spread(HOSTNAME, APP, min_domains=2)
    pods = [on_a("web", labels=APP), on_a("going", labels=APP, deleted=True, started=LATE)]

    assert spared(*pods, want="1", labels=APP, topology_spread_constraints=[constraint]) == ["going"]
    assert spared(pods[0], want="1", labels=APP, topology_spread_constraints=[constraint]) == ["web"]
