"""A scheduler at work on the cluster of an API server in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from builders import Fields
from live_unit.api_server import ApiServer
from podium.engine.scheduler import SchedulerOptions
from podium.live.reading import SCHEDULED_BY
from podium.live.reflector import Reflectors
from podium.live.scheduler import LiveScheduler
from podium.live.scheduling import RunSettings
from podium.live.threads import LoopThread

T = TypeVar("T")


class SameLoop(LoopThread):
    """No thread at all: everything runs in the event loop of the test."""

    def __init__(self) -> None:
        pass

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        return await work

    def call(self, action: Callable[[], object]) -> None:
        action()


class Running:
    """A scheduler that can be told to stop, or killed."""

    def __init__(self, scheduler: LiveScheduler) -> None:
        self.scheduler = scheduler
        self._stop = asyncio.Event()
        self.task = asyncio.create_task(scheduler.run(self._stop))

    async def stop(self) -> None:
        self._stop.set()
        await self.task

    async def kill(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})


def made_scheduler(
    server: ApiServer, reflectors: Reflectors, *, config: Fields | None = None, dry_run: bool = False, **options: Any
) -> LiveScheduler:
    concurrency: int = options.pop("bind_concurrency", 64)
    settings = RunSettings(concurrency, dry_run, options.pop("preempts", True))
    options = {"tie_break": "first", **options}
    parsed = SchedulerOptions.of(config, **options).set_up().config
    return LiveScheduler(server.client, server.client, reflectors, parsed, settings, **options)


@asynccontextmanager
async def following(server: ApiServer) -> AsyncIterator[Reflectors]:
    """Reflectors that have read everything."""
    reflectors = Reflectors(server.client, SCHEDULED_BY)
    await reflectors.start()
    try:
        await reflectors.synced()
        yield reflectors
    finally:
        await reflectors.stop()


@asynccontextmanager
async def running(server: ApiServer, **options: Any) -> AsyncIterator[Running]:
    """A scheduler at work, stopped in the end in good order."""
    async with following(server) as reflectors:
        started = Running(made_scheduler(server, reflectors, **options))
        try:
            yield started
        except BaseException:
            await started.kill()
            raise
        if not started.task.done():
            await started.stop()
