"""An API server whose store was restored from a backup, or emptied."""

from __future__ import annotations

import asyncio
from copy import deepcopy

import pytest

from builders import make_node, make_pod
from live_unit.api_server import ApiServer
from live_unit.running import running
from live_unit.virtual_time import run, until


def test_pods_are_scheduled_after_the_store_was_restored(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        server = ApiServer(make_node("a"), make_pod("web"))
        backup, version = deepcopy(server.objects), server.version
        async with running(server) as started:
            await until(lambda: server.node_of("web"))
            for number in range(20):
                server.create(make_pod(f"late-{number}", requests={"cpu": "100m"}))
            await until(lambda: server.node_of("late-19"))
            server.go_back(version, backup)
            assert server.node_of("web") == ""
            await until(lambda: server.node_of("web"), within=30)
            server.create(make_pod("new"))
            await until(lambda: server.node_of("new"), within=30)
            loop = started.scheduler.loop
            assert loop is not None
            assert sorted(loop.pods) == ["default/new", "default/web"]

    run(story())
    assert "Pod: the API server went back from version" in caplog.text


def test_an_emptied_store_leaves_nothing_behind() -> None:
    async def story() -> None:
        server = ApiServer(make_node("a"), make_pod("web"))
        async with running(server) as started:
            await until(lambda: server.node_of("web"))
            server.go_back(1, {})
            await asyncio.sleep(30)
            loop = started.scheduler.loop
            assert loop is not None
            assert (loop.cluster.node_count, loop.pods) == (0, {})

    run(story())
