"""What a scheduler writes about pods that fit nowhere: conditions, events, nominations and evictions."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from builders import make_node, make_pod
from live_unit.api_server import PODS, ApiServer, Fields
from live_unit.running import running
from live_unit.virtual_time import run, until
from podium.live.client import ApiError
from podium.model import Pod

NODE = "/api/v1/nodes/a"
LARGE = make_pod("large", requests={"cpu": "8"})
LOW, HIGH = make_pod("low", node="a", requests={"cpu": "3"}), make_pod("high", priority=10, requests={"cpu": "3"})


def pod_of(server: ApiServer, name: str) -> Fields:
    return server.objects[f"{PODS}/{name}"]


def with_victim(victim: Pod = LOW) -> ApiServer:
    """A node that is full, and a pod that may take the place of the one there."""
    return ApiServer(make_node("a"), victim, HIGH)


def grow(node: Fields, cpu: str) -> None:
    node["status"]["allocatable"]["cpu"] = cpu


def test_a_pod_that_fits_nowhere_is_told_once_why() -> None:
    async def story() -> None:
        server = ApiServer(make_node("a"), LARGE)
        async with running(server):
            await asyncio.sleep(20 * 60)  # it is tried again every five minutes

        (patch,) = server.asked("PATCH", "/large/status")
        (condition,) = patch["status"]["conditions"]
        assert (condition["type"], condition["reason"]) == ("PodScheduled", "Unschedulable")
        assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
        # The condition changed the pod, so that the next event is about another version of it.
        assert [event["note"] for event in server.events("FailedScheduling")] == [condition["message"]] * 2
        assert [event.get("series", {}).get("count") for event in server.events()] == [None, 2]

    run(story())


def test_a_pod_that_fits_later_is_bound() -> None:
    async def story() -> None:
        server = ApiServer(make_node("a"), LARGE)
        async with running(server):
            await until(lambda: server.events("FailedScheduling"))
            server.change(NODE, lambda node: node["status"]["allocatable"].update(cpu="9"))
            await until(lambda: server.node_of("large"))

    run(story())


def test_a_pod_is_evicted_for_a_more_important_one() -> None:
    async def story() -> None:
        server = with_victim()
        low, high = (pod_of(server, name)["metadata"]["uid"] for name in ("low", "high"))

        async with running(server):
            await until(lambda: server.node_of("high"))

        (reason,) = server.asked("PATCH", "/low/status")
        (condition,) = reason["status"]["conditions"]
        assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "PreemptionByScheduler")
        assert condition["message"] == "default-scheduler: preempting to accommodate a higher priority pod"
        (deleted,) = server.asked("DELETE", "/low")
        assert deleted["preconditions"] == {"uid": low}
        assert server.writes.index(f"PATCH {PODS}/low/status") < server.writes.index(f"DELETE {PODS}/low")
        (event,) = server.events("Preempted")
        assert (event["regarding"]["name"], event["note"]) == ("low", f"Preempted by pod {high} on node a")

    run(story())


def test_the_more_important_pod_is_nominated_until_the_other_one_is_gone() -> None:
    async def story() -> None:
        server = with_victim()
        server.change(f"{PODS}/low", lambda pod: pod["metadata"].update(finalizers=["example.com/slow"]))

        async with running(server):
            await until(lambda: pod_of(server, "high")["status"].get("nominatedNodeName"))
            await asyncio.sleep(120)
            assert pod_of(server, "high")["status"]["nominatedNodeName"] == "a"
            assert server.node_of("high") == ""
            assert len(server.asked("DELETE", "/low")) == 1
            server.remove(f"{PODS}/low")
            await until(lambda: server.node_of("high"))

    run(story())


def test_a_pod_whose_victim_is_being_evicted_is_not_tried_meanwhile() -> None:
    async def story() -> None:
        server = with_victim()
        eviction = server.holds("DELETE", "/low")

        async with running(server):
            await eviction.has_come.wait()
            for cpu in ("5", "5500m"):
                server.change(NODE, partial(grow, cpu=cpu))
                await asyncio.sleep(30)
            assert len(server.events("FailedScheduling")) == 1
            eviction.may_go_on.set()
            await until(lambda: server.node_of("high"))

    run(story())


def test_a_pod_whose_victim_cannot_be_evicted_is_tried_again() -> None:
    async def story() -> None:
        server = with_victim()
        server.fails("DELETE", "/low", ApiError("not allowed", 403))

        async with running(server):
            await until(lambda: server.node_of("high"))

        assert len(server.asked("DELETE", "/low")) == 2
        assert len(server.events("Preempted")) == 1

    run(story())


def test_a_victim_that_went_by_itself_is_no_problem(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        server = with_victim()
        eviction = server.holds("PATCH", "/low/status")

        async with running(server):
            await eviction.has_come.wait()
            server.remove(f"{PODS}/low")
            eviction.may_go_on.set()
            await until(lambda: server.node_of("high"))

        assert server.asked("DELETE", "/low") == []
        assert server.events("Preempted") == []
        assert "cannot be evicted" not in caplog.text

    run(story())
