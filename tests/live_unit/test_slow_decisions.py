"""A decision that takes long, because of an extender or a user's plugin, does not hold up anything else."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from builders import make_config, make_node, make_pod
from live_unit.api_server import ApiServer
from live_unit.running import running
from podium.cluster import NodeInfo
from podium.framework import SUCCESS, CycleState, FilterPlugin, Registry, Status
from podium.live import scheduling
from podium.live.client import ApiError
from podium.model import Pod
from podium.plugins import IN_TREE

CONFIG = make_config({"plugins": {"filter": {"enabled": [{"name": "Slow"}]}}})


class Gate:
    """Where the plugin waits."""

    def __init__(self) -> None:
        self.has_come, self.may_go_on = threading.Event(), threading.Event()

    def plugin(self) -> type[FilterPlugin]:
        gate = self

        class Slow(FilterPlugin):
            """Takes as long as it is told to with pods named slow."""

            name = "Slow"

            def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
                if pod.name == "slow":
                    gate.has_come.set()
                    gate.may_go_on.wait(20)
                return SUCCESS

        return Slow


async def comes(gate: Gate) -> None:
    assert await asyncio.to_thread(gate.has_come.wait, 10)


async def soon(is_so: Callable[[], object]) -> None:
    """Wait until something is so, for at most ten seconds of real time."""
    async with asyncio.timeout(10):
        while not is_so():
            await asyncio.sleep(0.005)


def test_bindings_and_events_go_on_during_a_decision() -> None:
    async def story() -> None:
        server, gate = ApiServer(make_node("a"), make_pod("quick")), Gate()
        binding = server.holds("POST", "/binding")
        async with running(server, config=CONFIG, registry=Registry((*IN_TREE.values(), gate.plugin()))) as started:
            await binding.has_come.wait()
            server.create(make_pod("slow"))
            await comes(gate)
            binding.may_go_on.set()
            await soon(lambda: server.events("Scheduled"))
            assert server.node_of("quick") == "a"
            server.create(make_node("b"))
            gate.may_go_on.set()
            await soon(lambda: server.node_of("slow"))
            loop = started.scheduler.loop
            assert loop is not None
            await soon(lambda: loop.cluster.node_count == 2)

    asyncio.run(story())


def test_a_binding_that_fails_during_a_decision_waits_for_its_turn() -> None:
    async def story() -> None:
        server, gate = ApiServer(make_node("a"), make_pod("quick")), Gate()
        failing = server.fails("POST", "/binding", ApiError("no", 400), is_held=True)
        async with running(server, config=CONFIG, registry=Registry((*IN_TREE.values(), gate.plugin()))):
            await failing.has_come.wait()
            server.create(make_pod("slow"))
            await comes(gate)
            failing.may_go_on.set()
            await asyncio.sleep(0.05)
            assert server.events("FailedScheduling") == []
            gate.may_go_on.set()
            await soon(lambda: server.events("FailedScheduling"))
            await soon(lambda: server.node_of("quick") and server.node_of("slow"))

    asyncio.run(story())


def test_a_scheduler_that_is_told_to_stop_does_not_wait_for_a_decision() -> None:
    async def story() -> None:
        server, gate = ApiServer(make_node("a"), make_pod("slow")), Gate()
        async with running(server, config=CONFIG, registry=Registry((*IN_TREE.values(), gate.plugin()))) as started:
            await comes(gate)
            begin = time.monotonic()
            await started.stop()
            assert time.monotonic() - begin < 2.0
        gate.may_go_on.set()
        await asyncio.sleep(0.05)
        assert server.writes == []

    asyncio.run(story())


def test_a_decision_that_takes_long_is_reported(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduling, "SLOW_DECISION", 0.02)

    async def story() -> None:
        server, gate = ApiServer(make_node("a"), make_pod("slow")), Gate()
        async with running(server, config=CONFIG, registry=Registry((*IN_TREE.values(), gate.plugin()))) as started:
            await comes(gate)
            await soon(lambda: "is an extender or a plugin slow?" in caplog.text)
            assert started.scheduler.seconds_since_turn() > 0.0
            gate.may_go_on.set()
            await soon(lambda: server.node_of("slow"))

    asyncio.run(story())
