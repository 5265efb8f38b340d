"""What controllers do in a simulated cluster: make pods for workloads, and new ones for those that were lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from podium.cluster import Cluster
from podium.manifests import Objects, expand_workloads
from podium.manifests.defaults import generated_suffix, generated_uid
from podium.manifests.expansion import active
from podium.manifests.stored_pods import Priorities
from podium.model import (
    DaemonSet,
    Deployment,
    Job,
    Node,
    Object,
    Pod,
    PodStatus,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    StorageClass,
)

RECREATED_BY = frozenset(("DaemonSet", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"))
SCALED = (Deployment, ReplicaSet, ReplicationController, StatefulSet)
WORKLOADS = (*SCALED, DaemonSet, Job)
NEW = PodStatus(phase="Pending")

Owner = tuple[str, str, str]
"""Kind, namespace and name."""


class Saved(msgspec.Struct, frozen=True):
    """What controllers remember besides the objects themselves."""

    names: dict[str, int]
    succeeded: dict[str, int]


class Scaled(NamedTuple):
    """What has to change for a workload to have the pods it wants."""

    missing: list[Object]
    surplus: list[Pod]


class Controllers:
    """The controllers of one cluster. `pods` are those there are, by namespace and name, as they come and go."""

    def __init__(self, cluster: Cluster, pods: Mapping[str, Pod]) -> None:
        self._cluster, self._pods = cluster, pods
        self._owned: dict[Owner, dict[str, None]] = {}
        self._names: Counter[str] = Counter()
        """How often each name, by namespace, was given away."""
        self._succeeded: Counter[str] = Counter()
        self._priorities: tuple[int, Priorities] = (-1, Priorities(()))
        for pod in pods.values():
            self.note(pod)

    def note(self, pod: Pod) -> None:
        """A pod was created."""
        self._names[pod.key] += 1
        owner = _owner(pod)
        if owner is not None:
            self._owned.setdefault(owner, {})[pod.key] = None

    def forget(self, pod: Pod) -> None:
        """A pod is gone."""
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
        """The pod that takes the place of one that was lost or evicted; None if nobody makes one."""
        owner = pod.metadata.controller
        if owner is None or owner.kind not in RECREATED_BY:
            return None
        return self._like(pod, pod.name if owner.kind == "StatefulSet" else "")

    def next_of_job(self, pod: Pod) -> Pod | None:
        """The pod that a Job starts when one of its pods is done; None if the Job has no more to do."""
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
        """A new pod of the same spec; without a name, it gets one of its own."""
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

    def scale(self, workload: Object) -> Scaled:
        """What to make and what to delete for a workload that came or changed, as far as its pods' number goes."""
        known = [*self._classes(), *self._belongings(workload), workload]
        if isinstance(workload, DaemonSet):
            known += [self._cluster.node(name) for name in self._cluster.rows]
        made = self._made(known)
        surplus: list[Pod] = []
        if isinstance(workload, SCALED):
            pods = [pod for owner in self._owners(workload) for pod in self._active(owner)]
            pods.sort(key=lambda pod: (not pod.spec.node_name, _ordinal(pod)))
            surplus = pods[workload.spec.replicas :]
        return Scaled(made, surplus)

    def daemons_for(self, node: Node) -> list[Object]:
        """The pods that DaemonSets make for a node that joined."""
        sets = list(self._cluster.store.of(DaemonSet))
        return self._made([*self._classes(), node, *sets]) if sets else []

    def owned_by(self, workload: Object) -> list[Pod]:
        """The pods of a workload, and of what it made on the way."""
        return [self._pods[key] for owner in self._owners(workload) for key in self._owned.get(owner, ())]

    def made_by(self, workload: Object) -> list[ReplicaSet]:
        """What a workload made, other than pods."""
        return self._replica_sets(workload) if isinstance(workload, Deployment) else []

    def _made(self, known: list[Object]) -> list[Object]:
        there = set(map(id, known))
        made = [item for item in expand_workloads(Objects(known)) if id(item) not in there]
        return [self._renamed(item) if isinstance(item, Pod) else item for item in made]

    def _renamed(self, pod: Pod) -> Pod:
        """The pod, under another name if there was one of this name before."""
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
        return [(type(workload).__name__, workload.namespace, workload.name)]

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
