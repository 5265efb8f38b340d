"""`podium run` as a process: reflectors, an election, a scheduler, and an end that loses nothing."""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

from podium.config import KubeSchedulerConfiguration
from podium.errors import PodiumError
from podium.live.client import ApiClient
from podium.live.http_server import HttpServer
from podium.live.kubeconfig import Access
from podium.live.leader_election import Election, LeadershipLostError
from podium.live.reflector import Reflectors
from podium.live.resources import SCHEDULED_BY
from podium.live.scheduler import LiveScheduler, Settings

logger = logging.getLogger("podium.live")


class Listening(NamedTuple):
    """Where to answer over HTTP."""

    host: str = "127.0.0.1"
    port: int = 0


def run_scheduler(
    access: Access,
    config: KubeSchedulerConfiguration,
    settings: Settings,
    listening: Listening,
    *,
    elect: bool = True,
    **options: Any,
) -> None:
    """Schedule until SIGTERM or SIGINT; PodiumError if it cannot go on. `options` are those of `Scheduler`."""
    asyncio.run(_run(access, config, settings, listening, elect, options))


async def _run(
    access: Access,
    config: KubeSchedulerConfiguration,
    settings: Settings,
    listening: Listening,
    elect: bool,
    options: dict[str, Any],
) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    qps, burst = config.client_connection.qps, config.client_connection.burst
    async with AsyncExitStack() as stack:
        # As in kube-scheduler, neither events nor the lease have to wait behind bindings.
        client = await stack.enter_async_context(ApiClient(access, qps=qps, burst=burst))
        for_events = await stack.enter_async_context(ApiClient(access, qps=qps, burst=burst))
        for_lease = await stack.enter_async_context(ApiClient(access))
        reflectors = Reflectors(await stack.enter_async_context(ApiClient(access)), SCHEDULED_BY)
        scheduler = LiveScheduler(client, for_events, reflectors, config, settings, **options)
        server = HttpServer(scheduler, **options)
        stack.push_async_callback(server.stop)
        port = await server.start(listening.host, listening.port)
        logger.info("serving /livez, /readyz, /metrics and /decisions at http://%s:%d", listening.host, port)
        reflectors.start()
        stack.push_async_callback(reflectors.stop)
        if not await _unless(stop, reflectors.synced()):
            return
        server.is_ready = True
        if not elect:
            await scheduler.run(stop)
            return
        await _run_elected(scheduler, Election(for_lease, config.leader_election), stop)


async def _run_elected(scheduler: LiveScheduler, election: Election, stop: asyncio.Event) -> None:
    """Schedule while this is the leader."""
    name = election.identity
    scheduler.metrics.leader.labels(name).set(0)
    if not await _unless(stop, election.acquire()):
        return
    scheduler.metrics.leader.labels(name).set(1)
    holding = asyncio.create_task(election.hold())
    working = asyncio.create_task(scheduler.run(stop))
    try:
        await asyncio.wait({holding, working}, return_when=asyncio.FIRST_COMPLETED)
        if holding.done():
            working.cancel()
            await asyncio.wait({working})
            holding.result()
        await working
    except LeadershipLostError:
        raise PodiumError("leadership was lost: the lease could not be renewed in time") from None
    finally:
        holding.cancel()
        await election.release()


async def _unless(stop: asyncio.Event, work: Any) -> bool:
    """Wait for something, unless told to stop first; whether it came to its end."""
    doing, stopping = asyncio.ensure_future(work), asyncio.create_task(stop.wait())
    await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not doing.done():
        doing.cancel()
        return False
    doing.result()
    return True
