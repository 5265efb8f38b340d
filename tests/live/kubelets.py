"""A stand-in for kubelets: pods that are bound run, and pods that are deleted end."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from typing import Any, Self

import msgspec

from live.control_plane import ControlPlane
from podium.live.client import STRATEGIC_PATCH, ApiClient, ApiError, find_access

PODS = "/api/v1/pods"


class Kubelets:
    """All kubelets of a cluster, in a thread of their own."""

    def __init__(self, plane: ControlPlane) -> None:
        self._access = find_access(str(plane.kubeconfig("kubelets")))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.started: set[str] = set()
        """The uids of the pods that were made to run."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(10)

    def _run(self) -> None:
        self._task = self._loop.create_task(self._follow())
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        finally:
            self._loop.close()

    async def _follow(self) -> None:
        async with ApiClient(self._access) as client:
            while True:
                try:
                    async with aclosing(client.watch(PODS, {"timeoutSeconds": "300"}, 330.0)) as lines:
                        async for line in lines:
                            event = msgspec.json.decode(line) if line else {}
                            if event.get("type") in ("ADDED", "MODIFIED"):
                                await self._attend_to(client, event["object"])
                except ApiError:
                    await asyncio.sleep(0.5)

    async def _attend_to(self, client: ApiClient, pod: dict[str, Any]) -> None:
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        try:
            if "deletionTimestamp" in metadata:
                now = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
                await client.request("DELETE", path, msgspec.json.encode(now))
            elif pod["spec"].get("nodeName") and metadata["uid"] not in self.started:
                self.started.add(metadata["uid"])
                status = msgspec.json.encode({"status": {"phase": "Running"}})
                await client.request("PATCH", f"{path}/status", status, content_type=STRATEGIC_PATCH)
        except ApiError as error:
            if error.code not in (404, 409):
                raise
