"""However pods are placed one after the other, they go to the same nodes, or nowhere for the same reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import ZONE, make_node, make_pod
from pod_kinds import POD_KINDS, pod_of
from podium.answers._replicas import place
from podium.answers.simulation import place_in_order
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.loop import Bind, Event, EventType, SchedulerLoop, Unschedulable
from podium.model import Object, Pod
from storage_objects import ephemeral, make_claim, make_class, make_volume, pod_with

EPHEMERAL = "ephemeral volume"
KINDS = [EPHEMERAL, *(kind for kind in POD_KINDS if kind not in ("on n3", "being deleted"))]
Outcomes = dict[str, tuple[str | None, str]]
"""Per pod, its node, or None and the reason."""


def from_scratch(cluster: Cluster, *, preempt: bool = False) -> Outcomes:
    """Every pod is decided in full, and nothing is kept from one to the next: what the others are compared with."""
    found: Outcomes = {}
    with closing(Scheduler(cluster, tie_break="first", equivalence_cache=False)) as scheduler:
        for pod in list(cluster.pending.values()):
            decision = scheduler.place(pod, preempt=preempt)
            found[pod.key] = decision.node, decision.error or decision.message
    return found


def by_schedule(cluster: Cluster) -> Outcomes:
    found: Outcomes = {}
    with closing(Scheduler(cluster, tie_break="first")) as scheduler:
        for pod in list(cluster.pending.values()):
            node = scheduler.schedule(pod)
            found[pod.key] = node, "" if node else scheduler.message(pod)
    return found


def by_simulation(cluster: Cluster) -> Outcomes:
    return {each.pod.key: (each.node, each.message) for each in place_in_order(cluster, tie_break="first").placements}


def by_placement(cluster: Cluster) -> Outcomes:
    """As drain, fail and compare place the pods."""
    found: Outcomes = {}
    with closing(Scheduler(cluster, tie_break="first")) as scheduler:
        for pod in list(cluster.pending.values()):
            node = place(scheduler, pod)
            found[pod.key] = node, "" if node else scheduler.message(pod)
    return found


def by_loop(cluster: Cluster) -> Outcomes:
    """What the first attempt of each pod comes to; the reason also says that preemption does not help."""
    found: Outcomes = {}
    waiting = len(cluster.pending)
    with closing(SchedulerLoop(cluster, tie_break="first")) as loop:
        while len(found) < waiting:
            for instruction in loop.run_one(0.0):
                if isinstance(instruction, Bind):
                    pod, node = loop.pods[instruction.pod.key], instruction.node
                    found.setdefault(pod.key, (node, ""))
                    loop.handle(Event(EventType.UPDATE, replace(pod, spec=replace(pod.spec, node_name=node))), 0.0)
                elif isinstance(instruction, Unschedulable):
                    found.setdefault(instruction.pod.key, (None, instruction.message))
    return found


WAYS: dict[str, Callable[[Cluster], Outcomes]] = {
    "schedule": by_schedule,
    "simulate": by_simulation,
    "placing of drain": by_placement,
    "loop": by_loop,
}


def nodes(count: int) -> Iterator[Object]:
    for number in range(1, count + 1):
        labels = {
            ZONE: "ab"[number % 2],
            "disk": ("ssd", "hdd")[number % 3 == 0],
            "kubernetes.io/hostname": f"n{number}",
        }
        yield make_node(f"n{number}", cpu="2", memory="4Gi", pods=6, labels=labels)


def pods(kinds: Iterable[tuple[str, bool]]) -> Iterator[Object]:
    """Pods that come in the order of their kinds; a pod with an ephemeral volume may have its claim, or not."""
    for number, (kind, has_claim) in enumerate(kinds):
        if kind != EPHEMERAL:
            yield pod_of(kind, f"p{number}")
            continue
        pod = pod_with(ephemeral("scratch"), f"p{number}")
        yield pod
        if has_claim:
            yield make_claim(f"p{number}-scratch", storage_class="waits", owner=pod)


def storage() -> list[Object]:
    return [
        make_class("waits", "kubernetes.io/no-provisioner"),
        *(make_volume(f"v{n}", storage_class="waits") for n in "123"),
    ]


# Few kinds at a time, so that pods of one kind come again after one of them failed.
mixes = st.lists(st.sampled_from(KINDS), min_size=1, max_size=4, unique=True).flatmap(
    lambda kinds: st.lists(st.tuples(st.sampled_from([EPHEMERAL, *kinds]), st.booleans()), min_size=2, max_size=24)
)


@settings(max_examples=settings().max_examples // 2)
@given(st.integers(1, 4), mixes)
def test_all_ways_agree(node_count: int, kinds: list[tuple[str, bool]]) -> None:
    objects = [*nodes(node_count), *storage(), *pods(kinds)]
    expected = from_scratch(Cluster.from_objects(objects))

    for name, way in WAYS.items():
        if way is by_loop:
            expected = from_scratch(Cluster.from_objects(objects), preempt=True)
        assert way(Cluster.from_objects(objects)) == expected, name


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_pod_with_an_ephemeral_claim_does_not_fail_for_one_without(way: Callable[[Cluster], Outcomes]) -> None:
    without, pod = (pod_with(ephemeral("scratch"), name) for name in ("a", "b"))
    claim = make_claim("b-scratch", storage_class="waits", owner=pod)

    found = way(Cluster.from_objects([*nodes(1), *storage(), without, pod, claim]))

    assert found["default/a"][0] is None
    assert "a-scratch" in found["default/a"][1]
    assert found["default/b"] == ("n1", "")


def test_a_kind_that_failed_is_tried_again_after_a_change() -> None:
    first, second = (make_pod(name, requests={"cpu": "3"}) for name in ("first", "second"))
    cluster = Cluster.from_objects([*nodes(1), first, second])
    scheduler = Scheduler(cluster)
    assert scheduler.schedule(first) is None

    cluster.add(make_node("large"))

    assert scheduler.schedule(second) == "large"


def test_pods_of_a_kind_that_failed_are_not_tried_again_without_a_change() -> None:
    large: list[Pod] = [make_pod(name, requests={"cpu": "3"}) for name in ("first", "second")]
    scheduler = Scheduler(Cluster.from_objects([*nodes(2), *large]))
    attempts = [scheduler.attempt(pod) for pod in large]

    assert [attempt.node for attempt in attempts] == [None, None]
    assert [attempt.evaluation is None for attempt in attempts] == [False, True]
