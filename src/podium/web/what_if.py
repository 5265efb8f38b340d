"""Changes made to a copy of a cluster, one after the other: what lands where, and what stays pending.

A question carries all of its steps, so nothing is kept between questions: undoing a step is asking without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch
from itertools import islice
from typing import Any

from msgspec.structs import replace

from podium import answers
from podium.answers.disruption.disruption import UNSCHEDULABLE, checked, cordon
from podium.answers.nodes_needed import add_nodes
from podium.cluster import Cluster
from podium.engine import simulate
from podium.errors import InputError
from podium.manifests import expand_workloads, load, workload_of
from podium.model import Node, Pod
from podium.present.disruption import to_lines
from podium.present.html.page import UNLIMITED, opening
from podium.present.text import API_VERSION
from podium.web import questions
from podium.web.subject import Subject, manifests
from podium.wording import counted

MOST_LISTED = 500


def what_if(question: questions.WhatIf, subject: Subject) -> dict[str, Any]:
    """Make the changes, place what is pending, and show every node; of kind WhatIf."""
    cluster = subject.cluster.fork()
    told = []
    for step in question.steps:
        words, cluster = _do(step, cluster, subject)
        told.append({"do": type(step).__struct_config__.tag, "words": words})
    placements: list[dict[str, Any]] = []
    fits = True
    if question.steps:
        simulation = simulate(cluster, **subject.options, tie_break="first")
        cluster, fits = simulation.cluster, simulation.fits
        placements = [
            {"pod": each.pod.key, "node": each.node, "message": each.message or None} for each in simulation.placements
        ]
    placed = sum(each["node"] is not None for each in placements)
    return {
        "apiVersion": API_VERSION,
        "kind": "WhatIf",
        "steps": told,
        "fits": fits,
        "placed": placed,
        "pending": len(placements) - placed,
        # Pods that fit nowhere come first: they are what one looks for.
        "placements": sorted(placements, key=lambda each: each["node"] is not None)[:MOST_LISTED],
        "tiles": tiles(cluster, question.group, subject.cluster),
    }


@singledispatch
def _do(step: object, cluster: Cluster, subject: Subject) -> tuple[list[str], Cluster]:
    """Make one change to the cluster; what came of it in sentences, and the cluster afterwards."""
    raise TypeError(step)


@_do.register
def _cordon(step: questions.Cordon, cluster: Cluster, subject: Subject) -> tuple[list[str], Cluster]:
    checked(cluster, step.nodes)
    for name in step.nodes:
        cordon(cluster, name)
    return [f"{counted(len(step.nodes), 'node')} cordoned: {', '.join(step.nodes[:6])}."], cluster


@_do.register
def _uncordon(step: questions.Uncordon, cluster: Cluster, subject: Subject) -> tuple[list[str], Cluster]:
    checked(cluster, step.nodes)
    for name in step.nodes:
        node = cluster.node(name)
        taints = [taint for taint in node.spec.taints if taint.key != UNSCHEDULABLE.key]
        cluster.update(replace(node, spec=replace(node.spec, unschedulable=False, taints=taints)))
    return [f"{counted(len(step.nodes), 'node')} uncordoned: {', '.join(step.nodes[:6])}."], cluster


@_do.register
def _drain(step: questions.DrainStep, cluster: Cluster, subject: Subject) -> tuple[list[str], Cluster]:
    return _disrupted(answers.drain(cluster, step.nodes, answers.Settings(**subject.options, tie_break="first")))


@_do.register
def _fail(step: questions.FailStep, cluster: Cluster, subject: Subject) -> tuple[list[str], Cluster]:
    matching = answers.nodes_matching(cluster, step.selector) if step.selector else ()
    nodes = list(dict.fromkeys((*step.nodes, *matching)))
    if not nodes:
        raise InputError("say which nodes fail: by name, or by label, such as zone=eu-1a")
    return _disrupted(answers.fail(cluster, nodes, answers.Settings(**subject.options, tie_break="first")))


def _disrupted(found: answers.Disruption) -> tuple[list[str], Cluster]:
    return opening(to_lines(found, width=UNLIMITED)), found.cluster


@_do.register
def _add_nodes(step: questions.AddNodes, cluster: Cluster, subject: Subject) -> tuple[list[str], Cluster]:
    checked(cluster, [step.like])
    like = cluster.node(step.like)
    fresh = replace(like, spec=replace(like.spec, unschedulable=False, taints=_own_taints(like)))
    added = add_nodes(cluster, fresh, step.count)
    return [f"{counted(len(added), 'node')} like {step.like} added: {', '.join(added[:6])}."], cluster


def _own_taints(node: Node) -> list[Any]:
    """The taints that a node of its kind starts with: not those of its present state."""
    return [taint for taint in node.spec.taints if not taint.key.startswith("node.kubernetes.io/")]


@_do.register
def _scale(step: questions.Scale, cluster: Cluster, subject: Subject) -> tuple[list[str], Cluster]:
    namespace, _, name = step.workload.partition("/")
    waiting = [pod for pod in cluster.pending.values() if pod.namespace == namespace and workload_of(pod) == name]
    running = [pod for pod, _ in cluster.placed() if pod.namespace == namespace and workload_of(pod) == name]
    pods = [*running, *waiting]
    if not pods:
        raise InputError(f"workload {step.workload!r} has no pods in the cluster; it is namespace/Kind/name")
    for pod in pods[step.replicas :]:
        cluster.end(pod)
    missing = max(step.replicas - len(pods), 0)
    template = replace(pods[0], metadata=replace(pods[0].metadata, name=name.rpartition("/")[2]))
    for _, pod in islice(answers.pods_of([template], [1], cluster), missing):
        cluster.add(pod)
    return [f"{step.workload} goes from {counted(len(pods), 'pod')} to {step.replicas:,}."], cluster


@_do.register
def _apply(step: questions.Apply, cluster: Cluster, subject: Subject) -> tuple[list[str], Cluster]:
    objects = expand_workloads(load(*manifests(step.objects, "the pasted objects")))
    for item in objects:
        if isinstance(item, Pod) and item.spec.node_name and item.spec.node_name not in cluster.rows:
            raise InputError(f"pod {item.key} is bound to node {item.spec.node_name!r}, which is not in the cluster")
        cluster.update(item)
    return [f"{counted(len(objects), 'object')} applied: {_kinds(objects)}."], cluster


def _kinds(objects: Iterable[object]) -> str:
    kinds: dict[str, int] = {}
    for item in objects:
        kinds[type(item).__name__] = kinds.get(type(item).__name__, 0) + 1
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items())


def tiles(cluster: Cluster, group: str, before: Cluster | None = None) -> dict[str, Any]:
    """Every node by columns: its name, group, resources and pods; `before` tells which nodes are new or gone."""
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
