"""PodDisruptionBudgets as the disruption controller counts them: how many of the pods may go now."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from podium.cluster import Cluster
from podium.errors import InputError, SelectorError
from podium.model import (
    Deployment,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from podium.model.selectors import NOTHING, Selector, label_selector

SEVERAL = "more than one PodDisruptionBudget covers it, which the eviction API does not support"


class Health(NamedTuple):
    """How many of a budget's pods are healthy, how many have to be, and how many there should be."""

    healthy: int
    desired: int
    expected: int

    @property
    def allowed(self) -> int:
        """How many may be disrupted now."""
        return max(self.healthy - self.desired, 0) if self.expected > 0 else 0


@dataclass(frozen=True, slots=True)
class _Budget:
    object: PodDisruptionBudget
    selector: Selector

    def covers(self, pod: Pod) -> bool:
        return pod.namespace == self.object.namespace and self.selector.matches(pod.metadata.labels)


class Budgets:
    """The budgets of a cluster, counted from the pods as often as asked, here or on a copy of the cluster.

    What the status of a budget says is not used: it is about the moment the input was taken. A pod is healthy if it is
    on a node, not terminating, and no condition says that it is not ready. Pods that are recreated keep their names.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._budgets = {
            budget.key: _Budget(budget, _selector(budget)) for budget in cluster.store.of(PodDisruptionBudget)
        }
        pods = [*(pod for pod, _ in cluster.placed()), *cluster.pending.values()]
        self._covered = {key: [pod for pod in pods if budget.covers(pod)] for key, budget in self._budgets.items()}
        self._expected = {key: self._expected_pods(key, cluster) for key in self._budgets}

    def of(self, pod: Pod) -> list[str]:
        """The budgets that cover a pod, as namespace/name."""
        return [key for key, budget in self._budgets.items() if budget.covers(pod)]

    def health(self, name: str, cluster: Cluster) -> Health:
        """How a budget stands on a cluster."""
        found = (cluster.find_pod(pod.key) for pod in self._covered[name])
        healthy = sum(each is not None and each[1] is not None and is_healthy(each[0]) for each in found)
        return Health(healthy, self._desired(name), self._expected[name])

    def forbids(self, pod: Pod, cluster: Cluster) -> str:
        """Why the eviction API refuses to evict a pod from a cluster; empty if it does not."""
        names = self.of(pod)
        if len(names) > 1:
            return SEVERAL
        for name in names:
            health = self.health(name, cluster)
            # A pod that is not healthy is not missed as long as enough others are.
            spare = not is_healthy(pod) and health.healthy >= health.desired > 0
            if not spare and not health.allowed and not health.expected:
                return f"PodDisruptionBudget {name} allows nothing: no controller says how many pods it wants"
            if not spare and not health.allowed:
                return f"PodDisruptionBudget {name} needs {health.desired} healthy pods and has {health.healthy}"
        return ""

    def _desired(self, name: str) -> int:
        spec, expected = self._budgets[name].object.spec, self._expected[name]
        if spec.max_unavailable is not None:
            return max(expected - _scaled(spec.max_unavailable, expected, name), 0)
        return 0 if spec.min_available is None else _scaled(spec.min_available, expected, name)

    def _expected_pods(self, name: str, cluster: Cluster) -> int:
        """How many pods there should be: as many as their controllers want, or for a plain minimum as there are."""
        spec, pods = self._budgets[name].object.spec, self._covered[name]
        if isinstance(spec.min_available, int) and spec.max_unavailable is None:
            return len(pods)
        return _wanted_by_controllers(pods, cluster)


def is_healthy(pod: Pod) -> bool:
    """Whether a pod on a node counts: not terminating, and no condition says that it is not ready."""
    ready = [condition.status for condition in pod.status.conditions if condition.type == "Ready"]
    return not pod.terminating and ready in ([], ["True"])


_SCALED: dict[str, type[ReplicaSet | ReplicationController | StatefulSet | Deployment]] = {
    kind.__name__: kind for kind in (ReplicaSet, ReplicationController, StatefulSet, Deployment)
}
_UNSCALED = ("Job", "DaemonSet")
"""Owners that want no certain number of pods, as far as budgets go: a budget that asks them allows nothing."""


def _wanted_by_controllers(pods: Iterable[Pod], cluster: Cluster) -> int:
    """How many pods their controllers want, each asked once; one that is not in the input wants those it has."""
    wanted: dict[tuple[str, str, str], int] = {}
    for pod in pods:
        owner = pod.metadata.controller
        if owner is None:
            continue
        if owner.kind in _UNSCALED:
            return 0
        key, replicas = _scale(owner.kind, pod.namespace, owner.name, cluster)
        wanted[key] = wanted.get(key, 0) + 1 if replicas is None else replicas
    return sum(wanted.values())


def _scale(kind: str, namespace: str, name: str, cluster: Cluster) -> tuple[tuple[str, str, str], int | None]:
    """Who says how many pods there should be, which for a ReplicaSet is its Deployment, and how many."""
    key = kind, namespace, name
    found = cluster.store.of(_SCALED[kind]).get(name, namespace) if kind in _SCALED else None
    if found is None:
        return key, None
    owner = found.metadata.controller
    if kind == "ReplicaSet" and owner is not None and owner.kind == "Deployment":
        of_deployment = _scale("Deployment", namespace, owner.name, cluster)
        if of_deployment[1] is not None:
            return of_deployment
    return key, found.spec.replicas


def _scaled(value: int | str, of: int, budget: str) -> int:
    """A number, or a percentage of `of` rounded up."""
    if isinstance(value, int):
        return value
    text = value.strip()
    if not text.endswith("%") or not text[:-1].isdigit():
        raise InputError(f"PodDisruptionBudget {budget}: {value!r} must be a number or a percentage such as 50%")
    return math.ceil(int(text[:-1]) * of / 100)


def _selector(budget: PodDisruptionBudget) -> Selector:
    """What the budget is about; a selector that Kubernetes would refuse is about nothing."""
    try:
        return label_selector(budget.spec.selector)
    except SelectorError:
        return NOTHING
