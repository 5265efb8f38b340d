"""`podium shadow` as a process: reflectors, a shadow, and metrics over HTTP."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter

from podium.config import KubeSchedulerConfiguration
from podium.errors import InputError
from podium.live.client import ApiClient
from podium.live.kubeconfig import Access
from podium.live.metrics import CONTENT_TYPE, exposition
from podium.live.reflector import Reflectors
from podium.live.resources import SCHEDULED_BY
from podium.live.shadow import Compared, Shadow, follow

Report = Callable[[Compared], None]


def run_shadow(
    access: Access,
    config: KubeSchedulerConfiguration | None,
    report: Report,
    *,
    port: int | None = None,
    seconds: float | None = None,
    on_start: Callable[[Shadow], None] = lambda shadow: None,
    **options: Any,
) -> Shadow:
    """Follow a cluster until SIGTERM, SIGINT or the time is up; what was found. `options` are those of `Scheduler`."""
    return asyncio.run(_run(access, config, report, port, seconds, on_start, options))


async def _run(
    access: Access,
    config: KubeSchedulerConfiguration | None,
    report: Report,
    port: int | None,
    seconds: float | None,
    on_start: Callable[[Shadow], None],
    options: dict[str, Any],
) -> Shadow:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        reflectors = Reflectors(await stack.enter_async_context(ApiClient(access)), SCHEDULED_BY)
        reflectors.start()
        stack.push_async_callback(reflectors.stop)
        await reflectors.synced()
        reflectors.events.clear()
        shadow = Shadow(reflectors.objects(), config, **options)
        metrics = _Metrics()
        if port is not None:
            stack.push_async_callback(await metrics.serve(port))
        if seconds is not None:
            loop.call_later(seconds, stop.set)
        on_start(shadow)
        await follow(shadow, reflectors, stop, [metrics.count, report])
        shadow.scheduler.close()
        return shadow


class _Metrics:
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._pods = Counter(
            "podium_shadow_pods_total",
            "Pods bound, by how Podium's decision compares.",
            ["outcome"],
            registry=self._registry,
        )
        self._plugins = Counter(
            "podium_shadow_differences_total",
            "Pods that Podium puts elsewhere, by the plugin that makes the difference.",
            ["plugin"],
            registry=self._registry,
        )

    def count(self, compared: Compared) -> None:
        self._pods.labels(compared.outcome.value).inc()
        if compared.plugin:
            self._plugins.labels(compared.plugin).inc()

    async def serve(self, port: int) -> Callable[[], Any]:
        """Listen on the loopback interface; how to stop that."""
        app = web.Application()
        app.add_routes([web.get("/metrics", self._answer)])
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", port).start()
        except OSError as error:
            raise InputError(f"cannot listen at port {port}: {(error.strerror or str(error)).lower()}") from None
        return runner.cleanup

    async def _answer(self, request: web.Request) -> web.Response:
        return web.Response(body=exposition(self._registry), headers={"Content-Type": CONTENT_TYPE})
