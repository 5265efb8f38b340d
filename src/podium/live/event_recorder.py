"""Writes events about pods in the background; repeated ones become a series."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import time
from collections import deque
from datetime import UTC, datetime

import msgspec

from podium.live.client import STRATEGIC_PATCH, ApiError, Requests
from podium.model import Pod
from podium.model.meta import JsonObject

logger = logging.getLogger("podium.live")

NOTE_LIMIT = 1024
"""The maximum bytes of an event's note."""
FINISH_AFTER, REFRESH_EVERY = 6 * 60.0, 30 * 60.0
"""Seconds without a repetition after which a series ends, and seconds after which a longer series is written again."""
MOST_EVENT_TRIES, TRY_AGAIN_AFTER = 12, 10.0
MOST_WAITING = 50_000
"""The maximum number of queued events; later ones are dropped, which events allow."""
EVENT_WRITERS = 4


class Recorded(msgspec.Struct):
    """An event that was written, and may repeat."""

    document: JsonObject
    at: float
    """The time of the last occurrence, on the monotonic clock."""
    series: JsonObject | None = None


class EventRecorder:
    """Writes events in the background; `record` never waits."""

    def __init__(self, client: Requests) -> None:
        self._client = client
        self._instance = socket.gethostname()
        self._recorded: dict[tuple[str, ...], Recorded] = {}
        self._waiting: deque[tuple[Recorded, JsonObject | None]] = deque()
        self._has_work = asyncio.Event()
        self._in_flight = 0
        """How many events are being written."""
        self._tasks: list[asyncio.Task[None]] = []
        self.dropped = 0

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._write_all()) for _ in range(EVENT_WRITERS)]
        self._tasks.append(asyncio.create_task(self._keep_series()))

    def record(self, pod: Pod, version: str, controller: str, kind: str, reason: str, action: str, note: str) -> None:
        """Record an event about a pod with this resourceVersion; `controller` is the profile, `kind` Normal or
        Warning.
        """
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
    ) -> JsonObject:
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

    def _enqueue(self, event: Recorded, series: JsonObject | None) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self.dropped += 1
            return
        self._waiting.append((event, series))
        self._has_work.set()

    # -- writing -----------------------------------------------------------------------------------------------------

    async def _write_all(self) -> None:
        while True:
            while self._waiting:
                self._in_flight += 1
                await self._write(*self._waiting.popleft())
                self._in_flight -= 1
            self._has_work.clear()
            await self._has_work.wait()

    async def _write(self, event: Recorded, series: JsonObject | None) -> None:
        """Write an event, or its repetition; retries for a while if the server is not available."""
        namespace = event.document["metadata"]["namespace"]
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        for _ in range(MOST_EVENT_TRIES):
            try:
                if series is None:
                    await self._client.request("POST", path, msgspec.json.encode(event.document))
                else:
                    name, patch = event.document["metadata"]["name"], msgspec.json.encode({"series": series})
                    await self._client.request("PATCH", f"{path}/{name}", patch, content_type=STRATEGIC_PATCH)
                return
            except ApiError as error:
                if not error.is_unreachable and error.code < 500:
                    # A namespace that is being deleted accepts no events, nor can a deleted event be updated.
                    logger.debug("event not written: %s", error)
                    return
            await asyncio.sleep(TRY_AGAIN_AFTER * random.uniform(1.0, 1.25))

    async def _keep_series(self) -> None:
        """End series without repetitions, and write the others again from time to time."""
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
        """Write what is queued, for at most this many seconds."""
        until = time.monotonic() + within
        while (self._waiting or self._in_flight) and time.monotonic() < until:
            await asyncio.sleep(0.05)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def micro_time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def truncated(note: str) -> str:
    """A note, cut to the length in bytes that the API server accepts."""
    data = note.encode()
    return note if len(data) <= NOTE_LIMIT else data[: NOTE_LIMIT - 4].decode(errors="ignore") + " ..."


def _reference(pod: Pod, version: str) -> JsonObject:
    reference = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod.metadata.uid,
    }
    return reference | {"resourceVersion": version} if version else reference
