"""StatefulSets: numbered pods, each with claims of its own."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from podium.load.expansion import Expansion, refuse_too_many, template_hash
from podium.objects import Object, ObjectMeta, PersistentVolumeClaim, Pod, PodTemplateSpec, StatefulSet, Volume
from podium.objects.volumes import PersistentVolumeClaimVolumeSource


def expand_stateful_set(stateful_set: StatefulSet, expansion: Expansion) -> Iterator[Object]:
    """The pods whose numbers are missing, each after the claims it lacks."""
    revision = f"{stateful_set.name}-{template_hash(stateful_set.spec.template)}"
    start = stateful_set.spec.ordinals.start
    refuse_too_many(stateful_set, stateful_set.spec.replicas)
    for ordinal in range(start, start + stateful_set.spec.replicas):
        name = f"{stateful_set.name}-{ordinal}"
        # A pod on its way out still holds the name, and the controller waits for it.
        if expansion.is_taken(Pod, stateful_set.namespace, name):
            continue
        claims = {each.name: f"{each.name}-{name}" for each in stateful_set.spec.volume_claim_templates}
        for template in stateful_set.spec.volume_claim_templates:
            if not expansion.is_taken(PersistentVolumeClaim, stateful_set.namespace, claims[template.name]):
                yield _claim(stateful_set, template, claims[template.name], expansion)
        labels = {
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(ordinal),
            "controller-revision-hash": revision,
        }
        yield from expansion.pod(stateful_set, _with_claims(stateful_set.spec.template, claims), name, labels=labels)


def _claim(
    stateful_set: StatefulSet, template: PersistentVolumeClaim, name: str, expansion: Expansion
) -> PersistentVolumeClaim:
    selector = stateful_set.spec.selector
    metadata = ObjectMeta(
        name=name,
        namespace=stateful_set.namespace,
        labels={**template.metadata.labels, **(selector.match_labels if selector else {})},
        annotations=template.metadata.annotations,
    )
    return expansion.claim(metadata, template.spec)


def _with_claims(template: PodTemplateSpec, claims: dict[str, str]) -> PodTemplateSpec:
    """The template with the claims as volumes, in place of its own volumes of the same names."""
    volumes = [
        Volume(name=volume, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim))
        for volume, claim in claims.items()
    ]
    volumes += [volume for volume in template.spec.volumes if volume.name not in claims]
    return replace(template, spec=replace(template.spec, volumes=volumes))
