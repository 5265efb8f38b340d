"""A trace: the nodes of a cluster, and the pods that come and go on it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from podium.manifests import Objects, load
from podium.model.node import HOSTNAME

Manifest = Mapping[str, Any]
"""An object as it stands in a manifest."""


class TraceEvent(NamedTuple):
    """What happens `time` seconds after the beginning; a new pod runs for `lifetime` seconds, None for ever."""

    time: float
    object: Manifest
    lifetime: float | None = None
    event: str = "add"
    """`add`, `update` or `delete`."""

    @property
    def is_new_pod(self) -> bool:
        return self.event == "add" and self.object.get("kind") == "Pod"


@dataclass(frozen=True, slots=True)
class Trace:
    """What an importer read. `events` may be read once only: large traces are passed on event by event."""

    beginning: Iterable[Manifest]
    """What is there from the beginning: nodes, most of all."""
    events: Iterable[TraceEvent]
    assumed: list[str] = field(default_factory=list)
    """What had to be assumed or left out, one sentence each; complete once all events were read."""
    is_record: bool = False
    """Whether it says itself what controllers did, so that nobody else makes pods."""

    def objects(self) -> Objects:
        """What is there from the beginning, and the pods that come, as if all of them were pending, in their order."""
        return load([*self.beginning, *(event.object for event in self.events if event.is_new_pod)])


def event_line(event: TraceEvent, *, is_record: bool = False) -> dict[str, Any]:
    """An event as it stands in a timeline."""
    line: dict[str, Any] = {"time": event.time, "event": event.event}
    line["resource" if is_record else "object"] = event.object
    if event.lifetime is not None:
        line["lifetime"] = event.lifetime
    return line


def valid_name(text: str) -> str:
    """A name as Kubernetes wants it: lower case, digits and dashes."""
    return re.sub("[^a-z0-9.-]+", "-", text.lower()).strip("-.") or "unnamed"


def node(name: str, allocatable: Mapping[str, str], labels: Mapping[str, str]) -> Manifest:
    """The manifest of a node."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **labels}},
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
