"""The controllers of a simulated cluster: create pods of workloads, replace lost ones, update budgets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as replace_data
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from podium.cluster import Cluster
from podium.cluster.budgets import SEVERAL, Budget, Health, Owner, ignores_budgets, owner_of
from podium.cluster.store import Store
from podium.manifests import Objects, expand_workloads
from podium.manifests.defaults import Priorities, generated_suffix, generated_uid
from podium.manifests.replacement import ordinal_of
from podium.manifests.workloads import active, recreated
from podium.model import (
    DaemonSet,
    Deployment,
    Job,
    Node,
    Object,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    StorageClass,
    Taint,
    Toleration,
)
from podium.model.pod import is_recreated
from podium.model.selectors import NO_EXECUTE, NO_SCHEDULE, NOT_READY, UNREACHABLE, tolerates

SCALED = (Deployment, ReplicaSet, ReplicationController, StatefulSet)
WORKLOADS = (*SCALED, DaemonSet, Job)


class Saved(msgspec.Struct, frozen=True):
    """The state of the controllers that a snapshot keeps besides the objects."""

    names: dict[str, int]
    succeeded: dict[str, int]


class ScalingChange(NamedTuple):
    """The objects to create and the pods to delete so that a workload has the pods it wants."""

    missing: list[Object]
    surplus: list[Pod]


class Controllers:
    """The controllers of one cluster. `pods` is the live dict of all pods, by namespace/name."""

    def __init__(self, cluster: Cluster, pods: Mapping[str, Pod]) -> None:
        self._cluster, self._pods = cluster, pods
        self._owned: dict[Owner, dict[str, None]] = {}
        self._names: Counter[str] = Counter()
        """How often each name was used for a new pod, by namespace/name."""
        self._succeeded: Counter[str] = Counter()
        self._priorities: tuple[int, Priorities] = (-1, Priorities(()))
        for pod in pods.values():
            self.note(pod)

    def note(self, pod: Pod) -> None:
        """Register a pod that was created."""
        self._names[pod.key] += 1
        owner = owner_of(pod)
        if owner is not None:
            self._owned.setdefault(owner, {})[pod.key] = None

    def forget(self, pod: Pod) -> None:
        """Forget a pod that is gone."""
        owner = owner_of(pod)
        if owner is not None and owner in self._owned:
            self._owned[owner].pop(pod.key, None)
            if not self._owned[owner]:
                del self._owned[owner]

    def prioritised(self, pod: Pod) -> Pod:
        """The pod with the priority of its class."""
        if pod.spec.priority is not None:
            return pod
        version, priorities = self._priorities
        if version != self._cluster.store.version:
            priorities = Priorities(self._cluster.store.of(PriorityClass))
            self._priorities = self._cluster.store.version, priorities
        return priorities.resolve(pod)

    # -- pods come back ----------------------------------------------------------------------------------------------

    def replacement(self, pod: Pod) -> Pod | None:
        """The pod that replaces a lost or evicted one; None if no controller recreates it."""
        # Any controller replaces its pods, as in `drain`; only an autoscaler relies on fewer of them.
        return self._like(pod, pod.name if _kind(pod) == "StatefulSet" else "") if is_recreated(pod) else None

    def next_of_job(self, pod: Pod) -> Pod | None:
        """The next pod of a Job after one of its pods finished; None if the Job is complete."""
        owner = pod.metadata.controller
        if owner is None or owner.kind != "Job":
            return None
        key = f"{pod.namespace}/{owner.name}"
        self._succeeded[key] += 1
        job = self._cluster.store.of(Job).get(owner.name, pod.namespace)
        if job is None or job.spec.completions is None or job.spec.suspend:
            return None
        running = len(self._active(("Job", pod.namespace, owner.name)))
        left = job.spec.completions - job.status.succeeded - self._succeeded[key] - running
        return self._like(pod, "") if left > 0 and running < job.spec.parallelism else None

    def _like(self, pod: Pod, name: str) -> Pod:
        """A new pod with the same spec; with an empty `name`, a new name is made."""
        if not name:
            prefix = pod.metadata.generate_name or f"{_base(pod)}-"
            name = self._fresh_name(pod.namespace, prefix)
        uid = f"{generated_uid('Pod', pod.namespace, name)}/{self._names[f'{pod.namespace}/{name}']}"
        return recreated(pod, name, uid)

    def _fresh_name(self, namespace: str, prefix: str) -> str:
        key = f"{namespace}/{prefix}"
        while True:
            self._names[key] += 1
            name = prefix + generated_suffix(namespace, prefix, self._names[key])
            if not self._names[f"{namespace}/{name}"]:
                return name

    # -- workloads ---------------------------------------------------------------------------------------------------

    def scale(self, workload: Object) -> ScalingChange:
        """The pods to create and to delete for a workload that was added or changed. Only the number of pods is
        adjusted.
        """
        known = [*self._classes(), *self._belongings(workload), workload]
        if isinstance(workload, DaemonSet):
            known += [self._cluster.node(name) for name in self._cluster.rows]
        made = self._made(known)
        surplus: list[Pod] = []
        if isinstance(workload, SCALED):
            pods = [pod for owner in self._owners(workload) for pod in self._active(owner)]
            is_ordered = isinstance(workload, StatefulSet)
            pods.sort(key=lambda pod: (not pod.spec.node_name, ordinal_of(pod) if is_ordered else -1))
            surplus = pods[workload.spec.replicas :]
        return ScalingChange(made, surplus)

    def daemons_for(self, node: Node) -> list[Object]:
        """The objects that DaemonSets create for a new node, mainly pods."""
        sets = list(self._cluster.store.of(DaemonSet))
        return self._made([*self._classes(), node, *sets]) if sets else []

    def owned_by(self, workload: Object) -> list[Pod]:
        """The pods of a workload, including those of its ReplicaSets."""
        return [self._pods[key] for owner in self._owners(workload) for key in self._owned.get(owner, ())]

    def made_by(self, workload: Object) -> list[ReplicaSet]:
        """The ReplicaSets that a workload created."""
        return self._replica_sets(workload) if isinstance(workload, Deployment) else []

    def _made(self, known: list[Object]) -> list[Object]:
        there = set(map(id, known))
        made = [item for item in expand_workloads(Objects(known)) if id(item) not in there]
        return [self._renamed(item) if isinstance(item, Pod) else item for item in made]

    def _renamed(self, pod: Pod) -> Pod:
        """The pod, renamed if a pod had its name before."""
        if not self._names[pod.key]:
            return pod
        return self._like(pod, pod.name if _kind(pod) == "StatefulSet" else "")

    def _classes(self) -> Iterable[Object]:
        return (*self._cluster.store.of(PriorityClass), *self._cluster.store.of(StorageClass))

    def _belongings(self, workload: Object) -> list[Object]:
        return [*self.made_by(workload), *self.owned_by(workload)]

    def _replica_sets(self, deployment: Deployment) -> list[ReplicaSet]:
        found = self._cluster.store.of(ReplicaSet).within(deployment.namespace)
        owners = ((item, item.metadata.controller) for item in found)
        return [item for item, owner in owners if owner and (owner.kind, owner.name) == ("Deployment", deployment.name)]

    def _owners(self, workload: Object) -> list[Owner]:
        if isinstance(workload, Deployment):
            return [("ReplicaSet", item.namespace, item.name) for item in self._replica_sets(workload)]
        return [workload.identity]

    def _active(self, owner: Owner) -> list[Pod]:
        return active([self._pods[key] for key in self._owned.get(owner, ())])

    # -- snapshots ---------------------------------------------------------------------------------------------------

    def save(self) -> Saved:
        return Saved(dict(self._names), dict(self._succeeded))

    def restore(self, saved: Saved) -> None:
        self._names, self._succeeded = Counter(saved.names), Counter(saved.succeeded)


def _kind(pod: Pod) -> str:
    owner = pod.metadata.controller
    return "" if owner is None else owner.kind


def _base(pod: Pod) -> str:
    owner = pod.metadata.controller
    return pod.name if owner is None else owner.name


UNREACHABLE_TAINTS = (Taint(key=UNREACHABLE, effect=NO_SCHEDULE), Taint(key=UNREACHABLE, effect=NO_EXECUTE))
"""The taints of a node that failed."""


def without_unreachable(taints: Iterable[Taint]) -> list[Taint]:
    return [taint for taint in taints if taint.key != UNREACHABLE]


def seconds_tolerated(tolerations: Sequence[Toleration], taints: Iterable[Taint], when_failed: float) -> float | None:
    """How many seconds a pod may stay on a node with these taints; None for no limit.

    `when_failed` applies to a pod without a toleration of its own for unreachable or not-ready nodes: the API server
    adds one with this time to every pod.
    """
    shortest: float | None = None
    for taint in taints:
        if taint.effect != NO_EXECUTE:
            continue
        matching = [toleration for toleration in tolerations if tolerates(toleration, taint)]
        if matching:
            limits = [max(t.toleration_seconds, 0) for t in matching if t.toleration_seconds is not None]
            seconds: float | None = min(limits, default=None)
        else:
            seconds = when_failed if taint.key in (UNREACHABLE, NOT_READY) else 0.0
        if seconds is not None:
            shortest = seconds if shortest is None else min(shortest, seconds)
    return shortest


PodID = tuple[str, str]
"""Namespace/name and uid: a StatefulSet's new pod has the name of the old one."""


class _WatchedBudget:
    """A PodDisruptionBudget and the pods it covers."""

    def __init__(self, budget: PodDisruptionBudget, store: Store) -> None:
        self.budget, self._store = Budget.of(budget), store
        self._covered: dict[PodID, Owner | None] = {}
        """The covered pods that are not terminating, including those that a controller is about to create."""
        self._healthy: set[PodID] = set()
        self._owners: Counter[Owner | None] = Counter()

    def note(self, pod: Pod, is_healthy: bool) -> None:
        """Note the state of a pod."""
        self.forget(pod)
        if not pod.terminating:
            identity, owner = _identity(pod), owner_of(pod)
            self._covered[identity] = owner
            self._owners[owner] += 1
            if is_healthy:
                self._healthy.add(identity)

    def forget(self, pod: Pod) -> bool:
        """Forget a pod that is gone or no longer covered; returns whether it was covered."""
        identity = _identity(pod)
        if identity not in self._covered:
            return False
        owner = self._covered.pop(identity)
        self._owners[owner] -= 1
        if not self._owners[owner]:
            del self._owners[owner]
        self._healthy.discard(identity)
        return True

    def health(self) -> Health:
        return self.budget.health(len(self._healthy), self._owners, self._store)

    def eviction_counts(self, pod: Pod) -> bool:
        """Whether the eviction of a pod takes one of the disruptions that are allowed."""
        return self.budget.eviction_counts(pod, self.health(), healthy=self.has_healthy(pod))

    def has_healthy(self, pod: Pod) -> bool:
        """Whether a covered pod is healthy."""
        return _identity(pod) in self._healthy

    def refusal(self, pod: Pod) -> str:
        """Why the budget refuses the eviction of a pod; empty if it does not."""
        return self.budget.refusal(pod, self.health(), healthy=_identity(pod) in self._healthy)


def _identity(pod: Pod) -> PodID:
    return pod.key, pod.metadata.uid


class Disruptions:
    """Keeps the PodDisruptionBudgets of a cluster up to date. It must be told of every pod and budget that changes."""

    def __init__(self, store: Store) -> None:
        """`store` has the controllers that say how many pods they want."""
        self._store = store
        self._budgets: dict[str, dict[str, _WatchedBudget]] = {}
        """By namespace and name."""
        self._dirty: dict[tuple[str, str], None] = {}

    def __bool__(self) -> bool:
        return bool(self._budgets)

    def on_budget_updated(self, budget: PodDisruptionBudget, pods: Iterable[tuple[Pod, bool]]) -> None:
        """Add or change a budget. `pods` are all pods of the cluster, each with whether it is healthy."""
        found = self._budgets.setdefault(budget.namespace, {})[budget.name] = _WatchedBudget(budget, self._store)
        for pod, is_healthy in pods:
            if found.budget.covers(pod):
                found.note(pod, is_healthy)
        self._touch(found)

    def on_budget_deleted(self, budget: PodDisruptionBudget) -> None:
        self._budgets.get(budget.namespace, {}).pop(budget.name, None)
        if not self._budgets.get(budget.namespace):
            self._budgets.pop(budget.namespace, None)

    def on_pod_updated(self, pod: Pod, *, is_healthy: bool) -> None:
        """Add or change a pod; a pod that a controller is about to create is not healthy yet."""
        for budget in self._budgets.get(pod.namespace, {}).values():
            if budget.budget.covers(pod):
                budget.note(pod, is_healthy)
                self._touch(budget)
            elif budget.forget(pod):
                # Its labels changed.
                self._touch(budget)

    def on_pod_deleted(self, pod: Pod) -> None:
        for budget in self._budgets.get(pod.namespace, {}).values():
            if budget.forget(pod):
                self._touch(budget)

    def on_workload_updated(self, namespace: str) -> None:
        """Note that a controller in a namespace wants another number of pods."""
        for budget in self._budgets.get(namespace, {}).values():
            self._touch(budget)

    def may_evict(self, pod: Pod) -> bool:
        """Whether the eviction API would evict the pod."""
        return not self.refusal(pod)

    def refusal(self, pod: Pod) -> str:
        """Why the eviction API refuses to evict the pod; empty if it does not."""
        budgets = self._covering(pod)
        if not budgets or ignores_budgets(pod, healthy=budgets[0].has_healthy(pod)):
            return ""
        return budgets[0].refusal(pod) if len(budgets) == 1 else SEVERAL

    def has_budget(self, pod: Pod) -> bool:
        """Whether any budget covers the pod."""
        return bool(self._covering(pod))

    def may_evict_all(self, pods: Iterable[Pod]) -> bool:
        """Whether the budgets allow to evict all of these pods together."""
        needed = [budget for pod in pods for budget in self._covering(pod) if budget.eviction_counts(pod)]
        return all(number <= budget.health().allowed for budget, number in Counter(needed).items())

    def take_changed(self) -> Iterator[PodDisruptionBudget]:
        """The budgets whose status changed since the last call, with the new status."""
        dirty, self._dirty = self._dirty, {}
        for namespace, name in dirty:
            found = self._budgets.get(namespace, {}).get(name)
            if found is None:
                continue
            before, allowed = found.budget.object, found.health().allowed
            if allowed != before.status.disruptions_allowed:
                after = replace(before, status=replace(before.status, disruptions_allowed=allowed))
                found.budget = replace_data(found.budget, object=after)
                yield after

    def _covering(self, pod: Pod) -> list[_WatchedBudget]:
        return [each for each in self._budgets.get(pod.namespace, {}).values() if each.budget.covers(pod)]

    def _touch(self, budget: _WatchedBudget) -> None:
        item = budget.budget.object
        self._dirty[item.namespace, item.name] = None
