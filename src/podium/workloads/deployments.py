"""The ReplicaSets of Deployments: which one is current, how many pods each has, and the pods they lack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from msgspec.structs import replace

from podium.manifests.defaults import default_spec
from podium.model import (
    Deployment,
    LabelSelector,
    Object,
    ObjectMeta,
    Pod,
    PodTemplateSpec,
    ReplicaSet,
    ReplicationController,
)
from podium.model.objects import WorkloadSpec
from podium.workloads.expansion import Expansion
from podium.workloads.owners import HASH_LABEL, active, annotated_number, controller_reference, template_hash
from podium.workloads.rolling_updates import RECREATE, most_surging

_MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
"""The annotation of a ReplicaSet with the maximum number of pods of its Deployment, including the surge."""


def expand_replica_set(replica_set: ReplicaSet, expansion: Expansion) -> Iterator[Object]:
    """The pods a ReplicaSet lacks."""
    have = len(active(expansion.owned(replica_set, Pod)))
    yield from expansion.pods(replica_set, replica_set.spec.template, replica_set.spec.replicas - have)


def expand_replication_controller(controller: ReplicationController, expansion: Expansion) -> Iterator[Object]:
    """The pods a ReplicationController lacks."""
    if controller.spec.template is not None:
        have = len(active(expansion.owned(controller, Pod)))
        yield from expansion.pods(controller, controller.spec.template, controller.spec.replicas - have)


def expand_deployment(deployment: Deployment, expansion: Expansion) -> Iterator[Object]:
    """The ReplicaSet of a Deployment, if it has none yet, and the pods that all its ReplicaSets together lack."""
    replica_sets = expansion.owned(deployment, ReplicaSet)
    wanted = deployment.spec.replicas
    if replica_sets:
        for replica_set in replica_sets:
            yield from expand_replica_set(replica_set, expansion)
        # The remaining pods go to the current ReplicaSet, as if the Deployment had just been scaled up.
        current = current_replica_set(replica_sets)
        have = sum(len(active(expansion.owned(each, Pod))) for each in replica_sets)
        yield from expansion.pods(current, current.spec.template, wanted - have)
        return
    # The input may contain the pods without their ReplicaSet.
    pods = active(expansion.deployed.get((deployment.namespace, deployment.name), []))
    if wanted > len(pods):
        replica_set = expansion.add(new_replica_set(deployment, pods[-1] if pods else None))
        yield replica_set
        yield from expansion.pods(replica_set, replica_set.spec.template, wanted - len(pods))


def current_replica_set(sets: Sequence[ReplicaSet]) -> ReplicaSet:
    """The ReplicaSet for new pods: that of the last revision; without revisions the largest, and among those
    the newest.
    """
    return max(sets, key=lambda each: (_revision(each), each.spec.replicas, each.metadata.creation_timestamp or ""))


def _revision(replica_set: ReplicaSet) -> int:
    return annotated_number(replica_set, "deployment.kubernetes.io/revision") or 0


def new_replica_set(deployment: Deployment, pod: Pod | None = None, collisions: int = 0) -> ReplicaSet:
    """The Deployment's current ReplicaSet: the one of `pod`, or a new one; `collisions` change its name."""
    template = deployment.spec.template
    owner = pod.metadata.controller if pod else None
    number = pod.metadata.labels[HASH_LABEL] if pod else template_hash(template, collisions)
    labels = {**template.metadata.labels, HASH_LABEL: number}
    selector = deployment.spec.selector or LabelSelector(match_labels=template.metadata.labels)
    return ReplicaSet(
        metadata=ObjectMeta(
            name=f"{deployment.name}-{number}",
            namespace=deployment.namespace,
            uid=owner.uid if owner else "",
            labels=labels,
            owner_references=[controller_reference(deployment)],
        ),
        spec=WorkloadSpec(
            replicas=deployment.spec.replicas,
            selector=replace(selector, match_labels={**selector.match_labels, HASH_LABEL: number}),
            template=PodTemplateSpec(metadata=replace(template.metadata, labels=labels), spec=template.spec),
        ),
    )


def added_replica_set(deployment: Deployment, expansion: Expansion) -> ReplicaSet:
    """Create the ReplicaSet for a Deployment's new template; it is known to the expansion from now on."""
    collisions = count()
    made = new_replica_set(deployment)
    # Templates that differ only in fields that scheduling does not read have the same hash.
    while expansion.is_taken(ReplicaSet, made.namespace, made.name):
        made = new_replica_set(deployment, collisions=next(collisions) + 1)
    return expansion.add(made)


def replica_sets_of(deployment: Deployment, expansion: Expansion) -> list[ReplicaSet]:
    """The ReplicaSets of a Deployment, the oldest first."""
    owned = expansion.owned(deployment, ReplicaSet)
    return sorted(owned, key=lambda each: (each.metadata.creation_timestamp or "", each.name))


def find_replica_set(deployment: Deployment, sets: Sequence[ReplicaSet], *, changed: bool) -> ReplicaSet | None:
    """The oldest ReplicaSet with the Deployment's template, comparing only the parts that scheduling reads.

    If the template was just `changed`, the ReplicaSet in use does not match, even if only unread parts differ.
    """
    in_use = current_replica_set(sets) if sets and changed else None
    wanted = _comparable(deployment.spec.template)
    return next((each for each in sets if each is not in_use and _comparable(each.spec.template) == wanted), None)


def _comparable(template: PodTemplateSpec) -> tuple[object, ...]:
    labels = {key: text for key, text in template.metadata.labels.items() if key != HASH_LABEL}
    return labels, template.metadata.annotations, default_spec(template.spec)


def deployed_pods(deployment: Deployment, sets: Iterable[ReplicaSet], expansion: Expansion) -> list[Pod]:
    """The pods of a Deployment's ReplicaSets; if these are not in the input, the pods whose names match."""
    pods = {pod.key: pod for each in sets for pod in expansion.owned(each, Pod)}
    pods |= {pod.key: pod for pod in expansion.deployed.get((deployment.namespace, deployment.name), ())}
    return [pod for pod in pods.values() if not pod.finished]


def scaled_sizes(deployment: Deployment, sets: Sequence[ReplicaSet]) -> dict[str, int]:
    """The number of pods of each ReplicaSet after its Deployment was scaled; empty ReplicaSets are left out.

    During a rolling update, the old and the new ReplicaSets grow or shrink in proportion, up to the total that maxSurge
    allows; a single ReplicaSet gets all. `sets` are ordered by age.
    """
    wanted, sizes = deployment.spec.replicas, {each.name: each.spec.replicas for each in sets if each.spec.replicas}
    if len(sizes) < 2 or deployment.spec.strategy.type == RECREATE:
        return dict.fromkeys(sizes, wanted) if len(sizes) < 2 else {}
    most, before = wanted + most_surging(deployment, wanted) if wanted else 0, sum(sizes.values())
    left = most - before
    # Among equally large sets, the newest grows first, the oldest shrinks first.
    with_pods = [each for each in (sets if left < 0 else reversed(sets)) if each.name in sizes]
    with_pods.sort(key=lambda each: -each.spec.replicas)
    for each in with_pods if left else ():
        share = int(each.spec.replicas * most / (annotated_number(each, _MAX_REPLICAS) or before) + 0.5)
        share -= each.spec.replicas
        share = min(share, left) if most > before else max(share, left)
        sizes[each.name] += share
        left -= share
        if not left:
            break
    largest = with_pods[0].name
    return sizes | {largest: max(sizes[largest] + left, 0)}
