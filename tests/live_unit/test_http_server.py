"""What a running scheduler answers over HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from builders import make_node, make_pod
from live_unit.api_server import ApiServer
from live_unit.running import Running, following, made_scheduler
from podium.errors import InputError
from podium.live.process import HttpServer

CLUSTER = make_node("a"), make_pod("web"), make_pod("large", requests={"cpu": "9"})


async def answers(*paths: str, is_leader: bool = True, is_ready: bool = True) -> list[tuple[int, Any]]:
    """The status and body of each answer of a scheduler that has decided, after a node came."""
    server = ApiServer(*CLUSTER)
    async with following(server) as reflectors, aiohttp.ClientSession() as session:
        scheduler = made_scheduler(server, reflectors)
        http = HttpServer(scheduler)
        http.is_ready = is_ready
        port = await http.start("127.0.0.1", 0)
        started = Running(scheduler) if is_leader else None
        while is_leader and not (server.events("Scheduled") and server.events("FailedScheduling")):
            await asyncio.sleep(0.001)
        server.create(make_node("b"))
        while scheduler.loop is not None and scheduler.loop.cluster.node_count < 2:
            await asyncio.sleep(0.001)
        found = []
        for path in paths:
            async with session.get(f"http://127.0.0.1:{port}{path}") as response:
                text = await response.text()
                found.append((response.status, json.loads(text) if response.content_type.endswith("json") else text))
        if started is not None:
            await started.kill()
        await http.stop()
        return found


def test_it_is_alive_before_it_is_ready() -> None:
    paths = "/livez", "/readyz"
    assert asyncio.run(answers(*paths, is_leader=False, is_ready=False)) == [(200, "ok"), (503, "not synced")]
    assert asyncio.run(answers(*paths, is_leader=False)) == [(200, "ok"), (200, "ok")]


def test_a_replica_that_is_not_the_leader_knows_no_decisions() -> None:
    (answer,) = asyncio.run(answers("/decisions/default/web", is_leader=False))
    assert answer == (503, {"error": "this replica is not the leader"})


def test_decisions_are_explained_on_the_cluster_of_their_time() -> None:
    bound, waiting, unknown = asyncio.run(answers(*(f"/decisions/default/{name}" for name in ("web", "large", "gone"))))
    assert bound[1]["decided"]["node"] == bound[1]["explanation"]["node"] == "a"
    assert (bound[1]["decided"]["attempts"], bound[1]["asOf"]) == (1, "then")
    assert bound[1]["explanation"]["nodes"]["total"] == 1
    assert waiting[1]["decided"]["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert waiting[1]["explanation"]["rejected"][0]["plugin"] == "NodeResourcesFit"
    assert unknown == (404, {"error": "pod default/gone is not in the cluster"})


def test_attempts_are_counted_in_the_metrics() -> None:
    ((_, text),) = asyncio.run(answers("/metrics"))
    for result in ("scheduled", "unschedulable"):
        labels = f'profile="default-scheduler",result="{result}"'
        assert f"scheduler_schedule_attempts_total{{{labels}}} 1.0" in text


def test_a_port_that_is_taken_is_named() -> None:
    async def story() -> None:
        async with following(ApiServer(*CLUSTER)) as reflectors:
            first, second = (HttpServer(made_scheduler(ApiServer(), reflectors)) for _ in range(2))
            port = await first.start("127.0.0.1", 0)
            with pytest.raises(InputError, match=f"cannot listen at 127.0.0.1:{port}: address already in use"):
                await second.start("127.0.0.1", port)
            await first.stop()
            await second.stop()

    asyncio.run(story())
