"""Objects of small clusters, as JSON for the API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from live.control_plane import ControlPlane

Fields = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
ZONE = "topology.kubernetes.io/zone"


def node(name: str, *, cpu: str = "4", memory: str = "8Gi", zone: str = "", pods: int = 110, **spec: Any) -> Fields:
    resources = {"cpu": cpu, "memory": memory, "pods": str(pods)}
    labels = {"kubernetes.io/hostname": name, **({ZONE: zone} if zone else {})}
    status = {"allocatable": resources, "capacity": resources}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def pod(name: str, *, cpu: str = "100m", memory: str = "100Mi", labels: Mapping[str, str] = {}, **spec: Any) -> Fields:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    fields = {"terminationGracePeriodSeconds": 0, "containers": [container], **spec}
    return {"metadata": {"name": name, "namespace": "default", "labels": dict(labels)}, "spec": fields}


def small_cluster(plane: ControlPlane) -> None:
    """Three nodes in two zones, a pod on one, one that waits, and a deployment."""
    for name, zone, cpu in (("east-1", "east", "4"), ("east-2", "east", "8"), ("west-1", "west", "2")):
        plane.create(NODES, node(name, cpu=cpu, zone=zone))
    plane.create(PODS, pod("running", cpu="1", nodeName="east-1"))
    plane.create(PODS, pod("web", cpu="3", labels={"app": "web"}))
    template = {
        "metadata": {"labels": {"app": "api"}},
        "spec": pod("api")["spec"] | {"terminationGracePeriodSeconds": 30},
    }
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "api"}}, "template": template}
    plane.create("/apis/apps/v1/namespaces/default/deployments", {"metadata": {"name": "api"}, "spec": spec})
