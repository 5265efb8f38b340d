"""Everything a cluster says, by name: equal for two clusters of the same objects, whatever happened to them before."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from builders import HOSTNAME, ZONE
from podium.cluster import Cluster, Nodes
from podium.cluster.census import TERM_KINDS, Matching, Owning, Question, Scope
from podium.cluster.pods import HostPort
from podium.model import Pod
from podium.model.selectors import EVERYTHING, match_labels

KEYS = (ZONE, HOSTNAME, "rack")
PORTS = [HostPort("0.0.0.0", "TCP", 8080), HostPort("10.0.0.1", "TCP", 8080), HostPort("10.0.0.2", "TCP", 9090)]
QUESTIONS = (
    Matching((Scope(None, EVERYTHING),)),
    Matching((Scope(frozenset(("default",)), match_labels({"color": "green"})),), terminating=False),
    Matching((Scope(None, match_labels({"app": "db"})), Scope(frozenset(("default", "team")), EVERYTHING))),
)


def facts(cluster: Cluster) -> dict[str, Any]:
    """What the cluster says of its nodes, pods, ports, images, tallies and objects."""
    terms = {kind: Counter(cluster.census.terms[kind].counts) for kind in TERM_KINDS}
    questions: list[Question] = [*QUESTIONS, *(Owning(kind, term) for kind in TERM_KINDS for term in terms[kind])]
    return {
        "nodes": {node.name: _node_facts(cluster, node.row) for node in cluster.nodes},
        "pods": {pod.key: (node, _without_node(pod)) for pod, node in cluster.placed()},
        "pending": dict(cluster.pending),
        "stranded": sorted(pod.key for pod in cluster.stranded),
        "ports": {port: {cluster.names[row] for row in cluster.ports.conflicts((port,))} for port in PORTS},
        "images": {
            name: (state.size, {cluster.names[row] for row in state.rows})
            for name, state in cluster.images.states.items()
        },
        "terms": terms,
        "tallies": {question: _tally_facts(cluster, question) for question in questions},
        "domains": {(question, key): _domain_facts(cluster, question, key) for question in questions for key in KEYS},
    }


def _node_facts(cluster: Cluster, row: int) -> dict[str, Any]:
    columns, nodes = cluster.columns, Nodes(cluster, np.array([row]))
    return {
        "allocatable": {name: int(n) for name in columns.resources.values if (n := nodes.allocatable(name)[0])},
        "requested": {name: int(n) for name in columns.resources.values if (n := nodes.requested(name)[0])},
        "non_zero": [int(nodes.non_zero_requested(name)[0]) for name in ("cpu", "memory")],
        "labels": {
            key: column.values.values[column.codes[row]]
            for key, column in columns.labels.items()
            if column.codes[row] >= 0
        },
        "taints": columns.taint_sets.values[columns.taints[row]],
        "unschedulable": bool(columns.unschedulable[row]),
        "pods": {pod.key for pod in cluster.pods_on(row)},
    }


def _without_node(pod: Pod) -> tuple[Any, ...]:
    return pod.metadata, pod.spec.containers, pod.spec.affinity


def _tally_facts(cluster: Cluster, question: Question) -> dict[str, int]:
    per_row = cluster.census.tally(question).per_row()
    return {name: int(per_row[row]) for name, row in cluster.rows.items()}


def _domain_facts(cluster: Cluster, question: Question, key: str) -> dict[str, tuple[int, int]]:
    domains = cluster.census.tally(question).by_domain(key)
    values = cluster.columns.label(key).values.values
    return {
        value: (int(domains.counts[code]), int(domains.nodes[code]))
        for code, value in enumerate(values)
        if domains.nodes[code]
    }


def resources_by_state(cluster: Cluster) -> dict[int, set[tuple[object, ...]]]:
    """The different resources that nodes of each resource state have: one, if states mean what they should."""
    found: dict[int, set[tuple[object, ...]]] = {}
    states, columns = cluster.resource_states.read(), cluster.columns
    for row in cluster.rows.values():
        tables = (columns.allocatable[:, row], columns.requested[:, row], columns.non_zero[:, row])
        found.setdefault(int(states[row]), set()).add(tuple(tuple(table.tolist()) for table in tables))
    return found
