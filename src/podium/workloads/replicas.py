"""More pods of a workload, each with a name of its own and its claims."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.model.objects import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    DaemonSet,
    PersistentVolumeClaim,
    StatefulSet,
    StorageClass,
)
from podium.model.pod import Pod, is_of_daemon_set
from podium.workloads.claims import default_storage_class, stateful_claims, with_claims, with_claims_as_volumes
from podium.workloads.daemon_sets import expand_daemon_set
from podium.workloads.expansion import Expansion
from podium.workloads.owners import ordinal_labels, recreated

_OF_BINDING = (BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE)


def pods_of(templates: Sequence[Pod], mix: Sequence[int], cluster: Cluster) -> Iterator[tuple[int, Pod]]:
    """Pods of the templates in turn, each with the index of its template; no name is used twice.

    The iterator is infinite, unless a DaemonSet is among the templates and every eligible node has its pod. The claims
    of a pod are added to the cluster when it is created.
    """
    makers = [_replicas(recreated(template), cluster) for template in templates]
    while True:
        for place, number in enumerate(mix):
            for _ in range(number):
                pod = next(makers[place], None)
                if pod is None:
                    return
                yield place, pod


def _replicas(template: Pod, cluster: Cluster) -> Iterator[Pod]:
    owner = template.metadata.controller
    if owner is not None and owner.kind == "StatefulSet":
        return _ordinals(template, owner.name, cluster)
    if owner is not None and is_of_daemon_set(template):
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
    running = [pod for pod, _ in cluster.placed() if is_of_daemon_set(pod)]
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
