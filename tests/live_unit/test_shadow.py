"""The shadow's comparison, event by event, without a cluster."""

from __future__ import annotations

from msgspec.structs import replace

from builders import make_node, make_pod
from podium.live.shadow import Compared, Outcome, Shadow
from podium.loop import Event, EventType
from podium.model import Node, Pod


def shadow(*nodes: Node) -> Shadow:
    return Shadow(nodes, None, tie_break="first")


def added(item: Pod | Node) -> Event:
    return Event(EventType.ADD, item)


def bound(pod: Pod, node: str) -> Event:
    return Event(EventType.UPDATE, replace(pod, spec=replace(pod.spec, node_name=node)))


def told(found: Shadow, *events: Event) -> list[Compared]:
    compared = [each for event in events for each in found.handle(event)]
    return [*compared, *found.settle()]


def test_the_best_node_is_the_same() -> None:
    found, pod = shadow(make_node("small", cpu="2"), make_node("large", cpu="16")), make_pod(requests={"cpu": "1"})

    (compared,) = told(found, added(pod), bound(pod, "large"))

    assert (compared.outcome, compared.podium) == (Outcome.SAME, "large")
    assert found.agreement == 1.0


def test_a_node_as_good_is_a_tie() -> None:
    found, pod = shadow(make_node("a"), make_node("b")), make_pod()

    (compared,) = told(found, added(pod), bound(pod, "b"))

    assert compared.outcome is Outcome.TIE


def test_another_node_names_the_plugin_that_made_the_difference() -> None:
    found, pod = shadow(make_node("small", cpu="2"), make_node("large", cpu="16")), make_pod(requests={"cpu": "1"})

    (compared,) = told(found, added(pod), bound(pod, "small"))

    assert (compared.outcome, compared.podium, compared.plugin) == (Outcome.OTHER, "large", "NodeResourcesFit")
    assert found.agreement == 0.0


def test_a_node_that_podium_rejects_names_the_filter() -> None:
    found, pod = shadow(make_node("a", cpu="1"), make_node("b", cpu="8")), make_pod(requests={"cpu": "2"})

    (compared,) = told(found, added(pod), bound(pod, "a"))

    assert (compared.plugin, compared.reason) == ("NodeResourcesFit", "a is rejected: Insufficient cpu")


def test_pods_that_were_decided_in_another_order_agree() -> None:
    """The second one was decided on a node that the first one has not been seen on yet."""
    nodes = make_node("a", cpu="4"), make_node("b", cpu="3")
    first, second = (make_pod(name, requests={"cpu": "2"}) for name in ("first", "second"))

    compared = told(shadow(*nodes), added(first), added(second), bound(second, "b"), bound(first, "a"))

    assert [each.outcome for each in compared] == [Outcome.SAME, Outcome.SAME]
    assert [each.pod for each in compared] == ["default/first", "default/second"]


def test_a_pod_that_was_bound_when_it_was_first_seen_is_unknown() -> None:
    (compared,) = told(shadow(make_node("a")), bound(make_pod(), "a"))

    assert compared.outcome is Outcome.UNKNOWN


def test_after_a_gap_nothing_is_known() -> None:
    found, pod = shadow(make_node("a")), make_pod()
    found.handle(added(pod))

    (compared,) = found.handle(bound(pod, "a"), has_gap=True)

    assert (compared.outcome, compared.reason) == (Outcome.UNKNOWN, "the watch had a gap")
    assert found.agreement is None


def test_pods_of_other_schedulers_are_not_compared() -> None:
    pod = make_pod(scheduler_name="somebody-else")

    assert told(shadow(make_node("a")), added(pod), bound(pod, "a")) == []
