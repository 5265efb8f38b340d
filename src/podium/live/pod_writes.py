"""What a scheduler writes to pods: bindings, conditions, nominations, and that some have to go."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from podium.live.client import STRATEGIC_PATCH, ApiClient, ApiError
from podium.live.reflector import Backoff
from podium.model import Pod

logger = logging.getLogger("podium.live")

UNSCHEDULABLE, SCHEDULER_ERROR = "Unschedulable", "SchedulerError"
MOST_TRIES = 5
BIND_TIMEOUT = 30.0
"""Seconds before the outcome of a binding counts as unknown, and is looked up."""
WRITERS = 8
"""How many statuses are written at once."""


class Condition(NamedTuple):
    """Why a pod is not scheduled."""

    reason: str
    message: str


class _NodeName(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Uid(msgspec.Struct):
    uid: str = ""


class _BoundPod(msgspec.Struct):
    metadata: _Uid = msgspec.field(default_factory=_Uid)
    spec: _NodeName = msgspec.field(default_factory=_NodeName)


def path_of(pod: Pod, part: str = "") -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}{part}"


async def bind(client: ApiClient, pod: Pod, node: str) -> None:
    """Bind a pod; ApiError if it is not bound.

    When the answer does not come, the pod may be bound or not: it is looked up for as long as that takes, so that its
    room is not given to another pod meanwhile.
    """
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.metadata.uid},
        "target": {"kind": "Node", "name": node},
    }
    try:
        await client.request("POST", path_of(pod, "/binding"), msgspec.json.encode(binding), timeout=BIND_TIMEOUT)
    except ApiError as error:
        if 400 <= error.code < 500 and error.code != 409:
            raise
        if not await _is_bound(client, pod, node):
            raise


async def _is_bound(client: ApiClient, pod: Pod, node: str) -> bool:
    """Whether a pod is bound to a node, asked until there is an answer."""
    backoff = Backoff(0.1, 5.0)
    while True:
        try:
            found = msgspec.json.decode(await client.request("GET", path_of(pod), timeout=BIND_TIMEOUT), type=_BoundPod)
            return found.metadata.uid == pod.metadata.uid and found.spec.node_name == node
        except ApiError as error:
            if error.code == 404:
                return False
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
        await backoff.sleep()


async def preempt(client: ApiClient, victim: Pod, by: Pod) -> None:
    """Say why a pod has to go, and delete it; one that is gone already is no error."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{by.spec.scheduler_name}: preempting to accommodate a higher priority pod",
        "lastTransitionTime": _now(),
        **_generation(victim),
    }
    try:
        await _patch_status(client, victim, {"conditions": [condition]})
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": victim.metadata.uid}}
        await client.request("DELETE", path_of(victim), msgspec.json.encode(options))
    except ApiError as error:
        # Another pod of that name has another uid, which is a conflict.
        if error.code not in (404, 409):
            raise


class PodStatuses:
    """Writes conditions and nominations in the background; of several for one pod, the last one counts."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._slots = asyncio.Semaphore(WRITERS)
        self._wanted: dict[str, tuple[Pod, dict[str, Any]]] = {}
        self._written: dict[str, tuple[str, Condition]] = {}
        """Per pod, its uid and the condition it has by now."""
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def unschedulable(self, pod: Pod, condition: Condition) -> None:
        """Note why a pod is not scheduled, unless that is known already."""
        known = pod.metadata.uid, condition
        if self._written.get(pod.key) == known:
            return
        self._written[pod.key] = known
        fields: dict[str, Any] = {
            "type": "PodScheduled",
            "status": "False",
            "reason": condition.reason,
            "message": condition.message,
            **_generation(pod),
        }
        if not any(each.type == "PodScheduled" and each.status == "False" for each in pod.status.conditions):
            fields["lastTransitionTime"] = _now()
        self._want(pod, {"conditions": [fields]})

    def nominate(self, pod: Pod, node: str) -> None:
        """Note the node that a pod waits for; none, if it is empty."""
        self._want(pod, {"nominatedNodeName": node or None})

    def forget(self, key: str) -> None:
        """A pod is gone, or bound."""
        self._written.pop(key, None)
        self._wanted.pop(key, None)

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
                try:
                    await _patch_status(self._client, pod, status)
                    continue
                except ApiError as error:
                    if error.code in (404, 409, 422) or tries >= MOST_TRIES:
                        logger.debug("status of pod %s not written: %s", key, error)
                        self._written.pop(key, None)
                        continue
            tries += 1
            _, newer = self._wanted.get(key, (pod, {}))
            self._wanted[key] = pod, {**status, **newer}
            await backoff.sleep()

    async def stop(self, within: float) -> None:
        """Write what waits, for so many seconds at most."""
        if self._tasks and within:
            await asyncio.wait(self._tasks.values(), timeout=within)
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _patch_status(client: ApiClient, pod: Pod, status: dict[str, Any]) -> None:
    patch = msgspec.json.encode({"metadata": {"uid": pod.metadata.uid}, "status": status})
    await client.request("PATCH", path_of(pod, "/status"), patch, content_type=STRATEGIC_PATCH)


def _generation(pod: Pod) -> dict[str, int]:
    return {"observedGeneration": pod.metadata.generation} if pod.metadata.generation else {}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
