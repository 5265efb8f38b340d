"""`podium run` as a process: one thread has the lease, health and signals, another one schedules.

So the lease is renewed and SIGTERM is heard whatever a decision takes.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

from podium.config import KubeSchedulerConfiguration
from podium.errors import PodiumError
from podium.live.client import Access, ApiClient, ApiError
from podium.live.election import Election, LeadershipLostError
from podium.live.fence import Fence
from podium.live.http_server import HttpServer
from podium.live.reading import SCHEDULED_BY
from podium.live.reflector import Reflectors
from podium.live.rights import PREEMPTION, Right, missing_rights, refuse_without, rights_of_a_scheduler
from podium.live.scheduler import LiveScheduler
from podium.live.scheduling import RunSettings
from podium.live.threads import LoopThread

logger = logging.getLogger("podium.live")

STOP_WITHIN = 12.0
"""Seconds for the scheduler to stop in good order after SIGTERM; after that the process ends without it."""
GIVE_UP_WITHIN = 1.0
"""Seconds for the scheduler to end once it is given up."""


class ServingAddress(NamedTuple):
    """The address of the HTTP server, and the token of those who may ask for decisions; without it, nobody may."""

    host: str = "127.0.0.1"
    port: int = 0
    token: str = ""


def run_scheduler(
    access: Access,
    config: KubeSchedulerConfiguration,
    settings: RunSettings,
    listening: ServingAddress,
    *,
    elect: bool = True,
    **options: Any,
) -> None:
    """Schedule until SIGTERM or SIGINT; PodiumError if it cannot continue. `options` are those of `Scheduler`."""
    asyncio.run(_run(access, config, settings, listening, elect, options))


async def _run(
    access: Access,
    config: KubeSchedulerConfiguration,
    settings: RunSettings,
    listening: ServingAddress,
    elect: bool,
    options: dict[str, Any],
) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        election = None
        if elect:
            for_lease = await stack.enter_async_context(ApiClient(access))
            election = Election(for_lease, config.leader_election)
        settings = await _with_rights(access, config, settings, elect=elect)
        thread = LoopThread("scheduling")
        stack.push_async_callback(thread.stop, GIVE_UP_WITHIN)
        parts = _Parts(access, config, settings, None if election is None else election.fence, options)
        stack.push_async_callback(_within, GIVE_UP_WITHIN, thread, parts.stop)
        if not await _unless(stop, thread.run(parts.start())):
            return
        server = HttpServer(parts.scheduler, thread, listening.token)
        stack.push_async_callback(server.stop)
        port = await server.start(listening.host, listening.port)
        served = "/livez, /readyz, /metrics" + (" and /decisions" if listening.token else "")
        logger.info("serving %s at http://%s:%d", served, listening.host, port)
        if not await _unless(stop, thread.run(parts.reflectors.synced())):
            return
        server.is_ready = True
        if election is None:
            await _run_until(stop, thread, parts.scheduler)
        else:
            await _run_elected(parts.scheduler, election, stop, thread)


async def _with_rights(
    access: Access, config: KubeSchedulerConfiguration, settings: RunSettings, *, elect: bool
) -> RunSettings:
    """The settings that the rights of these credentials allow; InputError if they do not allow to schedule at all."""
    rights = rights_of_a_scheduler(config.leader_election if elect else None, writes=not settings.dry_run)
    async with ApiClient(access) as client:
        try:
            missing = await missing_rights(client, rights)
        except ApiError as error:
            if error.is_unreachable or error.code == 401:
                raise
            logger.warning("the API server does not say which rights there are: %s", error)
            return settings
    refuse_without(missing)
    for what_for in dict.fromkeys(right.what_for for right in missing):
        lacking = ", ".join(str(right) for right in missing if right.what_for == what_for)
        logger.warning("%s is off: these credentials may not %s", what_for, lacking)
    return settings._replace(preempts=not any(right.what_for == PREEMPTION for right in missing))


def check_rights(
    access: Access, config: KubeSchedulerConfiguration, *, elect: bool, dry_run: bool
) -> list[tuple[Right, bool]]:
    """Every right that a scheduler uses, and whether these credentials have it."""

    async def check() -> list[tuple[Right, bool]]:
        rights = rights_of_a_scheduler(config.leader_election if elect else None, writes=not dry_run)
        async with ApiClient(access) as client:
            missing = await missing_rights(client, rights)
        return [(right, right not in missing) for right in rights]

    return asyncio.run(check())


class _Parts:
    """What lives in the scheduling thread."""

    def __init__(
        self,
        access: Access,
        config: KubeSchedulerConfiguration,
        settings: RunSettings,
        fence: Fence | None,
        options: dict[str, Any],
    ) -> None:
        limits = config.client_connection
        # As in kube-scheduler, neither events nor the lease wait behind bindings.
        client, for_events = (ApiClient(access, qps=limits.qps, burst=limits.burst, fence=fence) for _ in range(2))
        reading = ApiClient(access)
        self._clients = client, for_events, reading
        self.reflectors = Reflectors(reading, SCHEDULED_BY)
        self.scheduler = LiveScheduler(client, for_events, self.reflectors, config, settings, **options)

    async def start(self) -> None:
        """Connect and begin to read; ApiError if the cluster cannot be read."""
        for client in self._clients:
            await client.__aenter__()
        await self.reflectors.start()

    async def stop(self) -> None:
        """Stop reading, and close the connections."""
        await self.reflectors.stop()
        for client in self._clients:
            await client.__aexit__(None, None, None)


async def _within(seconds: float, thread: LoopThread, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run something in the thread, but do not wait longer than this for it."""
    await asyncio.wait({asyncio.ensure_future(thread.run(work()))}, timeout=seconds)


async def _run_until(stop: asyncio.Event, thread: LoopThread, scheduler: LiveScheduler) -> bool:
    """Schedule until told to stop; returns whether all its writes are finished, and raises what ends it before."""
    stop_there = asyncio.Event()
    working = asyncio.ensure_future(thread.run(scheduler.run(stop_there)))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        thread.call(stop_there.set)
        await asyncio.wait({working}, timeout=STOP_WITHIN)
        if working.done():
            return working.result()
        logger.warning("the scheduler does not stop within %g s: ending without it", STOP_WITHIN)
        return False
    finally:
        stopping.cancel()
        working.cancel()


async def _run_elected(scheduler: LiveScheduler, election: Election, stop: asyncio.Event, thread: LoopThread) -> None:
    """Schedule while this is the leader."""
    leads = scheduler.metrics.leader.labels(election.identity)
    leads.set(0)
    if not await _unless(stop, election.acquire()):
        return
    leads.set(1)
    holding = asyncio.create_task(election.hold())
    working = asyncio.create_task(_run_until(stop, thread, scheduler))
    # If writes may be under way, the lease runs out by itself instead.
    may_release = False
    try:
        await asyncio.wait({holding, working}, return_when=asyncio.FIRST_COMPLETED)
        if holding.done():
            working.cancel()
            await asyncio.wait({working})
            holding.result()
        may_release = await working
    except LeadershipLostError:
        raise PodiumError("leadership was lost: the lease could not be renewed in time") from None
    finally:
        leads.set(0)
        holding.cancel()
        election.fence.close()
        if may_release:
            await election.release()


async def _unless(stop: asyncio.Event, work: Awaitable[Any]) -> bool:
    """Wait for something, unless told to stop first; returns whether it finished."""
    doing, stopping = asyncio.ensure_future(work), asyncio.create_task(stop.wait())
    await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not doing.done():
        doing.cancel()
        return False
    doing.result()
    return True
