"""The shadow follows a cluster: when it compares, what it reports, and what it cannot know."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from builders import make_node, make_pod
from live_unit.api_server import PODS, ApiServer
from live_unit.running import following
from live_unit.virtual_time import run, until
from podium.live.shadow import Compared, Outcome, Shadow, difference, follow

POD = make_pod("web", requests={"cpu": "1"})


@asynccontextmanager
async def shadowing(server: ApiServer) -> AsyncIterator[list[Compared]]:
    """What a shadow reports, while it follows a cluster and until it has stopped."""
    reports: list[Compared] = []
    async with following(server) as reflectors:
        shadow, stop = Shadow(reflectors.begin(), None, tie_break="first"), asyncio.Event()
        working = asyncio.create_task(follow(shadow, reflectors, stop, [reports.append]))
        yield reports
        stop.set()
        await working


def with_nodes() -> ApiServer:
    return ApiServer(make_node("small", cpu="2"), make_node("large", cpu="16"))


def bind(server: ApiServer, node: str, pod: str = "web") -> None:
    server.change(f"{PODS}/{pod}", lambda found: found["spec"].update(nodeName=node))


async def bound(server: ApiServer, node: str) -> None:
    """A pod comes, and the cluster's scheduler binds it a second later."""
    server.create(POD)
    await asyncio.sleep(1)
    bind(server, node)


def test_a_binding_is_reported_when_nothing_more_happens() -> None:
    async def story() -> None:
        server = with_nodes()
        async with shadowing(server) as reports:
            await bound(server, "large")
            await asyncio.sleep(0.4)
            assert reports == []
            await until(lambda: reports, 1)
        (compared,) = reports
        assert (compared.pod, compared.node, compared.outcome) == ("default/web", "large", Outcome.SAME)

    run(story())


def test_a_binding_to_another_node_is_reported_with_the_reason() -> None:
    async def story() -> None:
        server = with_nodes()
        async with shadowing(server) as reports:
            await bound(server, "small")
            await until(lambda: reports, 5)
        told = reports[0].to_dict()
        assert (told["outcome"], told["node"], told["podium"], told["plugin"]) == (
            *("other", "small", "large"),
            "NodeResourcesFit",
        )
        assert told["reason"] == "large beats small by 468 to 435, 22 of it by NodeResourcesFit"

    run(story())


def test_pods_bound_shortly_after_each_other_may_have_been_decided_in_another_order() -> None:
    async def story() -> None:
        server = ApiServer(make_node("a", cpu="4"), make_node("b", cpu="3"))
        async with shadowing(server) as reports:
            for name in ("first", "second"):
                server.create(make_pod(name, requests={"cpu": "2"}))
            await asyncio.sleep(1)
            bind(server, "b", "second")
            await asyncio.sleep(0.1)
            bind(server, "a", "first")
            await until(lambda: len(reports) == 2, 5)
        assert [(each.pod, each.outcome) for each in reports] == [
            ("default/first", Outcome.SAME),
            ("default/second", Outcome.SAME),
        ]

    run(story())


def test_what_waits_is_reported_when_the_shadow_stops() -> None:
    async def story() -> None:
        server = with_nodes()
        async with shadowing(server) as reports:
            await bound(server, "large")
            await asyncio.sleep(0.1)
            assert reports == []
        assert [each.outcome for each in reports] == [Outcome.SAME]

    run(story())


def test_a_change_of_a_node_has_the_pods_bound_before_it_compared_without_it() -> None:
    async def story() -> None:
        server = with_nodes()
        async with shadowing(server) as reports:
            await bound(server, "large")
            await asyncio.sleep(0.1)
            server.create(make_node("huge", cpu="64"))
            await asyncio.sleep(0.1)
            assert [(each.outcome, each.podium) for each in reports] == [(Outcome.SAME, "large")]

    run(story())


def test_a_binding_that_was_missed_is_unknown_and_later_ones_are_not() -> None:
    async def story() -> None:
        server = with_nodes()
        async with shadowing(server) as reports:
            server.create(POD)
            await asyncio.sleep(1)
            server.told_until["/api/v1/pods"] = server.version
            bind(server, "large")
            server.forget()
            await until(lambda: reports, 60)
            server.told_until.clear()
            server.create(make_pod("next", requests={"cpu": "1"}))
            await asyncio.sleep(1)
            bind(server, "large", "next")
            await until(lambda: len(reports) == 2, 5)
        assert [(each.outcome, each.reason) for each in reports] == [
            (Outcome.UNKNOWN, "the watch had a gap"),
            (Outcome.SAME, ""),
        ]

    run(story())


def test_a_node_that_was_not_checked_is_called_so() -> None:
    shadow = Shadow([make_node("a")], None, tie_break="first")

    assert difference(shadow.scheduler.decide(POD), "gone") == ("", "gone was not checked")


def test_a_pod_that_changes_while_it_waits_is_compared_once() -> None:
    async def story() -> None:
        server = with_nodes()
        async with shadowing(server) as reports:
            await bound(server, "large")
            await asyncio.sleep(0.1)
            server.change(f"{PODS}/web", lambda pod: pod["status"].update(phase="Running"))
            await asyncio.sleep(5)
        assert [each.outcome for each in reports] == [Outcome.SAME]

    run(story())
