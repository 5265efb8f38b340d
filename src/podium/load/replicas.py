"""Deployments, ReplicaSets and ReplicationControllers: a number of like pods."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from podium.load.expansion import HASH_LABEL, Expansion, active, controller_reference, template_hash
from podium.objects import (
    Deployment,
    LabelSelector,
    Object,
    ObjectMeta,
    Pod,
    PodTemplateSpec,
    ReplicaSet,
    ReplicationController,
)


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
        # The rest goes to the current one, as when the Deployment was just scaled up.
        current = max(replica_sets, key=lambda each: (each.spec.replicas, each.metadata.creation_timestamp or ""))
        have = sum(len(active(expansion.owned(each, Pod))) for each in replica_sets)
        yield from expansion.pods(current, current.spec.template, wanted - have)
        return
    # The input may have the pods and not their ReplicaSet.
    pods = active(expansion.deployed.get((deployment.namespace, deployment.name), []))
    if wanted > len(pods):
        replica_set = expansion.add(_replica_set(deployment, pods[-1] if pods else None))
        yield replica_set
        yield from expansion.pods(replica_set, replica_set.spec.template, wanted - len(pods))


def _replica_set(deployment: Deployment, pod: Pod | None) -> ReplicaSet:
    """The Deployment's current ReplicaSet: the one `pod` belongs to, or a new one."""
    template = deployment.spec.template
    owner = pod.metadata.controller if pod else None
    number = pod.metadata.labels[HASH_LABEL] if pod else template_hash(template)
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
        spec=replace(
            deployment.spec,
            selector=replace(selector, match_labels={**selector.match_labels, HASH_LABEL: number}),
            template=PodTemplateSpec(metadata=replace(template.metadata, labels=labels), spec=template.spec),
        ),
    )
