"""Going on from a snapshot is the same as never having stopped."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bench.hour import hour_events, hour_nodes
from builders import make_node, make_pod
from cluster.facts import facts
from loop.driving import Driver, nominated, with_plugins
from loop.test_cycle import Pairs
from podium.errors import InputError
from podium.loop import LoopSnapshot, resume, take_snapshot
from podium.timeline import Surroundings, Timeline, resume_timeline, save_timeline
from timeline.test_timeline import at, budget, node, pod, workload

CROWDED = hour_events(3, nodes=3, pods=110, failing=0.5, seconds=900)
EVENTFUL = [
    at(0, "add", budget("web", "web", minAvailable=2)),
    at(0, "add", workload("Deployment", "web", 3)),
    at(
        5,
        "add",
        workload("Job", "sum", 0, parallelism=1, completions=3, metadata={"annotations": {"podium/lifetime": "40s"}}),
    ),
    at(20, "add", pod("gated", schedulingGates=[{"name": "g"}])),
    at(30, "drain", node("a", cpu="3")),
    at(60, "fail", node("b", cpu="3")),
    at(100, "delete", node("a")),
    at(150, "add", node("c", cpu="4")),
    at(160, "add", pod("vip", priority=5, cpu="4"), lifetime=30),
    at(200, "add", node("a", cpu="3")),
    at(250, "delete", node("c")),
    at(300, "update", node("b", cpu="3")),
]


def run_in_two(nodes: list[Any], events: list[Any], stop: float, **options: Any) -> tuple[bytes, Timeline]:
    """The log of a simulation that was stopped, saved, and gone on with; and the second part."""
    first = Timeline(nodes, events, **options)
    log = first.run(stop).log_lines()
    second = resume_timeline(save_timeline(first), events, **options)
    assert facts(second.loop.cluster) == facts(first.loop.cluster)
    return log + second.run().log_lines(), second


@pytest.mark.parametrize("stop", [0.0, 17.3, 450.0, 2000.0])
@pytest.mark.parametrize("tie_break", ["random", "round-robin"])
def test_a_crowded_cluster_goes_on(stop: float, tie_break: str) -> None:
    whole = Timeline(hour_nodes(3), CROWDED, tie_break=tie_break).run()
    log, second = run_in_two(hour_nodes(3), CROWDED, stop, tie_break=tie_break)
    assert log == whole.log_lines()
    result = second.run()
    assert (result.samples, result.lives, result.end) == (whole.samples, whole.lives, whole.end)
    assert result.utilisation.keys() == whole.utilisation.keys()
    for name, expected in whole.utilisation.items():
        assert result.utilisation[name] == pytest.approx(expected)


@pytest.mark.parametrize("stop", [0.0, 30.0, 31.0, 61.0, 120.0, 160.0, 161.0, 205.0, 299.0])
def test_budgets_drains_failures_and_jobs_go_on(stop: float) -> None:
    nodes = [make_node("a", cpu="3"), make_node("b", cpu="3")]
    whole = Timeline(nodes, EVENTFUL, tie_break="first").run()
    assert {record["event"] for record in whole.log} >= {"evict", "lost", "create", "finish", "unschedulable"}
    log, _ = run_in_two(nodes, EVENTFUL, stop, tie_break="first")
    assert log == whole.log_lines()


@pytest.mark.parametrize("owner", ["Rollout/web", "StatefulSet/web"])
@pytest.mark.parametrize("stop", [10.0, 15.0, 25.0])
def test_budgets_count_the_pods_that_are_about_to_be_created(stop: float, owner: str) -> None:
    """The budget allows no second eviction until the pod that replaces the first one runs, 20 seconds later."""
    nodes, slow = [make_node("a"), make_node("b")], Surroundings(recreate_after=20.0)
    events = [
        at(0, "add", budget("web", "web", maxUnavailable=1)),
        *(at(0, "add", pod(f"web-{number}", owner=owner, nodeName="a")) for number in range(3)),
        at(10, "drain", node("a", cpu="4")),
        at(90, "add", pod("end", cpu="0")),
    ]
    whole = Timeline(nodes, events, tie_break="first", surroundings=slow).run()
    assert len({record["time"] for record in whole.log if record["event"] == "evict"}) == 3
    first = Timeline(nodes, events, tie_break="first", surroundings=slow)
    log = first.run(stop).log_lines()
    assert log + resume_timeline(save_timeline(first), events, tie_break="first").run().log_lines() == whole.log_lines()


def test_utilisation_of_a_resource_that_no_node_has_any_more_is_kept() -> None:
    gpu = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "g"}, "status": {"allocatable": {"x.com/gpu": "2"}}}
    events = [at(0, "add", gpu), at(10, "delete", gpu), at(40, "add", pod("end", cpu="0"))]
    whole = Timeline([], events, tie_break="first").run()
    first = Timeline([], events, tie_break="first")
    first.run(20)
    assert resume_timeline(save_timeline(first), events, tie_break="first").run().utilisation == whole.utilisation
    assert "x.com/gpu" in whole.utilisation


def test_events_about_unknown_nodes_are_refused_when_a_timeline_is_saved() -> None:
    events = [at(5, "drain", node("nowhere"))]
    with pytest.raises(InputError, match="drain of Node nowhere"):
        save_timeline(Timeline([make_node("a")], events))


def test_a_loop_remembers_nominations_backoffs_and_who_rejected_whom() -> None:
    driver = Driver(
        [make_node("a", cpu="1"), make_node("b", cpu="0"), make_pod("low", node="a", requests={"cpu": "1"})]
    )
    driver.add(make_pod("high", priority=5, requests={"cpu": "1"}), make_pod("q", requests={"cpu": "1"}))
    driver.loop.run_one(0.0)
    driver.loop.run_one(0.0)
    driver.delete(make_node("b"))
    data = msgspec.json.encode(take_snapshot(driver.loop))
    twin = resume(msgspec.json.decode(data, type=LoopSnapshot), tie_break="first")
    assert [vars_of(queued) for queued in twin.queue] == [vars_of(queued) for queued in driver.loop.queue]
    assert twin.scheduler.nominations.node_of(driver.pod("high")) == "a"
    assert twin.next_wake_up() == driver.loop.next_wake_up()
    other = Driver()
    other.loop = twin
    assert other.delete(driver.pod("low")).work(at=1.0) == driver.delete(driver.pod("low")).work(at=1.0) != []
    # The row of the node that is gone is taken over alike.
    assert other.add(make_node("c")).loop.cluster.names == driver.add(make_node("c")).loop.cluster.names


def test_a_nomination_that_was_taken_back_is_not_read_from_the_status_again() -> None:
    driver = Driver([make_node("a", cpu="1"), make_pod("low", node="a", requests={"cpu": "1"})])
    gates = [{"name": "later"}]
    driver.add(nominated(make_pod("mid", priority=5, requests={"cpu": "1"}, scheduling_gates=gates), "a"))
    driver.add(make_pod("high", priority=9, requests={"cpu": "1"}))
    driver.loop.run_one(0.0)
    twin = resume(take_snapshot(driver.loop), tie_break="first")
    assert twin.pods["default/mid"].status.nominated_node_name == "a"
    assert not twin.scheduler.nominations.node_of(driver.pod("mid"))


def vars_of(queued: Any) -> dict[str, Any]:
    return {name: getattr(queued, name) for name in queued.__slots__ if name != "info"}


def test_a_snapshot_is_not_taken_while_pods_are_being_bound() -> None:
    driver = Driver([make_node("a")], **with_plugins(Pairs))
    driver.add(make_pod("p")).work()
    with pytest.raises(InputError, match=r"while pods are being bound or wait at Permit, as default/.* does; take it"):
        take_snapshot(driver.loop)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda data, events: (b"{}", events), "there: is not a snapshot of a simulation"),
        (lambda data, events: (b"oops", events), "there: is not a snapshot of a simulation"),
        (lambda data, events: (data, events[1:]), "there: was taken with other events"),
        (
            lambda data, events: (data.replace(b'"choices":[[', b'"choices":[[9,', 1), events),
            "there: is damaged, as it does not agree with itself",
        ),
        (
            lambda data, events: (data.replace(b'"sample_every":10.0', b'"sample_every":-1.0', 1), events),
            "there: is not a snapshot of a simulation: surroundings: sample_every",
        ),
        (
            lambda data, events: (data.replace(b'"version":1', b'"version":7', 1), events),
            "there: the snapshot is of format 7",
        ),
    ],
)
def test_what_does_not_belong_together_is_refused(change: Any, problem: str) -> None:
    timeline = Timeline(hour_nodes(3), CROWDED)
    timeline.run(1.0)
    data, events = change(save_timeline(timeline), CROWDED)
    with pytest.raises(InputError, match=problem):
        resume_timeline(data, events, where="there")


def test_another_configuration_is_noticed() -> None:
    timeline = Timeline(hour_nodes(3), CROWDED)
    timeline.run(1.0)
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "podMaxBackoffSeconds": 3,
    }
    with pytest.raises(InputError, match="taken with another configuration"):
        resume_timeline(save_timeline(timeline), CROWDED, config)
