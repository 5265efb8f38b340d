"""Classes, slices and claims for tests, in few words."""

from __future__ import annotations

from typing import Any

from builders import make_pod
from podium.cluster import Cluster
from podium.engine import Decision, Scheduler
from podium.manifests import load
from podium.model import Object

DRIVER = "gpu.example.com"
Fields = dict[str, Any]


def made(kind: str, name: str, spec: Fields, **metadata: Any) -> Object:
    document = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }
    (found,) = load(document)
    return found


def make_class(name: str = "gpu", *expressions: str, **spec: Any) -> Object:
    return made("DeviceClass", name, {"selectors": [{"cel": {"expression": each}} for each in expressions], **spec})


def make_slice(name: str, *devices: Fields | str, node: str = "", **spec: Any) -> Object:
    """A slice of devices, each a name or its fields; for one node if that is given, and the only one of its pool."""
    spec = {"driver": DRIVER, **({"nodeName": node} if node else {}), **spec}
    spec.setdefault("pool", {"name": name, "generation": 1, "resourceSliceCount": 1})
    return made("ResourceSlice", name, {**spec, "devices": [_device(each) for each in devices]})


def _device(fields: Fields | str) -> Fields:
    return {"name": fields} if isinstance(fields, str) else fields


def exactly(name: str = "r0", *, count: int = 1, cls: str = "gpu", where: str = "", **fields: Any) -> Fields:
    """A request for so many devices of a class."""
    selectors = [{"cel": {"expression": where}}] if where else []
    mode = {} if fields.get("allocationMode") == "All" else {"count": count}
    return {"name": name, "exactly": {"deviceClassName": cls, "selectors": selectors, **mode, **fields}}


def make_claim(name: str, *requests: Fields, constraints: list[Fields] | None = None, **metadata: Any) -> Object:
    devices: Fields = {"requests": list(requests) or [exactly()]}
    if constraints:
        devices["constraints"] = constraints
    return made("ResourceClaim", name, {"devices": devices}, **metadata)


def using(*claims: str) -> list[Fields]:
    """The resourceClaims of a pod that uses claims by their names."""
    return [{"name": f"c{number}", "resourceClaimName": name} for number, name in enumerate(claims)]


def gpus(node: str, number: int, **fields: Any) -> Object:
    """A node's GPUs: gpu-0 and so on, with their numa node as an attribute."""
    devices = [{"name": f"gpu-{n}", "attributes": {"numa": {"int": n % 2}}, **fields} for n in range(number)]
    return make_slice(node, *devices, node=node)


def decided(*objects: Object, claims: tuple[str, ...] = ("c",), release: str = "v1.37", **options: Any) -> Decision:
    """The decision about a pod that uses the claims."""
    cluster = Cluster.from_objects([make_class(), *objects])
    scheduler = Scheduler(cluster, options.pop("config", None), release=release, tie_break="first")
    return scheduler.decide(make_pod("asked", resource_claims=using(*claims)), **options)


def chosen(decision: Decision) -> dict[str, list[str]]:
    """The devices of each claim."""
    allocations = decision.details.get("allocations", {})
    return {claim: [each["device"] for each in results] for claim, results in allocations.items()}
