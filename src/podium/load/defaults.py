"""What the API server fills in when an object is created, as far as scheduling reads it."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from msgspec.structs import replace

from podium.load.devices import default_claim, default_claim_template
from podium.load.kinds import effective_namespace
from podium.load.pod_defaults import default_pod
from podium.load.quantities import stored
from podium.objects import (
    Job,
    Namespace,
    Node,
    Object,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ReplicationController,
    ResourceClaim,
    ResourceClaimTemplate,
)

NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"

# The letters Kubernetes makes generated names of: no vowels, so no words, and nothing that reads like another.
_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def default_object(obj: Object) -> Object:
    """The object as the API server would store it on creation; the same object when it says everything already.

    It must have a name; one without a uid gets one made of what it is.
    """
    metadata = default_metadata(type(obj).__name__, obj.metadata)
    if metadata is not obj.metadata:
        obj = replace(obj, metadata=metadata)
    default = _DEFAULTS.get(type(obj))
    return obj if default is None else default(obj)


def default_metadata(kind: str, metadata: ObjectMeta) -> ObjectMeta:
    """Namespace and uid filled in; the same object when both are there."""
    namespace = effective_namespace(kind, metadata.namespace)
    if metadata.uid and namespace == metadata.namespace:
        return metadata
    return replace(metadata, namespace=namespace, uid=metadata.uid or generated_uid(kind, namespace, metadata.name))


def generated_uid(kind: str, namespace: str, name: str) -> str:
    """The uid of an object that has none: the same in every run, and no other object's."""
    return f"{kind}/{namespace}/{name}" if namespace else f"{kind}/{name}"


def generated_suffix(*parts: object, length: int = 5) -> str:
    """Letters for a generated name, decided by `parts` alone."""
    number = int.from_bytes(blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest())
    letters = []
    for _ in range(length):
        number, letter = divmod(number, len(_NAME_LETTERS))
        letters.append(_NAME_LETTERS[letter])
    return "".join(letters)


def _default_node(node: Node) -> Node:
    status = node.status
    capacity = stored(status.capacity)
    allocatable = capacity if status.allocatable is None and capacity else stored(status.allocatable or {})
    if capacity is status.capacity and allocatable is status.allocatable:
        return node
    return replace(node, status=replace(status, capacity=capacity, allocatable=allocatable))


def _default_namespace(namespace: Namespace) -> Namespace:
    metadata = namespace.metadata
    if metadata.labels.get(NAMESPACE_NAME_LABEL) == metadata.name:
        return namespace
    labels = {**metadata.labels, NAMESPACE_NAME_LABEL: metadata.name}
    return replace(namespace, metadata=replace(metadata, labels=labels))


def _default_persistent_volume(volume: PersistentVolume) -> PersistentVolume:
    spec = volume.spec
    capacity = stored(spec.capacity)
    if capacity is not spec.capacity:
        volume = replace(volume, spec=replace(spec, capacity=capacity))
    return volume if volume.status.phase else replace(volume, status=replace(volume.status, phase="Pending"))


def _default_claim(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    spec = claim.spec
    requests = stored(spec.resources.requests)
    if requests is not spec.resources.requests:
        claim = replace(claim, spec=replace(spec, resources=replace(spec.resources, requests=requests)))
    return claim if claim.status.phase else replace(claim, status=replace(claim.status, phase="Pending"))


def _default_replication_controller(controller: ReplicationController) -> ReplicationController:
    labels = controller.spec.template.metadata.labels if controller.spec.template else {}
    if labels and not controller.spec.selector:
        controller = replace(controller, spec=replace(controller.spec, selector=labels))
    if labels and not controller.metadata.labels:
        controller = replace(controller, metadata=replace(controller.metadata, labels=labels))
    return controller


def _default_job(job: Job) -> Job:
    labels = job.spec.template.metadata.labels
    return job if job.metadata.labels or not labels else replace(job, metadata=replace(job.metadata, labels=labels))


_DEFAULTS: dict[type[Object], Callable[[Any], Object]] = {
    Job: _default_job,
    Namespace: _default_namespace,
    Node: _default_node,
    PersistentVolume: _default_persistent_volume,
    PersistentVolumeClaim: _default_claim,
    Pod: default_pod,
    ReplicationController: _default_replication_controller,
    ResourceClaim: default_claim,
    ResourceClaimTemplate: default_claim_template,
}
