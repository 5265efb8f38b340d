"""Writes a pod's resource claims before it is bound: allocations with their configuration, and reservations."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from podium.errors import PodiumError
from podium.framework import Status
from podium.framework.plugin import CycleState
from podium.framework.status import PostFilterResult
from podium.live.client import STRATEGIC_PATCH, ApiError, Requests
from podium.live.pod_statuses import patch_status
from podium.live.reading import RESOURCES, ObjectDecoder
from podium.live.reflector import Reflectors
from podium.loop import Event, EventType, SchedulerLoop
from podium.loop.queued_pod import Assumed
from podium.model import Pod, ResourceClaim
from podium.model.devices import AllocationResult, DeviceRequestAllocationResult
from podium.model.meta import JsonObject
from podium.plugins.dynamic_resources import DynamicResources
from podium.plugins.dynamic_resources.binding_conditions import status_of
from podium.plugins.dynamic_resources.devices_in_use import PendingAllocation
from podium.plugins.dynamic_resources.pod_devices import PodDevices

"""A part of an object as the API server has it."""
Chosen = tuple[str, str]
"""A request (`name`, or `name/subrequest` for the chosen alternative) and its device class."""


def chosen_requests(requests: Iterable[JsonObject], allocated: Iterable[str]) -> list[Chosen]:
    """The requests of a claim that were satisfied; `allocated` are the requests that its devices are for."""
    names, chosen = set(allocated), list[Chosen]()
    for request in requests:
        alternatives = {f"{request['name']}/{each['name']}": each for each in request.get("firstAvailable", ())}
        if alternatives:
            name = next((name for name in alternatives if name in names), next(iter(alternatives)))
            chosen.append((name, alternatives[name]["deviceClassName"]))
        elif "exactly" in request:
            chosen.append((request["name"], request["exactly"]["deviceClassName"]))
    return chosen


def device_configuration(
    chosen: Sequence[Chosen], classes: Mapping[str, Sequence[JsonObject]], own: Sequence[JsonObject]
) -> list[dict[str, Any]]:
    """The configuration entries of an allocation; `classes` has the configuration of each class, `own` that of the
    claim.

    An entry for all requests names none of them.
    """
    found: list[dict[str, Any]] = []
    for name in dict.fromkeys(name for _, name in chosen):
        requests = [request for request, its_class in chosen if its_class == name]
        found += [{"source": "FromClass", "requests": requests, **entry} for entry in classes[name]]
    for entry in own:
        named = entry.get("requests", [])
        if not named or any(_is_named(request, named) for request, _ in chosen):
            found.append({"source": "FromClaim", **entry})
    for made in found:
        if all(_is_named(request, made.get("requests", [])) for request, _ in chosen):
            made.pop("requests", None)
    return found


def _is_named(request: str, names: Sequence[str]) -> bool:
    """Whether the names contain a request, itself or as an alternative of one of them."""
    return request in names or request.partition("/")[0] in names


logger = logging.getLogger("podium.live")

FINALIZER = "resource.kubernetes.io/delete-protection"
MOST_CLAIM_WRITES = 5
"""How often a claim is written again if somebody else changes it meanwhile, as in kube-scheduler."""
DEVICE_CHECK_INTERVAL = 1.0
"""Seconds between two checks whether devices are ready."""
CONFLICT = 409

_CLAIMS, _CLASSES = RESOURCES["ResourceClaim"], RESOURCES["DeviceClass"]


HandleWritten = Callable[[Event, Callable[[], None]], Awaitable[None]]

Parts = dict[str, Any]
"""An object of the API server by its fields; its spec is kept byte by byte, as driver parameters must not change."""


class DevicesError(PodiumError):
    """A pod's devices could not be allocated or prepared."""


class WrittenDynamicResources(DynamicResources):
    """DynamicResources for claims of an API server: `DeviceWrites` writes what is decided here."""

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self.to_release: list[tuple[ResourceClaim, bool]] = []
        """Claims that pods must give up before they fit anywhere, and whether to delete them."""

    def post_filter(self, state: CycleState, pod: Pod, statuses: Mapping[str, Status]) -> PostFilterResult:
        devices: PodDevices | None = state.get(self.name)
        if devices is not None:
            claim = devices.to_deallocate()
            if claim is not None:
                self.to_release.append((claim, False))
            elif devices.left_over is not None:
                self.to_release.append((devices.left_over, True))
        return super().post_filter(state, pod, statuses)


class DeviceWrites:
    """Carries out DynamicResources' decisions."""

    def __init__(self, client: Requests, reflectors: Reflectors) -> None:
        self._client, self._reflectors = client, reflectors
        self._decoder = ObjectDecoder(_CLAIMS)
        self._written: dict[str, int] = {}
        """The resourceVersion of claims that were written here, until the watch has caught up."""
        self._made: dict[str, ResourceClaim] = {}
        """By the uid of pods that are not bound yet, the claims created for their extended resources."""

    def current(self, event: Event) -> Event | None:
        """The event if it is new; None if it is older than what was written here."""
        claim = event.object
        if not isinstance(claim, ResourceClaim) or claim.key not in self._written:
            return event
        known = self._reflectors.known(_CLAIMS.kind, claim.key)
        if event.type is not EventType.DELETE and known is not None:
            if int(known.version) < self._written[claim.key]:
                return None
            event = Event(EventType.UPDATE, known.object)
        del self._written[claim.key]
        return event

    # -- binding -----------------------------------------------------------------------------------------------------

    async def bind(
        self, assumed: Assumed, loop: SchedulerLoop, handle: HandleWritten, waits: Callable[[str], None]
    ) -> None:
        """Write the decision to the claims, and wait until the devices are ready; PodiumError if that fails.

        `handle` is called with each written claim and with what is to be done once the loop knows it, `waits` with a
        sentence if there is something to wait for.
        """
        devices: PodDevices | None = assumed.state.get(DynamicResources.name)
        if devices is None:
            return
        decided, written = devices.reserved, list[ResourceClaim]()
        for claim in {each.name: each for each in devices.claims}.values():
            pending = decided.pop(claim.name, None)
            if not _is_reserved(claim, assumed.pod):
                claim = await self._write(claim, pending, assumed, loop)
                await handle(Event(EventType.UPDATE, claim), partial(devices.is_written, claim.name))
            written.append(claim)
        for name, pending in decided.items():
            claim = await self._write_made(pending, assumed, loop)
            await handle(Event(EventType.UPDATE, claim), partial(devices.is_written, name))
            written.append(claim)
        if any(_results_to_wait_for(claim) for claim in written):
            waits(f"waiting for binding conditions for device on node {assumed.node}")
            await self._wait(_plugin(assumed, loop), loop, [claim.key for claim in written])

    def is_bound(self, pod: Pod) -> None:
        """Note that a pod is bound and keeps its claims."""
        self._made.pop(pod.metadata.uid, None)

    async def _write(
        self, claim: ResourceClaim, pending: PendingAllocation | None, assumed: Assumed, loop: SchedulerLoop
    ) -> ResourceClaim:
        """Write a claim's allocation, if it was decided here, and its reservation for the pod; returns the
        written claim.
        """
        if assumed.pod.key not in loop.assumed:
            raise DevicesError("pod does not exist any more")
        has_conditions = _plugin(assumed, loop).release_rules.device_binding_conditions
        for number in range(MOST_CLAIM_WRITES):
            found = _parts(await self._client.request("GET", _path(claim)))
            if found["metadata"]["uid"] != claim.metadata.uid or "deletionTimestamp" in found["metadata"]:
                raise DevicesError(f"claim {claim.key} got deleted in the meantime")
            try:
                if pending is not None:
                    found = await self._with_allocation(found, claim, pending.allocation)
                what = "allocation and reservation" if pending is not None else "reservation"
                status = found.setdefault("status", {})
                status.setdefault("reservedFor", []).append(_consumer(assumed.pod))
                if has_conditions:
                    if "allocation" not in status:
                        raise DevicesError(f"claim {claim.key} got deallocated elsewhere in the meantime")
                    status["allocation"].setdefault("allocationTimestamp", _now())
                path, doing = f"{_path(claim)}/status", f"add {what} to claim {claim.key}"
                return self._took(await self._put(path, found, doing))
            except ApiError as error:
                if error.code != CONFLICT or number == MOST_CLAIM_WRITES - 1:
                    raise
        raise AssertionError("the last try returns or raises")

    async def _with_allocation(self, found: Parts, claim: ResourceClaim, decided: AllocationResult) -> Parts:
        """The claim with its allocation, not written yet, and with its finalizer, which is written."""
        if "allocation" in found.get("status", {}):
            raise DevicesError(f"claim {claim.key} got allocated elsewhere in the meantime")
        if FINALIZER not in found["metadata"].get("finalizers", ()):
            found["metadata"].setdefault("finalizers", []).append(FINALIZER)
            answer = await self._put(_path(claim), found, f"add finalizer to claim {claim.key}")
            found = _parts(answer)
        allocation = msgspec.to_builtins(decided)
        configuration = await self._configuration(msgspec.json.decode(found["spec"]), decided)
        if configuration:
            allocation["devices"]["config"] = configuration
        found.setdefault("status", {})["allocation"] = allocation
        return found

    async def _configuration(self, spec: Parts, decided: AllocationResult) -> list[Any]:
        requests = spec.get("devices", {}).get("requests", ())
        chosen = chosen_requests(requests, [result.request for result in decided.devices.results])
        classes = {}
        for _, name in chosen:
            if name not in classes:
                answer = await self._client.request("GET", _CLASSES.path_of("", name))
                classes[name] = msgspec.json.decode(answer)["spec"].get("config", [])
        return device_configuration(chosen, classes, spec["devices"].get("config", []))

    def _took(self, answer: bytes) -> ResourceClaim:
        """Note a claim as the API server stored it, which the watch reports later."""
        claim = self._decoder.decode(msgspec.Raw(answer))
        assert isinstance(claim, ResourceClaim)
        self._written[claim.key] = int(msgspec.json.decode(answer)["metadata"]["resourceVersion"])
        return claim

    # -- extended resources ------------------------------------------------------------------------------------------

    async def _write_made(self, pending: PendingAllocation, assumed: Assumed, loop: SchedulerLoop) -> ResourceClaim:
        """Create the claim for a pod's extended resources, and name it in the pod's status."""
        pod, wanted = assumed.pod, pending.claim
        body = msgspec.to_builtins(wanted)
        body["metadata"] = {
            "generateName": f"{pod.name}-extended-resources-",
            "annotations": wanted.metadata.annotations,
            "ownerReferences": msgspec.to_builtins(wanted.metadata.owner_references),
        }
        path = _CLAIMS.path_of(pod.namespace, "").rstrip("/")
        try:
            answer = await self._client.request("POST", path, msgspec.json.encode(body))
        except ApiError as error:
            raise _about(error, f"create claim for extended resources {pod.namespace}/") from None
        made = self._decoder.decode(msgspec.Raw(answer))
        assert isinstance(made, ResourceClaim)
        self._made[pod.metadata.uid] = made
        claim = await self._write(made, pending, assumed, loop)
        devices: PodDevices = assumed.state[DynamicResources.name]
        mappings = devices.mappings_on(assumed.node)
        status = {
            "resourceClaimName": claim.name,
            "requestMappings": msgspec.to_builtins(mappings.mappings if mappings else []),
        }
        try:
            await patch_status(self._client, pod, {"extendedResourceClaimStatus": status})
        except ApiError as error:
            raise _about(error, f"update pod {pod.key} ExtendedResourceClaimStatus") from None
        return claim

    # -- devices that have to get ready ------------------------------------------------------------------------------

    async def _wait(self, plugin: DynamicResources, loop: SchedulerLoop, keys: Sequence[str]) -> None:
        """Wait until the binding conditions of the claims' devices are met; DevicesError if they will not be."""
        until = time.monotonic() + plugin.binding_timeout
        while not all(_is_ready(self._known(key, loop)) for key in keys):
            if time.monotonic() >= until:
                raise DevicesError("device binding timeout: context deadline exceeded")
            await asyncio.sleep(DEVICE_CHECK_INTERVAL)

    @staticmethod
    def _known(key: str, loop: SchedulerLoop) -> ResourceClaim:
        namespace, _, name = key.partition("/")
        claim = loop.cluster.store.of(ResourceClaim).get(name, namespace)
        if claim is None:
            raise DevicesError(f'resourceclaim "{name}" not found')
        return claim

    # -- giving back -------------------------------------------------------------------------------------------------

    async def unreserve(self, assumed: Assumed, loop: SchedulerLoop) -> None:
        """Remove the pod from its claims, and delete the claim created for it. Failures are retried with the pod."""
        devices: PodDevices | None = assumed.state.get(DynamicResources.name)
        if devices is None:
            return
        pod, shelf = assumed.pod, loop.cluster.store.of(ResourceClaim)
        gone = {"$patch": "delete", "uid": pod.metadata.uid}
        try:
            for claim in devices.claims:
                known = shelf.get(claim.name, claim.namespace)
                if known is not None and _is_reserved(known, pod):
                    patch = {"metadata": {"uid": known.metadata.uid}, "status": {"reservedFor": [gone]}}
                    await self._patch(_path(known) + "/status", patch)
            made = self._made.pop(pod.metadata.uid, None)
            if made is not None:
                await self._delete(made)
        except ApiError as error:
            logger.warning("the devices of pod %s are not given back: %s", pod.key, error)

    async def release(self, loop: SchedulerLoop) -> None:
        """Deallocate or delete the claims that keep pods from fitting anywhere."""
        for framework in loop.scheduler.frameworks.values():
            for plugin in framework.post_filter:
                while isinstance(plugin, WrittenDynamicResources) and plugin.to_release:
                    claim, is_left_over = plugin.to_release.pop()
                    try:
                        await (self._delete(claim) if is_left_over else self._deallocate(claim))
                    except ApiError as error:
                        logger.warning("claim %s is not released: %s", claim.key, error)

    async def _deallocate(self, claim: ResourceClaim) -> None:
        known = self._reflectors.known(_CLAIMS.kind, claim.key)
        version = {"resourceVersion": known.version} if known is not None else {}
        status = {"allocation": None, "reservedFor": None, "devices": None}
        await self._patch(
            _path(claim) + "/status", {"metadata": {"uid": claim.metadata.uid, **version}, "status": status}
        )

    async def _delete(self, claim: ResourceClaim) -> None:
        patch = {"metadata": {"uid": claim.metadata.uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
        options = {"preconditions": {"uid": claim.metadata.uid}}
        try:
            await self._patch(_path(claim), patch)
            await self._client.request("DELETE", _path(claim), msgspec.json.encode(options))
        except ApiError as error:
            if error.code not in (404, CONFLICT):
                raise

    # -- requests ----------------------------------------------------------------------------------------------------

    async def _put(self, path: str, body: object, doing: str) -> bytes:
        try:
            return await self._client.request("PUT", path, msgspec.json.encode(body))
        except ApiError as error:
            raise _about(error, doing) from None

    async def _patch(self, path: str, patch: object) -> bytes:
        return await self._client.request("PATCH", path, msgspec.json.encode(patch), content_type=STRATEGIC_PATCH)


def _parts(answer: bytes) -> Parts:
    fields = msgspec.json.decode(answer, type=dict[str, msgspec.Raw])
    return {name: raw if name == "spec" else msgspec.json.decode(raw) for name, raw in fields.items()}


def _path(claim: ResourceClaim) -> str:
    return _CLAIMS.path_of(claim.namespace, claim.name)


def _plugin(assumed: Assumed, loop: SchedulerLoop) -> DynamicResources:
    plugins = loop.scheduler.framework_of(assumed.pod).pre_bind
    return next(each for each in plugins if isinstance(each, DynamicResources))


def _is_reserved(claim: ResourceClaim, pod: Pod) -> bool:
    return any(each.uid == pod.metadata.uid for each in claim.status.reserved_for)


def _consumer(pod: Pod) -> dict[str, str]:
    return {"resource": "pods", "name": pod.name, "uid": pod.metadata.uid}


def _about(error: ApiError, doing: str) -> ApiError:
    return ApiError(f"{doing}: {error}", error.code, error.reason)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _results_to_wait_for(claim: ResourceClaim) -> list[DeviceRequestAllocationResult]:
    """The devices of a claim that have binding conditions."""
    allocation = claim.status.allocation
    return [each for each in allocation.devices.results if each.binding_conditions] if allocation else []


def _is_ready(claim: ResourceClaim) -> bool:
    """Whether the binding conditions of a claim's devices are met; DevicesError if one of them failed."""
    if claim.status.allocation is None:
        return False
    for result in _results_to_wait_for(claim):
        status = status_of(claim, result)
        if status is None:
            return False
        true = {each.type: each for each in status.conditions if each.status == "True"}
        for name in result.binding_failure_conditions:
            if name in true:
                failed = true[name]
                said = f'reason={failed.reason}, message="{failed.message}"'
                raise DevicesError(f"device binding failed: claim={claim.name}, {said}")
        if not true.keys() >= set(result.binding_conditions or ()):
            return False
    return True
