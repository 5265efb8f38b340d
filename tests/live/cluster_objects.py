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


# -- devices ---------------------------------------------------------------------------------------------------------

RESOURCE = "/apis/resource.k8s.io/v1"
CLAIMS = f"{RESOURCE}/namespaces/default/resourceclaims"
DRIVER = "gpu.example.com"
EXTENDED = "example.com/gpu"


def device(name: str, memory: str) -> Fields:
    return {"name": name, "attributes": {"model": {"string": "a"}}, "capacity": {"memory": {"value": memory}}}


def add_devices(plane: ControlPlane) -> None:
    """A small device on n0, two large ones on n1, and classes with and without configuration."""
    for name, devices in {"n0": [device("small", "10Gi")], "n1": [device("d0", "40Gi"), device("d1", "40Gi")]}.items():
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "pool": pool, "nodeName": name, "devices": devices}
        plane.create(f"{RESOURCE}/resourceslices", {"metadata": {"name": f"{name}-{DRIVER}"}, "spec": spec})
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    opaque = {"opaque": {"driver": DRIVER, "parameters": {"mode": "shared"}}}
    classes: Fields = {"gpu": {"config": [opaque]}, "mapped": {"extendedResourceName": EXTENDED}}
    for name, more in classes.items():
        plane.create(
            f"{RESOURCE}/deviceclasses", {"metadata": {"name": name}, "spec": {"selectors": [selector], **more}}
        )


def request(name: str, expression: str = "", **more: Any) -> Fields:
    selectors = [{"cel": {"expression": expression}}] if expression else []
    return {"name": name, "exactly": {"deviceClassName": "gpu", "selectors": selectors, **more}}


def create_claim(plane: ControlPlane, name: str, *requests: Fields, owner: Fields | None = None, **more: Any) -> None:
    metadata: Fields = {"name": name}
    if owner is not None:
        found = owner["metadata"]
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Pod", "name": found["name"], "uid": found["uid"], "controller": True}
        ]
    plane.create(CLAIMS, {"metadata": metadata, "spec": {"devices": {"requests": list(requests), **more}}})


def uses(claim: str) -> Fields:
    return {"resourceClaims": [{"name": "gpu", "resourceClaimName": claim}]}
