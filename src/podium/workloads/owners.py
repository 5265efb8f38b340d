"""Which workload a pod belongs to: owner references, the Deployment of a ReplicaSet, template hashes, ordinals."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from podium.manifests.defaults import generated_suffix, generated_uid
from podium.model import Object, OwnerReference, Pod, PodStatus, PodTemplateSpec

HASH_LABEL = "pod-template-hash"
_API_VERSIONS = {
    "Pod": "v1",
    "ReplicationController": "v1",
    "CronJob": "batch/v1",
    "Job": "batch/v1",
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
}
_HASH_LENGTH = 6


def workload_of(pod: Pod) -> str:
    """The workload of a pod: `Deployment/web`, `StatefulSet/db`, or `Pod/name` for a pod without one.

    If the name of a ReplicaSet ends in the pod's template hash, the Deployment's name is the part before it.
    """
    owner = pod.metadata.controller
    if owner is None:
        return f"Pod/{pod.name}"
    deployment = deployment_of(pod)
    return f"Deployment/{deployment}" if deployment else f"{owner.kind}/{owner.name}"


def deployment_of(pod: Pod) -> str | None:
    """The Deployment of a pod's ReplicaSet: the part of its name before the template hash."""
    owner, number = pod.metadata.controller, pod.metadata.labels.get(HASH_LABEL)
    if owner is None or owner.kind != "ReplicaSet" or not number or not owner.name.endswith(f"-{number}"):
        return None
    return owner.name.removesuffix(f"-{number}")


def owned_by(pod: Pod, owner: Object) -> bool:
    controller = pod.metadata.controller
    return controller is not None and (controller.kind, controller.name) == (type(owner).__name__, owner.name)


def ordinal_of(pod: Pod) -> int:
    """The ordinal of a StatefulSet's pod; -1 for a pod that has none."""
    number = pod.name.rpartition("-")[2]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1


def ordinal_labels(name: str, ordinal: int) -> dict[str, str]:
    """The labels that distinguish the pods of a StatefulSet."""
    return {"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": str(ordinal)}


def controller_reference(owner: Object) -> OwnerReference:
    kind = type(owner).__name__
    uid = owner.metadata.uid or generated_uid(kind, owner.namespace, owner.name)
    return OwnerReference(api_version=_API_VERSIONS[kind], kind=kind, name=owner.name, uid=uid, controller=True)


def template_hash(template: PodTemplateSpec, collisions: int = 0) -> str:
    """A short hash of a template; not the same letters as the controllers', but as stable."""
    salt = (collisions,) if collisions else ()
    return generated_suffix(msgspec.json.encode(template, order="deterministic"), *salt, length=_HASH_LENGTH)


def annotated_number(obj: Object, key: str) -> int | None:
    """The value of an annotation if it is a number of at least 0, else None."""
    text = obj.metadata.annotations.get(key, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def active(pods: list[Pod]) -> list[Pod]:
    """The pods that a controller counts: neither finished nor terminating."""
    return [pod for pod in pods if not pod.finished and not pod.terminating]


def recreated(pod: Pod, name: str = "", uid: str = "") -> Pod:
    """The pod as its controller creates it again: without a node or anything else that happened since its creation.

    An empty `name` or `uid` leaves the old one.
    """
    metadata = replace(
        pod.metadata,
        name=name or pod.name,
        uid=uid or pod.metadata.uid,
        creation_timestamp=None,
        deletion_timestamp=None,
    )
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=PodStatus(phase="Pending"))
