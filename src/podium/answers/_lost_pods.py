"""Pods that lose their node: what PodDisruptionBudgets allow, which pods are recreated, and where they go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from podium.answers._replicas import as_template, place, with_claims
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.engine.simulation import in_queue_order
from podium.errors import InputError
from podium.model import (
    Deployment,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from podium.model.objects import int_or_percent
from podium.model.pod import belongs_to_node
from podium.model.selectors import Selector, accepted_selector
from podium.plugins.storage.claims import BIND_COMPLETED, claim_name

SEVERAL = "more than one PodDisruptionBudget covers it, which the eviction API does not support"


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
class _Budget:
    object: PodDisruptionBudget
    selector: Selector

    def covers(self, pod: Pod) -> bool:
        return pod.namespace == self.object.namespace and self.selector.matches(pod.metadata.labels)


class BudgetHealth:
    """The budgets of a cluster, counted from the pods on every call, here or on a copy of the cluster.

    A budget's status is not used: it describes the moment the input was taken. A pod is healthy if it is on a node, not
    terminating, and no condition says that it is not ready. Recreated pods keep their names.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._budgets = {
            budget.key: _Budget(budget, accepted_selector(budget.spec.selector))
            for budget in cluster.store.of(PodDisruptionBudget)
        }
        pods = [*(pod for pod, _ in cluster.placed()), *cluster.pending.values()]
        self._covered = {key: [pod for pod in pods if budget.covers(pod)] for key, budget in self._budgets.items()}
        self._expected = {key: self._expected_pods(key, cluster) for key in self._budgets}

    def of(self, pod: Pod) -> list[str]:
        """The budgets that cover a pod, as namespace/name."""
        return [key for key, budget in self._budgets.items() if budget.covers(pod)]

    def health(self, name: str, cluster: Cluster) -> Health:
        """The health of a budget on a cluster."""
        found = (cluster.find_pod(pod.key) for pod in self._covered[name])
        healthy = sum(each is not None and each[1] is not None and is_healthy(each[0]) for each in found)
        return Health(healthy, self._desired(name), self._expected[name])

    def forbids(self, pod: Pod, cluster: Cluster) -> str:
        """Why the eviction API refuses to evict a pod; empty if it does not."""
        names = self.of(pod)
        if len(names) > 1:
            return SEVERAL
        for name in names:
            health = self.health(name, cluster)
            # An unhealthy pod may be evicted as long as enough others are healthy.
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
        """The expected number of pods: what their controllers want or, for a budget with a plain minimum, the pods
        there are.
        """
        spec, pods = self._budgets[name].object.spec, self._covered[name]
        if isinstance(spec.min_available, int) and spec.max_unavailable is None:
            return len(pods)
        return _wanted_by_controllers(pods, cluster)


def is_healthy(pod: Pod) -> bool:
    """Whether a pod on a node is healthy: not terminating, and no condition says that it is not ready."""
    ready = [condition.status for condition in pod.status.conditions if condition.type == "Ready"]
    return not pod.terminating and ready in ([], ["True"])


_SCALED: dict[str, type[ReplicaSet | ReplicationController | StatefulSet | Deployment]] = {
    kind.__name__: kind for kind in (ReplicaSet, ReplicationController, StatefulSet, Deployment)
}
_UNSCALED = ("Job", "DaemonSet")
"""Owners that budgets cannot ask for a number of pods: a budget that needs it allows nothing."""


def _wanted_by_controllers(pods: Iterable[Pod], cluster: Cluster) -> int:
    """How many pods the pods' controllers want, each counted once; a controller not in the input wants the pods
    it has.
    """
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
    """The object that sets the number of pods, which for a ReplicaSet is its Deployment, and the number."""
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
    try:
        return int_or_percent(value, of, up=True)
    except InputError as error:
        raise error.at(f"PodDisruptionBudget {budget}") from None


@dataclass(slots=True)
class Recreated:
    """A pod that was recreated under its old name, and its new node."""

    pod: Pod
    old_node: str
    node: str | None = None
    message: str = ""
    """Why it stays pending, if it does."""
    preempted_by: str = ""
    """The pod that preempted it, if that is why it lost its node."""
    tried_at: tuple[int, ...] = ()
    """The version of the cluster when it was last tried."""


class Recreation:
    """Recreates pods and places them, with preemption if wanted; pods that fit nowhere are tried again later."""

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        preempt: bool,
        on_gone: Callable[[Pod], object],
        on_decided: Callable[[], object] = lambda: None,
        explain: bool = True,
    ) -> None:
        """`on_gone` is called for each pod that has left its node and is not recreated yet, `on_decided` once it is.

        Without `explain`, it does not determine why pods stay pending, which takes time.
        """
        self.scheduler, self._preempt, self._explain = scheduler, preempt, explain
        self._on_gone, self._on_decided = on_gone, on_decided
        self.found: dict[str, Recreated] = {}
        self.lost: dict[str, Recreated] = {}
        """Pods that are not recreated, or only for the same node."""

    def recreate(self, pods: Iterable[tuple[Pod, str]], preempted_by: str = "") -> None:
        """Remove pods from the cluster, if they are still there, and place their replacements in queue order."""
        new, pods = [], list(pods)
        for pod, _ in pods:
            self.scheduler.cluster.end(pod)
        for pod, node in pods:
            self._on_gone(pod)
            if pod.metadata.controller is None or belongs_to_node(pod):
                self.lost[pod.key] = Recreated(pod, node, preempted_by=preempted_by)
                continue
            twin, known = self._anew(pod), self.found.get(pod.key)
            # A pod that loses its node again keeps its first node as the old one.
            self.found[pod.key] = Recreated(twin, known.old_node if known else node, preempted_by=preempted_by)
            new.append(twin)
        for pod in in_queue_order(new, self.scheduler):
            self._place(self.found[pod.key])
            self._on_decided()

    def retry(self) -> bool:
        """Try pending pods again until no further pod is placed; returns whether any was."""
        placed, cluster = False, self.scheduler.cluster
        while waiting := [each.pod for each in self.pending() if each.tried_at != cluster.version]:
            for pod in in_queue_order(waiting, self.scheduler):
                self._place(self.found[pod.key])
            if all(self.found[pod.key].node is None for pod in waiting):
                break
            placed = True
        return placed

    def pending(self) -> Iterator[Recreated]:
        return (each for each in self.found.values() if each.node is None)

    def _place(self, recreated: Recreated) -> None:
        pod = recreated.pod
        recreated.node = place(self.scheduler, pod)
        if recreated.node is None and self._preempt and not pod.spec.scheduling_gates:
            self._make_room(recreated)
        recreated.message = self.scheduler.message(pod) if recreated.node is None and self._explain else ""
        recreated.tried_at = self.scheduler.cluster.version

    def _make_room(self, recreated: Recreated) -> None:
        pod = recreated.pod
        decision = self.scheduler.place(pod, preempt=True)
        if decision.nominated is None:
            return
        victims = next(each.victims for each in decision.candidates if each.node == decision.nominated)
        recreated.node = place(self.scheduler, pod)
        self.recreate([(victim, decision.nominated) for victim in victims if not victim.terminating], pod.key)

    def _anew(self, pod: Pod) -> Pod:
        """The pod as its controller creates it again. Its own claims, for ephemeral volumes, are new as well."""
        store = self.scheduler.cluster.store
        for volume in pod.spec.volumes:
            name = claim_name(pod, volume) if volume.ephemeral is not None else None
            claim = store.of(PersistentVolumeClaim).get(name, pod.namespace) if name else None
            if claim is not None:
                annotations = {key: value for key, value in claim.metadata.annotations.items() if key != BIND_COMPLETED}
                metadata = replace(claim.metadata, annotations=annotations)
                self.scheduler.cluster.update(
                    PersistentVolumeClaim(metadata=metadata, spec=replace(claim.spec, volume_name=""))
                )
        return with_claims(as_template(pod), self.scheduler.cluster)
