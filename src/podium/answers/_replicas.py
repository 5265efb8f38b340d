"""Creates and places the pods that an answer needs: more replicas of a workload, with their own names and claims."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.errors import ExtenderError, InputError, PluginError
from podium.manifests.expansion import (
    Expansion,
    claims_for,
    default_storage_class,
    ephemeral_claims,
    stateful_claims,
    with_claims_as_volumes,
)
from podium.manifests.workloads import expand_daemon_set, ordinal_labels
from podium.model import (
    DaemonSet,
    PersistentVolumeClaim,
    Pod,
    PodStatus,
    ResourceClaimTemplate,
    StatefulSet,
    StorageClass,
)
from podium.plugins.storage.claims import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE

_OF_BINDING = (BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE)


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


def place(scheduler: Scheduler, pod: Pod) -> str | None:
    """Put the pod on its node; None if it fits nowhere or cannot be decided: `Scheduler.message` says why."""
    try:
        return scheduler.schedule(pod)
    except (InputError, PluginError, ExtenderError):
        return None


def pods_of(templates: Sequence[Pod], mix: Sequence[int], cluster: Cluster) -> Iterator[tuple[int, Pod]]:
    """Pods of the templates in turn, each with the index of its template; no name is used twice.

    The iterator is infinite, unless a DaemonSet is among the templates and every eligible node has its pod. The claims
    of a pod are added to the cluster when it is created.
    """
    makers = [_replicas(as_template(template), cluster) for template in templates]
    while True:
        for place, number in enumerate(mix):
            for _ in range(number):
                pod = next(makers[place], None)
                if pod is None:
                    return
                yield place, pod


def as_template(pod: Pod) -> Pod:
    """The pod as it was before it had a node: without anything that happened since its creation."""
    metadata = replace(pod.metadata, creation_timestamp=None, deletion_timestamp=None)
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=PodStatus())


def is_daemon(template: Pod) -> bool:
    """Whether the pod belongs to a DaemonSet: one is created per node, and none waits for another."""
    owner = template.metadata.controller
    return owner is not None and owner.kind == "DaemonSet"


def _replicas(template: Pod, cluster: Cluster) -> Iterator[Pod]:
    owner = template.metadata.controller
    if owner is not None and owner.kind == "StatefulSet":
        return _ordinals(template, owner.name, cluster)
    if owner is not None and owner.kind == "DaemonSet":
        daemon_set = cluster.store.of(DaemonSet).get(owner.name, template.namespace)
        if daemon_set is not None:
            return _daemons(template, daemon_set, cluster)
    return _numbered(template, cluster)


def _numbered(template: Pod, cluster: Cluster) -> Iterator[Pod]:
    metadata, prefix = template.metadata, f"{template.key}-"
    for number in count():
        # A pod of the cluster may already have this name.
        if cluster.find_pod(f"{prefix}{number}") is None:
            name = f"{metadata.name}-{number}"
            numbered = replace(template, metadata=replace(metadata, name=name, uid=f"{metadata.uid}-{number}"))
            yield with_claims(numbered, cluster)


def _ordinals(template: Pod, set_name: str, cluster: Cluster) -> Iterator[Pod]:
    """The pods of a StatefulSet with free ordinals; existing claims are used, as they outlive pods."""
    known = cluster.store.of(StatefulSet).get(set_name, template.namespace) or StatefulSet()
    claimed = _claims_by_volume(template, set_name)
    default = default_storage_class(cluster.store.of(StorageClass))
    for ordinal in count(known.spec.ordinals.start):
        name = f"{set_name}-{ordinal}"
        if cluster.find_pod(f"{template.namespace}/{name}") is not None:
            continue
        made = stateful_claims(known, name, default) or _like(claimed, name, template.namespace, cluster)
        for claim in made:
            if cluster.store.of(PersistentVolumeClaim).get(claim.name, claim.namespace) is None:
                cluster.update(claim)
        metadata = replace(
            template.metadata,
            name=name,
            uid=f"{template.metadata.uid}-{ordinal}",
            labels={**template.metadata.labels, **ordinal_labels(name, ordinal)},
        )
        volumes = with_claims_as_volumes(template.spec.volumes, {volume: f"{volume}-{name}" for volume in claimed})
        yield with_claims(replace(template, metadata=metadata, spec=replace(template.spec, volumes=volumes)), cluster)


def _claims_by_volume(template: Pod, set_name: str) -> dict[str, str]:
    """The own claims of a StatefulSet's pod, by volume: they are named after the volume and the pod."""
    found = {}
    for volume in template.spec.volumes:
        source = volume.persistent_volume_claim
        if source is not None and re.fullmatch(rf"{re.escape(f'{volume.name}-{set_name}')}-\d+", source.claim_name):
            found[volume.name] = source.claim_name
    return found


def _like(claimed: dict[str, str], pod: str, namespace: str, cluster: Cluster) -> list[PersistentVolumeClaim]:
    """New claims copied from those of another pod, for a StatefulSet that is not in the input itself."""
    made = []
    for volume, name in claimed.items():
        claim = cluster.store.of(PersistentVolumeClaim).get(name, namespace)
        if claim is not None:
            annotations = {key: text for key, text in claim.metadata.annotations.items() if key not in _OF_BINDING}
            own = f"{volume}-{pod}"
            metadata = replace(claim.metadata, name=own, uid=f"{claim.metadata.uid}/{own}", annotations=annotations)
            made.append(PersistentVolumeClaim(metadata=metadata, spec=replace(claim.spec, volume_name="")))
    return made


def _daemons(template: Pod, daemon_set: DaemonSet, cluster: Cluster) -> Iterator[Pod]:
    """A pod for each eligible node that has none, with the template's priority."""
    nodes = [cluster.node(name) for name in cluster.rows]
    running = [pod for pod, _ in cluster.placed() if is_daemon(pod)]
    expansion = Expansion([*nodes, daemon_set, *running, *cluster.pending.values()])
    spec = template.spec
    for made in expand_daemon_set(daemon_set, expansion):
        if isinstance(made, Pod):
            own = replace(
                made.spec,
                priority=spec.priority,
                preemption_policy=spec.preemption_policy,
                scheduler_name=spec.scheduler_name,
            )
            yield with_claims(replace(made, spec=own), cluster)
