"""`podium run` as a process: reflectors, leader election by a Lease, health and metrics over HTTP, and an orderly
shutdown.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from podium.config import KubeSchedulerConfiguration
from podium.errors import InputError, PodiumError
from podium.live._metrics import CONTENT_TYPE
from podium.live.client import Access, ApiClient
from podium.live.election import Election, LeadershipLostError
from podium.live.reading import SCHEDULED_BY
from podium.live.reflector import Reflectors
from podium.live.scheduler import LiveScheduler, RunSettings
from podium.present.explanation import explain_pod, to_document


class HttpServer:
    """Serves /livez, /readyz, /metrics and /decisions/NAMESPACE/POD. Ready means that the cluster has been read."""

    def __init__(self, scheduler: LiveScheduler) -> None:
        self._scheduler = scheduler
        self.is_ready = False
        app = web.Application()
        app.add_routes(
            [
                web.get("/livez", self._livez),
                web.get("/healthz", self._livez),
                web.get("/readyz", self._readyz),
                web.get("/metrics", self._metrics),
                web.get("/decisions/{namespace}/{pod}", self._decision),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None)

    async def start(self, host: str, port: int) -> int:
        """Listen, on a free port if it is 0; returns the port."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        try:
            await site.start()
        except OSError as error:
            raise InputError(f"cannot listen at {host}:{port}: {os.strerror(error.errno or 0).lower()}") from None
        found: int = self._runner.addresses[0][1]
        return found

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def _livez(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _readyz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok") if self.is_ready else web.Response(text="not synced", status=503)

    async def _metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=self._scheduler.metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    async def _decision(self, request: web.Request) -> web.Response:
        """The last decision about a pod, explained on the cluster of that time; if too old, on the current one."""
        key = f"{request.match_info['namespace']}/{request.match_info['pod']}"
        loop, history = self._scheduler.loop, self._scheduler.history
        if loop is None or history is None:
            return _problem(503, "this replica is not the leader")
        decided, then = history.last(key), history.scheduler_then(key)
        pod = loop.pods.get(key)
        if then is not None:
            scheduler, pod = then
        elif pod is not None:
            scheduler = loop.scheduler_on(loop.cluster.fork())
        else:
            return _problem(404, f"pod {key} is not in the cluster")
        body = {
            "decided": None if decided is None else decided._asdict(),
            "asOf": "then" if then is not None else "now",
            "explanation": to_document(explain_pod(scheduler, pod)),
        }
        return web.Response(body=msgspec.json.encode(body), content_type="application/json")


def _problem(status: int, message: str) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode({"error": message}), content_type="application/json")


logger = logging.getLogger("podium.live")


class ServingAddress(NamedTuple):
    """The address of the HTTP server."""

    host: str = "127.0.0.1"
    port: int = 0


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
    qps, burst = config.client_connection.qps, config.client_connection.burst
    async with AsyncExitStack() as stack:
        # As in kube-scheduler, neither events nor the lease wait behind bindings.
        for_lease = await stack.enter_async_context(ApiClient(access))
        election = Election(for_lease, config.leader_election) if elect else None
        fence = None if election is None else election.fence
        client = await stack.enter_async_context(ApiClient(access, qps=qps, burst=burst, fence=fence))
        for_events = await stack.enter_async_context(ApiClient(access, qps=qps, burst=burst, fence=fence))
        reflectors = Reflectors(await stack.enter_async_context(ApiClient(access)), SCHEDULED_BY)
        scheduler = LiveScheduler(client, for_events, reflectors, config, settings, **options)
        stack.push_async_callback(reflectors.stop)
        if not await _unless(stop, reflectors.start()):
            return
        server = HttpServer(scheduler)
        stack.push_async_callback(server.stop)
        port = await server.start(listening.host, listening.port)
        logger.info("serving /livez, /readyz, /metrics and /decisions at http://%s:%d", listening.host, port)
        if not await _unless(stop, reflectors.synced()):
            return
        server.is_ready = True
        if election is None:
            await scheduler.run(stop)
        else:
            await _run_elected(scheduler, election, stop)


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
    """Wait for something, unless told to stop first; returns whether it finished."""
    doing, stopping = asyncio.ensure_future(work), asyncio.create_task(stop.wait())
    await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not doing.done():
        doing.cancel()
        return False
    doing.result()
    return True
