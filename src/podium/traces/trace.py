"""A trace: the nodes of a cluster, and the pods that come and go on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from podium.manifests import Objects, load

Manifest = Mapping[str, Any]
"""An object as it stands in a manifest."""


class Arrival(NamedTuple):
    """A pod that comes `time` seconds after the beginning and runs for `lifetime` seconds; None for ever."""

    time: float
    pod: Manifest
    lifetime: float | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """What an importer read. `arrivals` may be read once only: large traces are passed on pod by pod."""

    nodes: Iterable[Manifest]
    arrivals: Iterable[Arrival]
    assumed: list[str] = field(default_factory=list)
    """What had to be assumed or left out, one sentence each; complete once all arrivals were read."""

    def objects(self) -> Objects:
        """The nodes, and the pods as if all of them were pending, in the order they come."""
        return load([*self.nodes, *(arrival.pod for arrival in self.arrivals)])


def node(name: str, allocatable: Mapping[str, str], labels: Mapping[str, str]) -> Manifest:
    """The manifest of a node."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"allocatable": dict(allocatable), "capacity": dict(allocatable)},
    }


def pod(name: str, requests: Mapping[str, str], *, labels: Mapping[str, str], spec: Manifest) -> Manifest:
    """The manifest of a pod with one container; extended resources are limits as well, as Kubernetes wants them."""
    limits = {resource: amount for resource, amount in requests.items() if "/" in resource}
    resources = {"requests": dict(requests), **({"limits": limits} if limits else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **({"labels": dict(labels)} if labels else {})},
        "spec": {**spec, "containers": [{"name": "task", "image": "task", "resources": resources}]},
    }
