"""The parts of the queue by themselves: heaps, backoffs, pods being scheduled and pods that wait at Permit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from builders import make_node, make_pod
from podium.cluster import Cluster
from podium.framework import Action, ClusterEvent, CycleState, Status
from podium.loop.queued_pod import (
    NEVER,
    Assumed,
    BackoffQueue,
    BackoffTimes,
    Heap,
    InFlight,
    PodAtPermit,
    QueuedPod,
    WaitingPods,
)

CLUSTER = Cluster.from_objects([make_node("n")])


def queued(name: str, number: int = 1, timestamp: float = 0.0, **fields: Any) -> QueuedPod:
    pod = make_pod(name, priority=fields.pop("priority", 0))
    return QueuedPod(pod, CLUSTER.info_of(pod), number, timestamp, **fields)


def names(heap: Heap[QueuedPod]) -> list[str]:
    found = []
    while (first := heap.pop()) is not None:
        found.append(first.pod.name)
    return found


# -- heaps ---------------------------------------------------------------------------------------------------------


def by_priority(pod: QueuedPod) -> int:
    return -(pod.pod.spec.priority or 0)


def test_a_heap_goes_by_order_and_then_by_arrival() -> None:
    heap = Heap(by_priority)
    for pod in (queued("late", 3), queued("early", 1), queued("important", 2, priority=5)):
        heap.push(pod)

    assert len(heap) == 3
    assert names(heap) == ["important", "early", "late"]
    assert len(heap) == 0


def test_a_pod_pushed_again_stands_where_it_belongs_now() -> None:
    heap = Heap(by_priority)
    for name, priority in (("up", 0), ("down", 9), ("stays", 5), ("up", 9), ("down", 0)):
        heap.push(queued(name, priority=priority))

    assert sorted(pod.pod.name for pod in heap) == ["down", "stays", "up"]
    assert names(heap) == ["up", "stays", "down"]


def test_a_removed_pod_does_not_come_up() -> None:
    heap = Heap(by_priority)
    a, b = queued("a", 1), queued("b", 2)
    heap.push(a)
    heap.push(b)

    assert heap.remove("default/a") is a
    assert heap.remove("default/a") is None
    assert ("default/a" in heap, heap.get("default/b")) == (False, b)
    assert heap.first() is b
    assert names(heap) == ["b"]


# -- backoffs ------------------------------------------------------------------------------------------------------


def backoff(**options: Any) -> BackoffTimes:
    return BackoffTimes(1.0, 10.0, **options)


def queue_of(times: BackoffTimes) -> BackoffQueue:
    return BackoffQueue(times, lambda pod: pod.number)


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 10.0), (61, 10.0), (1000, 10.0)]
)
def test_a_backoff_doubles_up_to_the_longest(failures: int, seconds: float) -> None:
    times, pod = backoff(), queued("a", timestamp=100.0, unschedulable_count=failures)

    assert times.until(pod) == 100.0 + seconds
    assert times.ends(100.0, np.array([failures]), np.array([100.0])).tolist() == [100.0 + seconds]


def test_a_pod_that_never_failed_has_no_backoff() -> None:
    assert backoff().until(queued("a", timestamp=100.0)) == NEVER
    assert backoff(fewest=1).until(queued("a", timestamp=100.0)) == 101.0
    assert BackoffTimes(1.0, 0.0).until(queued("a", unschedulable_count=3)) == NEVER


def test_errors_count_before_rejections() -> None:
    assert backoff().until(queued("a", unschedulable_count=1, consecutive_errors=3)) == 4.0


def test_backoffs_end_with_their_window() -> None:
    times, pod = backoff(), queued("a", timestamp=0.7, unschedulable_count=1, unschedulable_plugins=frozenset({"X"}))
    queue = queue_of(times)
    queue.add(pod)

    # 0.7 and 1 second is in the window from 1 to 2.
    assert times.until(pod) == 1.0
    assert [times.is_backing_off(pod, now) for now in (0.9, 1.99, 2.0)] == [True, True, False]
    assert queue.next_completion() == 2.0
    assert list(queue.pop_completed(1.99)) == []
    assert list(queue.pop_completed(2.0)) == [pod]
    assert (len(queue), queue.next_completion()) == (0, None)


def test_without_windows_backoffs_are_looked_at_once_a_second() -> None:
    times = backoff(window=0.0, start=0.25)
    queue = queue_of(times)
    pod = queued("a", timestamp=0.5, unschedulable_count=1)
    queue.add(pod)

    assert (times.until(pod), times.is_backing_off(pod, 1.49), times.is_backing_off(pod, 1.5)) == (1.5, True, False)
    assert queue.next_completion() == 2.25
    assert list(queue.pop_completed(2.2)) == []
    assert list(queue.pop_completed(2.25)) == [pod]


def test_pods_of_one_window_leave_in_the_order_of_the_queue() -> None:
    queue = queue_of(backoff())
    for name, number, timestamp in (("second", 2, 0.1), ("first", 1, 0.9)):
        rejected = frozenset({"X"})
        queue.add(queued(name, number, timestamp, unschedulable_count=1, unschedulable_plugins=rejected))
    queue.add(queued("broken", 0, 0.0, consecutive_errors=1))

    assert [pod.pod.name for pod in queue.rejected] == ["second", "first"]
    assert [pod.pod.name for pod in queue.failed] == ["broken"]
    assert [pod.pod.name for pod in queue.pop_completed(2.0)] == ["first", "second", "broken"]


# -- pods being scheduled ------------------------------------------------------------------------------------------

ADDED, GONE = (
    ClusterEvent("Node", Action.ADD, None, make_node("new")),
    ClusterEvent("Pod", Action.DELETE, make_pod("gone"), None),
)


def test_a_pod_sees_the_events_since_it_left_the_queue() -> None:
    flying = InFlight()
    flying.note(ADDED)
    flying.start("a")
    flying.note(ADDED)
    flying.start("b")
    flying.note(GONE)

    assert list(flying) == ["a", "b"]
    assert (flying.events_for("a"), flying.events_for("b")) == ([ADDED, GONE], [GONE])


def test_events_are_dropped_with_the_pods_that_would_have_looked_at_them() -> None:
    flying = InFlight()
    flying.start("a")
    flying.note(ADDED)
    flying.start("b")
    flying.note(GONE)

    flying.done("a")
    assert "a" not in flying
    assert flying.events_for("b") == [GONE]
    flying.done("b")
    flying.start("c")
    assert flying.events_for("c") == []


# -- pods that wait at Permit --------------------------------------------------------------------------------------


def waiting(name: str, **patience: float) -> PodAtPermit:
    """A pod that began to wait at 0, for so many seconds per plugin."""
    pod = queued(name)
    deadlines = {plugin: (seconds, seconds) for plugin, seconds in patience.items()}
    return PodAtPermit(pod, Assumed(pod.pod, "n", CycleState(pod.info)), deadlines)


def test_a_pod_goes_on_when_every_plugin_allows_it() -> None:
    pods, pod = WaitingPods(), waiting("a", Gang=10.0, Quota=20.0)
    pods.add(pod)
    assert pods.next_timeout() == 10.0

    pods.allow("default/a", "Gang")
    assert (pods.take_ready(5.0), pods.next_timeout()) == ([], 20.0)
    pods.allow("default/a", "Quota")
    assert pods.next_timeout() == float("-inf")
    assert pods.take_ready(5.0) == [pod]
    assert (pod.rejection, len(pods), pods.next_timeout()) == (None, 0, None)


def test_the_first_rejection_counts() -> None:
    pods, pod = WaitingPods(), waiting("a", Gang=10.0)
    pods.add(pod)
    pods.reject("default/a", "Gang", "the group is too small")
    pods.reject("default/a", "Quota", "too late")
    pods.reject("default/b", "Gang", "nobody of this name waits")

    assert pods.next_timeout() == float("-inf")
    assert pods.take_ready(0.0) == [pod]
    assert pod.rejection is not None
    assert (pod.rejection.plugin, pod.rejection.reasons) == ("Gang", ("the group is too small",))


def test_a_pod_is_rejected_by_the_plugin_whose_patience_ends_first() -> None:
    pods, pod, other = WaitingPods(), waiting("a", Gang=10.0, Quota=2.5), waiting("b", Gang=3.0)
    pods.add(pod)
    pods.add(other)

    assert pods.take_ready(2.4) == []
    assert pods.take_ready(2.5) == [pod]
    assert isinstance(pod.rejection, Status)
    assert pod.rejection.reasons == ("rejected due to timeout after waiting 2.5s at plugin Quota",)
    assert [assumed.pod.name for assumed in pods] == ["b"]
    assert pods.take("default/b") is other
    assert "default/b" not in pods


@pytest.mark.parametrize(("ends_late", "leaves_at"), [(False, 3.0), (True, 4.0)])
def test_a_backoff_that_ends_on_a_check(ends_late: bool, leaves_at: float) -> None:
    times = BackoffTimes(1.0, 10.0, window=0.0, ends_late=ends_late)
    pod = queued("p", timestamp=2.0, unschedulable_count=1)
    assert times.leaves_at(pod) == leaves_at
    assert times.is_backing_off(pod, 3.0) is ends_late
