"""The claims that the controller makes for pods that name ResourceClaimTemplates."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from podium.manifests.defaults import default_object, generated_suffix
from podium.model import ObjectMeta, OwnerReference, Pod, ResourceClaim, ResourceClaimTemplate
from podium.model.pod import PodResourceClaimStatus

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""The annotation of such a claim that says which entry of the pod's resourceClaims it is for."""

TemplateOf = Callable[[str, str], ResourceClaimTemplate | None]
"""A template by its name and namespace."""


def claims_for(pod: Pod, template_of: TemplateOf) -> tuple[Pod, list[ResourceClaim]]:
    """The claims that a pod needs and has not, and the pod with their names in its status.

    The pod must have a uid. Nothing is made for a template that is not there: the pod waits for it. Names are the same
    in every run.
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
            owner_references=[
                OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.metadata.uid, controller=True)
            ],
        ),
        spec=template.spec.spec,
    )
    stored = default_object(claim)
    assert isinstance(stored, ResourceClaim)
    return stored
