"""What controllers need to create pods: owners, names, claims from templates, and the pod of a template."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from podium.errors import InputError
from podium.manifests.decode import full_name
from podium.manifests.defaults import Priorities, default_object, generated_suffix, generated_uid
from podium.model import (
    Node,
    Object,
    ObjectMeta,
    OwnerReference,
    PersistentVolumeClaim,
    Pod,
    PodStatus,
    PodTemplateSpec,
    ResourceClaim,
    ResourceClaimTemplate,
    StatefulSet,
    StorageClass,
    Volume,
)
from podium.model.pod import PersistentVolumeClaimVolumeSource, PodResourceClaimStatus

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a generated claim that names its entry in the pod's resourceClaims."""

_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")

TemplateOf = Callable[[str, str], ResourceClaimTemplate | None]
"""A template by its name and namespace."""


def claims_for(pod: Pod, template_of: TemplateOf) -> tuple[Pod, list[ResourceClaim]]:
    """The claims that a pod needs and does not have, and the pod with their names in its status.

    The pod must have a uid. If a template is missing, no claim is created: the pod waits for it. Names are the same in
    every run.
    """
    made: list[ResourceClaim] = []
    statuses = list(pod.status.resource_claim_statuses)
    known = {status.name for status in statuses}
    for reference in pod.spec.resource_claims:
        name = reference.resource_claim_template_name
        template = template_of(name, pod.namespace) if name and reference.name not in known else None
        if template is not None:
            claim = _made_from(template, pod, reference.name)
            made.append(claim)
            statuses.append(PodResourceClaimStatus(name=reference.name, resource_claim_name=claim.name))
    if not made:
        return pod, made
    return replace(pod, status=replace(pod.status, resource_claim_statuses=statuses)), made


def _made_from(template: ResourceClaimTemplate, pod: Pod, entry: str) -> ResourceClaim:
    prefix, metadata = f"{pod.name}-{entry}-", template.spec.metadata
    claim = ResourceClaim(
        metadata=ObjectMeta(
            name=prefix + generated_suffix(pod.namespace, prefix, pod.metadata.uid),
            generate_name=prefix,
            namespace=pod.namespace,
            labels=metadata.labels,
            annotations={**metadata.annotations, POD_CLAIM_NAME: entry},
            owner_references=[_owned_by(pod)],
        ),
        spec=template.spec.spec,
    )
    stored = default_object(claim)
    assert isinstance(stored, ResourceClaim)
    return stored


def _owned_by(pod: Pod) -> OwnerReference:
    return OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.metadata.uid, controller=True)


# -- volumes -------------------------------------------------------------------------------------------------------


def ephemeral_claims(pod: Pod, default_class: str | None) -> Iterator[PersistentVolumeClaim]:
    """A claim for each generic ephemeral volume of a pod, which must have a uid: the pod owns the claims."""
    for volume in pod.spec.volumes:
        template = volume.ephemeral.volume_claim_template if volume.ephemeral else None
        if template is not None:
            metadata = ObjectMeta(
                name=f"{pod.name}-{volume.name}",
                namespace=pod.namespace,
                labels=template.metadata.labels,
                annotations=template.metadata.annotations,
                owner_references=[_owned_by(pod)],
            )
            yield stored_claim(PersistentVolumeClaim(metadata=metadata, spec=template.spec), default_class)


def stateful_claims(stateful_set: StatefulSet, pod: str, default_class: str | None) -> list[PersistentVolumeClaim]:
    """The claims of the StatefulSet's pod with this name, one per volumeClaimTemplate; they outlive the pod."""
    selector = stateful_set.spec.selector
    labels = selector.match_labels if selector else {}
    claims = []
    for template in stateful_set.spec.volume_claim_templates:
        metadata = ObjectMeta(
            name=f"{template.name}-{pod}",
            namespace=stateful_set.namespace,
            labels={**template.metadata.labels, **labels},
            annotations=template.metadata.annotations,
        )
        claims.append(stored_claim(PersistentVolumeClaim(metadata=metadata, spec=template.spec), default_class))
    return claims


def with_claims_as_volumes(volumes: Iterable[Volume], claims: dict[str, str]) -> list[Volume]:
    """The volumes, where those named in `claims` are replaced by their claims."""
    wired = [
        Volume(name=name, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim))
        for name, claim in claims.items()
    ]
    return [*wired, *(volume for volume in volumes if volume.name not in claims)]


def stored_claim(claim: PersistentVolumeClaim, default_class: str | None) -> PersistentVolumeClaim:
    """The claim as the API server would store it: with the default storage class unless it names another."""
    if claim.spec.storage_class_name is None and default_class is not None:
        claim = replace(claim, spec=replace(claim.spec, storage_class_name=default_class))
    stored = default_object(claim)
    assert isinstance(stored, PersistentVolumeClaim)
    return stored


def default_storage_class(classes: Iterable[StorageClass]) -> str | None:
    """The storage class of claims that name none: the newest class marked as default; None if there is none."""
    marked = [each for each in classes if any(each.metadata.annotations.get(key) == "true" for key in _DEFAULT_CLASS)]
    by_name = sorted(marked, key=lambda each: each.name)
    newest = max(by_name, key=lambda each: each.metadata.creation_timestamp or "", default=None)
    return newest.name if newest else None


T = TypeVar("T", bound=Object)

HASH_LABEL = "pod-template-hash"
MOST_PODS_OF_WORKLOAD = 1_000_000
"""The maximum number of pods of one workload."""

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


class Expansion:
    """The objects of the input, and the creation of those that controllers would add."""

    def __init__(self, objects: Iterable[Object]) -> None:
        objects = list(objects)
        self.nodes = [obj for obj in objects if type(obj) is Node]
        self.priorities = Priorities(objects)
        self.due: list[str] = []
        """The CronJobs treated as due now."""
        self._taken = {obj.identity for obj in objects}
        self._next: Counter[tuple[str, str, str]] = Counter()
        self._owned: dict[tuple[str, str, str], list[Object]] = defaultdict(list)
        self.default_class = default_storage_class(obj for obj in objects if type(obj) is StorageClass)
        self._claim_templates = {
            (obj.namespace, obj.name): obj for obj in objects if isinstance(obj, ResourceClaimTemplate)
        }
        for obj in objects:
            self._note_owner(obj)

    def owned(self, owner: Object, kind: type[T]) -> list[T]:
        """The objects of a kind that have `owner` as their controller."""
        owned = self._owned.get(owner.identity, ())
        return [obj for obj in owned if type(obj) is kind]

    @cached_property
    def deployed(self) -> dict[tuple[str, str], list[Pod]]:
        """The pods of each Deployment, by its namespace and name, as derived from the names of the pods' owners."""
        deployed = defaultdict(list)
        for owned in self._owned.values():
            for pod in owned:
                if type(pod) is Pod and (name := deployment_of(pod)):
                    deployed[pod.namespace, name].append(pod)
        return deployed

    def is_taken(self, kind: type[Object], namespace: str, name: str) -> bool:
        return (kind.__name__, namespace, name) in self._taken

    def free_name(self, kind: type[Object], namespace: str, prefix: str) -> str:
        """`prefix-0`, or the next number that is free."""
        key = (kind.__name__, namespace, prefix)
        while self.is_taken(kind, namespace, f"{prefix}-{self._next[key]}"):
            self._next[key] += 1
        return f"{prefix}-{self._next[key]}"

    def pods(self, owner: Object, template: PodTemplateSpec, number: int) -> Iterator[Object]:
        """A number of pods of a template, with their claims."""
        refuse_too_many(owner, number)
        for _ in range(number):
            name = self.free_name(Pod, owner.namespace, owner.name)
            yield from self.pod(owner, template, name)

    def pod(
        self, owner: Object, template: PodTemplateSpec, name: str, *, labels: dict[str, str] | None = None
    ) -> Iterator[Object]:
        """One pending pod of a template, and a claim for each generic ephemeral volume."""
        metadata = ObjectMeta(
            name=name,
            generate_name=f"{owner.name}-",
            namespace=owner.namespace,
            labels={**template.metadata.labels, **(labels or {})},
            annotations=template.metadata.annotations,
            owner_references=[controller_reference(owner)],
        )
        pod = self.add(Pod(metadata=metadata, spec=template.spec, status=PodStatus(phase="Pending")))
        pod, claims = self.with_claims(pod)
        yield self.priorities.resolve(pod)
        yield from claims
        yield from self.ephemeral_claims(pod)

    def with_claims(self, pod: Pod) -> tuple[Pod, list[ResourceClaim]]:
        """A pod with the resource claims that are created from templates for it."""
        if not pod.spec.resource_claims:
            return pod, []
        pod, claims = claims_for(pod, lambda name, namespace: self._claim_templates.get((namespace, name)))
        return pod, [self.add(claim) for claim in claims]

    def add(self, obj: T) -> T:
        """The object as the API server would store it; it is known to the expansion from now on."""
        stored = default_object(obj)
        assert isinstance(stored, type(obj))
        self._taken.add(stored.identity)
        self._note_owner(stored)
        return stored

    def _note_owner(self, obj: Object) -> None:
        owner = obj.metadata.controller if obj.metadata.owner_references else None
        if owner is not None:
            self._owned[owner.kind, obj.namespace, owner.name].append(obj)

    def ephemeral_claims(self, pod: Pod) -> Iterator[Object]:
        """A claim for each generic ephemeral volume that has none yet."""
        for claim in ephemeral_claims(pod, self.default_class):
            if not self.is_taken(PersistentVolumeClaim, claim.namespace, claim.name):
                yield self.add(claim)


def deployment_of(pod: Pod) -> str | None:
    """The Deployment of a pod's ReplicaSet: the part of its name before the template hash."""
    owner, number = pod.metadata.controller, pod.metadata.labels.get(HASH_LABEL)
    if owner is None or owner.kind != "ReplicaSet" or not number or not owner.name.endswith(f"-{number}"):
        return None
    return owner.name.removesuffix(f"-{number}")


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


def active(pods: list[Pod]) -> list[Pod]:
    """The pods that a controller counts: neither finished nor terminating."""
    return [pod for pod in pods if not pod.finished and not pod.terminating]


def controller_reference(owner: Object) -> OwnerReference:
    kind = type(owner).__name__
    uid = owner.metadata.uid or generated_uid(kind, owner.namespace, owner.name)
    return OwnerReference(api_version=_API_VERSIONS[kind], kind=kind, name=owner.name, uid=uid, controller=True)


def template_hash(template: PodTemplateSpec, collisions: int = 0) -> str:
    """A short hash of a template; not the same letters as the controllers', but as stable."""
    salt = (collisions,) if collisions else ()
    return generated_suffix(msgspec.json.encode(template, order="deterministic"), *salt, length=_HASH_LENGTH)


def refuse_too_many(owner: Object, number: int) -> None:
    """InputError for a workload with more pods than any cluster has: creating them would exhaust the memory."""
    if number > MOST_PODS_OF_WORKLOAD:
        kind, name = type(owner).__name__, owner.name
        # A Deployment's ReplicaSet and a CronJob's Job are usually created here: no file contains them.
        for reference in owner.metadata.owner_references:
            if reference.controller:
                kind, name = reference.kind, reference.name
        name = full_name(kind, owner.namespace, name)
        raise InputError(f"{name}: asks for {number:,} pods; up to {MOST_PODS_OF_WORKLOAD:,} can be simulated")
