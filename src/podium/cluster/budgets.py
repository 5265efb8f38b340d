"""PodDisruptionBudgets: how many pods they expect and how many must be healthy, and which evictions they refuse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from podium.cluster.cluster import Cluster
from podium.cluster.store import Store
from podium.errors import InputError
from podium.model import Deployment, Node, Pod, PodDisruptionBudget, ReplicaSet, ReplicationController, StatefulSet
from podium.model.objects import int_or_percent
from podium.model.pod import is_reported_ready
from podium.model.selectors import Selector, accepted_selector, is_unreachable
from podium.wording import counted

SEVERAL = "more than one PodDisruptionBudget covers it, which the eviction API does not support"
ALWAYS_ALLOW = "AlwaysAllow"
"""The unhealthyPodEvictionPolicy of a budget that does not protect pods that are not healthy."""

Owner = tuple[str, str, str]
"""The kind, namespace and name of a controller."""


def owner_of(pod: Pod) -> Owner | None:
    """The controller of a pod; None if it has none."""
    owner = pod.metadata.controller
    return None if owner is None else (owner.kind, pod.namespace, owner.name)


def is_healthy(pod: Pod, node: Node | None) -> bool:
    """Whether a pod on this node counts as healthy; a pod without a node does not.

    It is not terminating, its node can be reached, and no condition says that it is not ready.
    """
    return node is not None and not is_unreachable(node) and not pod.terminating and is_reported_ready(pod)


class Health(NamedTuple):
    """The number of a budget's pods that are healthy, that must be healthy, and that are expected."""

    healthy: int
    desired: int
    expected: int

    @property
    def allowed(self) -> int:
        """How many pods may be disrupted now."""
        return max(self.healthy - self.desired, 0) if self.expected > 0 else 0


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget with its selector; as in the API server, an invalid selector covers no pod."""

    object: PodDisruptionBudget
    selector: Selector

    @classmethod
    def of(cls, budget: PodDisruptionBudget) -> Budget:
        return cls(budget, accepted_selector(budget.spec.selector))

    def covers(self, pod: Pod) -> bool:
        return pod.namespace == self.object.namespace and self.selector.matches(pod.metadata.labels)

    def health(self, healthy: int, covered: Mapping[Owner | None, int], store: Store) -> Health:
        """The budget's health as the disruption controller computes it.

        `covered` is the number of covered pods of each controller, without terminating ones.
        """
        expected = self.expected(covered, store)
        return Health(healthy, self.desired(expected), expected)

    def expected(self, covered: Mapping[Owner | None, int], store: Store) -> int:
        """The expected number of pods: what their controllers want or, with a plain minimum, the pods there are."""
        spec = self.object.spec
        if spec.max_unavailable is None and spec.min_available is None:
            return 0
        if spec.max_unavailable is None and isinstance(spec.min_available, int):
            return sum(covered.values())
        return _wanted_by_controllers(covered, store)

    def desired(self, expected: int) -> int:
        """How many pods must be healthy."""
        spec = self.object.spec
        try:
            if spec.max_unavailable is not None:
                return max(expected - int_or_percent(spec.max_unavailable, expected, up=True), 0)
            return 0 if spec.min_available is None else int_or_percent(spec.min_available, expected, up=True)
        except InputError as error:
            raise error.at(f"PodDisruptionBudget {self.object.key}") from None

    def eviction_counts(self, pod: Pod, health: Health, *, healthy: bool) -> bool:
        """Whether the eviction of a covered pod takes one of the disruptions that the budget allows.

        A pod that ignores budgets does not, nor does one that is not healthy if the budget's policy is AlwaysAllow or
        enough others are healthy.
        """
        if healthy:
            return True
        is_met = health.healthy >= health.desired > 0
        policy = self.object.spec.unhealthy_pod_eviction_policy
        return not ignores_budgets(pod, healthy=healthy) and policy != ALWAYS_ALLOW and not is_met

    def refusal(self, pod: Pod, health: Health, *, healthy: bool) -> str:
        """Why the budget refuses the eviction of a covered pod; empty if it does not."""
        if health.allowed or not self.eviction_counts(pod, health, healthy=healthy):
            return ""
        name, spec = f"PodDisruptionBudget {self.object.key}", self.object.spec
        if spec.max_unavailable is None and spec.min_available is None:
            return f"{name} allows nothing: it has neither minAvailable nor maxUnavailable"
        if not health.expected:
            return f"{name} allows nothing: no controller says how many pods it wants"
        return f"{name} needs {counted(health.desired, 'healthy pod')} and has {health.healthy:,}"


def ignores_budgets(pod: Pod, *, healthy: bool) -> bool:
    """Whether the eviction API evicts a pod without looking at its budgets, because it has not started."""
    return not healthy and pod.status.phase == "Pending"


_SCALED: dict[str, type[ReplicaSet | ReplicationController | StatefulSet | Deployment]] = {
    kind.__name__: kind for kind in (ReplicaSet, ReplicationController, StatefulSet, Deployment)
}
_UNSCALED = ("Job", "DaemonSet", "Node")
"""Owners without the scale subresource: a budget that needs their number of pods cannot be computed, and allows
nothing.
"""


def _wanted_by_controllers(covered: Mapping[Owner | None, int], store: Store) -> int:
    """How many pods the controllers want, each counted once; a controller not in the input wants the pods it has.

    Pods without a controller do not count.
    """
    wanted: Counter[Owner] = Counter()
    for owner, number in covered.items():
        if owner is None:
            continue
        if owner[0] in _UNSCALED:
            return 0
        scaled, replicas = _scale(owner, store)
        wanted[scaled] = wanted[scaled] + number if replicas is None else replicas
    return wanted.total()


def _scale(owner: Owner, store: Store) -> tuple[Owner, int | None]:
    """The object that sets the number of pods, which for a ReplicaSet is its Deployment, and the number."""
    kind, namespace, name = owner
    found = store.of(_SCALED[kind]).get(name, namespace) if kind in _SCALED else None
    if found is None:
        return owner, None
    parent = found.metadata.controller
    if kind == "ReplicaSet" and parent is not None and parent.kind == "Deployment":
        of_deployment = _scale(("Deployment", namespace, parent.name), store)
        if of_deployment[1] is not None:
            return of_deployment
    return owner, found.spec.replicas


class BudgetHealth:
    """The budgets of a cluster, counted from the pods, here or on a copy of the cluster.

    A budget's status is not used: it describes the moment the input was taken. Recreated pods keep their names.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._budgets = {budget.key: Budget.of(budget) for budget in cluster.store.of(PodDisruptionBudget)}
        self._in_namespace: dict[str, list[str]] = {}
        for key, budget in self._budgets.items():
            self._in_namespace.setdefault(budget.object.namespace, []).append(key)
        self._covered: dict[str, list[Pod]] = {key: [] for key in self._budgets}
        for pod in (*(pod for pod, _ in cluster.placed()), *cluster.pending.values()):
            if not pod.terminating:
                for key in self.of(pod):
                    self._covered[key].append(pod)
        self._known: dict[str, tuple[Cluster, tuple[int, ...], Health]] = {}
        """By budget, its health on a version of a cluster."""
        self._owners = {key: Counter(map(owner_of, found)) for key, found in self._covered.items()}

    def of(self, pod: Pod) -> list[str]:
        """The budgets that cover a pod, as namespace/name."""
        return [key for key in self._in_namespace.get(pod.namespace, ()) if self._budgets[key].covers(pod)]

    def health(self, name: str, cluster: Cluster) -> Health:
        """The health of a budget on a cluster; counted once for each version of it."""
        known = self._known.get(name)
        if known is None or known[0] is not cluster or known[1] != cluster.version:
            healthy = sum(_is_healthy(pod, cluster) for pod in self._covered[name])
            known = self._known[name] = cluster, cluster.version, self.health_with(name, healthy, cluster)
        return known[2]

    def health_with(self, name: str, healthy: int, cluster: Cluster) -> Health:
        """The health of a budget if this many of its pods are healthy."""
        return self._budgets[name].health(healthy, self._owners[name], cluster.store)

    def is_healthy(self, pod: Pod, cluster: Cluster) -> bool:
        """Whether the pod of this name is healthy on a cluster."""
        return _is_healthy(pod, cluster)

    def refusal(self, pod: Pod, cluster: Cluster) -> str:
        """Why the eviction API refuses to evict a pod; empty if it does not."""
        names, healthy = self.of(pod), _is_healthy(pod, cluster)
        if ignores_budgets(pod, healthy=healthy):
            return ""
        if len(names) > 1:
            return SEVERAL
        refusals = (self._budgets[name].refusal(pod, self.health(name, cluster), healthy=healthy) for name in names)
        return next(refusals, "")


def _is_healthy(pod: Pod, cluster: Cluster) -> bool:
    """Whether the pod of this name is healthy on a cluster."""
    found = cluster.find_pod(pod.key)
    if found is None:
        return False
    now, node = found
    return is_healthy(now, None if node is None else cluster.node(node))
