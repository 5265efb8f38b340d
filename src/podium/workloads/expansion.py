"""What controllers see of the input, and how they add objects to it: pods of a template, with their claims."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TypeVar

from podium.errors import InputError
from podium.manifests.decode import full_name
from podium.manifests.defaults import Priorities, default_object
from podium.model import (
    Node,
    Object,
    ObjectMeta,
    PersistentVolumeClaim,
    Pod,
    PodStatus,
    PodTemplateSpec,
    ResourceClaim,
    ResourceClaimTemplate,
    StorageClass,
)
from podium.workloads.admission import Admission, Refusal
from podium.workloads.claims import claims_for, default_storage_class, ephemeral_claims
from podium.workloads.owners import controller_reference, deployment_of

T = TypeVar("T", bound=Object)
MOST_PODS_OF_WORKLOAD = 1_000_000
"""The maximum number of pods of one workload."""


class Expansion:
    """The objects of the input, and the creation of those that controllers would add."""

    def __init__(self, objects: Iterable[Object]) -> None:
        objects = list(objects)
        self.nodes = [obj for obj in objects if type(obj) is Node]
        self.priorities = Priorities(objects)
        self.admission = Admission(objects)
        self.refused: list[Refusal] = []
        """The pods that the API server refuses to create."""
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
        refused = len(self.refused)
        for place in range(number):
            name = self.free_name(Pod, owner.namespace, owner.name)
            yield from self.pod(owner, template, name)
            if len(self.refused) > refused:
                # The others are like this one, and refused as well.
                self.refused[-1] = dataclasses.replace(self.refused[-1], count=number - place)
                return

    def pod(
        self, owner: Object, template: PodTemplateSpec, name: str, *, labels: dict[str, str] | None = None
    ) -> Iterator[Object]:
        """One pending pod of a template, and a claim for each generic ephemeral volume; nothing if it is refused."""
        metadata = ObjectMeta(
            name=name,
            generate_name=f"{owner.name}-",
            namespace=owner.namespace,
            labels={**template.metadata.labels, **(labels or {})},
            annotations=template.metadata.annotations,
            owner_references=[controller_reference(owner)],
        )
        new = Pod(metadata=metadata, spec=template.spec, status=PodStatus(phase="Pending"))
        admitted = self._admitted(new, owner) if self.admission else new
        if admitted is None:
            return
        pod, claims = self.with_claims(self.add(admitted))
        yield self.priorities.resolve(pod)
        yield from claims
        yield from self.ephemeral_claims(pod)

    def _admitted(self, new: Pod, owner: Object) -> Pod | None:
        """A new pod with the defaults of its namespace; None if the API server refuses it."""
        pod = default_object(new)
        assert isinstance(pod, Pod)
        pod = self.admission.with_defaults(self.priorities.resolve(pod))
        reason = self.admission.refusal(pod)
        if not reason:
            self.admission.note(pod)
            return pod
        above = owner.metadata.controller
        workload = f"{above.kind}/{above.name}" if above else f"{type(owner).__name__}/{owner.name}"
        self.refused.append(Refusal(workload, owner.namespace, 1, reason))
        return None

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
