"""The controllers of a simulated cluster: create pods of workloads, replace lost ones, update budgets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from podium.cluster import Cluster
from podium.errors import InputError
from podium.manifests import Objects, expand_workloads
from podium.manifests.defaults import Priorities, generated_suffix, generated_uid
from podium.manifests.expansion import active
from podium.model import (
    DaemonSet,
    Deployment,
    Job,
    Node,
    Object,
    Pod,
    PodDisruptionBudget,
    PodStatus,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    StorageClass,
    Taint,
    Toleration,
)
from podium.model.selectors import NO_EXECUTE, NO_SCHEDULE, Selector, label_selector, tolerates

RECREATED_BY = frozenset(("DaemonSet", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"))
SCALED = (Deployment, ReplicaSet, ReplicationController, StatefulSet)
WORKLOADS = (*SCALED, DaemonSet, Job)
NEW = PodStatus(phase="Pending")

Owner = tuple[str, str, str]
"""Kind, namespace and name."""


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
        owner = _owner(pod)
        if owner is not None:
            self._owned.setdefault(owner, {})[pod.key] = None

    def forget(self, pod: Pod) -> None:
        """Forget a pod that is gone."""
        owner = _owner(pod)
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
        owner = pod.metadata.controller
        if owner is None or owner.kind not in RECREATED_BY:
            return None
        return self._like(pod, pod.name if owner.kind == "StatefulSet" else "")

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
        metadata = replace(pod.metadata, name=name, uid=uid, creation_timestamp=None, deletion_timestamp=None)
        return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=NEW)

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
            pods.sort(key=lambda pod: (not pod.spec.node_name, _ordinal(pod)))
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


def _owner(pod: Pod) -> Owner | None:
    owner = pod.metadata.controller
    return None if owner is None else (owner.kind, pod.namespace, owner.name)


def _kind(pod: Pod) -> str:
    owner = pod.metadata.controller
    return "" if owner is None else owner.kind


def _base(pod: Pod) -> str:
    owner = pod.metadata.controller
    return pod.name if owner is None else owner.name


def _ordinal(pod: Pod) -> int:
    """The number at the end of a StatefulSet's pod; -1 for other pods."""
    number = pod.name.rpartition("-")[2]
    return int(number) if _kind(pod) == "StatefulSet" and number.isdigit() else -1


UNREACHABLE, NOT_READY = "node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"
UNREACHABLE_TAINTS = (Taint(key=UNREACHABLE, effect=NO_SCHEDULE), Taint(key=UNREACHABLE, effect=NO_EXECUTE))
"""The taints of a node that failed."""


def is_unreachable(node: Node) -> bool:
    return any(taint.key == UNREACHABLE and taint.effect == NO_EXECUTE for taint in node.spec.taints)


def without_unreachable(taints: Iterable[Taint]) -> list[Taint]:
    return [taint for taint in taints if taint.key != UNREACHABLE]


def patience(tolerations: Sequence[Toleration], taints: Iterable[Taint], when_failed: float) -> float | None:
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


class _Budget:
    """A PodDisruptionBudget and the pods it protects."""

    def __init__(self, budget: PodDisruptionBudget) -> None:
        self.budget = budget
        self.selector: Selector = label_selector(budget.spec.selector)
        self.expected: set[str] = set()
        self.healthy: set[str] = set()
        self.left = budget.status.disruptions_allowed
        """The disruptions that are left, for a budget whose spec has neither a minimum nor a maximum."""

    @property
    def is_counted(self) -> bool:
        """Whether the spec has a minimum or a maximum to count by; otherwise only the status counts."""
        return self.budget.spec.min_available is not None or self.budget.spec.max_unavailable is not None

    def allowed(self) -> int:
        spec, expected = self.budget.spec, len(self.expected)
        if not self.is_counted:
            return self.left
        if spec.max_unavailable is not None:
            wanted = max(expected - _share(spec.max_unavailable, expected, self.budget), 0)
        else:
            wanted = _share(spec.min_available or 0, expected, self.budget)
        return max(len(self.healthy) - wanted, 0) if expected else 0


class Disruptions:
    """Keeps the PodDisruptionBudgets of a cluster up to date. It must be told of every pod and budget that changes."""

    def __init__(self) -> None:
        self._budgets: dict[str, dict[str, _Budget]] = {}
        """By namespace and name."""
        self._dirty: dict[tuple[str, str], None] = {}

    def __bool__(self) -> bool:
        return bool(self._budgets)

    def budget_is(self, budget: PodDisruptionBudget, pods: Mapping[str, tuple[Pod, bool]]) -> None:
        """Add or change a budget. `pods` are all pods of the cluster, each with whether it is healthy."""
        found = self._budgets.setdefault(budget.namespace, {})[budget.name] = _Budget(budget)
        for pod, is_healthy in pods.values():
            if pod.namespace == budget.namespace:
                self._note(found, pod, is_healthy)

    def budget_gone(self, budget: PodDisruptionBudget) -> None:
        self._budgets.get(budget.namespace, {}).pop(budget.name, None)
        if not self._budgets.get(budget.namespace):
            self._budgets.pop(budget.namespace, None)

    def pod_is(self, pod: Pod, *, is_healthy: bool) -> None:
        """Add or change a pod. It is healthy if it runs and is not terminating."""
        for budget in self._budgets.get(pod.namespace, {}).values():
            self._note(budget, pod, is_healthy)

    def pod_gone(self, pod: Pod) -> None:
        for budget in self._budgets.get(pod.namespace, {}).values():
            if pod.key in budget.expected:
                budget.expected.discard(pod.key)
                budget.healthy.discard(pod.key)
                self._touch(budget)

    def may_evict(self, pod: Pod) -> bool:
        """Whether all budgets that protect the pod allow its eviction; always for a pod that does not run."""
        return all(budget.allowed() > 0 for budget in self._protecting(pod))

    def has_budget(self, pod: Pod) -> bool:
        """Whether any budget protects the pod."""
        return bool(self._protecting(pod))

    def may_evict_all(self, pods: Iterable[Pod]) -> bool:
        """Whether the budgets allow to evict all of these pods together."""
        counts = Counter(id(budget) for pod in pods for budget in self._protecting(pod))
        budgets = (budget for found in self._budgets.values() for budget in found.values())
        return all(counts[id(budget)] <= budget.allowed() for budget in budgets if id(budget) in counts)

    def evicted(self, pod: Pod) -> None:
        """Count an eviction: a budget that is not counted from its pods allows one less."""
        for budget in self._protecting(pod):
            budget.left = max(budget.left - 1, 0)
            self._touch(budget)

    def take_changed(self) -> Iterator[PodDisruptionBudget]:
        """The budgets whose status changed since the last call, with the new status."""
        dirty, self._dirty = self._dirty, {}
        for namespace, name in dirty:
            budget = self._budgets.get(namespace, {}).get(name)
            if budget is None:
                continue
            allowed = budget.allowed()
            if allowed != budget.budget.status.disruptions_allowed:
                status = replace(budget.budget.status, disruptions_allowed=allowed)
                budget.budget = replace(budget.budget, status=status)
                yield budget.budget

    def _protecting(self, pod: Pod) -> list[_Budget]:
        return [budget for budget in self._budgets.get(pod.namespace, {}).values() if pod.key in budget.healthy]

    def _note(self, budget: _Budget, pod: Pod, is_healthy: bool) -> None:
        is_meant = budget.selector.matches(pod.metadata.labels) and not pod.terminating
        (budget.expected.add if is_meant else budget.expected.discard)(pod.key)
        (budget.healthy.add if is_meant and is_healthy else budget.healthy.discard)(pod.key)
        self._touch(budget)

    def _touch(self, budget: _Budget) -> None:
        self._dirty[budget.budget.namespace, budget.budget.name] = None


def _share(wanted: int | str, total: int, budget: PodDisruptionBudget) -> int:
    """A number, or a percentage of all pods, rounded up."""
    if isinstance(wanted, int):
        return wanted
    try:
        return math.ceil(int(wanted.removesuffix("%")) * total / 100) if wanted.endswith("%") else int(wanted)
    except ValueError:
        raise InputError(
            f"PodDisruptionBudget {budget.key}: {wanted!r} is neither a number nor a percentage such as 50%"
        ) from None
