"""The selector that groups a pod with its siblings: that of its services and its owner."""

from __future__ import annotations

from podium.cluster import Cluster
from podium.errors import SelectorError
from podium.model import Pod, ReplicaSet, ReplicationController, Service, StatefulSet
from podium.model.selectors import Selector, label_selector, match_labels

EVERYTHING = Selector()


def pod_services(pod: Pod, cluster: Cluster) -> list[Service]:
    """The services that select the pod, by name; a service without a selector selects nothing."""
    return [
        service
        for service in cluster.store.of(Service).within(pod.namespace)
        if service.spec.selector is not None and match_labels(service.spec.selector).matches(pod.metadata.labels)
    ]


def default_selector(pod: Pod, cluster: Cluster) -> Selector:
    """Labels of all services that select the pod, and what its controller selects; empty when there is neither."""
    labels: dict[str, str] = {}
    for service in pod_services(pod, cluster):
        labels.update(service.spec.selector or {})
    owner = pod.metadata.controller
    if owner is None:
        return match_labels(labels) if labels else EVERYTHING
    kind = (owner.api_version, owner.kind)
    if kind == ("v1", "ReplicationController"):
        controller = cluster.store.of(ReplicationController).get(owner.name, pod.namespace)
        return match_labels(labels | controller.spec.selector if controller else labels)
    workload: ReplicaSet | StatefulSet | None = None
    if kind == ("apps/v1", "ReplicaSet"):
        workload = cluster.store.of(ReplicaSet).get(owner.name, pod.namespace)
    elif kind == ("apps/v1", "StatefulSet"):
        workload = cluster.store.of(StatefulSet).get(owner.name, pod.namespace)
    if workload is None:
        return match_labels(labels)
    try:
        added = label_selector(workload.spec.selector)
    except SelectorError:
        return match_labels(labels)
    return match_labels(labels).add(added.requirements)
