"""The queue: who is next, who has to wait and for how long, who may not enter, and what wakes whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_node, make_pod
from loop.driving import with_plugins
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.framework.events import ANYTHING, Action, ClusterEvent, EventHint
from podium.framework.plugin import FilterPlugin, Plugin, PreEnqueuePlugin, QueueSortPlugin
from podium.framework.plugin import QueuedPod as Ordered
from podium.framework.status import SUCCESS, Status
from podium.loop import SchedulingQueue
from podium.loop.queued_pod import QueuedPod
from podium.model import Pod

NODE_ADDED = ClusterEvent("Node", Action.ADD, None, make_node("new"))
MAYBE_ANYTHING = ClusterEvent(ANYTHING, Action.UPDATE, None, None)
POD_GONE = ClusterEvent("Pod", Action.DELETE, make_pod("gone", node="n"), None)


def make_queue(*plugins: type[Plugin], config: Any = None, release: str = "v1.37", **options: Any) -> SchedulingQueue:
    cluster = Cluster.from_objects([make_node("n")])
    settings = with_plugins(*plugins) | ({"config": config} if config else {}) | {"release": release}
    return SchedulingQueue(Scheduler(cluster, **settings).frameworks, cluster, **options)


def names(queue: SchedulingQueue) -> list[str]:
    """Who is tried, in order."""
    found = []
    while (queued := queue.pop()) is not None:
        queue.done(queued.pod.key)
        found.append(queued.pod.name)
    return found


def fail(queue: SchedulingQueue, now: float, *plugins: str, pending: tuple[str, ...] = ()) -> QueuedPod:
    """The next pod is tried in vain; without plugins, because something went wrong."""
    queued = queue.pop()
    assert queued is not None
    queued.unschedulable_plugins, queued.pending_plugins = frozenset(plugins), frozenset(pending)
    queue.put_back(queued, now)
    return queued


def place(queue: SchedulingQueue, key: str = "default/pod") -> str:
    places = {
        "active": key in queue.active,
        "backoff": queue.backoff.get(key) is not None,
        "unschedulable": key in queue.unschedulable,
        "in flight": key in queue.in_flight,
    }
    (found,) = [name for name, is_there in places.items() if is_there]
    return found


# -- order -----------------------------------------------------------------------------------------------------------


def test_higher_priority_first_then_who_came_first() -> None:
    queue = make_queue()
    for name, priority, at in (("old", 0, 0.0), ("new", 0, 2.0), ("vip", 7, 5.0), ("older vip", 7, 4.0)):
        queue.add(make_pod(name, priority=priority), at)
    assert names(queue) == ["older vip", "vip", "old", "new"]


def test_of_pods_that_came_at_once_the_first_one_is_first() -> None:
    queue = make_queue()
    for name in ("c", "a", "b"):
        queue.add(make_pod(name), 1.0)
    assert names(queue) == ["c", "a", "b"]


def test_a_queue_sort_plugin_decides_the_order() -> None:
    class ByName(QueueSortPlugin):
        name = "ByName"

        def sort_key(self, queued: Ordered) -> str:
            return queued.pod.name

    sort = {"queueSort": {"enabled": [{"name": "ByName"}], "disabled": [{"name": "*"}]}}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": sort}],
    }
    queue = make_queue(ByName, config=config)
    for name in ("c", "a", "b"):
        queue.add(make_pod(name, priority=len(name)), 0.0)
    assert names(queue) == ["a", "b", "c"]


def test_a_pod_that_changes_keeps_its_place_but_is_the_new_one() -> None:
    queue = make_queue()
    old = make_pod("pod")
    queue.add(old, 0.0)
    queue.add(make_pod("other"), 1.0)
    new = replace(old, metadata=replace(old.metadata, labels={"new": "yes"}))
    queue.update(old, new, 2.0)
    queued = queue.pop()
    assert queued is not None
    assert queued.pod is new
    assert len(queue) == 1


def test_a_pod_that_changes_while_it_backs_off_goes_on_doing_so() -> None:
    queue, old, new = make_queue(), make_pod(), make_pod(labels={"a": "b"})
    queue.add(old, 0.0)
    fail(queue, 0.0)
    queue.update(old, new, 0.5)
    assert place(queue) == "backoff"
    queue.flush(2.0)
    queued = queue.pop()
    assert queued is not None
    assert queued.pod is new


def test_a_pod_that_changes_and_is_not_known_comes_into_the_queue() -> None:
    queue = make_queue()
    queue.update(make_pod(), make_pod(labels={"a": "b"}), 0.0)
    assert names(queue) == ["pod"]


def test_a_pod_that_is_gone_is_not_tried() -> None:
    queue = make_queue()
    queue.add(make_pod("a"), 0.0)
    queue.add(make_pod("b"), 0.0)
    queue.remove("default/a")
    assert names(queue) == ["b"]


# -- backoff ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failures", "initial", "longest", "waits"),
    [(1, 1, 10, 1), (2, 1, 10, 2), (3, 1, 10, 4), (4, 1, 10, 8), (5, 1, 10, 10), (90, 1, 10, 10), (3, 2, 5, 5)],
)
def test_errors_back_off_twice_as_long_each_time(failures: int, initial: float, longest: float, waits: float) -> None:
    queue = make_queue(initial_backoff=initial, max_backoff=longest)
    queue.add(make_pod(), 0.0)
    now = 0.0
    for _ in range(failures):
        now = queue.next_flush() or now
        queue.flush(now)
        fail(queue, now)
    # A backoff ends within a second's window, and is over when the next one begins.
    assert queue.next_flush() == now + waits + 1
    queue.flush(now + waits + 0.999)
    assert place(queue) == "backoff"
    queue.flush(now + waits + 1)
    assert place(queue) == "active"


def test_backoffs_end_on_whole_seconds() -> None:
    queue = make_queue()
    queue.add(make_pod(), 0.0)
    fail(queue, 0.7)
    assert queue.next_flush() == 2.0


def test_without_a_longest_backoff_there_is_none() -> None:
    queue = make_queue(max_backoff=0)
    queue.add(make_pod(), 0.0)
    fail(queue, 0.0)
    assert place(queue) == "active"


def test_a_rejected_pod_is_tried_early_when_nothing_else_is_there() -> None:
    queue = make_queue()
    queue.add(make_pod("pod"), 0.0)
    fail(queue, 0.0, "NodeResourcesFit")
    queue.move_all(POD_GONE, 0.5)
    assert place(queue) == "backoff"
    queue.add(make_pod("other"), 0.5)
    assert names(queue) == ["other", "pod"]


def test_a_pod_that_failed_by_an_error_waits_in_any_case() -> None:
    queue = make_queue()
    queue.add(make_pod(), 0.0)
    fail(queue, 0.0)
    assert not queue.has_next
    assert queue.pop() is None


def test_an_event_after_the_backoff_makes_a_pod_active_at_once() -> None:
    queue = make_queue()
    queue.add(make_pod(), 0.0)
    fail(queue, 0.0, "NodeResourcesFit")
    queue.move_all(POD_GONE, 2.0)
    assert place(queue) == "active"


def test_being_rejected_resets_the_count_of_errors() -> None:
    queue = make_queue()
    queue.add(make_pod(), 0.0)
    queued = fail(queue, 0.0)
    queue.flush(2.0)
    fail(queue, 2.0, "NodeResourcesFit")
    assert (queued.consecutive_errors, queued.unschedulable_count, queued.attempts) == (0, 1, 2)


# -- the unschedulable -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "failed_at", "flushed_at"),
    [(0.0, 0.0, 330.0), (0.0, 29.0, 330.0), (0.0, 30.0, 360.0), (7.0, 7.0, 337.0)],
)
def test_pods_that_waited_five_minutes_are_tried_again(start: float, failed_at: float, flushed_at: float) -> None:
    queue = make_queue(start=start)
    queue.add(make_pod(), failed_at)
    fail(queue, failed_at, "NodeResourcesFit")
    assert queue.next_flush() == flushed_at
    queue.flush(flushed_at - 0.001)
    assert place(queue) == "unschedulable"
    queue.flush(flushed_at)
    assert place(queue) == "active"


def test_a_gated_pod_is_looked_at_every_five_minutes_and_stays_gated() -> None:
    queue = make_queue()
    queue.add(make_pod(scheduling_gates=[{"name": "wait"}]), 0.0)
    queue.flush(330.0)
    assert place(queue) == "unschedulable"
    assert queue.next_flush() == 660.0


class Never(FilterPlugin):
    """A user's plugin that says no event helps."""

    name = "Never"

    def events_to_register(self) -> Sequence[EventHint]:
        return ()


class Nodes(FilterPlugin):
    """A user's plugin that only new nodes help, and only pods that say so."""

    name = "Nodes"

    def events_to_register(self) -> Sequence[EventHint]:
        return (EventHint("Node", Action.ADD, lambda waiting, old, new: waiting.pod.name == "pod"),)


class Silent(FilterPlugin):
    """A user's plugin that does not say what helps."""

    name = "Silent"


@pytest.mark.parametrize(
    ("rejected_by", "event", "wakes"),
    [
        (("NodeResourcesFit",), POD_GONE, True),
        (("NodeResourcesFit",), NODE_ADDED, True),
        (("NodeAffinity",), POD_GONE, False),
        (("NodeAffinity", "NodeResourcesFit"), POD_GONE, True),
        (("Never",), NODE_ADDED, False),
        (("Never", "Silent"), NODE_ADDED, True),
        (("Never",), MAYBE_ANYTHING, True),
        (("Silent",), POD_GONE, True),
        (("Nodes",), NODE_ADDED, True),
        (("Nodes",), POD_GONE, False),
        (("Extender",), POD_GONE, True),
    ],
)
def test_events_wake_the_pods_they_may_help(rejected_by: tuple[str, ...], event: ClusterEvent, wakes: bool) -> None:
    queue = make_queue(Never, Nodes, Silent)
    queue.add(make_pod(), 0.0)
    fail(queue, 0.0, *rejected_by)
    queue.move_all(event, 5.0)
    assert place(queue) == ("active" if wakes else "unschedulable")


def test_a_user_plugin_is_asked_about_each_pod() -> None:
    queue = make_queue(Nodes)
    for name in ("pod", "like it"):
        queue.add(make_pod(name), 0.0)
        fail(queue, 0.0, "Nodes")
    queue.move_all(NODE_ADDED, 5.0)
    assert names(queue) == ["pod"]


def test_pods_of_one_kind_are_woken_together_and_only_those_asked_for() -> None:
    queue = make_queue()
    for name, priority in (("a", 0), ("b", 0), ("c", 9)):
        queue.add(make_pod(name, priority=priority), 0.0)
    for _ in range(3):
        fail(queue, 0.0, "NodeResourcesFit")
    queue.move_all(POD_GONE, 5.0, only=lambda queued: queued.pod.priority <= 0)
    assert names(queue) == ["a", "b"]
    assert place(queue, "default/c") == "unschedulable"


def test_a_pod_that_a_plugin_asked_to_wait_skips_its_backoff() -> None:
    queue = make_queue(Silent)
    queue.add(make_pod(), 0.0)
    fail(queue, 0.0, "NodeResourcesFit", pending=("Silent",))
    queue.move_all(NODE_ADDED, 0.0)
    assert place(queue) == "active"


def test_a_pod_can_be_activated_whatever_rejected_it() -> None:
    queue = make_queue()
    queue.add(make_pod(), 0.0)
    fail(queue, 0.0, "NodeAffinity")
    assert queue.activate("default/pod", 0.0)
    assert place(queue) == "active"
    assert not queue.activate("default/unknown", 0.0)


# -- gates -----------------------------------------------------------------------------------------------------------


def test_a_pod_with_scheduling_gates_waits_until_they_are_gone() -> None:
    queue = make_queue()
    old = make_pod(scheduling_gates=[{"name": "one"}, {"name": "two"}])
    queue.add(old, 0.0)
    assert place(queue) == "unschedulable"
    assert queue.unschedulable.gated_count == 1
    queue.move_all(NODE_ADDED, 1.0)
    one_left = replace(old, spec=replace(old.spec, scheduling_gates=old.spec.scheduling_gates[1:]))
    queue.update(old, one_left, 2.0)
    assert place(queue) == "unschedulable"
    queue.update(one_left, replace(old, spec=replace(old.spec, scheduling_gates=[])), 3.0)
    assert place(queue) == "active"


class Curfew(PreEnqueuePlugin):
    """Lets pods in once there is a new node."""

    name = "Curfew"
    is_over = False

    def pre_enqueue(self, pod: Pod) -> Status:
        return SUCCESS if Curfew.is_over else Status.unschedulable("curfew")

    def events_to_register(self) -> Sequence[EventHint]:
        return (EventHint("Node", Action.ADD),)


@pytest.mark.parametrize(("event", "is_in"), [(NODE_ADDED, True), (POD_GONE, False)])
def test_the_plugin_that_gated_a_pod_says_which_events_may_open_the_gate(
    event: ClusterEvent, is_in: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_queue(Curfew)
    queued = queue.add(make_pod(), 0.0)
    assert queued.gating_plugin == "Curfew"
    monkeypatch.setattr(Curfew, "is_over", True)
    queue.move_all(event, 1.0)
    assert (place(queue) == "active") == is_in


# -- in flight -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("event", "expected"), [(POD_GONE, "backoff"), (None, "unschedulable")])
def test_what_happens_while_a_pod_is_tried_counts(event: ClusterEvent | None, expected: str) -> None:
    queue = make_queue()
    queue.add(make_pod(), 0.0)
    queued = queue.pop()
    assert queued is not None
    if event is not None:
        queue.move_all(event, 0.0)
    queued.unschedulable_plugins = frozenset(("NodeResourcesFit",))
    queue.put_back(queued, 0.0)
    assert place(queue) == expected


def test_events_are_kept_for_the_pods_that_were_under_way_only() -> None:
    queue = make_queue()
    for name in ("early", "late"):
        queue.add(make_pod(name), 0.0)
    early = queue.pop()
    queue.move_all(POD_GONE, 0.0)
    late = queue.pop()
    assert early is not None
    assert late is not None
    assert queue.in_flight.events_for("default/early") == [POD_GONE]
    assert queue.in_flight.events_for("default/late") == []
    queue.done("default/early")
    queue.move_all(NODE_ADDED, 0.0)
    assert queue.in_flight.events_for("default/late") == [NODE_ADDED]
    queue.done("default/late")
    assert list(queue.in_flight) == []


def test_an_update_of_a_pod_under_way_is_one_of_those_events() -> None:
    queue = make_queue()
    old = make_pod(requests={"cpu": "64"})
    queue.add(old, 0.0)
    queued = queue.pop()
    assert queued is not None
    new = make_pod(requests={"cpu": "1"})
    queue.update(old, new, 0.0)
    assert len(queue) == 0
    queued.unschedulable_plugins, queued.pod = frozenset(("NodeResourcesFit",)), new
    queue.put_back(queued, 0.0)
    assert place(queue) == "backoff"


# -- as the releases do it -------------------------------------------------------------------------------------------

NODE_ANNOTATED = ClusterEvent("Node", Action.UPDATE_NODE_ANNOTATION, make_node("n"), make_node("n"))
DRIVER_GONE = ClusterEvent("CSIDriver", Action.DELETE, None, None)


@pytest.mark.parametrize(
    ("release", "event", "expected"),
    [
        ("v1.29", None, "unschedulable"),
        ("v1.29", NODE_ADDED, "backoff"),
        ("v1.29", DRIVER_GONE, "unschedulable"),
        ("v1.31", NODE_ADDED, "backoff"),
        ("v1.31", NODE_ANNOTATED, "backoff"),
        ("v1.32", NODE_ADDED, "unschedulable"),
        ("v1.32", POD_GONE, "backoff"),
    ],
)
def test_what_happens_while_a_pod_is_tried_by_release(release: str, event: ClusterEvent | None, expected: str) -> None:
    """Without hints, any event that a plugin waits for counts, whoever rejected the pod; NodeVolumeLimits here."""
    queue = make_queue(release=release)
    queue.add(make_pod("pod"), 0.0)
    queued = queue.pop()
    assert queued is not None
    if event is not None:
        queue.move_all(event, 0.5)
    queued.unschedulable_plugins = frozenset(["NodeVolumeLimits", "NodeResourcesFit"][event is POD_GONE :][:1])
    queue.put_back(queued, 1.0)

    assert place(queue) == expected


def test_without_hints_events_before_another_pod_was_taken_do_not_count() -> None:
    queue = make_queue(release="v1.31")
    queue.add(make_pod("pod"), 0.0)
    queue.add(make_pod("other"), 0.0)
    waiting = queue.pop()
    queue.move_all(POD_GONE, 0.5)
    queue.pop()
    assert waiting is not None

    waiting.unschedulable_plugins = frozenset(["NodeResourcesFit"])
    queue.put_back(waiting, 1.0)

    assert place(queue) == "unschedulable"


@pytest.mark.parametrize(("release", "waits"), [("v1.29", 4.0), ("v1.33", 4.0), ("v1.34", 1.0), ("v1.37", 1.0)])
def test_backoff_after_two_errors_and_a_rejection_by_release(release: str, waits: float) -> None:
    """Up to v1.33 all attempts count."""
    queue = make_queue(release=release)
    queue.add(make_pod("pod"), 0.0)
    for now in (0.0, 100.0):
        fail(queue, now)
        queue.flush(now + 50.0)
    queued = fail(queue, 200.0, "NodeResourcesFit")

    assert queue.backoff.times.until(queued) == 200.0 + waits


@pytest.mark.parametrize(("release", "ends"), [("v1.29", 1.5), ("v1.32", 1.5), ("v1.33", 2.0)])
def test_backoffs_are_over_when_that_is_noticed(release: str, ends: float) -> None:
    """Up to v1.32 once a second from the start on, which is 0.5 here; later on whole seconds."""
    queue = make_queue(release=release, start=0.5)
    queue.add(make_pod("pod"), 0.5)
    fail(queue, 0.5)
    assert queue.next_flush() == ends

    queue.flush(ends - 0.01)
    assert place(queue) == "backoff"
    queue.flush(ends)
    assert place(queue) == "active"


@pytest.mark.parametrize(("release", "expected"), [("v1.31", "backoff"), ("v1.32", "active"), ("v1.37", "active")])
def test_a_pod_whose_gates_go_at_once_by_release(release: str, expected: str) -> None:
    queue = make_queue(release=release)
    gated = make_pod("pod", scheduling_gates=[{"name": "g"}])
    queue.add(gated, 0.0)

    queue.update(gated, make_pod("pod"), 0.5)

    assert place(queue) == expected


class Closed(PreEnqueuePlugin):
    """Lets no pod in from a certain time on."""

    name = "Closed"
    is_closed = False

    def pre_enqueue(self, pod: Pod) -> Status:
        return Status.unschedulable("closed") if Closed.is_closed else SUCCESS


@pytest.mark.parametrize(("release", "expected"), [("v1.32", "backoff"), ("v1.33", "unschedulable")])
def test_when_a_pod_that_backs_off_is_asked_for_gates(release: str, expected: str) -> None:
    queue = make_queue(Closed, release=release)
    queue.add(make_pod("pod"), 0.0)
    fail(queue, 0.0, "NodeResourcesFit")
    Closed.is_closed = True
    try:
        queue.move_all(POD_GONE, 0.5)
        assert place(queue) == expected
        queue.flush(2.0)
        assert place(queue) == "unschedulable"
    finally:
        Closed.is_closed = False
