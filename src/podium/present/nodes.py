"""Renders the nodes of a cluster by columns: names, groups, resources and pods, each as one list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from podium.cluster import Cluster


def node_columns(cluster: Cluster, group: str, before: Cluster | None = None) -> dict[str, Any]:
    """Every node by columns: its name, group, resources and pods; `before` shows which nodes are new or gone."""
    names = sorted(cluster.rows)
    rows = [cluster.rows[name] for name in names]
    columns = cluster.columns
    values = [cluster.node(name).metadata.labels.get(group, "") for name in names]
    known = set(cluster.rows if before is None else before.rows)
    resources = [
        {
            "resource": resource,
            "allocatable": columns.allocatable[place, rows].tolist(),
            "requested": columns.requested[place, rows].tolist(),
        }
        for place, resource in enumerate(columns.resources.values)
        if place < len(columns.allocatable) and columns.allocatable[place, rows].any()
    ]
    return {
        "group": group,
        "nodes": names,
        "groups": values,
        "unschedulable": _places(cluster.node(name).spec.unschedulable for name in names),
        "tainted": _places(bool(cluster.node(name).spec.taints) for name in names),
        "new": _places(name not in known for name in names),
        "gone": sorted(known.difference(names)),
        "pods": [len(cluster.pods_on(row)) for row in rows],
        "resources": resources,
    }


def _places(flags: Iterable[bool]) -> list[int]:
    return [place for place, flag in enumerate(flags) if flag]
