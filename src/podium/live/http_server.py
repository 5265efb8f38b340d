"""What a running scheduler answers over HTTP: whether it is well, what it measures, and why a pod went where it did."""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

from podium.engine import Scheduler
from podium.errors import InputError
from podium.live.metrics import CONTENT_TYPE
from podium.live.scheduler import LiveScheduler
from podium.loop import SchedulerLoop
from podium.model import Pod
from podium.present.explanation import explain_pod, to_document


class HttpServer:
    """Serves /livez, /readyz, /metrics and /decisions/NAMESPACE/POD. Ready means that the cluster is known."""

    def __init__(self, scheduler: LiveScheduler, **options: Any) -> None:
        """`options` are those of `Scheduler`, as the live one has them."""
        self._scheduler, self._options = scheduler, options
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
        """Listen, at a free port if it is 0; which port."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        try:
            await site.start()
        except OSError as error:
            raise InputError(f"cannot listen at {host}:{port}: {(error.strerror or str(error)).lower()}") from None
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
        key = f"{request.match_info['namespace']}/{request.match_info['pod']}"
        loop = self._scheduler.loop
        if loop is None:
            return _problem(503, "this replica is not the leader")
        pod = loop.pods.get(key)
        if pod is None:
            return _problem(404, f"pod {key} is not there")
        body = {"decided": self._decided(key), "explanation": self._explanation(loop, pod)}
        return web.Response(body=msgspec.json.encode(body), content_type="application/json")

    def _decided(self, key: str) -> dict[str, Any] | None:
        found = self._scheduler.decided.get(key)
        return None if found is None else found._asdict()

    def _explanation(self, loop: SchedulerLoop, pod: Pod) -> dict[str, Any]:
        """What would be decided now, on a copy of the cluster."""
        cluster = loop.cluster.fork()
        scheduler = Scheduler(cluster, loop.scheduler.config, **self._options)
        return to_document(explain_pod(scheduler, pod))


def _problem(status: int, message: str) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode({"error": message}), content_type="application/json")
