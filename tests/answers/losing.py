"""Small clusters whose nodes go, and what becomes of their pods, in few words."""

from __future__ import annotations

from typing import Any

from builders import HOSTNAME, ZONE, make_node, make_object, make_pod
from podium.answers import Disruption, DisruptionSettings, drain, fail
from podium.cluster import Cluster
from podium.model import Object, Pod

SET = {"kind": "ReplicaSet", "name": "web"}
WEB = {"labels": {"app": "web"}, "owner": SET}
TOLERATE_ALL = [{"operator": "Exists"}]


def nodes(names: str, **fields: Any) -> list[Object]:
    """Nodes of 4 cpu; the first letter is the zone."""
    return [make_node(name, labels={ZONE: name[0], HOSTNAME: name}, **fields) for name in names.split()]


def web(name: str, on: str, cpu: str = "1", **fields: Any) -> Pod:
    return make_pod(name, node=on, requests={"cpu": cpu}, **{**WEB, **fields})


def budget(name: str = "web", **spec: Any) -> Object:
    selector = {"matchLabels": {"app": "web"}}
    return make_object("PodDisruptionBudget", name, namespace="default", spec={"selector": selector, **spec})


def replica_set(replicas: int) -> Object:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "app"}]}}
    selector = {"matchLabels": {"app": "web"}}
    spec = {"replicas": replicas, "selector": selector, "template": template}
    return make_object("ReplicaSet", "web", namespace="default", spec=spec)


def fates(found: Disruption) -> dict[str, tuple[str, str | None]]:
    return {pod.pod.partition("/")[2]: (pod.fate.value, pod.to) for pod in found.pods}


def drained(*objects: Object, node: str = "a1", **settings: Any) -> Disruption:
    return drain(Cluster.from_objects(objects), [node], DisruptionSettings(**settings))


def failed(*objects: Object, node: str = "a1", **settings: Any) -> Disruption:
    return fail(Cluster.from_objects(objects), [node], DisruptionSettings(**settings))
