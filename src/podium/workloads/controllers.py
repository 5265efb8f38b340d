"""The controllers of a cluster over time: create the pods of workloads, and replace lost ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from podium.cluster import Cluster
from podium.cluster.budgets import Owner, owner_of
from podium.manifests import Objects
from podium.manifests.defaults import Priorities, generated_suffix, generated_uid
from podium.model import (
    DaemonSet,
    Deployment,
    Job,
    Node,
    Object,
    Pod,
    PriorityClass,
    ReplicaSet,
    StatefulSet,
    StorageClass,
)
from podium.model.objects import SCALED
from podium.model.pod import is_recreated
from podium.workloads.created_pods import expand_workloads
from podium.workloads.daemon_sets import created_for_nodes
from podium.workloads.owners import active, recreated
from podium.workloads.scaling import first_to_go
from podium.workloads.stateful_sets import condemned_pods


class SavedControllers(msgspec.Struct, frozen=True):
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

    def scale(self, workload: Object, now: float) -> ScalingChange:
        """The pods to create and to delete for a workload that was added or changed, at `now` in seconds.

        Only the number of pods is adjusted.
        """
        known = [*self._classes(), *self._belongings(workload), workload]
        if isinstance(workload, DaemonSet):
            known += [self._cluster.node(name) for name in self._cluster.rows]
        return ScalingChange(self._made(known), self._surplus(workload, now))

    def _surplus(self, workload: Object, now: float) -> list[Pod]:
        if not isinstance(workload, SCALED):
            return []
        pods = [pod for owner in self._owners(workload) for pod in self._active(owner)]
        if isinstance(workload, StatefulSet):
            return condemned_pods(workload, pods)
        # Of pods of the same age, the last that was created goes first.
        return first_to_go(pods[::-1], pods, len(pods) - workload.spec.replicas, now)

    def daemons_for(self, node: Node) -> list[Object]:
        """The objects that DaemonSets create for a new node, mainly pods."""
        return self._with_unused_names(created_for_nodes([node], self._cluster.store))

    def owned_by(self, workload: Object) -> list[Pod]:
        """The pods of a workload, including those of its ReplicaSets."""
        return [self._pods[key] for owner in self._owners(workload) for key in self._owned.get(owner, ())]

    def made_by(self, workload: Object) -> list[ReplicaSet]:
        """The ReplicaSets that a workload created."""
        return self._replica_sets(workload) if isinstance(workload, Deployment) else []

    def _made(self, known: list[Object]) -> list[Object]:
        there = set(map(id, known))
        made = [item for item in expand_workloads(Objects(known)) if id(item) not in there]
        return self._with_unused_names(made)

    def _with_unused_names(self, made: Iterable[Object]) -> list[Object]:
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

    def save(self) -> SavedControllers:
        return SavedControllers(dict(self._names), dict(self._succeeded))

    def restore(self, saved: SavedControllers) -> None:
        self._names, self._succeeded = Counter(saved.names), Counter(saved.succeeded)


def _kind(pod: Pod) -> str:
    owner = pod.metadata.controller
    return "" if owner is None else owner.kind


def _base(pod: Pod) -> str:
    owner = pod.metadata.controller
    return pod.name if owner is None else owner.name
