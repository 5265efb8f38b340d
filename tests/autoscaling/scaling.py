"""Small timelines with node groups."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from cli.running import node, pod
from podium import Timeline, load
from podium.autoscaling import Autoscaler, read_node_groups
from podium.model.objects import NODE_GROUP
from podium.timeline import TimelineResult

Manifest = dict[str, Any]


def group(name: str = "pool", cpu: int = 4, **fields: Any) -> Manifest:
    """A group of up to ten nodes that take a minute to boot."""
    template = {"status": {"allocatable": {"cpu": str(cpu), "memory": "16Gi", "pods": "110"}}}
    return {"name": name, "maxSize": 10, "bootTime": "60s", "template": template | fields.pop("template", {}), **fields}


def member(name: str, its_group: str = "pool", **fields: Any) -> Manifest:
    """A node of a group that is there from the beginning."""
    return node(name, labels={NODE_GROUP: its_group}, allocatable={"cpu": "4", "memory": "16Gi"}, **fields)


def task(name: str, cpu: int = 1, **fields: Any) -> Manifest:
    return pod(name, requests={"cpu": str(cpu), "memory": "1Gi"}, **fields)


def owned(name: str, on: str, cpu: int = 1, **fields: Any) -> Manifest:
    """A running pod of a ReplicaSet; `annotations` and `labels` go to its metadata."""
    annotations = fields.pop("annotations", {})
    made = task(name, cpu, nodeName=on, **fields)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    made["metadata"] |= {"ownerReferences": [owner], "annotations": annotations}
    return made


CLOSED = node("closed", unschedulable=True)
"""A node of no group that takes no pods: without any node, kube-scheduler tries pods less often."""


def arrival(time: float, manifest: Manifest, lifetime: float | None = None) -> Manifest:
    event: Manifest = {"time": time, "event": "add", "object": manifest}
    return event if lifetime is None else event | {"lifetime": lifetime}


def scaled(
    folder: Path,
    *groups: Manifest,
    there: list[Manifest] | None = None,
    events: list[Manifest] | None = None,
    until: float | None = None,
    **settings: Any,
) -> TimelineResult:
    """What comes of groups, objects that are there from the beginning, and events."""
    file = folder / "groups.yaml"
    file.write_text(yaml.safe_dump({**settings, "groups": list(groups)}))
    timeline = Timeline(load(there) if there else [], events or [arrival(0, node("other", unschedulable=True))])
    Autoscaler(timeline, read_node_groups(str(file)))
    return timeline.run(until)


def happened(result: TimelineResult, *kinds: str) -> list[tuple[Any, ...]]:
    """The records of these kinds: the time, the kind, and what else they say."""
    found = (record for record in result.log if record["event"] in kinds)
    return [tuple(record.values()) for record in found]


def report(result: TimelineResult) -> Mapping[str, Any]:
    assert result.scaling is not None
    return result.scaling
