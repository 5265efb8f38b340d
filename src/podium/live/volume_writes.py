"""Binds the volumes and claims that were reserved for a pod, or has them provisioned."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import msgspec

from podium.errors import PodiumError
from podium.live.client import MERGE_PATCH, Requests
from podium.live.reading import RESOURCES, resource_of
from podium.live.reflector import Reflectors
from podium.loop.queued_pod import Assumed
from podium.model import CSINode, Node, PersistentVolume, PersistentVolumeClaim
from podium.model.objects import SELECTED_NODE
from podium.model.selectors import NodeMatcher
from podium.plugins.storage.bindable_volumes import volume_affinity_terms
from podium.plugins.storage.claims import claim_not_found, is_fully_bound
from podium.plugins.storage.csi_translation import in_tree_plugin, migrated_plugins, translate_affinity
from podium.plugins.storage.volume_binding import Stored, VolumeBinding

VOLUME_CHECK_INTERVAL = 1.0
"""Seconds, as in kube-scheduler."""


class VolumesError(PodiumError):
    """A pod's volumes could not be bound or provisioned."""


class VolumeWrites:
    """Carries out VolumeBinding's reservations for a pod."""

    def __init__(self, client: Requests, reflectors: Reflectors) -> None:
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
