"""The volumes of a pod before it is bound: reserved or asked for at the API server, and waited for."""

from __future__ import annotations

import asyncio
import time

import msgspec

from podium.errors import PodiumError
from podium.live.client import MERGE_PATCH, ApiClient
from podium.live.reflector import Reflectors
from podium.live.resources import RESOURCES, resource_of
from podium.loop.waiting import Assumed
from podium.model import PersistentVolume, PersistentVolumeClaim
from podium.plugins.storage.claims import BIND_COMPLETED, SELECTED_NODE
from podium.plugins.storage.volume_binding import Stored, VolumeBinding

LOOKS_EVERY = 1.0
"""Seconds, as kube-scheduler."""
DEFAULT_TIMEOUT = 600.0


class VolumesError(PodiumError):
    """A pod's volumes could not be had."""


class VolumeWrites:
    """Carries out what VolumeBinding reserved for a pod."""

    def __init__(self, client: ApiClient, reflectors: Reflectors) -> None:
        self._client, self._reflectors = client, reflectors

    async def bind(self, assumed: Assumed, timeout: float) -> None:
        """Write what was reserved, and wait until all of it is bound; ApiError or VolumesError if that fails."""
        changes = VolumeBinding.reserved(assumed.state)
        if not changes:
            return
        for before, after in changes:
            await self._write(before, after)
        until = time.monotonic() + timeout
        while not self._are_bound(assumed, [after for _, after in changes]):
            if time.monotonic() >= until:
                raise VolumesError("binding volumes: context deadline exceeded")
            await asyncio.sleep(LOOKS_EVERY)

    async def _write(self, before: Stored, after: Stored) -> None:
        """Change one object, if nobody changed it since it was looked at."""
        resource = resource_of(after)
        known = self._reflectors.known(resource.kind, after.key)
        version = {"resourceVersion": known.version} if known is not None else {}
        patch: dict[str, object] = {"metadata": {"annotations": after.metadata.annotations, **version}}
        if isinstance(after, PersistentVolume) and after.spec.claim_ref is not None:
            claim = RESOURCES["PersistentVolumeClaim"]
            reference = msgspec.to_builtins(after.spec.claim_ref)
            patch["spec"] = {"claimRef": {"apiVersion": claim.api_version, "kind": claim.kind, **reference}}
        path = resource.path_of(after.namespace, after.name)
        await self._client.request("PATCH", path, msgspec.json.encode(patch), content_type=MERGE_PATCH)

    def _are_bound(self, assumed: Assumed, changed: list[Stored]) -> bool:
        """Whether the claims of everything changed are bound; VolumesError if they will not be."""
        if self._reflectors.known("Pod", assumed.pod.key) is None:
            raise VolumesError("binding volumes: pod does not exist any more")
        if self._reflectors.known("Node", assumed.node) is None:
            raise VolumesError(f'binding volumes: failed to get node "{assumed.node}"')
        return all(self._is_bound(item, assumed.node) for item in changed)

    def _is_bound(self, item: Stored, node: str) -> bool:
        if isinstance(item, PersistentVolume):
            volume = self._reflectors.known("PersistentVolume", item.key)
            reference = item.spec.claim_ref
            assert reference is not None, "a volume is changed by reserving it for a claim"
            if volume is None:
                raise VolumesError(f'binding volumes: persistentvolume "{item.name}" not found')
            return self._is_claim_bound(f"{reference.namespace}/{reference.name}", "")
        return self._is_claim_bound(item.key, node)

    def _is_claim_bound(self, key: str, node: str) -> bool:
        """Whether a claim is bound; one that is to be provisioned for a node must still name that."""
        found = self._reflectors.known("PersistentVolumeClaim", key)
        if found is None:
            raise VolumesError(f'binding volumes: persistentvolumeclaim "{key}" not found')
        claim = found.object
        assert isinstance(claim, PersistentVolumeClaim)
        is_bound = bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations
        if node and not is_bound and claim.metadata.annotations.get(SELECTED_NODE, node) != node:
            raise VolumesError(f'binding volumes: provisioning failed for PVC "{claim.name}"')
        return is_bound
