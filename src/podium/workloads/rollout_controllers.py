"""The controllers of Deployments, StatefulSets and DaemonSets: what they do next while they roll out a change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Protocol

from msgspec.structs import replace

from podium.manifests.apply import Applied
from podium.model import DaemonSet, Deployment, Object, Pod, ReplicaSet, StatefulSet
from podium.workloads.daemon_sets import daemon_pod, should_continue, should_run, target_node, with_daemon_tolerations
from podium.workloads.deployments import (
    added_replica_set,
    current_replica_set,
    deployed_pods,
    find_replica_set,
    new_replica_set,
    replica_sets_of,
    scaled_sizes,
)
from podium.workloads.expansion import Expansion
from podium.workloads.owners import ordinal_of, owned_by
from podium.workloads.rolling_updates import (
    ON_DELETE,
    RECREATE,
    kept_on_purpose,
    most_unavailable,
    surge_and_unavailable,
)
from podium.workloads.scaling import first_to_go
from podium.workloads.stateful_sets import stateful_pod


class ControlledCluster(Protocol):
    """The cluster that controllers act on."""

    expansion: Expansion
    now: float

    def create(self, made: Iterable[Object]) -> list[Pod]:
        """Add pending pods and the objects that come with them; returns the pods."""

    def delete(self, pod: Pod) -> None:
        """Delete a pod: without a node it is gone at once, otherwise it is terminating."""

    def is_ready(self, pod: Pod) -> bool: ...

    def is_leaving(self, key: str) -> bool:
        """Whether a pod with this name is still terminating."""

    def seen(self, pod: Pod) -> Pod:
        """The pod as a controller sees it now, with its node."""


class Controller(ABC):
    """Rolls out one workload. `created` and `deleted` are the pods of the current step."""

    def __init__(self, applied: Applied, stage: ControlledCluster) -> None:
        self.applied, self.stage = applied, stage
        self.created: list[Pod] = []
        self.deleted: list[Pod] = []

    @abstractmethod
    def sync(self) -> bool:
        """Do everything the controller can do without waiting; returns whether there was anything to do."""

    @abstractmethod
    def pods(self) -> Iterator[tuple[Pod, bool]]:
        """The pods that are not terminating, each with whether it is of the new template."""

    @abstractmethod
    def wanted(self) -> int:
        """The number of pods once the rollout is done."""

    @property
    def note(self) -> str:
        """Why pods of the old template stay on purpose; empty if none do."""
        return kept_on_purpose(self.applied)

    @property
    def complete(self) -> bool:
        """Whether every pod is ready and of its intended template."""
        ready = [is_new for pod, is_new in self.pods() if self.stage.is_ready(pod)]
        return len(ready) == self.wanted() == len(list(self.pods())) and (all(ready) or bool(self.note))

    def _create(self, made: Iterable[Object]) -> list[Pod]:
        pods = self.stage.create(made)
        self.created += pods
        return pods

    def _delete(self, pod: Pod) -> None:
        self.stage.delete(pod)
        self.deleted.append(pod)


# -- Deployments ---------------------------------------------------------------------------------------------------


class _Replicas:
    """A ReplicaSet, its target number of pods, and its pods."""

    def __init__(self, replica_set: ReplicaSet, pods: Iterable[Pod], replicas: int) -> None:
        self.replica_set, self.replicas = replica_set, replicas
        self.pods = {pod.key: pod for pod in pods}


class DeploymentController(Controller):
    """Scales the new ReplicaSet up and the old ones down, within maxSurge and maxUnavailable."""

    def __init__(self, applied: Applied, stage: ControlledCluster) -> None:
        super().__init__(applied, stage)
        assert isinstance(applied.after, Deployment)
        self._deployment = applied.after
        known = replica_sets_of(self._deployment, stage.expansion)
        pods = [pod for pod in deployed_pods(self._deployment, known, stage.expansion) if not pod.terminating]
        if not known and pods:
            # The input may contain the pods without their ReplicaSet.
            known = [stage.expansion.add(new_replica_set(self._deployment, pods[-1]))]
        self._sets = [
            _Replicas(each, [pod for pod in pods if owned_by(pod, each)], each.spec.replicas) for each in known
        ]
        for each in self._sets:
            each.replicas = max(each.replicas, len(each.pods))
        self._new = self._target(known)
        wanted, before = self._deployment.spec.replicas, applied.before
        assert isinstance(before, Deployment)
        # A change of the replica count scales the existing ReplicaSets first.
        sizes = scaled_sizes(self._deployment, known) if before.spec.replicas != wanted else {}
        for each in self._sets:
            each.replicas = sizes.get(each.replica_set.name, each.replicas)
        self._surge, self._missing = surge_and_unavailable(self._deployment, wanted)

    def _target(self, known: list[ReplicaSet]) -> _Replicas | None:
        """The ReplicaSet of the wanted template; None if it does not exist yet."""
        if not known:
            return None
        changes = self.applied.changes_template and not self._deployment.spec.paused
        found = find_replica_set(self._deployment, known, changed=True) if changes else current_replica_set(known)
        return next((each for each in self._sets if each.replica_set is found), None)

    def sync(self) -> bool:
        acted = False
        self._settle()
        while self._scale():
            self._settle()
            acted = True
        return acted or bool(self.created or self.deleted)

    def pods(self) -> Iterator[tuple[Pod, bool]]:
        return ((pod, each is self._new) for each in self._sets for pod in each.pods.values())

    def wanted(self) -> int:
        return self._deployment.spec.replicas

    def _scale(self) -> bool:
        """One step of the controller; returns whether the size of a ReplicaSet changes."""
        if self._deployment.spec.strategy.type == RECREATE:
            return self._recreate()
        if self._new is None:
            self._add_new()
        return self._scale_up() or self._scale_down()

    def _old(self) -> list[_Replicas]:
        return [each for each in self._sets if each is not self._new and each.replicas]

    def _add_new(self) -> None:
        made = added_replica_set(self._deployment, self.stage.expansion)
        self._new = _Replicas(made, (), 0)
        self._sets.append(self._new)

    def _recreate(self) -> bool:
        """All old pods must be gone before the first new pod is created."""
        old = self._old()
        for each in old:
            each.replicas = 0
        if old:
            return True
        if any(self.stage.is_leaving(pod.key) for pod in self.deleted):
            return False
        if self._new is None:
            self._add_new()
        assert self._new is not None
        changes = self._new.replicas != self.wanted()
        self._new.replicas = self.wanted()
        return changes

    def _scale_up(self) -> bool:
        new, wanted = self._new, self.wanted()
        assert new is not None
        if new.replicas >= wanted:
            changes = new.replicas != wanted
            new.replicas = wanted
            return changes
        room = wanted + self._surge - sum(each.replicas for each in self._sets)
        more = min(room, wanted - new.replicas)
        new.replicas += max(more, 0)
        return more > 0

    def _scale_down(self) -> bool:
        """Delete old pods: those that are not ready first, then as many as may be unavailable."""
        new, old = self._new, self._old()
        assert new is not None
        least = self.wanted() - self._missing
        total = sum(each.replicas for each in self._sets)
        most = total - least - (new.replicas - self._ready(new))
        if not old or most <= 0:
            return False
        cleaned = 0
        for each in old:
            less = max(min(most - cleaned, each.replicas - self._ready(each)), 0)
            each.replicas -= less
            cleaned += less
        spare = sum(map(self._ready, self._sets)) - least
        taken = 0
        for each in old:
            less = max(min(each.replicas, spare - taken), 0)
            each.replicas -= less
            taken += less
        return cleaned + taken > 0

    def _ready(self, replicas: _Replicas) -> int:
        return sum(map(self.stage.is_ready, replicas.pods.values()))

    def _settle(self) -> None:
        """Let the ReplicaSets create and delete pods until they have their target size."""
        for each in self._sets:
            surplus = len(each.pods) - each.replicas
            if surplus < 0:
                template = each.replica_set.spec.template
                made = self._create(self.stage.expansion.pods(each.replica_set, template, -surplus))
                each.pods |= {pod.key: pod for pod in made}
            elif surplus > 0:
                related = [self.stage.seen(pod) for pod, _ in self.pods()]
                own = [self.stage.seen(pod) for pod in each.pods.values()]
                for victim in first_to_go(own, related, surplus, self.stage.now):
                    self._delete(each.pods.pop(victim.key))


# -- StatefulSets --------------------------------------------------------------------------------------------------


class StatefulSetController(Controller):
    """Replaces pods from the highest ordinal down to the partition, each after the previous one is ready again."""

    def __init__(self, applied: Applied, stage: ControlledCluster, *, several_at_once: bool) -> None:
        """With `several_at_once`, maxUnavailable pods are replaced at a time; otherwise one."""
        super().__init__(applied, stage)
        assert isinstance(applied.after, StatefulSet)
        assert isinstance(applied.before, StatefulSet)
        self._set, spec = applied.after, applied.after.spec
        self._old_set = replace(applied.after, spec=replace(spec, template=applied.before.spec.template))
        self._parallel = spec.pod_management_policy == "Parallel"
        self._start = spec.ordinals.start
        owned = [pod for pod in stage.expansion.owned(self._set, Pod) if not pod.finished]
        self._pods = {ordinal_of(pod): pod for pod in owned if not pod.terminating and ordinal_of(pod) >= 0}
        self._updated = set() if applied.changes_template else set(self._pods)
        self._several, rolling = several_at_once, spec.update_strategy.rolling_update
        self._most_missing = max(most_unavailable(self._set, spec.replicas), 1)
        self._first = self._start + (rolling.partition if applied.changes_template else 0)

    @property
    def _ordinals(self) -> range:
        return range(self._start, self._start + self.wanted())

    def wanted(self) -> int:
        return self._set.spec.replicas

    def pods(self) -> Iterator[tuple[Pod, bool]]:
        return ((pod, ordinal in self._updated) for ordinal, pod in self._pods.items())

    @property
    def complete(self) -> bool:
        due = {ordinal for ordinal in self._ordinals if ordinal >= self._first}
        on_delete = self._set.spec.update_strategy.type == ON_DELETE
        present = set(self._pods) == set(self._ordinals) and all(map(self.stage.is_ready, self._pods.values()))
        return present and (on_delete or due <= self._updated)

    def sync(self) -> bool:
        acted = False
        while self._next():
            acted = True
        return acted

    def _next(self) -> bool:
        if self._parallel:
            missing = [each for each in self._ordinals if each not in self._pods and not self._is_leaving(each)]
            missing = [ordinal for ordinal in missing if self._make(ordinal)]
            condemned = self._condemned()
            for ordinal in condemned:
                self._drop(ordinal)
            return bool(missing or condemned) or self._update()
        for ordinal in self._ordinals:
            if self._is_leaving(ordinal):
                return False
            if ordinal not in self._pods:
                return self._make(ordinal)
            if not self.stage.is_ready(self._pods[ordinal]):
                return False
        condemned = self._condemned()
        if condemned and not any(self.stage.is_leaving(pod.key) for pod in self.deleted):
            unready = [ordinal for ordinal in condemned if not self._is_ready(ordinal)]
            # It waits for a pod to be ready before it deletes it, but for the lowest that is not.
            if condemned[0] in unready[:-1]:
                return False
            self._drop(condemned[0])
            return True
        return not condemned and self._update()

    def _condemned(self) -> list[int]:
        """The ordinals beyond those wanted, the highest first."""
        return sorted((ordinal for ordinal in self._pods if ordinal not in self._ordinals), reverse=True)

    def _update(self) -> bool:
        if not self.applied.changes_template or self._set.spec.update_strategy.type == ON_DELETE:
            return False
        return self._update_several() if self._several else self._update_one()

    def _update_one(self) -> bool:
        """Delete the highest pod of the old template, unless a pod above it is not ready."""
        for ordinal in reversed(self._ordinals):
            if ordinal < self._first or ordinal not in self._pods:
                return False
            if self._is_due(ordinal):
                self._drop(ordinal)
                return True
            if not self._is_ready(ordinal):
                return False
        return False

    def _update_several(self) -> bool:
        """Delete as many old pods, the highest first, as may be unavailable; in parallel mode, unready pods are deleted
        anyway.
        """
        ready = {each for each in self._ordinals if each in self._pods and self._is_ready(each)}
        spare = self._most_missing - (len(self._ordinals) - len(ready))
        due = [each for each in reversed(self._ordinals) if each in self._pods and self._is_due(each)]
        broken = [each for each in due if each not in ready] if self._parallel else []
        rest = [each for each in due if each in ready] if self._parallel else due
        chosen = [*broken, *rest[: max(spare, 0)]]
        for ordinal in chosen:
            self._drop(ordinal)
        return bool(chosen)

    def _is_due(self, ordinal: int) -> bool:
        return ordinal >= self._first and ordinal not in self._updated

    def _is_ready(self, ordinal: int) -> bool:
        return self.stage.is_ready(self._pods[ordinal])

    def _is_leaving(self, ordinal: int) -> bool:
        return self.stage.is_leaving(f"{self._set.namespace}/{self._set.name}-{ordinal}")

    def _make(self, ordinal: int) -> bool:
        """Create a pod; False if the API server refuses it."""
        is_new = ordinal >= self._first
        made = stateful_pod(self._set if is_new else self._old_set, ordinal, self.stage.expansion)
        for pod in self._create(made):
            self._pods[ordinal] = pod
            if is_new or not self.applied.changes_template:
                self._updated.add(ordinal)
        return ordinal in self._pods

    def _drop(self, ordinal: int) -> None:
        self._updated.discard(ordinal)
        self._delete(self._pods.pop(ordinal))


class DaemonSetController(Controller):
    """Replaces the pods of nodes: maxUnavailable at a time or, with maxSurge, by new pods next to the old ones."""

    def __init__(self, applied: Applied, stage: ControlledCluster) -> None:
        super().__init__(applied, stage)
        assert isinstance(applied.after, DaemonSet)
        self._set = applied.after
        template = with_daemon_tolerations(self._set.spec.template)
        nodes = stage.expansion.nodes
        self._meant_for = {node.name: None for node in nodes if should_run(template, node)}
        self._may_stay = {node.name for node in nodes if should_continue(template, node)}
        self._old: dict[str, Pod] = {}
        self._new: dict[str, Pod] = {}
        for pod in stage.expansion.owned(self._set, Pod):
            node = target_node(pod)
            if node is not None and not pod.finished and not pod.terminating:
                (self._old if applied.changes_template else self._new)[node] = pod
        self._surge, self._missing = surge_and_unavailable(self._set, len(self._meant_for))
        self._leaving: dict[str, Pod] = {}

    def wanted(self) -> int:
        return len(self._meant_for)

    def pods(self) -> Iterator[tuple[Pod, bool]]:
        yield from ((pod, False) for pod in self._old.values())
        yield from ((pod, True) for pod in self._new.values())

    def sync(self) -> bool:
        before = len(self.created) + len(self.deleted)
        self._manage()
        if self.applied.changes_template and self._set.spec.update_strategy.type != ON_DELETE:
            if self._surge:
                self._surge_over()
            else:
                self._replace()
        return len(self.created) + len(self.deleted) > before

    def _manage(self) -> None:
        """Create pods for eligible nodes without one, and delete pods from nodes that are not eligible."""
        for node in [*self._old, *self._new]:
            if node not in self._may_stay:
                for pods in (self._old, self._new):
                    if node in pods:
                        self._drop(node, pods)
        for node in self._meant_for:
            alone = node not in self._old and node not in self._new
            if alone and (self._surge or not self._is_leaving(node)):
                self._make(node)

    def _replace(self) -> None:
        missing = 0
        candidates = []
        for node in self._nodes():
            old, new = self._old.get(node), self._new.get(node)
            if new is not None and old is None:
                missing += not self.stage.is_ready(new)
            elif old is None:
                missing += 1
            elif not self.stage.is_ready(old):
                missing += 1
                self._drop(node, self._old)
            else:
                candidates.append(node)
        for node in candidates[: max(self._missing - missing, 0)]:
            self._drop(node, self._old)

    def _surge_over(self) -> None:
        surging = 0
        candidates: list[str] = []
        for node in self._nodes():
            old, new = self._old.get(node), self._new.get(node)
            if old is None:
                continue
            if new is None:
                if not self.stage.is_ready(old):
                    if node in self._meant_for:
                        self._make(node)
                    else:
                        self._drop(node, self._old)
                elif node in self._meant_for:
                    candidates.append(node)
            elif self.stage.is_ready(new) or not self.stage.is_ready(old):
                self._drop(node, self._old)
            else:
                surging += 1
        for node in candidates[: max(self._surge - surging, 0)]:
            self._make(node)
        self._leave_unwanted_nodes()

    def _leave_unwanted_nodes(self) -> None:
        """Delete pods that may stay on their node but should not run there, once enough others are ready."""
        ready = {node for pods in (self._old, self._new) for node, pod in pods.items() if self.stage.is_ready(pod)}
        spare = len(ready) - len(self._meant_for)
        unwanted = [node for node in self._old if node not in self._meant_for]
        for node in unwanted[: max(spare, 0)]:
            self._drop(node, self._old)

    def _nodes(self) -> list[str]:
        """The nodes, sorted by name; the real controller takes them in no fixed order."""
        return sorted({*self._meant_for, *self._old, *self._new})

    def _is_leaving(self, node: str) -> bool:
        return node in self._leaving and self.stage.is_leaving(self._leaving[node].key)

    def _make(self, node: str) -> None:
        for pod in self._create(daemon_pod(self._set, node, self.stage.expansion)):
            self._new[node] = pod

    def _drop(self, node: str, pods: dict[str, Pod]) -> None:
        self._leaving[node] = pods.pop(node)
        self._delete(self._leaving[node])
