"""What a running scheduler answers over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest

from builders import make_node, make_pod
from live_unit.api_server import ApiServer
from live_unit.running import Running, SameLoop, following, made_scheduler
from podium.errors import InputError
from podium.live import http_server
from podium.live.http_server import HttpServer

TOKEN = "secret"
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}
CLUSTER = make_node("a"), make_pod("web"), make_pod("large", requests={"cpu": "9"})


async def answers(
    *paths: str, is_leader: bool = True, is_ready: bool = True, headers: Mapping[str, str] = AUTHORIZED
) -> list[tuple[int, Any]]:
    """The status and body of each answer of a scheduler that has decided, after a node came."""
    server = ApiServer(*CLUSTER)
    async with following(server) as reflectors, aiohttp.ClientSession() as session:
        scheduler = made_scheduler(server, reflectors)
        http = HttpServer(scheduler, SameLoop(), TOKEN)
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
            async with session.get(f"http://127.0.0.1:{port}{path}", headers=headers) as response:
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
            first, second = (HttpServer(made_scheduler(ApiServer(), reflectors), SameLoop()) for _ in range(2))
            port = await first.start("127.0.0.1", 0)
            with pytest.raises(InputError, match=f"cannot listen at 127.0.0.1:{port}: address already in use"):
                await second.start("127.0.0.1", port)
            await first.stop()
            await second.stop()

    asyncio.run(story())


REFUSED: dict[str, tuple[str, Mapping[str, str], int, str]] = {
    "decisions without a token": ("/decisions/default/web", {}, 401, "send the token"),
    "decisions with another token": (
        "/decisions/default/web",
        {"Authorization": "Bearer guessed"},
        401,
        "send the token",
    ),
    "a foreign name": ("/metrics", {"Host": "evil.example"}, 403, "names another host"),
    "a foreign name that begins with an address": ("/livez", {"Host": "127.0.0.1.evil.example"}, 403, "another host"),
    "a name that is none": ("/livez", {"Host": "[::1"}, 403, "names another host"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    path, headers, status, said = REFUSED[name]
    ((found, body),) = asyncio.run(answers(path, headers=headers, is_leader=False))
    assert found == status
    assert said in body["error"]


@pytest.mark.parametrize("host", ["localhost:10259", "10.1.2.3", "[::1]:10259"])
def test_addresses_of_this_machine_are_answered(host: str) -> None:
    assert asyncio.run(answers("/livez", headers={"Host": host}, is_leader=False)) == [(200, "ok")]


def test_decisions_are_not_served_unless_asked_for() -> None:
    async def story() -> tuple[int, str]:
        async with following(ApiServer(*CLUSTER)) as reflectors, aiohttp.ClientSession() as session:
            http = HttpServer(made_scheduler(ApiServer(), reflectors), SameLoop())
            port = await http.start("127.0.0.1", 0)
            async with session.get(f"http://127.0.0.1:{port}/decisions/default/web", headers=AUTHORIZED) as response:
                found = response.status, await response.text()
            await http.stop()
            return found

    status, text = asyncio.run(story())
    assert status == 404
    assert "--decisions-token-file" in text


def test_many_questions_at_a_time_are_refused_and_health_is_not() -> None:
    async def story() -> Counter[int]:
        server = ApiServer(*CLUSTER)
        async with following(server) as reflectors, aiohttp.ClientSession() as session:
            scheduler = made_scheduler(server, reflectors)
            http = HttpServer(scheduler, SameLoop(), TOKEN)
            port = await http.start("127.0.0.1", 0)
            started = Running(scheduler)
            while not server.events("Scheduled"):
                await asyncio.sleep(0.001)

            async def status(path: str) -> int:
                async with session.get(f"http://127.0.0.1:{port}{path}", headers=AUTHORIZED) as response:
                    return response.status

            found = Counter(await asyncio.gather(*(status("/decisions/default/web") for _ in range(40))))
            assert await status("/livez") == 200
            await started.kill()
            await http.stop()
            return found

    found = asyncio.run(story())
    assert found.keys() == {200, 429}
    assert found[429] >= 20


def test_a_replica_whose_view_is_old_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "OLDEST_VIEW", 0.0)
    ((status, text),) = asyncio.run(answers("/readyz", is_leader=False))
    assert status == 503
    assert "Node: nothing was heard for 0 s" in text


def test_ready_says_the_age_of_each_kind() -> None:
    ((status, text),) = asyncio.run(answers("/readyz?verbose", is_leader=False))
    assert status == 200
    assert "Node: heard 0." in text
    assert text.endswith("\nok")
