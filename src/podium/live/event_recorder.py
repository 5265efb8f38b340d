"""Events as kube-scheduler writes them, those that repeat as one with a series."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import time
from collections import deque
from datetime import UTC, datetime
from typing import Any

import msgspec

from podium.live.client import STRATEGIC_PATCH, ApiClient, ApiError
from podium.model import Pod

logger = logging.getLogger("podium.live")

NOTE_LIMIT = 1024
"""Bytes that the note of an event may have."""
FINISH_AFTER, REFRESH_EVERY = 6 * 60.0, 30 * 60.0
"""Seconds after which a series ends that nothing was added to, and after which a longer one is written again."""
MOST_TRIES, TRY_AGAIN_AFTER = 12, 10.0
MOST_WAITING = 50_000
"""How many events may wait to be written; later ones are dropped, as events may be."""
WRITERS = 4

Fields = dict[str, Any]


class Recorded(msgspec.Struct):
    """An event that was written, and may come again."""

    document: Fields
    at: float
    """When it last happened, on the monotonic clock."""
    series: Fields | None = None


class EventRecorder:
    """Writes events in the background; `record` never waits."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._instance = socket.gethostname()
        self._recorded: dict[tuple[str, ...], Recorded] = {}
        self._waiting: deque[tuple[Recorded, Fields | None]] = deque()
        self._has_work = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.dropped = 0

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._write_all()) for _ in range(WRITERS)]
        self._tasks.append(asyncio.create_task(self._keep_series()))

    def record(self, pod: Pod, version: str, controller: str, kind: str, reason: str, action: str, note: str) -> None:
        """Note an event about a pod of some resourceVersion; `controller` is the profile, `kind` Normal or Warning."""
        key = (kind, action, reason, controller, pod.metadata.uid, version)
        known, now = self._recorded.get(key), time.monotonic()
        if known is None:
            document = self._document(pod, version, kind, reason, action, note, controller)
            known = self._recorded[key] = Recorded(document, now)
            self._enqueue(known, None)
            return
        known.at = now
        count = 2 if known.series is None else known.series["count"] + 1
        is_first = known.series is None
        known.series = {"count": count, "lastObservedTime": micro_time()}
        if is_first:
            self._enqueue(known, known.series)

    def _document(
        self, pod: Pod, version: str, kind: str, reason: str, action: str, note: str, controller: str
    ) -> Fields:
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{pod.name}.{time.time_ns():x}", "namespace": pod.namespace},
            "eventTime": micro_time(),
            "reportingController": controller,
            "reportingInstance": f"{controller}-{self._instance}",
            "action": action,
            "reason": reason,
            "regarding": _reference(pod, version),
            "note": truncated(note),
            "type": kind,
        }

    def _enqueue(self, event: Recorded, series: Fields | None) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self.dropped += 1
            return
        self._waiting.append((event, series))
        self._has_work.set()

    # -- writing -----------------------------------------------------------------------------------------------------

    async def _write_all(self) -> None:
        while True:
            while self._waiting:
                await self._write(*self._waiting.popleft())
            self._has_work.clear()
            await self._has_work.wait()

    async def _write(self, event: Recorded, series: Fields | None) -> None:
        """Write an event, or that it came again; a server that is not there is asked again for a while."""
        namespace = event.document["metadata"]["namespace"]
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        for _ in range(MOST_TRIES):
            try:
                if series is None:
                    await self._client.request("POST", path, msgspec.json.encode(event.document))
                else:
                    name, patch = event.document["metadata"]["name"], msgspec.json.encode({"series": series})
                    await self._client.request("PATCH", f"{path}/{name}", patch, content_type=STRATEGIC_PATCH)
                return
            except ApiError as error:
                if not error.is_unreachable and error.code < 500:
                    # A namespace that is being deleted takes no events, nor does an event that is gone.
                    logger.debug("event not written: %s", error)
                    return
            await asyncio.sleep(TRY_AGAIN_AFTER * random.uniform(1.0, 1.25))

    async def _keep_series(self) -> None:
        """End series that nothing comes to any more, and write the others again from time to time."""
        refreshed = time.monotonic()
        while True:
            await asyncio.sleep(60.0)
            now = time.monotonic()
            for key, event in list(self._recorded.items()):
                if now - event.at > FINISH_AFTER:
                    del self._recorded[key]
                    if event.series is not None:
                        self._enqueue(event, event.series)
                elif event.series is not None and now - refreshed > REFRESH_EVERY:
                    self._enqueue(event, event.series)
            if now - refreshed > REFRESH_EVERY:
                refreshed = now

    async def stop(self, within: float) -> None:
        """Write what waits, for so many seconds at most."""
        until = time.monotonic() + within
        while self._waiting and time.monotonic() < until:
            await asyncio.sleep(0.05)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def micro_time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def truncated(note: str) -> str:
    """A note of the length that the API server takes, in bytes."""
    data = note.encode()
    return note if len(data) <= NOTE_LIMIT else data[: NOTE_LIMIT - 4].decode(errors="ignore") + " ..."


def _reference(pod: Pod, version: str) -> Fields:
    reference = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod.metadata.uid,
    }
    return reference | {"resourceVersion": version} if version else reference
