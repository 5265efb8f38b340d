"""What objects refer to and the input does not have, where it decides something."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from podium.model import (
    Affinity,
    LabelSelector,
    Namespace,
    Node,
    Object,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    StorageClass,
)
from podium.wording import counted, listed

_MOST_NAMED = 3


def first_few(names: Iterable[str]) -> str:
    """`a, b, c and 7 more`, in the order given."""
    return listed(list(names), _MOST_NAMED)


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
            f"Node {first_few(nodes)} {_is_not(nodes)} in the input: {counted(len(lost), 'pod')} bound there, such as "
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
            f"Namespace {first_few(missing)} {_is_not(missing)} in the input: assumed to have no labels for the "
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
            f"{first_few(missing)} {_is_not(missing)} in the input: default spreading of the pods owned, such as "
            f"{next(iter(missing.values())).key}, goes by services alone"
        )


def _is_not(names: Collection[str]) -> str:
    return "is not" if len(names) == 1 else "are not"


_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_ADVICE = "as in a cluster without them; --assume-volumes ignores storage"


def missing_storage(objects: Iterable[Object]) -> list[str]:
    """One line for each kind that is missing: how much depends on it, and how that is treated."""
    objects = list(objects)
    users = _claims_of_pods(objects)
    if not users.named and not users.ephemeral:
        return []
    claims = {obj.key: obj for obj in objects if type(obj) is PersistentVolumeClaim}
    used = [claims[key] for key in {**users.named, **users.ephemeral} if key in claims]
    return [
        *_missing_claims(users.named, claims),
        *_missing_volumes(used, {obj.name for obj in objects if type(obj) is PersistentVolume}),
        *_missing_classes(used, {obj.name for obj in objects if type(obj) is StorageClass}),
    ]


class _Users(NamedTuple):
    """The claims that pods use, as namespace/name, each with the first pod that does."""

    named: dict[str, Pod]
    ephemeral: dict[str, Pod]
    """Claims of ephemeral volumes. They may well be missing: Kubernetes makes them for the pods that need them."""


def _claims_of_pods(objects: list[Object]) -> _Users:
    users = _Users({}, {})
    for pod in objects:
        if type(pod) is Pod and pod.spec.volumes and not pod.finished:
            for volume in pod.spec.volumes:
                if volume.persistent_volume_claim is not None:
                    users.named.setdefault(f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}", pod)
                elif volume.ephemeral is not None:
                    users.ephemeral.setdefault(f"{pod.key}-{volume.name}", pod)
    return users


def _missing_claims(users: dict[str, Pod], known: Collection[str]) -> Iterator[str]:
    missing = [key for key in users if key not in known]
    if missing:
        such = f"pods that use them, such as {users[missing[0]].key}, fit on no node, {_ADVICE}"
        if not known:
            yield f"no PersistentVolumeClaims in the input: {counted(len(missing), 'claim')} missing; {such}"
        else:
            yield f"PersistentVolumeClaim {first_few(missing)} not in the input: {such}"


def _missing_volumes(used: list[PersistentVolumeClaim], known: Collection[str]) -> Iterator[str]:
    lost = [claim for claim in used if claim.spec.volume_name and claim.spec.volume_name not in known]
    if lost:
        such = (
            f"{counted(len(lost), 'bound claim')}, such as {lost[0].key}, without a volume; pods that use them fit on "
            f"no node, {_ADVICE}"
        )
        if not known:
            yield f"no PersistentVolumes in the input: {such}"
        else:
            names = dict.fromkeys(claim.spec.volume_name for claim in lost)
            yield f"PersistentVolume {first_few(names)} not in the input: {such}"


def _missing_classes(used: list[PersistentVolumeClaim], known: Collection[str]) -> Iterator[str]:
    """Only claims that are not bound yet ask their class what to do."""
    lost = [claim for claim in used if not claim.spec.volume_name and _class(claim) and _class(claim) not in known]
    if lost:
        such = (
            f"{counted(len(lost), 'unbound claim')}, such as {lost[0].key}, cannot be bound; pods that use them fit on "
            f"no node, {_ADVICE}"
        )
        if not known:
            yield f"no StorageClasses in the input: {such}"
        else:
            yield f"StorageClass {first_few(dict.fromkeys(map(_class, lost)))} not in the input: {such}"


def _class(claim: PersistentVolumeClaim) -> str:
    return claim.metadata.annotations.get(_BETA_CLASS, claim.spec.storage_class_name or "")
