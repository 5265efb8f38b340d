"""An hour in the life of a cluster, and of one that is full, as events."""

from __future__ import annotations

import random
from typing import Any

from bench.shapes import HOST as HOSTNAME
from bench.shapes import ZONE
from podium.manifests import load
from podium.model import Node

Fields = dict[str, Any]

SIZES = (("100m", "128Mi"), ("250m", "512Mi"), ("500m", "1Gi"), ("1", "2Gi"), ("2", "4Gi"))
APPS = 40


def hour_nodes(count: int) -> list[Node]:
    """Nodes of 16 cores in three zones."""
    return load([_node(i) for i in range(count)]).of(Node)


def _node(number: int) -> Fields:
    name, size = f"node-{number:04}", {"cpu": "16", "memory": "64Gi", "pods": "110"}
    metadata = {"name": name, "labels": {HOSTNAME: name, ZONE: "abc"[number % 3]}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": size}}


def hour_events(seed: int, nodes: int, pods: int, *, failing: float = 0.01, seconds: int = 3600) -> list[Fields]:
    """Pods that come at any time and run for some minutes, and nodes that are lost and come back ten minutes later."""
    chance = random.Random(seed)
    events = [_arrival(i, chance, seconds) for i in range(pods)]
    for i in chance.sample(range(nodes), int(nodes * failing)):
        at = chance.uniform(0.1, 0.7) * seconds
        events.append({"time": at, "event": "delete", "object": _node(i)})
        events.append({"time": at + 600, "event": "add", "object": _node(i)})
    return events


def _arrival(number: int, chance: random.Random, seconds: int) -> Fields:
    app = chance.randrange(APPS)
    cpu, memory = SIZES[app % len(SIZES)]
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"app-{app}",
        "uid": f"app-{app}",
        "controller": True,
    }
    metadata = {"name": f"app-{app}-{number:05}", "namespace": "default", "labels": {"app": f"app-{app}"}}
    container = {"name": "main", "image": f"app-{app}", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    spec = {"containers": [container], "priority": (0, 0, 0, 100)[app % 4]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "ownerReferences": [owner]}, "spec": spec}
    lifetime = chance.uniform(60, 1200)
    return {"time": chance.uniform(0, seconds), "event": "add", "object": pod, "lifetime": lifetime}


# -- a full cluster --------------------------------------------------------------------------------------------------

FULL_SIZES = ("500m", "1", "2")


def full_nodes(count: int) -> list[Node]:
    """Nodes of 8 cores."""
    size = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return load([_object("Node", f"node-{i:03}", status={"allocatable": size}) for i in range(count)]).of(Node)


def full_events(seed: int, pods: int) -> list[Fields]:
    """Pods that come within ten minutes and run for half an hour: many more than there is room for."""
    chance, events = random.Random(seed), []
    for number in range(pods):
        requests = {"cpu": chance.choice(FULL_SIZES), "memory": "256Mi"}
        events.append(_full_arrival(number, {}, requests, chance))
    return events


KIND_SIZES = tuple((cpu, memory) for cpu in ("500m", "1", "2") for memory in ("256Mi", "512Mi", "1Gi"))


def full_kinds_events(seed: int, pods: int, apps: int) -> list[Fields]:
    """The same with nine kinds for each app: labels and requests differ."""
    chance, events = random.Random(seed), []
    for number in range(pods):
        app = chance.randrange(apps)
        cpu, memory = chance.choice(KIND_SIZES)
        labels = {"app": f"app-{app}", "team": f"team-{app % 7}"}
        events.append(_full_arrival(number, labels, {"cpu": cpu, "memory": memory}, chance))
    return events


def _full_arrival(number: int, labels: Fields, requests: Fields, chance: random.Random) -> Fields:
    container = {"name": "main", "image": "batch", "resources": {"requests": requests}}
    pod = _object("Pod", f"batch-{number:05}", spec={"containers": [container]})
    if labels:
        pod["metadata"]["labels"] = labels
    return {"time": round(chance.uniform(0, 600), 1), "event": "add", "object": pod, "lifetime": 1800}


def _object(kind: str, name: str, **fields: Fields) -> Fields:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}
