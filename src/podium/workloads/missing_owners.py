"""Workloads that an answer needs and that are not in the input, although their pods are; and what that changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from podium.manifests.defaults import generated_uid
from podium.manifests.kubectl import KUBECTL_NAMES
from podium.manifests.loading import first_few
from podium.model import Object, Pod, PodDisruptionBudget
from podium.model.objects import TEMPLATED
from podium.model.selectors import Selector, accepted_selector
from podium.wording import counted
from podium.workloads.owners import deployment_of


class OwnersFor(NamedTuple):
    """What an answer needs the owners of pods for: their kinds, and what is wrong without them."""

    kinds: tuple[str, ...]
    effect: str


NEW_NODES = OwnersFor(("DaemonSet",), "nodes that are added run none of their pods")
FURTHER_PODS = OwnersFor(("Job",), "no pod of theirs follows one that finishes")
BUDGETS = OwnersFor(
    ("ReplicaSet", "ReplicationController", "StatefulSet"), "their budgets count the pods there are, not those wanted"
)


class _Missing(NamedTuple):
    """The pods of owners that are not in the input, by namespace/name of the owner."""

    owners: dict[str, list[Pod]]

    def line(self, kind: str, effect: str) -> str:
        pods = [pod for owned in self.owners.values() for pod in owned]
        return (
            f"{kind} {first_few(self.owners)} not in the input, only {counted(len(pods), 'pod')} of theirs, such as "
            f"{pods[0].key}: {effect}; {_advice([kind])}"
        )


def missing_owners(objects: Sequence[Object], *needed: OwnersFor) -> list[str]:
    """One line for each kind of owner that is needed and missing, with what that changes."""
    known = {obj.identity for obj in objects}
    pods = [obj for obj in objects if type(obj) is Pod and not obj.finished]
    lines = []
    for need in needed:
        concerned = _covered(pods, objects) if need is BUDGETS else pods
        for kind in need.kinds:
            missing: dict[str, list[Pod]] = defaultdict(list)
            for pod in concerned:
                owner = pod.metadata.controller
                if owner is not None and owner.kind == kind and (kind, pod.namespace, owner.name) not in known:
                    missing[f"{pod.namespace}/{owner.name}"].append(pod)
            if missing:
                lines.append(_Missing(missing).line(kind, need.effect))
    return lines


def _covered(pods: Iterable[Pod], objects: Sequence[Object]) -> list[Pod]:
    """The pods of budgets that depend on how many pods their owners want."""
    selectors: dict[str, list[Selector]] = defaultdict(list)
    for obj in objects:
        if isinstance(obj, PodDisruptionBudget) and (
            obj.spec.max_unavailable is not None or isinstance(obj.spec.min_available, str)
        ):
            selectors[obj.namespace].append(accepted_selector(obj.spec.selector))
    return [
        pod
        for pod in pods
        if pod.namespace in selectors
        and any(selector.matches(pod.metadata.labels) for selector in selectors[pod.namespace])
    ]


def unknown_changes(objects: Sequence[Object]) -> list[str]:
    """One line for each kind of workload whose changes cannot be told.

    Its file is applied to a cluster that has pods of it, but the cluster's own workload is not in the input. It is
    recognised by its uid, which is not the one that the pods name.
    """
    uids = _uids_of_owners(objects)
    found: dict[str, dict[str, list[Pod]]] = defaultdict(lambda: defaultdict(list))
    for obj in objects:
        kind, namespace, name = obj.identity
        if isinstance(obj, TEMPLATED) and obj.metadata.uid in ("", generated_uid(kind, namespace, name)):
            pods = [pod for uid, pod in uids.get(obj.identity, ()) if uid and uid != obj.metadata.uid]
            if pods:
                found[kind][obj.key] = pods
    return [
        _Missing(owners).line(kind, "they count as pods of the new template, so what the file changes is not seen")
        for kind, owners in found.items()
    ]


def _uids_of_owners(objects: Iterable[Object]) -> dict[tuple[str, str, str], list[tuple[str, Pod]]]:
    """The pods of each owner, with the uid by which they, or their ReplicaSets, name it."""
    objects = list(objects)
    above = {obj.identity: obj.metadata.controller for obj in objects if not isinstance(obj, Pod)}
    found = defaultdict(list)
    for pod in objects:
        owner = pod.metadata.controller if isinstance(pod, Pod) and not pod.finished else None
        if not isinstance(pod, Pod) or owner is None:
            continue
        found[owner.kind, pod.namespace, owner.name].append((owner.uid, pod))
        deployment = above.get((owner.kind, pod.namespace, owner.name))
        if deployment is not None:
            found[deployment.kind, pod.namespace, deployment.name].append((deployment.uid, pod))
        elif owner.kind == "ReplicaSet" and (name := deployment_of(pod)):
            # Its ReplicaSet is not in the input either; the uid is that of the ReplicaSet.
            found["Deployment", pod.namespace, name].append((owner.uid, pod))
    return found


def _advice(kinds: Iterable[str]) -> str:
    names = ",".join(KUBECTL_NAMES[kind] for kind in kinds)
    return f"get them with `podium dump` or `kubectl get {names}`"
