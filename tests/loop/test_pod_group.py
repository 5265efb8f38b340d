"""Waiting pods in columns: the same order and the same numbers as with every pod by itself."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from builders import make_node, make_pod
from podium.cluster import Cluster
from podium.engine.decision import Diagnosis
from podium.loop.queued_pod import NEVER, BackoffTimes, PodGroup, Position, QueuedPod

CLUSTER = Cluster.from_objects([make_node("n")])
waiting = st.lists(
    st.tuples(st.integers(1, 12), st.sampled_from([0.0, 3.5, 17.0, 20.0]), st.booleans()), min_size=1, max_size=12
)
REJECTED = Diagnosis("0/1 nodes are available: 1 Insufficient cpu.", frozenset(("NodeResourcesFit",)))
NOW = 21.5


def backoff() -> BackoffTimes:
    return BackoffTimes(1.0, 10.0)


def queued(number: int, failures: int, timestamp: float) -> QueuedPod:
    pod = make_pod(f"p{number}")
    return QueuedPod(pod, CLUSTER.info_of(pod), number, timestamp, attempts=failures, unschedulable_count=failures)


def woken(pods: list[QueuedPod]) -> PodGroup:
    group = PodGroup()
    for each in pods:
        group.add(each)
    group.wake(lambda failures, timestamps: backoff().ends(NOW, failures, timestamps))
    return group


def place_of(one: QueuedPod) -> Position:
    waits = backoff().is_backing_off(one, NOW)
    return Position(backoff().until(one) if waits else NEVER, -one.pod.priority, one.timestamp, one.number)


def numbers_of(one: QueuedPod) -> tuple[Any, ...]:
    return one.key, one.attempts, one.unschedulable_count, one.timestamp, one.flushed_at, one.message


@given(waiting)
def test_they_leave_in_the_order_of_the_queue(pods: list[tuple[int, float, bool]]) -> None:
    given_pods = [queued(number, failures, timestamp) for number, (failures, timestamp, _) in enumerate(pods, 1)]
    group = woken(given_pods)

    left = []
    while len(group):
        position, key = group.first()
        left.append(group.remove(key))
        assert position == place_of(left[-1])

    assert left == sorted(given_pods, key=place_of)
    assert group.woken_count == 0


@given(waiting, st.integers(0, 11))
def test_those_before_a_position_are_rejected_together(pods: list[tuple[int, float, bool]], at: int) -> None:
    given_pods = [queued(number, failures, timestamp) for number, (failures, timestamp, _) in enumerate(pods, 1)]
    for one, (_, _, is_known) in zip(given_pods, pods, strict=True):
        one.message = REJECTED.message if is_known else ""
    limit = sorted(map(place_of, given_pods))[min(at, len(pods) - 1)]
    group = woken(given_pods)
    before = [one for one in given_pods if place_of(one) < limit]
    expected = {
        (one.key, one.attempts + 1, one.unschedulable_count + 1, NOW, NEVER, REJECTED.message) for one in before
    } | {numbers_of(one) for one in given_pods if one not in before}

    assert group.keys_before(limit) == [one.key for one in before]
    changed = group.reject(REJECTED, limit, NOW)

    assert {one.key for _, one in changed} == {
        one.key for one, known in zip(given_pods, pods, strict=True) if one in before and not known[2]
    }
    assert group.woken_count == len(pods) - len(before)
    assert {numbers_of(group.get(one.key)) for one in given_pods} == expected
    assert {one.key for one in group.idle()} == {one.key for one in before}


def test_the_pod_that_waits_longest_is_known() -> None:
    group = PodGroup()
    assert group.earliest == float("inf")
    for each in (queued(1, 1, 7.0), queued(2, 1, 5.0), queued(3, 1, 9.0)):
        group.add(each)

    assert group.earliest == 5.0
    group.remove("default/p2")
    assert group.earliest == 7.0
    group.wake(lambda failures, timestamps: timestamps)
    assert group.earliest == float("inf")
