"""Health, metrics and, if asked for, decisions of a running scheduler over HTTP."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import os
import socket
import time
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import msgspec
from aiohttp import hdrs, web

from podium.errors import InputError
from podium.live.metrics import CONTENT_TYPE
from podium.live.scheduler import LiveScheduler
from podium.live.threads import LoopThread

METRICS_FOR = 0.5
"""Seconds for which the same metrics are served, so that asking often costs little."""
METRICS_WITHIN = 1.0
"""Seconds after which metrics are served without the newest state of a scheduler that is busy."""
STUCK_AFTER = 300.0
"""Seconds without a turn of the scheduler after which it counts as stuck."""
OLDEST_VIEW = 300.0
"""Seconds without a list, event or bookmark of a kind after which the replica is not ready."""
MOST_QUESTIONS = 4
"""How many questions about decisions may wait; more are refused with 429."""


class HttpServer:
    """Serves /livez, /readyz, /metrics, and /decisions/NAMESPACE/POD to clients that send the token.

    It need not run in the scheduler's thread.
    """

    def __init__(self, scheduler: LiveScheduler, thread: LoopThread, token: str = "") -> None:
        """`thread` is where the scheduler runs. Without a token, /decisions is not served."""
        self._scheduler, self._thread, self._token = scheduler, thread, token
        self.is_ready = False
        """Whether the cluster has been read."""
        self._metrics_text, self._metrics_until = b"", float("-inf")
        self._questions, self._waiting = asyncio.Semaphore(1), 0
        app = web.Application(middlewares=[_check_host])
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
        seconds = self._scheduler.seconds_since_turn()
        if seconds > STUCK_AFTER:
            return web.Response(text=f"the scheduler has been busy with one thing for {seconds:.0f} s", status=503)
        return web.Response(text="ok")

    async def _readyz(self, request: web.Request) -> web.Response:
        """Ready means that the cluster has been read, and that the view of it is not too old; `verbose` lists ages."""
        if not self.is_ready:
            return web.Response(text="not synced", status=503)
        ages = sorted(self._scheduler.view_ages().items())
        old = [f"{kind}: nothing was heard for {age:.0f} s" for kind, age in ages if age > OLDEST_VIEW]
        if old:
            return web.Response(text="\n".join(old), status=503)
        if "verbose" in request.query:
            return web.Response(text="\n".join([*(f"{kind}: heard {age:.1f} s ago" for kind, age in ages), "ok"]))
        return web.Response(text="ok")

    async def _metrics(self, request: web.Request) -> web.Response:
        now = time.monotonic()
        if now >= self._metrics_until:
            self._metrics_until = now + METRICS_FOR
            measuring = asyncio.ensure_future(self._thread.run(self._scheduler.measure()))
            await asyncio.wait({measuring}, timeout=METRICS_WITHIN)
            self._metrics_text = self._scheduler.metrics.text()
        return web.Response(body=self._metrics_text, headers={"Content-Type": CONTENT_TYPE})

    async def _decision(self, request: web.Request) -> web.Response:
        """The last decision about a pod, explained on the cluster of that time; if too old, on the current one."""
        if not self._token:
            return _problem(404, "decisions are not served: start podium run with --decisions-token-file")
        if not _is_sent(self._token, request):
            return _problem(401, "send the token of --decisions-token-file: Authorization: Bearer TOKEN")
        if self._waiting >= MOST_QUESTIONS:
            return _problem(429, "too many questions at a time; ask again later", {"Retry-After": "1"})
        self._waiting += 1
        try:
            async with self._questions:
                return await self._explained(f"{request.match_info['namespace']}/{request.match_info['pod']}")
        finally:
            self._waiting -= 1

    async def _explained(self, key: str) -> web.Response:
        begin = time.monotonic()
        found = await self._thread.run(self._scheduler.explained(key))
        # The scheduler gets at least as much time as the questions.
        await asyncio.sleep(time.monotonic() - begin)
        if isinstance(found, str):
            return _problem(503 if self._scheduler.loop is None else 404, found)
        return web.Response(body=msgspec.json.encode(found), content_type="application/json")


def _is_sent(token: str, request: web.Request) -> bool:
    return hmac.compare_digest(request.headers.get(hdrs.AUTHORIZATION, "").encode(), f"Bearer {token}".encode())


@web.middleware
async def _check_host(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Refuse requests under a foreign name: a page on the web could have its own name lead to this address."""
    if not is_own_name(request.host):
        return _problem(403, "the Host header names another host; use an IP address, localhost or this host's name")
    return await handler(request)


def is_own_name(host: str) -> bool:
    """Whether a Host header is an IP address, localhost, or the name of this machine; a port may follow."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in ("localhost", socket.gethostname().lower())
    return True


def _problem(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    body = msgspec.json.encode({"error": message})
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)
