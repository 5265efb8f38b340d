"""How a scheduler binds pods, and what becomes of a pod whose binding fails, is not answered, or comes too late."""

from __future__ import annotations

import asyncio
import time

import pytest

from builders import make_node, make_pod
from live_unit.api_server import PODS, UNREACHABLE, ApiServer, Fault
from live_unit.running import running
from live_unit.virtual_time import run, until
from podium.live.client import ApiError

CONFLICT, FORBIDDEN, BROKEN = ApiError("changed", 409), ApiError("not allowed", 403), ApiError("broken", 500)
SMALL = make_node("a", cpu="1")
FIRST, SECOND = (make_pod(name, requests={"cpu": "1"}) for name in ("first", "second"))


async def scheduled(server: ApiServer, pod: str = "first") -> None:
    """Let a scheduler work until a pod is bound and its event is written."""
    async with running(server):
        await until(lambda: server.node_of(pod) and server.events("Scheduled"))


def conditions(server: ApiServer, pod: str) -> dict[str, tuple[str, str, str]]:
    found = server.objects[f"{PODS}/{pod}"]["status"].get("conditions", ())
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in found}


def with_held_binding() -> tuple[ApiServer, Fault]:
    """A server that holds up the binding of the first pod."""
    server = ApiServer(SMALL, FIRST)
    return server, server.holds("POST", "/first/binding")


def test_a_pod_is_bound_and_told_where() -> None:
    async def story() -> None:
        server = ApiServer(SMALL, FIRST)
        uid = server.objects[f"{PODS}/first"]["metadata"]["uid"]

        await scheduled(server)

        (binding,) = server.asked("POST", "/binding")
        assert binding["metadata"] == {"name": "first", "namespace": "default", "uid": uid}
        assert binding["target"] == {"kind": "Node", "name": "a"}
        (event,) = server.events()
        assert (event["type"], event["action"]) == ("Normal", "Binding")
        assert event["note"] == "Successfully assigned default/first to a"
        assert event["regarding"]["uid"] == uid

    run(story())


@pytest.mark.parametrize("answer", [UNREACHABLE, BROKEN, CONFLICT], ids=["none", "500", "409"])
def test_a_binding_that_was_done_counts_whatever_the_answer(answer: ApiError) -> None:
    async def story() -> None:
        server = ApiServer(SMALL, FIRST)
        server.fails("POST", "/binding", answer, is_done=True)

        await scheduled(server)

        assert len(server.asked("POST", "/binding")) == 1
        assert [event["reason"] for event in server.events()] == ["Scheduled"]

    run(story())


@pytest.mark.parametrize("answer", [UNREACHABLE, BROKEN, CONFLICT], ids=["none", "500", "409"])
def test_a_binding_that_was_not_done_is_tried_again(answer: ApiError) -> None:
    async def story() -> None:
        server = ApiServer(SMALL, FIRST)
        server.fails("POST", "/binding", answer)

        async with running(server):
            await until(lambda: "PodScheduled" in conditions(server, "first"))
            reason = f'running Bind plugin "DefaultBinder": {answer}'
            assert conditions(server, "first") == {"PodScheduled": ("False", "SchedulerError", reason)}
            await until(lambda: server.events("Scheduled"))

        assert (len(server.asked("POST", "/binding")), server.node_of("first")) == (2, "a")
        (failed,) = server.events("FailedScheduling")
        assert (failed["type"], failed["note"]) == ("Warning", reason)

    run(story())


def test_a_binding_that_is_refused_is_not_looked_up() -> None:
    async def story() -> None:
        server = ApiServer(SMALL, FIRST)
        server.fails("POST", "/binding", FORBIDDEN)

        await scheduled(server)

        assert server.asked("GET", "/pods/first") == []
        assert len(server.asked("POST", "/binding")) == 2

    run(story())


def test_a_binding_is_looked_up_until_there_is_an_answer() -> None:
    async def story() -> None:
        server = ApiServer(SMALL, FIRST)
        server.fails("POST", "/binding", UNREACHABLE, is_done=True)
        server.fails("GET", "/pods/first", UNREACHABLE, times=3)

        await scheduled(server)

        assert (len(server.asked("GET", "/pods/first")), len(server.asked("POST", "/binding"))) == (4, 1)
        assert server.events("FailedScheduling") == []

    run(story())


def test_room_is_not_given_away_while_a_binding_may_have_been_done() -> None:
    async def story() -> None:
        server = ApiServer(SMALL, FIRST)
        server.fails("POST", "/first/binding", UNREACHABLE)
        lookup = server.holds("GET", "/pods/first")

        async with running(server):
            await lookup.has_come.wait()
            server.create(SECOND)
            await until(lambda: server.events("FailedScheduling"))
            assert [each["regarding"]["name"] for each in server.events("FailedScheduling")] == ["second"]
            assert server.node_of("second") == ""
            lookup.may_go_on.set()
            await until(lambda: server.node_of("first") or server.node_of("second"))

    run(story())


def test_a_pod_that_somebody_else_bound_is_not_told_to_have_failed() -> None:
    async def story() -> None:
        server = ApiServer(SMALL, make_node("b", cpu="1"), FIRST)
        binding = server.holds("POST", "/binding")

        async with running(server):
            await binding.has_come.wait()
            server.change(f"{PODS}/first", lambda pod: pod["spec"].update(nodeName="b"))
            await asyncio.sleep(1)
            binding.may_go_on.set()
            await asyncio.sleep(30)
            server.create(SECOND)
            await until(lambda: server.node_of("second") == "a")

        assert server.events("FailedScheduling") == []
        assert conditions(server, "first") == {}

    run(story())


def test_a_pod_that_is_deleted_while_it_is_bound_leaves_its_room() -> None:
    async def story() -> None:
        server, binding = with_held_binding()

        async with running(server):
            await binding.has_come.wait()
            server.remove(f"{PODS}/first")
            await asyncio.sleep(1)
            binding.may_go_on.set()
            server.create(SECOND)
            await until(lambda: server.node_of("second"))

        assert [event["regarding"]["name"] for event in server.events()] == ["second"]
        assert server.asked("PATCH", "/first/status") == []

    run(story())


def test_a_pod_that_is_deleted_before_its_turn_is_not_bound() -> None:
    async def story() -> None:
        server = ApiServer(make_node("a", cpu="2"), FIRST, SECOND)
        binding = server.holds("POST", "/binding")

        async with running(server, bind_concurrency=1):
            await binding.has_come.wait()
            waiting = "second" if server.requests[-1].path.endswith("/first/binding") else "first"
            await asyncio.sleep(1)
            server.remove(f"{PODS}/{waiting}")
            await asyncio.sleep(1)
            binding.may_go_on.set()
            await until(lambda: server.events("Scheduled"))
            await asyncio.sleep(30)

        assert len(server.asked("POST", "/binding")) == 1

    run(story())


@pytest.mark.parametrize("seconds", [0, 1], ids=["at once", "when the new one is seen"])
def test_a_new_pod_with_the_same_name_is_not_taken_for_the_old_one(seconds: float) -> None:
    async def story() -> None:
        server, binding = with_held_binding()

        async with running(server):
            await binding.has_come.wait()
            server.remove(f"{PODS}/first")
            server.create(FIRST)
            await asyncio.sleep(seconds)
            binding.may_go_on.set()
            await until(lambda: server.node_of("first") and server.events("Scheduled"))

        old, new = (each["metadata"]["uid"] for each in server.asked("POST", "/binding"))
        assert old != new
        assert [each["regarding"]["uid"] for each in server.events("Scheduled")] == [new]
        assert conditions(server, "first") == {}

    run(story())


def test_the_room_of_a_new_pod_stays_taken_when_the_old_one_with_its_name_fails() -> None:
    async def story() -> None:
        server = ApiServer(SMALL, FIRST)
        old, new = (server.holds("POST", "/first/binding") for _ in range(2))

        async with running(server):
            await old.has_come.wait()
            server.remove(f"{PODS}/first")
            server.create(FIRST)
            await new.has_come.wait()
            old.may_go_on.set()
            await asyncio.sleep(1)
            server.create(SECOND)
            await asyncio.sleep(30)
            assert server.asked("POST", "/second/binding") == []
            new.may_go_on.set()
            await until(lambda: server.node_of("first"))

    run(story())


def test_bindings_under_way_are_finished_when_the_scheduler_stops() -> None:
    async def story() -> None:
        server, binding = with_held_binding()

        async with running(server) as scheduler:
            await binding.has_come.wait()
            stopping = asyncio.create_task(scheduler.stop())
            await asyncio.sleep(5)
            assert not stopping.done()
            binding.may_go_on.set()
            await stopping

        assert server.node_of("first") == "a"
        assert [event["reason"] for event in server.events()] == ["Scheduled"]

    run(story())


def test_bindings_under_way_are_given_up_after_a_while() -> None:
    async def story() -> None:
        server, binding = with_held_binding()

        async with running(server) as scheduler:
            await binding.has_come.wait()
            await asyncio.wait_for(scheduler.stop(), 60)
            binding.may_go_on.set()
            await asyncio.sleep(60)

        assert server.node_of("first") == ""

    run(story())


def test_a_dry_run_decides_and_writes_nothing() -> None:
    async def story() -> None:
        server = ApiServer(SMALL, FIRST, SECOND)

        async with running(server, dry_run=True) as started:
            await asyncio.sleep(60)
            history = started.scheduler.history
            assert history is not None
            decided = {name: history.last(f"default/{name}") for name in ("first", "second")}

        assert server.writes == []
        assert sorted(each.node for each in decided.values() if each) == ["", "a"]

    run(story())


def test_an_event_that_is_being_written_is_not_lost_when_the_scheduler_stops() -> None:
    async def story() -> None:
        server = ApiServer(SMALL, FIRST)
        slow = server.holds("POST", "/events")
        async with running(server) as started:
            await slow.has_come.wait()
            asyncio.get_running_loop().call_later(0.2, slow.may_go_on.set)
            await started.stop()
        assert [event["reason"] for event in server.events()] == ["Scheduled"]

    run(story())


def test_a_scheduler_that_is_told_to_stop_finishes_what_was_sent_and_gives_back_the_rest() -> None:
    async def story() -> None:
        server = ApiServer(make_node("a"), *(make_pod(f"web-{number}") for number in range(20)))
        sent = server.holds("POST", "/binding", times=2)
        async with running(server, bind_concurrency=2) as started:
            await until(lambda: len(server.asked("POST", "/binding")) == 2)
            stopping = asyncio.create_task(started.stop())
            await asyncio.sleep(0.3)
            assert not stopping.done()
            begin = time.monotonic()
            sent.may_go_on.set()
            await stopping
            assert time.monotonic() - begin < 1.5
        assert len(server.asked("POST", "/binding")) == 2
        bound = [number for number in range(20) if server.node_of(f"web-{number}")]
        assert len(bound) == len(server.events("Scheduled")) == 2

    run(story())
