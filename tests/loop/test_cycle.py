"""The loop: events in, instructions out; what plugins are asked on the way, and what happens when they say no."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from builders import make_node, make_object, make_pod
from loop.driving import Driver, nominated, with_plugins
from podium.cluster import NodeInfo
from podium.framework import (
    SKIP,
    SUCCESS,
    WAIT,
    BindPlugin,
    Code,
    CycleState,
    FilterPlugin,
    PermitPlugin,
    PostBindPlugin,
    PreBindPlugin,
    ReservePlugin,
    Status,
)
from podium.loop import WAITING_PODS, Bind, WaitingPods
from podium.model import Pod

ONE_CPU = {"cpu": "1"}


def requested(driver: Driver, node: str) -> int:
    cluster = driver.loop.cluster
    index = cluster.columns.resources.values.index("cpu")
    return int(cluster.columns.requested[index, cluster.rows[node]])


# -- placing ---------------------------------------------------------------------------------------------------------


def test_pods_are_bound_in_order_until_the_cluster_is_full() -> None:
    driver = Driver([make_node("a", cpu="2"), make_node("b", cpu="1")])
    driver.add(*(make_pod(f"p{number}", requests=ONE_CPU) for number in range(4)))
    assert driver.work() == ["bind p0 to a", "bind p1 to a", "bind p2 to b", "p3 failed: NodeResourcesFit"]
    assert requested(driver, "a") == 2000


def test_pending_pods_of_the_cluster_are_there_from_the_beginning() -> None:
    assert Driver([make_node("a"), make_pod("p")]).work() == ["bind p to a"]


def test_a_pod_that_fits_nowhere_gets_its_message() -> None:
    driver = Driver([make_node("a", cpu="1")])
    driver.add(make_pod("p", requests={"cpu": "2"})).work()
    (failed,) = driver.instructions
    assert "0/1 nodes are available: 1 Insufficient cpu." in getattr(failed, "message", "")


def test_without_nodes_pods_are_tried_again_after_their_backoff() -> None:
    driver = Driver()
    driver.add(make_pod("p"))
    assert driver.work() == ["p failed: no nodes available to schedule pods"]
    assert driver.work(at=1.0) == []
    assert driver.work(at=2.0) == ["p failed: no nodes available to schedule pods"]
    driver.add(make_node("a"))
    assert driver.work(at=3.0) == []
    assert driver.work(at=5.0) == ["bind p to a"]


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (lambda driver: driver.delete(driver.pod("running")), ["bind p to a"]),
        (lambda driver: driver.add(make_node("b")), ["bind p to b"]),
        (lambda driver: driver.update(make_node("a", cpu="9")), ["bind p to a"]),
        (lambda driver: driver.update(make_node("a", cpu="2", labels={"x": "y"})), []),
        (lambda driver: driver.add(make_object("Service", "s", spec={"selector": {}})), []),
        (lambda driver: driver.update(make_pod("running", node="a", requests={"cpu": "500m"})), ["bind p to a"]),
    ],
)
def test_a_pod_is_tried_again_when_something_happens_that_may_help(happens: Any, said: list[str]) -> None:
    running = make_pod("running", node="a", requests=ONE_CPU)
    driver = Driver([make_node("a", cpu="2"), running])
    driver.add(make_pod("p", requests={"cpu": "1500m"})).work()
    happens(driver)
    assert driver.work(at=10.0) == said


def test_the_next_wake_up_is_said() -> None:
    driver = Driver([make_node("a", cpu="1")])
    assert driver.loop.next_wake_up() is None
    driver.add(make_pod("p", requests={"cpu": "2"})).work()
    assert driver.loop.next_wake_up() == 330.0
    assert driver.work(at=330.0) == ["p failed: NodeResourcesFit"]


def test_a_pod_that_is_on_its_way_out_is_not_placed() -> None:
    driver = Driver([make_node("a")])
    driver.add(make_pod("p", deleted=True))
    assert driver.work() == []


def test_a_gated_pod_is_placed_once_its_gates_are_gone() -> None:
    driver = Driver([make_node("a")])
    assert driver.add(make_pod("p", scheduling_gates=[{"name": "g"}])).work() == []
    assert driver.update(make_pod("p")).work() == ["bind p to a"]


# -- who is responsible ------------------------------------------------------------------------------------------------


def test_pods_of_another_scheduler_are_left_alone_but_count() -> None:
    driver = Driver([make_node("a", cpu="2")])
    driver.add(make_pod("theirs", scheduler_name="other", requests=ONE_CPU))
    assert driver.work() == []
    driver.update(make_pod("theirs", scheduler_name="other", requests=ONE_CPU, node="a"))
    driver.add(make_pod("p", requests=ONE_CPU), make_pod("q", requests=ONE_CPU))
    assert driver.work() == ["bind p to a", "q failed: NodeResourcesFit"]
    driver.delete(driver.pod("theirs"))
    assert driver.work(at=5.0) == ["bind q to a"]


def test_several_profiles_share_one_queue() -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {"schedulerName": "default-scheduler"},
            {
                "schedulerName": "packing",
                "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}],
            },
        ],
    }
    nodes = [make_node("a", cpu="8"), make_node("b", cpu="8"), make_pod("there", node="b", requests={"cpu": "2"})]
    driver = Driver(nodes, config=config)
    driver.add(make_pod("spread", requests=ONE_CPU, priority=1))
    driver.add(make_pod("packed", requests=ONE_CPU, scheduler_name="packing", priority=2))
    assert driver.work() == ["bind packed to b", "bind spread to a"]


def test_a_pod_that_somebody_else_bound_is_not_tried() -> None:
    driver = Driver([make_node("a"), make_node("b")])
    driver.add(make_pod("p"))
    driver.update(make_pod("p", node="b"))
    assert driver.work() == []
    assert len(driver.loop.queue) == 0


# -- preemption ------------------------------------------------------------------------------------------------------


def test_a_pod_of_higher_priority_makes_room_for_itself() -> None:
    driver = Driver([make_node("a", cpu="1"), make_pod("low", node="a", requests=ONE_CPU)])
    driver.add(make_pod("high", priority=9, requests=ONE_CPU))
    assert driver.work() == [
        "high failed: NodeResourcesFit",
        "nominate high to a",
        "evict low for high",
        "bind high to a",
    ]


def test_lower_pods_yield_to_a_nominated_one_until_it_is_gone() -> None:
    driver = Driver([make_node("a", cpu="1")])
    waiting = nominated(make_pod("high", priority=9, requests=ONE_CPU, scheduling_gates=[{"name": "g"}]), "a")
    driver.add(waiting, make_pod("low", requests=ONE_CPU))
    assert driver.work() == ["low failed: NodeResourcesFit"]
    driver.delete(waiting)
    assert driver.work(at=5.0) == ["bind low to a"]


def test_a_nomination_that_is_taken_back_lets_others_in() -> None:
    driver = Driver([make_node("a", cpu="1")])
    waiting = make_pod("high", priority=9, requests=ONE_CPU, scheduling_gates=[{"name": "g"}])
    driver.add(nominated(waiting, "a"), make_pod("low", requests=ONE_CPU))
    driver.work()
    driver.update(waiting)
    assert driver.work(at=5.0) == ["bind low to a"]


def test_a_pod_that_makes_room_takes_over_the_node_of_a_lower_one() -> None:
    driver = Driver([make_node("a", cpu="1"), make_pod("low", node="a", requests=ONE_CPU)])
    driver.add(nominated(make_pod("mid", priority=5, requests=ONE_CPU, scheduling_gates=[{"name": "g"}]), "a"))
    driver.add(make_pod("high", priority=9, requests=ONE_CPU))
    assert driver.work()[1:3] == ["nominate mid to nothing", "nominate high to a"]


# -- Reserve, Permit, PreBind, Bind, PostBind --------------------------------------------------------------------------


class Diary(ReservePlugin, PermitPlugin, PreBindPlugin, BindPlugin, PostBindPlugin):
    """Writes down when it is called, and answers as it is told to."""

    name = "Diary"
    answers: ClassVar[dict[str, Status]] = {}
    lines: ClassVar[list[str]] = []

    def _say(self, point: str, pod: Pod, node: str) -> Status:
        Diary.lines.append(f"{point} {pod.name} {node}")
        return Diary.answers.get(point, SUCCESS)

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        state["kept"] = pod.name
        return self._say("reserve", pod, node_name)

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        assert state["kept"] == pod.name
        self._say("unreserve", pod, node_name)

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        return self._say("permit", pod, node_name), 10.0

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return self._say("pre_bind", pod, node_name)

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        answer = self._say("bind", pod, node_name)
        return SKIP if answer == SUCCESS else answer

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        assert state["kept"] == pod.name
        self._say("post_bind", pod, node_name)


@pytest.fixture
def diary(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the plugin writes; it says yes to everything unless `Diary.answers` says otherwise."""
    monkeypatch.setattr(Diary, "lines", [])
    monkeypatch.setattr(Diary, "answers", {})
    return Diary.lines


def driver_with_diary(*nodes: str) -> Driver:
    return Driver([make_node(name, cpu="1") for name in nodes or ("a",)], **with_plugins(Diary))


def test_a_pod_goes_through_all_points(diary: list[str]) -> None:
    driver = driver_with_diary()
    assert driver.add(make_pod("p")).work() == ["bind p to a"]
    # DefaultBinder comes first and binds it.
    assert diary == ["reserve p a", "permit p a", "pre_bind p a", "post_bind p a"]


@pytest.mark.parametrize(
    ("point", "said", "written"),
    [
        ("reserve", ["p failed: Diary"], ["reserve", "unreserve"]),
        ("permit", ["p failed: Diary"], ["reserve", "permit", "unreserve"]),
        # Its status names the node since PreBind began.
        ("pre_bind", ["p failed: no", "nominate p to a"], ["reserve", "permit", "pre_bind", "unreserve"]),
    ],
)
def test_a_rejection_undoes_what_was_done(diary: list[str], point: str, said: list[str], written: list[str]) -> None:
    Diary.answers[point] = Status.unschedulable("no")
    driver = driver_with_diary()
    assert driver.add(make_pod("p", requests=ONE_CPU)).work() == said
    assert diary == [f"{each} p a" for each in written]
    assert requested(driver, "a") == 0
    assert "default/p" in driver.loop.cluster.pending
    Diary.answers.clear()
    # Who was rejected waits for an event; whose binding failed tries again by itself.
    if point == "pre_bind":
        assert driver.work(at=2.0) == ["bind p to a"]
    else:
        assert driver.work(at=2.0) == []
        assert driver.add(make_node("b", cpu="0")).work(at=2.0) == ["bind p to a"]


def test_a_bind_plugin_that_fails_is_not_followed_by_another(diary: list[str]) -> None:
    class Failing(BindPlugin):
        name = "Failing"

        def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
            return Status.error("the wire is cut")

    options = with_plugins(Diary, Failing)
    bind = {"enabled": [{"name": "Diary"}, {"name": "Failing"}, {"name": "DefaultBinder"}], "disabled": [{"name": "*"}]}
    options["config"]["profiles"][0]["plugins"]["bind"] = bind
    driver = Driver([make_node("a")], **options)
    assert driver.add(make_pod("p")).work() == ['p failed: running Bind plugin "Failing": the wire is cut']
    assert diary == ["reserve p a", "permit p a", "pre_bind p a", "bind p a", "unreserve p a"]


@pytest.mark.parametrize(("point", "title"), [("permit", "Permit"), ("pre_bind", "PreBind"), ("bind", "Bind")])
def test_an_exception_of_a_plugin_is_an_error_of_the_pod(point: str, title: str, diary: list[str]) -> None:
    class Raising(Diary):
        name = "Raising"

        def _say(self, at: str, pod: Pod, node: str) -> Status:
            if at == point:
                raise ValueError("no such thing")
            return super()._say(at, pod, node)

    options = with_plugins(Raising)
    bind = {"enabled": [{"name": "Raising"}, {"name": "DefaultBinder"}], "disabled": [{"name": "*"}]}
    options["config"]["profiles"][0]["plugins"]["bind"] = bind
    driver = Driver([make_node("a")], **options)
    said = driver.add(make_pod("p")).work()
    assert said[0] == f'p failed: running {title} plugin "Raising": ValueError: no such thing'
    assert said[1:] == ([] if point == "permit" else ["nominate p to a"])
    assert diary[-1] == "unreserve p a"


def test_binding_may_be_up_to_whoever_carries_it_out(diary: list[str]) -> None:
    driver = Driver([make_node("a")], **with_plugins(Diary), runs_binding=False)
    assert driver.add(make_pod("p")).work() == ["bind p to a"]
    assert diary == ["reserve p a", "permit p a"]


def test_a_binding_that_fails_outside_is_undone(diary: list[str]) -> None:
    driver = driver_with_diary()
    loop = driver.loop
    driver.add(make_pod("p", requests=ONE_CPU), make_pod("q", requests=ONE_CPU))
    (bind,) = loop.run_one(0.0)
    assert isinstance(bind, Bind)
    loop.run_one(0.0)
    assert requested(driver, "a") == 1000
    loop.bind_failed("default/p", Status.error("conflict"), 0.0)
    assert requested(driver, "a") == 0
    assert "unreserve p a" in diary
    assert driver.work(at=0.0) == ["bind q to a"]
    assert loop.bind_failed("default/unknown", Status.error("conflict"), 0.0) == []


def test_an_assumed_pod_that_is_deleted_gives_back_its_room(diary: list[str]) -> None:
    driver = driver_with_diary()
    driver.add(make_pod("p", requests=ONE_CPU), make_pod("q", requests=ONE_CPU))
    driver.loop.run_one(0.0)
    driver.delete(make_pod("p"))
    assert requested(driver, "a") == 0
    assert driver.work() == ["bind q to a"]


@pytest.mark.parametrize(("release", "room"), [("v1.34", 0), ("v1.35", 1000)])
def test_an_assumed_pod_that_is_told_to_end_gives_back_its_room(release: str, room: int) -> None:
    driver = Driver([make_node("a", cpu="1")], release=release)
    driver.add(make_pod("p", requests=ONE_CPU))
    driver.loop.run_one(0.0)
    driver.update(make_pod("p", requests=ONE_CPU, deleted=True))
    assert 1000 - requested(driver, "a") == room


def test_an_update_of_an_assumed_pod_waits_for_its_binding() -> None:
    driver = Driver([make_node("a", cpu="1")])
    driver.add(make_pod("p", requests=ONE_CPU))
    (bind,) = driver.loop.run_one(0.0)
    driver.update(make_pod("p", requests=ONE_CPU, labels={"new": "yes"}))
    assert driver.work() == []
    driver.update(make_pod("p", requests=ONE_CPU, labels={"new": "yes"}, node="a"))
    assert driver.loop.assumed == {}
    assert driver.pod("p").metadata.labels == {"new": "yes"}
    assert isinstance(bind, Bind)


# -- waiting at Permit -------------------------------------------------------------------------------------------------


class Pairs(PermitPlugin):
    """Lets a pod go on when a second one is there."""

    name = "Pairs"

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        waiting: WaitingPods = state[WAITING_PODS]
        if "lonely" in pod.name:
            for assumed in waiting:
                waiting.reject(assumed.pod.key, self.name, "no company")
            return Status.unschedulable("lonely"), 0.0
        if not len(waiting):
            return WAIT, 30.0
        for assumed in waiting:
            waiting.allow(assumed.pod.key, self.name)
        return SUCCESS, 0.0


def pairs(cpu: str = "2") -> Driver:
    return Driver([make_node("a", cpu=cpu)], **with_plugins(Pairs))


def test_a_pod_waits_until_a_plugin_lets_it_go_on() -> None:
    driver = pairs()
    assert driver.add(make_pod("p")).work() == ["p waits on a until 30"]
    assert driver.loop.next_wake_up() == 30.0
    assert driver.add(make_pod("q")).work(at=5.0) == ["bind q to a", "bind p to a"]


def test_a_pod_that_waits_keeps_its_room() -> None:
    driver = pairs(cpu="1")
    driver.add(make_pod("p", requests=ONE_CPU)).work()
    assert requested(driver, "a") == 1000
    assert driver.add(make_pod("q", requests=ONE_CPU)).work(at=1.0) == ["q failed: NodeResourcesFit"]


def test_a_pod_that_waits_too_long_is_rejected() -> None:
    driver = pairs(cpu="1")
    driver.add(make_pod("p", requests=ONE_CPU)).work()
    assert driver.work(at=30.0) == ["p failed: Pairs"]
    assert "timeout after waiting 30s at plugin Pairs" in getattr(driver.instructions[-1], "message", "")
    assert requested(driver, "a") == 0


def test_a_plugin_can_give_up_on_a_pod_that_waits() -> None:
    driver = pairs()
    driver.add(make_pod("p")).work()
    said = driver.add(make_pod("lonely")).work(at=1.0)
    # The room that p gives back is worth another try to who was rejected by a plugin that does not say what helps.
    assert said == ["lonely failed: Pairs", "p failed: Pairs", "lonely failed: Pairs"]


def test_a_pod_that_waits_and_is_deleted_is_gone() -> None:
    driver = pairs(cpu="1")
    driver.add(make_pod("p", requests=ONE_CPU)).work()
    driver.delete(make_pod("p"))
    assert driver.work(at=1.0) == []
    assert len(driver.loop.waiting) == len(driver.loop.queue) == 0
    assert requested(driver, "a") == 0


def test_what_happens_while_a_pod_waits_counts_when_it_comes_back() -> None:
    driver = pairs(cpu="1")
    driver.add(make_pod("p", requests=ONE_CPU)).work()
    driver.add(make_node("b", cpu="0")).work(at=1.0)
    assert driver.work(at=30.0) == ["p failed: Pairs", "p waits on a until 60"]


def test_a_pod_that_waits_and_is_bound_by_somebody_else_is_not_bound_again() -> None:
    driver = pairs()
    driver.add(make_pod("p")).work()
    driver.update(make_pod("p", node="a"))
    assert driver.work(at=1.0) == []
    assert driver.loop.cluster.find_pod("default/p") == (driver.pod("p"), "a")


def test_a_victim_that_waits_is_rejected_rather_than_evicted() -> None:
    driver = pairs(cpu="1")
    driver.add(make_pod("p", requests=ONE_CPU)).work()
    said = driver.add(make_pod("high", requests=ONE_CPU, priority=5)).work(at=1.0)
    assert said == [
        "high failed: NodeResourcesFit",
        "nominate high to a",
        "p failed: DefaultPreemption",
        "high waits on a until 31",
    ]


# -- nodes and names ---------------------------------------------------------------------------------------------------


def test_pods_of_a_node_that_is_gone_count_again_when_it_comes_back() -> None:
    driver = Driver([make_node("a", cpu="1"), make_pod("p", node="a", requests=ONE_CPU)])
    driver.delete(make_node("a"))
    assert driver.add(make_pod("q", requests=ONE_CPU)).work() == ["q failed: no nodes available to schedule pods"]
    driver.add(make_node("a", cpu="1"))
    assert driver.work(at=5.0) == ["q failed: NodeResourcesFit"]
    assert requested(driver, "a") == 1000


def test_another_pod_may_take_over_a_name() -> None:
    driver = Driver([make_node("a", cpu="1")])
    old = make_pod("p", requests=ONE_CPU)
    driver.add(old).work()
    new = replace(old, metadata=replace(old.metadata, uid="another"))
    assert driver.add(new).work(at=1.0) == ["bind p to a"]


def test_a_finished_pod_is_as_good_as_gone() -> None:
    driver = Driver([make_node("a", cpu="1"), make_pod("p", node="a", requests=ONE_CPU)])
    driver.update(make_pod("p", node="a", requests=ONE_CPU, phase="Succeeded"))
    assert driver.add(make_pod("q", requests=ONE_CPU)).work() == ["bind q to a"]


def test_deleting_what_is_not_there_does_nothing() -> None:
    driver = Driver([make_node("a")])
    driver.delete(make_pod("p"), make_node("x"), make_object("Service", "s", spec={"selector": {}}))
    assert driver.work() == []


def test_an_error_of_a_plugin_is_one_of_the_pod() -> None:
    class Broken(PermitPlugin):
        name = "Broken"

        def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
            return Status(Code.ERROR, ("out of order",)), 0.0

    driver = Driver([make_node("a")], **with_plugins(Broken))
    assert driver.add(make_pod("p")).work() == ['p failed: running Permit plugin "Broken": out of order']
    assert driver.loop.next_wake_up() == 2.0


def test_a_filter_that_breaks_is_an_error_of_the_pod() -> None:
    class Broken(FilterPlugin):
        name = "Broken"

        def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
            raise ZeroDivisionError("no share left")

    driver = Driver([make_node("a")], **with_plugins(Broken))
    assert driver.add(make_pod("p")).work() == ["p failed: plugin 'Broken' failed: ZeroDivisionError: no share left"]
    assert driver.loop.next_wake_up() == 2.0


def test_pods_are_counted_as_they_come_into_the_queue() -> None:
    big = make_pod("big", requests={"cpu": "5"})
    driver = Driver([make_node("a", cpu="1"), make_pod("first")])
    driver.add(big, make_pod("gated", scheduling_gates=[{"name": "later"}])).work()
    driver.update(make_pod("gated")).work()
    driver.work(at=3.0)
    driver.update(make_node("a", cpu="2"), make_node("a", cpu="9")).work()
    assert driver.loop.queue.incoming == {
        ("active", "UnscheduledPodAdd"): 2,
        ("unschedulable", "UnscheduledPodAdd"): 1,
        ("unschedulable", "ScheduleAttemptFailure"): 1,
        ("active", "TargetPodUpdatePodSchedulingGatesEliminated"): 1,
        ("active", "NodeUpdateNodeAllocatable"): 1,
    }
