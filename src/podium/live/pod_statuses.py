"""Writes conditions and nominations of pods in the background."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from podium.live.binding import path_of
from podium.live.client import STRATEGIC_PATCH, ApiError, Requests
from podium.live.reflector import Backoff
from podium.model import Pod

logger = logging.getLogger("podium.live")

NOT_SCHEDULABLE, SCHEDULER_ERROR = "Unschedulable", "SchedulerError"
"""The reasons of the PodScheduled condition."""
MOST_STATUS_WRITES = 5
WRITERS = 8
"""How many statuses are written at a time."""


class UnscheduledCondition(NamedTuple):
    """Why a pod is not scheduled."""

    reason: str
    message: str


class PodStatuses:
    """Writes conditions and nominations in the background; of several for one pod, the last one counts."""

    def __init__(self, client: Requests) -> None:
        self._client = client
        self._slots = asyncio.Semaphore(WRITERS)
        self._wanted: dict[str, tuple[Pod, dict[str, Any]]] = {}
        self._written: dict[str, tuple[str, UnscheduledCondition]] = {}
        """Per pod, its uid and its last written condition."""
        self._in_flight: set[str] = set()
        """The pods whose status is being written, unless they were forgotten meanwhile."""
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def unschedulable(self, pod: Pod, condition: UnscheduledCondition) -> None:
        """Write why a pod is not scheduled, unless that was written already."""
        known = pod.metadata.uid, condition
        if self._written.get(pod.key) == known:
            return
        self._written[pod.key] = known
        fields: dict[str, Any] = {
            "type": "PodScheduled",
            "status": "False",
            "reason": condition.reason,
            "message": condition.message,
            **generation_of(pod),
        }
        if not any(each.type == "PodScheduled" and each.status == "False" for each in pod.status.conditions):
            fields["lastTransitionTime"] = time_now()
        self._want(pod, {"conditions": [fields]})

    def nominate(self, pod: Pod, node: str) -> None:
        """Write the pod's nominated node; an empty name clears it."""
        self._want(pod, {"nominatedNodeName": node or None})

    async def written(self, key: str) -> None:
        """Wait until everything for a pod is written or given up."""
        if key in self._tasks:
            await asyncio.wait({self._tasks[key]})

    def forget(self, key: str) -> None:
        """Forget a pod that is gone or bound."""
        self._written.pop(key, None)
        self._wanted.pop(key, None)
        self._in_flight.discard(key)

    def _want(self, pod: Pod, status: dict[str, Any]) -> None:
        before = self._wanted.get(pod.key)
        self._wanted[pod.key] = pod, {**(before[1] if before else {}), **status}
        if pod.key not in self._tasks:
            task = self._tasks[pod.key] = asyncio.create_task(self._write(pod.key))
            task.add_done_callback(lambda _: self._tasks.pop(pod.key, None))

    async def _write(self, key: str) -> None:
        backoff, tries = Backoff(), 0
        while key in self._wanted:
            async with self._slots:
                if key not in self._wanted:
                    return
                pod, status = self._wanted.pop(key)
                self._in_flight.add(key)
                try:
                    await patch_status(self._client, pod, status)
                    continue
                except ApiError as error:
                    if error.code in (404, 409, 422) or tries >= MOST_STATUS_WRITES:
                        logger.debug("status of pod %s not written: %s", key, error)
                        self._written.pop(key, None)
                        continue
            tries += 1
            if key in self._in_flight:
                _, newer = self._wanted.get(key, (pod, {}))
                self._wanted[key] = pod, {**status, **newer}
            await backoff.sleep()
        self._in_flight.discard(key)

    async def stop(self, within: float) -> None:
        """Write what is queued, for at most this many seconds."""
        if self._tasks and within:
            await asyncio.wait(self._tasks.values(), timeout=within)
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def patch_status(client: Requests, pod: Pod, status: dict[str, Any]) -> None:
    """Change fields of a pod's status, if it is still the same pod."""
    patch = msgspec.json.encode({"metadata": {"uid": pod.metadata.uid}, "status": status})
    await client.request("PATCH", path_of(pod, "/status"), patch, content_type=STRATEGIC_PATCH)


def generation_of(pod: Pod) -> dict[str, int]:
    return {"observedGeneration": pod.metadata.generation} if pod.metadata.generation else {}


def time_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
