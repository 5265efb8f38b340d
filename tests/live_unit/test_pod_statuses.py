"""Conditions and nominations of pods: what is written, what is not written again, and what happens on failure."""

from __future__ import annotations

import msgspec
import pytest

from builders import make_pod
from live_unit.api_server import PODS, UNREACHABLE, ApiServer, Fields
from live_unit.virtual_time import run
from podium.live.client import ApiError
from podium.live.pod_statuses import PodStatuses, UnscheduledCondition
from podium.live.reading import RESOURCES, ObjectDecoder
from podium.model import Pod

FULL, TOLD = UnscheduledCondition("Unschedulable", "no room"), UnscheduledCondition("Unschedulable", "taints")
MANY = 1000


def stored(server: ApiServer, name: str = "web") -> Pod:
    """A pod as a scheduler sees it."""
    found = ObjectDecoder(RESOURCES["Pod"]).decode(msgspec.Raw(msgspec.json.encode(server.objects[f"{PODS}/{name}"])))
    assert isinstance(found, Pod)
    return found


def with_a_pod() -> tuple[ApiServer, Pod, PodStatuses]:
    server = ApiServer(make_pod("web"))
    return server, stored(server), PodStatuses(server.client)


def status(server: ApiServer) -> Fields:
    found: Fields = server.objects[f"{PODS}/web"]["status"]
    return found


def messages(server: ApiServer) -> list[str]:
    """The messages of all conditions that were sent."""
    sent = [each["status"] for each in server.asked("PATCH", "/status")]
    return [each["conditions"][0]["message"] for each in sent if "conditions" in each]


def test_the_same_condition_is_written_once() -> None:
    async def story() -> None:
        server, pod, statuses = with_a_pod()
        for condition in (FULL, FULL, TOLD, TOLD):
            statuses.unschedulable(pod, condition)
            await statuses.written(pod.key)
        assert messages(server) == ["no room", "taints"]
        (condition,) = status(server)["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == (
            "PodScheduled",
            "False",
            "Unschedulable",
        )

    run(story())


def test_a_pod_that_was_unscheduled_before_keeps_the_time_of_its_condition() -> None:
    async def story() -> None:
        server, pod, statuses = with_a_pod()
        statuses.unschedulable(pod, FULL)
        await statuses.written(pod.key)
        since = status(server)["conditions"][0]["lastTransitionTime"]
        statuses.unschedulable(stored(server), TOLD)
        await statuses.written(pod.key)
        first, second = server.asked("PATCH", "/status")
        assert first["status"]["conditions"][0]["lastTransitionTime"] == since
        assert "lastTransitionTime" not in second["status"]["conditions"][0]

    run(story())


def test_an_empty_nomination_removes_the_name() -> None:
    async def story() -> None:
        server, pod, statuses = with_a_pod()
        for node, expected in (("a", "a"), ("", None)):
            statuses.nominate(pod, node)
            await statuses.written(pod.key)
            assert status(server).get("nominatedNodeName") == expected

    run(story())


def test_of_several_writes_that_wait_the_last_counts() -> None:
    async def story() -> None:
        server, pod, statuses = with_a_pod()
        writing = server.holds("PATCH", "/status")
        statuses.nominate(pod, "a")
        await writing.has_come.wait()
        for node in ("b", "c", "d"):
            statuses.nominate(pod, node)
        statuses.unschedulable(pod, FULL)
        writing.may_go_on.set()
        await statuses.written(pod.key)
        first, second = server.asked("PATCH", "/status")
        assert (first["status"], second["status"]["nominatedNodeName"]) == ({"nominatedNodeName": "a"}, "d")
        assert messages(server) == ["no room"]

    run(story())


@pytest.mark.parametrize("error", [UNREACHABLE, ApiError("broken", 500)], ids=["no answer", "500"])
def test_a_write_that_fails_is_repeated_with_what_came_since(error: ApiError) -> None:
    async def story() -> None:
        server, pod, statuses = with_a_pod()
        failing = server.fails("PATCH", "/status", error, is_held=True)
        statuses.unschedulable(pod, FULL)
        statuses.nominate(pod, "a")
        await failing.has_come.wait()
        statuses.nominate(pod, "b")
        failing.may_go_on.set()
        await statuses.written(pod.key)
        assert messages(server) == ["no room", "no room"]
        assert status(server)["nominatedNodeName"] == "b"

    run(story())


def test_a_write_is_given_up_in_the_end_and_then_tried_with_the_pod() -> None:
    async def story() -> None:
        server, pod, statuses = with_a_pod()
        failing = server.fails("PATCH", "/status", UNREACHABLE, times=MANY)
        statuses.unschedulable(pod, FULL)
        await statuses.written(pod.key)
        assert len(server.requests) == 6
        failing.times = 0
        statuses.unschedulable(pod, FULL)
        await statuses.written(pod.key)
        assert status(server)["conditions"][0]["message"] == "no room"

    run(story())


@pytest.mark.parametrize("code", [404, 409, 422])
def test_a_write_about_a_pod_that_is_not_there_is_not_repeated(code: int) -> None:
    async def story() -> None:
        server, pod, statuses = with_a_pod()
        server.fails("PATCH", "/status", ApiError("no", code))
        statuses.nominate(pod, "a")
        await statuses.written(pod.key)
        assert len(server.requests) == 1

    run(story())


def test_nothing_more_is_written_about_a_pod_that_is_forgotten() -> None:
    async def story() -> None:
        server, pod, statuses = with_a_pod()
        writing = server.holds("PATCH", "/status")
        statuses.nominate(pod, "a")
        await writing.has_come.wait()
        statuses.nominate(pod, "b")
        statuses.forget(pod.key)
        writing.may_go_on.set()
        await statuses.written(pod.key)
        assert status(server)["nominatedNodeName"] == "a"

    run(story())


def test_a_write_that_fails_does_not_hold_up_the_next_pod_of_the_name() -> None:
    async def story() -> None:
        server, pod, statuses = with_a_pod()
        failing = server.fails("PATCH", "/status", ApiError("broken", 500), is_held=True)
        statuses.unschedulable(pod, FULL)
        await failing.has_come.wait()
        server.remove(f"{PODS}/web")
        statuses.forget(pod.key)
        server.create(make_pod("web"))
        statuses.nominate(stored(server), "a")
        failing.may_go_on.set()
        await statuses.written(pod.key)
        assert status(server)["nominatedNodeName"] == "a"

    run(story())


def test_a_write_that_fails_is_not_repeated_for_a_pod_that_is_bound() -> None:
    async def story() -> None:
        server, pod, statuses = with_a_pod()
        failing = server.fails("PATCH", "/status", ApiError("broken", 500), is_held=True)
        statuses.unschedulable(pod, FULL)
        await failing.has_come.wait()
        statuses.forget(pod.key)
        failing.may_go_on.set()
        await statuses.written(pod.key)
        assert len(server.asked("PATCH", "/status")) == 1
        assert "conditions" not in status(server)

    run(story())
