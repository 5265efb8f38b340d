"""Writes of a scheduler: bindings, conditions, nominations, evictions, volumes, and events, repeated ones as a
series.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import time
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from podium.errors import PodiumError
from podium.framework import SUCCESS, PreEnqueuePlugin, Status
from podium.live.client import MERGE_PATCH, STRATEGIC_PATCH, ApiClient, ApiError
from podium.live.reading import RESOURCES, resource_of
from podium.live.reflector import Backoff, Reflectors
from podium.loop.queued_pod import Assumed
from podium.model import CSINode, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodGroup
from podium.model.meta import JsonObject
from podium.model.objects import SELECTED_NODE
from podium.model.selectors import NodeMatcher
from podium.plugins.default_preemption import DefaultPreemption
from podium.plugins.storage.bindable_volumes import volume_affinity_terms
from podium.plugins.storage.claims import claim_not_found, is_fully_bound
from podium.plugins.storage.csi_translation import in_tree_plugin, migrated_plugins, translate_affinity
from podium.plugins.storage.volume_binding import Stored, VolumeBinding

logger = logging.getLogger("podium.live")

UNSCHEDULABLE, SCHEDULER_ERROR = "Unschedulable", "SchedulerError"
MOST_STATUS_WRITES = 5
BIND_TIMEOUT = 30.0
"""After this many seconds the result of a binding counts as unknown, and is looked up."""
WRITERS = 8
"""How many statuses are written at a time."""


class UnscheduledCondition(NamedTuple):
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

    If there is no answer, the pod may or may not be bound: it is looked up until that is known, so that its room is not
    given to another pod meanwhile.
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
    """Whether a pod is bound to a node; repeats the request until there is an answer."""
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


async def preempt(client: ApiClient, victim: Pod, by: Pod, group: PodGroup | None = None) -> bool:
    """Write why a pod is evicted, and delete it; returns whether it was still there, which is not an error if not.

    `group` is the PodGroup that room is made for, if it is a group.
    """
    preemptor = "pod" if group is None else "podgroup"
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{by.spec.scheduler_name}: preempting to accommodate a higher priority {preemptor}",
        "lastTransitionTime": _now(),
        **_generation(victim),
    }
    try:
        await patch_status(client, victim, {"conditions": [condition]})
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": victim.metadata.uid}}
        await client.request("DELETE", path_of(victim), msgspec.json.encode(options))
    except ApiError as error:
        # A new pod with the same name has another uid, which causes a conflict.
        if error.code not in (404, 409):
            raise
        return False
    return True


class PodStatuses:
    """Writes conditions and nominations in the background; of several for one pod, the last one counts."""

    def __init__(self, client: ApiClient) -> None:
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
            **_generation(pod),
        }
        if not any(each.type == "PodScheduled" and each.status == "False" for each in pod.status.conditions):
            fields["lastTransitionTime"] = _now()
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


async def patch_status(client: ApiClient, pod: Pod, status: dict[str, Any]) -> None:
    """Change fields of a pod's status, if it is still the same pod."""
    patch = msgspec.json.encode({"metadata": {"uid": pod.metadata.uid}, "status": status})
    await client.request("PATCH", path_of(pod, "/status"), patch, content_type=STRATEGIC_PATCH)


def _generation(pod: Pod) -> dict[str, int]:
    return {"observedGeneration": pod.metadata.generation} if pod.metadata.generation else {}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


VOLUME_CHECK_INTERVAL = 1.0
"""Seconds, as in kube-scheduler."""


class VolumesError(PodiumError):
    """A pod's volumes could not be bound or provisioned."""


class VolumeWrites:
    """Carries out VolumeBinding's reservations for a pod."""

    def __init__(self, client: ApiClient, reflectors: Reflectors) -> None:
        self._client, self._reflectors = client, reflectors

    async def bind(self, assumed: Assumed, timeout: float) -> None:
        """Write the reservations, and wait until all of them are bound; ApiError or VolumesError if that fails."""
        changes = VolumeBinding.reserved(assumed.state)
        if not changes:
            return
        written = [(after, await self._write(after)) for _, after in changes]
        until = time.monotonic() + timeout
        while not self._are_bound(assumed, written):
            if time.monotonic() >= until:
                raise VolumesError("binding volumes: context deadline exceeded")
            await asyncio.sleep(VOLUME_CHECK_INTERVAL)

    async def _write(self, after: Stored) -> int:
        """Change one object if nobody else changed it since it was read; returns its new resourceVersion."""
        resource = resource_of(after)
        known = self._reflectors.known(resource.kind, after.key)
        version = {"resourceVersion": known.version} if known is not None else {}
        patch: dict[str, object] = {"metadata": {"annotations": after.metadata.annotations, **version}}
        if isinstance(after, PersistentVolume) and after.spec.claim_ref is not None:
            claim = RESOURCES["PersistentVolumeClaim"]
            reference = msgspec.to_builtins(after.spec.claim_ref)
            patch["spec"] = {"claimRef": {"apiVersion": claim.api_version, "kind": claim.kind, **reference}}
        path = resource.path_of(after.namespace, after.name)
        answer = await self._client.request("PATCH", path, msgspec.json.encode(patch), content_type=MERGE_PATCH)
        return int(msgspec.json.decode(answer)["metadata"]["resourceVersion"])

    def _are_bound(self, assumed: Assumed, written: Sequence[tuple[Stored, int]]) -> bool:
        """Whether all claims of the written objects are bound; VolumesError if they will not be."""
        node = self._reflectors.known("Node", assumed.node)
        if node is None:
            raise VolumesError(f'binding volumes: failed to get node "{assumed.node}"')
        if self._reflectors.known("Pod", assumed.pod.key) is None:
            raise VolumesError("binding volumes: pod does not exist any more")
        assert isinstance(node.object, Node)
        return all(self._is_bound(item, version, node.object) for item, version in written)

    def _is_bound(self, item: Stored, version: int, node: Node) -> bool:
        kind = resource_of(item).kind
        known = self._reflectors.known(kind, item.key)
        if known is None:
            raise VolumesError(f'binding volumes: failed to check binding: {kind.lower()} "{item.name}" not found')
        if int(known.version) < version:
            # The watch has not caught up yet.
            return False
        if isinstance(known.object, PersistentVolume):
            return self._is_volume_bound(known.object, node)
        assert isinstance(known.object, PersistentVolumeClaim)
        return self._is_claim_provisioned(known.object, node)

    def _is_volume_bound(self, volume: PersistentVolume, node: Node) -> bool:
        """Whether the claim that a volume was reserved for is bound to it."""
        self._check_reach(volume, node)
        reference = volume.spec.claim_ref
        if reference is None or not reference.uid:
            raise VolumesError(f'binding volumes: ClaimRef got reset for pv "{volume.name}"')
        known = self._reflectors.known("PersistentVolumeClaim", f"{reference.namespace}/{reference.name}")
        if known is None:
            raise VolumesError(f"binding volumes: failed to check binding: {claim_not_found(reference.name)}")
        assert isinstance(known.object, PersistentVolumeClaim)
        return is_fully_bound(known.object)

    def _is_claim_provisioned(self, claim: PersistentVolumeClaim, node: Node) -> bool:
        """Whether the volume of a claim is provisioned; a provisioner that fails removes the selected node."""
        if claim.metadata.annotations.get(SELECTED_NODE) != node.name:
            raise VolumesError(f'binding volumes: provisioning failed for PVC "{claim.name}"')
        if claim.spec.volume_name:
            known = self._reflectors.known("PersistentVolume", claim.spec.volume_name)
            if known is None:
                return False
            assert isinstance(known.object, PersistentVolume)
            self._check_reach(known.object, node)
        return is_fully_bound(claim)

    def _check_reach(self, volume: PersistentVolume, node: Node) -> None:
        """VolumesError if a volume cannot be used on a node."""
        plugin, affinity = in_tree_plugin(volume.spec), volume.spec.node_affinity
        known = self._reflectors.known("CSINode", node.name)
        if plugin and known and isinstance(known.object, CSINode) and plugin in migrated_plugins(known.object):
            affinity = translate_affinity(volume)
        terms = volume_affinity_terms(affinity)
        if terms is not None and not NodeMatcher((), terms).matches(node.metadata.labels, node.name):
            problem = f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}"'
            raise VolumesError(f"binding volumes: {problem}: no matching NodeSelectorTerms")


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

    def __init__(self, client: ApiClient) -> None:
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


WAITING = Status.unresolvable("waiting for the preemption for this pod to be finished")


class Preemptions:
    """The victims that each preempting pod waits for, and which of them are being deleted."""

    def __init__(self) -> None:
        self._victims: dict[str, dict[str, bool]] = {}
        """By the uid of the preempting pod, its victims by uid, and whether they are gone or terminating."""

    def begin(self, preemptor: Pod, victims: Iterable[Pod]) -> None:
        """Note that pods are to be evicted for another pod."""
        self._victims[preemptor.metadata.uid] = {each.metadata.uid: False for each in victims}

    def give_up(self, preemptor: Pod) -> None:
        """Note that a pod no longer waits for victims."""
        self._victims.pop(preemptor.metadata.uid, None)

    def pod_goes(self, pod: Pod) -> None:
        """Note that a pod is gone or terminating."""
        for victims in self._victims.values():
            if pod.metadata.uid in victims:
                victims[pod.metadata.uid] = True

    def status(self, pod: Pod) -> Status:
        """Whether a pod may be tried: not while a victim has yet to be deleted."""
        victims = self._victims.get(pod.metadata.uid)
        return SUCCESS if victims is None or all(victims.values()) else WAITING

    def plugin(self) -> type[PreEnqueuePlugin]:
        """The DefaultPreemption class to use where evicting takes time."""
        preemptions = self

        class EvictingPreemption(DefaultPreemption, PreEnqueuePlugin):
            """Holds a pod back until its victims are being deleted."""

            def pre_enqueue(self, pod: Pod) -> Status:
                return preemptions.status(pod)

        return EvictingPreemption
