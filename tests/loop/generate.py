"""An hour in the life of a cluster, as events."""

from __future__ import annotations

import random
from typing import Any

from builders import HOSTNAME, ZONE, make_node
from podium.objects import Node

Fields = dict[str, Any]

SIZES = (("100m", "128Mi"), ("250m", "512Mi"), ("500m", "1Gi"), ("1", "2Gi"), ("2", "4Gi"))
APPS = 40


def hour_nodes(count: int) -> list[Node]:
    """Nodes of 16 cores in three zones."""
    return [
        make_node(f"node-{i:04}", cpu="16", memory="64Gi", labels={HOSTNAME: f"node-{i:04}", ZONE: "abc"[i % 3]})
        for i in range(count)
    ]


def hour_events(seed: int, nodes: int, pods: int, *, failing: float = 0.01, seconds: int = 3600) -> list[Fields]:
    """Pods that come at any time and run for some minutes, and nodes that are lost and come back ten minutes later."""
    chance = random.Random(seed)
    events = [_arrival(i, chance, seconds) for i in range(pods)]
    for i in chance.sample(range(nodes), int(nodes * failing)):
        at = chance.uniform(0.1, 0.7) * seconds
        metadata = {"name": f"node-{i:04}", "labels": {HOSTNAME: f"node-{i:04}", ZONE: "abc"[i % 3]}}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
        allocatable = {"cpu": "16", "memory": "64Gi", "pods": "110"}
        events.append({"time": at, "event": "delete", "object": node})
        events.append({"time": at + 600, "event": "add", "object": {**node, "status": {"allocatable": allocatable}}})
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
