"""What objects refer to and the input does not have, where it decides something."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from podium.load.phrases import count, some
from podium.load.storage_references import missing_storage
from podium.objects import (
    Affinity,
    LabelSelector,
    Namespace,
    Node,
    Object,
    Pod,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)

_SPREAD_OWNERS = {kind.__name__: kind for kind in (ReplicaSet, ReplicationController, StatefulSet)}


def missing_references(objects: Iterable[Object]) -> list[str]:
    """One line for each sort of thing that is referred to and missing, naming it and what is assumed instead."""
    objects = list(objects)
    pods = [obj for obj in objects if type(obj) is Pod and not obj.finished]
    return [
        *_missing_nodes(objects, pods),
        *_missing_namespaces(objects, pods),
        *_missing_owners(objects, pods),
        *missing_storage(objects),
    ]


def _missing_nodes(objects: list[Object], pods: list[Pod]) -> Iterator[str]:
    known = {obj.name for obj in objects if type(obj) is Node}
    lost = [pod for pod in pods if pod.spec.node_name and pod.spec.node_name not in known]
    if lost:
        nodes = dict.fromkeys(pod.spec.node_name for pod in lost)
        yield (
            f"Node {some(nodes)} {_is_not(nodes)} in the input: {count(len(lost), 'pod')} bound there, such as "
            f"{lost[0].key}, left out of the cluster"
        )


def _missing_namespaces(objects: list[Object], pods: list[Pod]) -> Iterator[str]:
    selecting = next((pod for pod in pods if pod.spec.affinity and _selects_namespaces(pod.spec.affinity)), None)
    if selecting is None:
        return
    known = {obj.name for obj in objects if type(obj) is Namespace}
    missing = dict.fromkeys(pod.namespace for pod in pods if pod.namespace not in known)
    if missing:
        yield (
            f"Namespace {some(missing)} {_is_not(missing)} in the input: assumed to have no labels for the "
            f"namespaceSelector of pods such as {selecting.key}"
        )


def _selects_namespaces(affinity: Affinity) -> bool:
    """Whether it matters which labels namespaces have."""
    sides = [side for side in (affinity.pod_affinity, affinity.pod_anti_affinity) if side is not None]
    required = [term for side in sides for term in side.required]
    preferred = [weighted.pod_affinity_term for side in sides for weighted in side.preferred]
    return any(_looks_at_labels(term.namespace_selector) for term in (*required, *preferred))


def _looks_at_labels(selector: LabelSelector | None) -> bool:
    # An empty selector takes every namespace, whatever its labels.
    return selector is not None and bool(selector.match_labels or selector.match_expressions)


def _missing_owners(objects: list[Object], pods: list[Pod]) -> Iterator[str]:
    """Pending pods without constraints of their own are spread by the selector of their owner."""
    known = {(kind, obj.key) for obj in objects if (kind := type(obj).__name__) in _SPREAD_OWNERS}
    missing: dict[str, Pod] = {}
    for pod in pods:
        owner = pod.metadata.controller if not pod.spec.node_name else None
        if owner is None or owner.kind not in _SPREAD_OWNERS or pod.spec.topology_spread_constraints:
            continue
        key = f"{pod.namespace}/{owner.name}"
        if (owner.kind, key) not in known:
            missing.setdefault(f"{owner.kind} {key}", pod)
    if missing:
        yield (
            f"{some(missing)} {_is_not(missing)} in the input: default spreading of the pods owned, such as "
            f"{next(iter(missing.values())).key}, goes by services alone"
        )


def _is_not(names: Collection[str]) -> str:
    return "is not" if len(names) == 1 else "are not"
