"""What a timeline keeps: the clock's agenda, the lives of pods, the samples and the log."""

from __future__ import annotations

from typing import Any

import pytest

from builders import make_node, make_pod
from podium.cluster import Cluster
from podium.loop import Event, EventType, SchedulerLoop
from podium.timeline.result import History, Life, Sample, TimelineResult, resources_of, round_time
from podium.timeline.timed_events import ContinueDrain, Finish, VirtualClock

# -- the clock -----------------------------------------------------------------------------------------------------


def test_what_is_due_comes_by_time_and_then_as_planned() -> None:
    clock = VirtualClock(10.0)
    clock.plan(5.0, Finish("late", 1))
    clock.plan(1.0, Finish("first", 2))
    clock.plan(1.0, Finish("second", 3))

    assert clock.next_time() == 11.0
    assert clock.take_due() is None
    clock.now = 11.0
    assert [clock.take_due(), clock.take_due(), clock.take_due()] == [Finish("first", 2), Finish("second", 3), None]
    assert clock.next_time() == 15.0


def test_the_clock_knows_whether_only_drains_go_on() -> None:
    clock = VirtualClock()
    assert clock.has_only(ContinueDrain)
    clock.plan(1.0, ContinueDrain("a"))
    assert clock.has_only(ContinueDrain)
    clock.plan(2.0, Finish("p", 1))
    assert not clock.has_only(ContinueDrain)


def test_a_restored_clock_goes_on_as_the_saved_one() -> None:
    clock = VirtualClock()
    clock.plan(2.0, Finish("b", 2))
    clock.plan(1.0, Finish("a", 1))
    clock.now = 1.0
    clock.take_due()

    other = VirtualClock(1.0)
    other.restore(clock.save(), clock.planned)
    for each in (clock, other):
        each.plan(1.0, Finish("c", 3))
        each.now = 2.0
    assert (
        [other.take_due(), other.take_due()]
        == [clock.take_due(), clock.take_due()]
        == [
            Finish("b", 2),
            Finish("c", 3),
        ]
    )


# -- lives and samples ---------------------------------------------------------------------------------------------


def sample(time: float, used: int = 0, **fields: Any) -> Sample:
    counts: dict[str, Any] = {"nodes": 1, "running": 0, "active": 0, "backoff": 0, "unschedulable": 0, "gated": 0}
    amounts = {"requested": {"cpu": used}, "allocatable": {"cpu": 4000}}
    return Sample(time=time, waiting=0, **{**counts, **amounts, **fields})


def test_a_sample_counts_what_waits_and_what_is_used() -> None:
    found = sample(0, used=1000, active=1, backoff=2, unschedulable=3, gated=4)

    assert found.queued == 10
    assert (found.utilisation("cpu"), found.utilisation("memory")) == (0.25, 0.0)


def test_the_usual_resources_come_first() -> None:
    offered = {"zeta.example.com/x": 1, "pods": 110, "cpu": 4, "alpha.example.com/x": 1, "memory": 0}

    assert resources_of([sample(0, allocatable=offered)]) == [
        "cpu",
        "pods",
        "alpha.example.com/x",
        "zeta.example.com/x",
    ]


def test_pods_wait_until_they_are_bound_gone_or_the_end_comes() -> None:
    bound = Life("default/a", 1, arrived=1.0, bound=4.0, node="n", attempts=2, ended=9.0)
    gone, left = Life("default/b", 2, arrived=2.0, ended=7.0), Life("default/c", 3, arrived=5.0)
    result = TimelineResult((), (bound, gone, left), (), end=10.0)

    assert result.pending_times == {"default/a": 3.0, "default/b": 5.0, "default/c": 5.0}
    assert result.unplaced == (left,)
    assert result.pods_csv().splitlines() == [
        "pod,node,arrived,bound,ended,waited,attempts",
        "default/a,n,1.0,4.0,9.0,3.0,2",
        "default/b,,2.0,,7.0,,0",
        "default/c,,5.0,,,,0",
    ]


# -- the history ---------------------------------------------------------------------------------------------------


def history(every: float = 10.0) -> tuple[History, SchedulerLoop]:
    loop = SchedulerLoop(Cluster.from_objects([make_node("n", cpu="4")]), None, now=0.0)
    return History(loop, every), loop


def test_pods_run_from_when_they_are_bound_until_they_end() -> None:
    found, _ = history()
    found.arrived("default/a", 1.0, None)
    found.arrived("default/b", 2.0, 30.0)
    found.bound("default/a", "n", 3, 5.0)
    assert (found.running, found.current["default/a"].waited) == (1, 4.0)

    found.ended("default/b", 6.0)
    assert found.running == 1
    found.ended("default/a", 7.0)
    assert (found.running, found.current) == (0, {})
    assert found.ended("default/a", 8.0) is None
    assert [(life.pod, life.serial, life.lifetime, life.ended) for life in found.lives] == [
        ("default/a", 1, None, 7.0),
        ("default/b", 2, 30.0, 6.0),
    ]


def test_the_same_message_is_noted_once() -> None:
    found, _ = history()
    for now, message in ((1.0, "full"), (2.0, "full"), (3.0, "tainted"), (4.0, "full")):
        found.unschedulable("default/a", message, now)

    assert [(record["time"], record["message"]) for record in found.log] == [(1, "full"), (3, "tainted"), (4, "full")]
    assert found.last_change == 4.0
    found.remark(9.0, "drain", node="n")
    assert (found.log[-1], found.last_change) == ({"time": 9, "event": "drain", "node": "n"}, 4.0)


def test_events_in_vain_are_counted_by_reason() -> None:
    found, _ = history()
    found.in_vain("line 1", "delete of default/a", "has no effect: it is gone")
    found.in_vain("", "delete of default/b", "has no effect: it is gone")
    found.in_vain("line 9", "drain of n", "has no effect: there is no such node")

    assert found.warnings == (
        "line 1: delete of default/a has no effect: it is gone; 1 more like it",
        "line 9: drain of n has no effect: there is no such node",
    )


def test_samples_that_say_the_same_are_left_out_but_for_the_last_before_a_change() -> None:
    found, loop = history()
    found.sample_between(0.0, 35.0)
    found.sample_between(35.0, 35.0)
    loop.handle(Event(EventType.ADD, make_pod("a")), 35.0)
    found.sample_between(35.0, 60.0)
    found.sample_between(60.0, 60.0, with_end=True)

    assert [(each.time, each.active) for each in found.samples] == [(0, 0), (30, 0), (40, 1)]
    assert [each.time for each in found.result(75.0).samples] == [0, 30, 40, 70]
    assert found.samples[0].allocatable["cpu"] == 4000


@pytest.mark.parametrize(("time", "written"), [(1.0, "1"), (0.1 + 0.2, "0.3"), (2.0000004, "2"), (1.5, "1.5")])
def test_times_are_written_alike(time: float, written: str) -> None:
    assert str(round_time(time)) == written
