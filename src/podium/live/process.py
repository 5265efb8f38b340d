"""`podium run` as a process: reflectors, leader election by a Lease, health and metrics over HTTP, and an orderly
shutdown.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import socket
import time
import uuid
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from podium.config import KubeSchedulerConfiguration
from podium.config.types import LeaderElection
from podium.errors import InputError, PodiumError
from podium.live._metrics import CONTENT_TYPE
from podium.live.client import Access, ApiClient, ApiError
from podium.live.reading import SCHEDULED_BY
from podium.live.reflector import Reflectors
from podium.live.scheduler import LiveScheduler, RunSettings
from podium.live.writes import micro_time
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


JITTER = 1.2
"""The maximum factor of the retry period between two tries to become the leader."""
DEFAULT_NAMESPACE, DEFAULT_NAME = "kube-system", "podium"


class LeadershipLostError(Exception):
    """The lease was not renewed in time: another replica may be the leader by now."""


class Election:
    """Holds, renews and releases one Lease. It takes over a Lease that its holder has not renewed for its duration."""

    def __init__(self, client: ApiClient, settings: LeaderElection, identity: str = "") -> None:
        self._client, self._settings = client, settings
        self.identity = identity or f"{socket.gethostname()}_{uuid.uuid4()}"
        namespace = settings.resource_namespace or DEFAULT_NAMESPACE
        self._name = settings.resource_name or DEFAULT_NAME
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._seen: tuple[Any, float] = (None, float("-inf"))
        """The last change of the lease, and the local time when it was seen: clocks of machines may differ."""
        self.is_leader = False

    async def acquire(self) -> None:
        """Wait until this replica is the leader."""
        while not await self._try_once(self._settings.renew_deadline):
            await asyncio.sleep(self._settings.retry_period * random.uniform(1.0, JITTER))
        self.is_leader = True
        logger.info("%s is the leader now", self.identity)

    async def hold(self) -> None:
        """Renew the lease as long as possible; LeadershipLostError if it is not renewed in time."""
        renewed = time.monotonic()
        while True:
            await asyncio.sleep(self._settings.retry_period)
            left = renewed + self._settings.renew_deadline - time.monotonic()
            if left > 0 and await self._try_once(left):
                renewed = time.monotonic()
            elif time.monotonic() - renewed >= self._settings.renew_deadline:
                self.is_leader = False
                raise LeadershipLostError

    async def release(self) -> None:
        """Release the lease, so that another replica need not wait until it expires."""
        if not self.is_leader:
            return
        self.is_leader = False
        try:
            lease = await self._get()
            if lease is not None and lease["spec"].get("holderIdentity") == self.identity:
                lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": micro_time()}
                await self._put(lease, 5.0)
        except ApiError as error:
            logger.warning("the lease is not given back: %s", error)

    async def _try_once(self, timeout: float) -> bool:
        """Take or renew the lease if allowed; returns whether it is held now."""
        try:
            async with asyncio.timeout(timeout):
                return await self._take_or_renew(timeout)
        except (ApiError, TimeoutError) as error:
            if not isinstance(error, ApiError) or error.code != 409:
                logger.warning("the lease cannot be renewed: %s", error or "no answer in time")
            return False

    async def _take_or_renew(self, timeout: float) -> bool:
        lease, now = await self._get(), micro_time()
        spec: dict[str, Any] = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self._settings.lease_duration),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": 0,
        }
        if lease is None:
            document = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": self._name}}
            await self._client.request("POST", self._leases, msgspec.json.encode({**document, "spec": spec}))
            return True
        old = lease.get("spec") or {}
        if old != self._seen[0]:
            self._seen = old, time.monotonic()
        holder = old.get("holderIdentity") or ""
        runs_out = self._seen[1] + float(old.get("leaseDurationSeconds") or self._settings.lease_duration)
        if holder not in ("", self.identity) and time.monotonic() < runs_out:
            return False
        transitions = int(old.get("leaseTransitions") or 0)
        if holder == self.identity:
            spec |= {"acquireTime": old.get("acquireTime"), "leaseTransitions": transitions}
        else:
            spec["leaseTransitions"] = transitions + 1
        await self._put({**lease, "spec": spec}, timeout)
        return True

    async def _get(self) -> dict[str, Any] | None:
        try:
            answer = await self._client.request("GET", f"{self._leases}/{self._name}")
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        try:
            return msgspec.json.decode(answer, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ApiError(f"the answer cannot be read: {error}", code=502) from None

    async def _put(self, lease: dict[str, Any], timeout: float) -> None:
        path = f"{self._leases}/{self._name}"
        await self._client.request("PUT", path, msgspec.json.encode(lease), timeout=timeout)


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
        client = await stack.enter_async_context(ApiClient(access, qps=qps, burst=burst))
        for_events = await stack.enter_async_context(ApiClient(access, qps=qps, burst=burst))
        for_lease = await stack.enter_async_context(ApiClient(access))
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
    """Wait for something, unless told to stop first; returns whether it finished."""
    doing, stopping = asyncio.ensure_future(work), asyncio.create_task(stop.wait())
    await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not doing.done():
        doing.cancel()
        return False
    doing.result()
    return True
