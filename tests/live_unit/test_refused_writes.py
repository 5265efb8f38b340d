"""Writes that are not allowed: few requests, few lines."""

from __future__ import annotations

import asyncio
import json

import pytest

from builders import make_node, make_pod
from live_unit.api_server import ApiServer
from live_unit.running import running
from live_unit.virtual_time import run, until
from podium.errors import InputError
from podium.live.client import ApiError
from podium.live.refused_writes import RefusedWrites
from podium.live.rights import Right, missing_rights, refuse_without, rights_of_a_scheduler

ALWAYS = 1_000_000


def forbidden(verb: str, resource: str) -> ApiError:
    """What the API server says if a right is missing."""
    what = f'User "podium" cannot {verb} resource "{resource}" in API group "" in the namespace "default"'
    return ApiError(f'{resource} "x" is forbidden: {what}', 403, "Forbidden")


PROTECTED = ApiError('admission webhook "guard" denied the request: protected', 403, "Forbidden")


def test_a_missing_right_is_asked_for_after_growing_pauses(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> int:
        server = ApiServer()
        server.fails("POST", "/events", forbidden("create", "events"), times=ALWAYS)
        client = RefusedWrites(server.client)
        for _ in range(6000):
            with pytest.raises(ApiError, match="cannot create resource"):
                await client.request("POST", "/apis/events.k8s.io/v1/namespaces/default/events", b"{}")
            await asyncio.sleep(0.1)
        return len(server.requests)

    assert run(story()) < 12  # in ten minutes
    assert 1 <= len(caplog.messages) < 10
    assert "podium run --check" in caplog.messages[0]


def test_a_right_that_is_granted_is_used_again() -> None:
    async def story() -> None:
        server = ApiServer(make_node("a"), make_pod("web"), make_pod("db"))
        refused = server.fails("POST", "/binding", forbidden("create", "pods/binding"), times=ALWAYS)
        async with running(server):
            await asyncio.sleep(120)
            assert len(server.asked("POST", "/binding")) < 12
            refused.times = 0
            await until(lambda: server.node_of("web") and server.node_of("db"), within=200)

    run(story())


def test_what_one_object_is_refused_others_are_not() -> None:
    async def story() -> None:
        server = ApiServer(make_pod("one"), make_pod("two"))
        server.fails("DELETE", "/one", PROTECTED)
        client, path = RefusedWrites(server.client), "/api/v1/namespaces/default/pods/"
        with pytest.raises(ApiError, match="protected"):
            await client.request("DELETE", f"{path}one", b"{}")
        await client.request("DELETE", f"{path}two", b"{}")

    run(story())


def test_a_victim_that_may_not_be_deleted_is_tried_rarely(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        low, high = (
            make_pod("low", node="a", requests={"cpu": "3"}),
            make_pod("high", priority=9, requests={"cpu": "3"}),
        )
        server = ApiServer(make_node("a"), low, high)
        server.fails("DELETE", "/low", PROTECTED, times=ALWAYS)
        async with running(server):
            await asyncio.sleep(300)
            assert 3 < len(server.asked("DELETE", "/low")) < 15
            server.create(make_node("b"))
            await until(lambda: server.node_of("high") == "b")

    run(story())
    assert 1 <= len([each for each in caplog.messages if "cannot be evicted for default/high" in each]) < 8


def test_a_scheduler_that_may_not_evict_says_so_and_evicts_nothing() -> None:
    async def story() -> None:
        low, high = (
            make_pod("low", node="a", requests={"cpu": "3"}),
            make_pod("high", priority=9, requests={"cpu": "3"}),
        )
        server = ApiServer(make_node("a"), low, high)
        async with running(server, preempts=False):
            await until(lambda: server.events("FailedScheduling"))
            assert "preemption is off" in server.events("FailedScheduling")[0]["note"]
            await asyncio.sleep(60)
        assert server.asked("DELETE") == []

    run(story())


class Reviewer:
    """Answers access reviews."""

    def __init__(self, *refused: str) -> None:
        self._refused = refused

    async def request(self, method: str, path: str, body: bytes | None = None, **_: object) -> bytes:
        asked = json.loads(body or b"{}")["spec"]["resourceAttributes"]
        part = f"/{asked['subresource']}" if "subresource" in asked else ""
        return json.dumps(
            {"status": {"allowed": f"{asked['verb']} {asked['resource']}{part}" not in self._refused}}
        ).encode()


def test_missing_rights_are_named() -> None:
    rights = rights_of_a_scheduler(None)
    assert asyncio.run(missing_rights(Reviewer(), rights)) == []
    missing = asyncio.run(missing_rights(Reviewer("delete pods", "create pods/binding"), rights))
    assert sorted(map(str, missing)) == ["create pods/binding", "delete pods"]


def test_nothing_runs_without_what_it_needs() -> None:
    refuse_without([Right("preemption", "delete", "pods")])
    with pytest.raises(InputError, match=r"may not create pods/binding; grant it \(deploy/podium.yaml"):
        refuse_without([Right("scheduling", "create", "pods", subresource="binding")])
