"""The claims that come with a pod: from the templates of its volumes and devices, or of its StatefulSet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.manifests.defaults import default_object, generated_suffix
from podium.model import (
    ObjectMeta,
    OwnerReference,
    PersistentVolumeClaim,
    Pod,
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


def with_claims(pod: Pod, cluster: Cluster) -> Pod:
    """Create a new pod's claims from templates, add them to the cluster, and return the pod with their names.

    An existing claim of an ephemeral volume is left alone.
    """
    if pod.spec.resource_claims:
        pod, claims = claims_for(pod, cluster.store.of(ResourceClaimTemplate).get)
        for claim in claims:
            cluster.update(claim)
    if any(volume.ephemeral is not None for volume in pod.spec.volumes):
        known = cluster.store.of(PersistentVolumeClaim)
        for ephemeral in ephemeral_claims(pod, default_storage_class(cluster.store.of(StorageClass))):
            if known.get(ephemeral.name, ephemeral.namespace) is None:
                cluster.update(ephemeral)
    return pod
