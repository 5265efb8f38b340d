"""What happens to the pods of a changed workload, at once or step by step as its controller rolls out the change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Unpack

from msgspec.structs import replace

from podium.answers._replicas import place
from podium.answers.simulation import Amounts, Placement, Simulation, in_queue_order, requested_by_node, simulation_of
from podium.cluster import Cluster
from podium.cluster_input import ClusterInput
from podium.engine import Scheduler
from podium.engine.release import release_of
from podium.engine.scheduler import Config, SchedulerKeywords, SchedulerOptions
from podium.manifests import Objects
from podium.manifests.apply import Applied
from podium.model import DaemonSet, Deployment, Object, Pod, StatefulSet
from podium.rules.gates import is_at_least
from podium.workloads import with_changes_carried_out, workload_of
from podium.workloads.admission import Refusal
from podium.workloads.expansion import Expansion
from podium.workloads.rolling_updates import ROLLED_OUT, kept_on_purpose
from podium.workloads.rollout_controllers import (
    Controller,
    DaemonSetController,
    DeploymentController,
    StatefulSetController,
)
from podium.workloads.scaling import is_ready, newest_time

SEVERAL_AT_ONCE_FROM = "v1.37"
"""From this release on, StatefulSets use maxUnavailable without a feature gate."""
DELETED = "1970-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """What one workload does until it has to wait for pods to become ready."""

    number: int
    workload: str
    """`shop Deployment/web`"""
    created: tuple[str, ...]
    deleted: tuple[str, ...]
    placed: Mapping[str, str]
    """The pods that got a node in this step, with the node."""
    waiting: tuple[str, ...]
    """Its pods without a node at the end of the step."""
    old_ready: int
    new_ready: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "step": self.number,
            "workload": self.workload,
            "created": list(self.created),
            "deleted": list(self.deleted),
            "placed": dict(self.placed),
            "waiting": list(self.waiting),
            "oldReady": self.old_ready,
            "newReady": self.new_ready,
        }


@dataclass(frozen=True, slots=True)
class ChangedObject:
    """An object changed by a later file or by `--hpa`; for a workload, also what happens to its pods."""

    kind: str
    namespace: str
    name: str
    paths: tuple[str, ...]
    """The fields that differ."""
    gone: Mapping[str, str | None] | None = None
    """The deleted pods and their nodes; None for an object without pods."""
    new: Mapping[str, str | None] | None = None
    """The created pods and their nodes; the node is None if the pod stays pending."""
    messages: Mapping[str, str] | None = None
    """Why pods stay pending."""
    note: str = ""
    """Why pods of the old template stay on purpose."""
    steps: int | None = None
    """How many steps a rollout took, or reached; None if no rollout was asked for."""
    stuck: bool = False
    """Whether the rollout cannot continue: pods find no node, and no more pods may be unavailable."""

    @property
    def title(self) -> str:
        """`shop Deployment/web`, `PriorityClass/high`"""
        return f"{self.namespace} {self.kind}/{self.name}".lstrip()

    @property
    def replaced(self) -> int:
        return min(len(self.gone or ()), len(self.new or ()))

    @property
    def added(self) -> int:
        return len(self.new or ()) - self.replaced

    @property
    def removed(self) -> int:
        return len(self.gone or ()) - self.replaced

    @property
    def pending(self) -> list[str]:
        return [pod for pod, node in (self.new or {}).items() if node is None]

    def to_dict(self) -> dict[str, Any]:
        about = {"kind": self.kind, "namespace": self.namespace or None, "name": self.name, "fields": list(self.paths)}
        if self.new is None or self.gone is None:
            return about
        rollout = {} if self.steps is None else {"steps": self.steps, "stuck": self.stuck}
        messages = self.messages or {}
        return {
            **about,
            "pods": {"replaced": self.replaced, "added": self.added, "removed": self.removed},
            "gone": [{"pod": pod, "node": node} for pod, node in self.gone.items()],
            "new": [{"pod": pod, "node": node, "message": messages.get(pod)} for pod, node in self.new.items()],
            "note": self.note or None,
            **rollout,
        }


@dataclass(frozen=True, slots=True)
class Rollout:
    """The end of a rollout as a simulation, and its steps."""

    simulation: Simulation
    changes: tuple[ChangedObject, ...]
    steps: tuple[RolloutStep, ...]
    refused: tuple[Refusal, ...] = ()
    """Pods that the API server does not create."""

    @property
    def complete(self) -> bool:
        return not any(change.stuck for change in self.changes)


# -- at once -------------------------------------------------------------------------------------------------------


def changed_objects(objects: Objects, simulation: Simulation) -> tuple[ChangedObject, ...]:
    """The changes in `objects.applied`, after they were applied at once and a simulation has placed the new pods."""
    kept = {pod.key for pod in with_changes_carried_out(objects).of(Pod)}
    gone: dict[str, dict[str, str | None]] = {}
    new: dict[str, dict[str, str | None]] = {}
    for pod in objects.of(Pod):
        if pod.key not in kept:
            gone.setdefault(_workload(pod), {})[pod.key] = pod.spec.node_name or None
    there = {pod.key for pod in objects.of(Pod) if pod.key in kept}
    messages = {}
    for placement in simulation.placements:
        if placement.pod.key not in there:
            new.setdefault(_workload(placement.pod), {})[placement.pod.key] = placement.node
            messages[placement.pod.key] = placement.message
    return tuple(
        _changed(applied, gone.get(_title(applied.after), {}), new.get(_title(applied.after), {}), messages)
        for applied in objects.applied
        if not isinstance(applied.after, Pod)
    )


def _changed(
    applied: Applied, gone: Mapping[str, str | None], new: Mapping[str, str | None], messages: Mapping[str, str]
) -> ChangedObject:
    after = applied.after
    about = ChangedObject(applied.kind, after.namespace, after.name, applied.paths)
    if not hasattr(getattr(after, "spec", None), "template"):
        return about
    waiting = {pod: messages[pod] for pod, node in new.items() if node is None and messages.get(pod)}
    note = kept_on_purpose(applied)
    return ChangedObject(about.kind, about.namespace, about.name, about.paths, gone, new, waiting, note)


def _workload(pod: Pod) -> str:
    return f"{pod.namespace} {workload_of(pod)}"


def _title(obj: Object) -> str:
    return f"{obj.namespace} {type(obj).__name__}/{obj.name}".lstrip()


# -- step by step --------------------------------------------------------------------------------------------------


def rollout(
    objects: Objects, config: Config | SchedulerOptions = None, **keywords: Unpack[SchedulerKeywords]
) -> Rollout:
    """Roll out the changes in `objects.applied`; a step is everything controllers do before they wait for ready pods.

    In each step, the controllers delete and create pods. The new pods are decided while the deleted ones still occupy
    their nodes; then the deleted pods go, and the remaining pods, and pods that reuse their names, are decided. A pod
    with a node is ready in the next step. Nothing is evicted. The rollout ends when no controller has anything left to
    do, or all that have wait for pods that fit nowhere.
    """
    rolled_out = [applied for applied in objects.applied if isinstance(applied.after, ROLLED_OUT)]
    before = {id(applied.after): applied.before for applied in rolled_out}
    others = [applied for applied in objects.applied if id(applied.after) not in before]
    start = objects.replaced((before.get(id(obj), obj) for obj in objects), applied=others)
    given = ClusterInput(start)
    start, cluster = given.expanded, given.cluster()
    for applied in rolled_out:
        cluster.update(applied.after)
    options = SchedulerOptions.of(config, **keywords)
    with closing(Scheduler(cluster, options)) as scheduler:
        stage = RolloutStage(start, scheduler)
        several = is_at_least(release_of(options.release).name, SEVERAL_AT_ONCE_FROM)
        controllers = [_controller(applied, stage, several_at_once=several) for applied in rolled_out]
        steps = stage.run(controllers)
        placements = stage.placements()
    changes = {_title(each.applied.after): stage.change(each, steps) for each in controllers}
    ordered = [
        changes.get(_title(applied.after)) or _changed(applied, {}, {}, {})
        for applied in objects.applied
        if not isinstance(applied.after, Pod)
    ]
    refused = {
        (each.workload, each.namespace, each.reason): each for each in (*given.refused, *stage.expansion.refused)
    }
    simulation = simulation_of(placements, requested_before(objects), cluster)
    stuck = any(change.stuck for change in ordered)
    # A refusal that the rollout overcame, once old pods were gone, is no result.
    return Rollout(simulation, tuple(ordered), tuple(steps), tuple(refused.values()) if stuck else given.refused)


def requested_before(objects: Objects) -> Mapping[str, Amounts]:
    """The requests per node of the pods that run before any change of a later file is applied."""
    before = {id(applied.after): applied.before for applied in objects.applied if isinstance(applied.after, Pod)}
    return requested_by_node(Cluster.from_objects(before.get(id(obj), obj) for obj in objects))


def _controller(applied: Applied, stage: RolloutStage, *, several_at_once: bool) -> Controller:
    match applied.after:
        case Deployment():
            return DeploymentController(applied, stage)
        case StatefulSet():
            return StatefulSetController(applied, stage, several_at_once=several_at_once)
        case DaemonSet():
            return DaemonSetController(applied, stage)
        case _:
            raise AssertionError(applied.kind)


def _alike(pod: Pod) -> str:
    """A key for pods that fit in the same places, those of one ReplicaSet or Job; empty for any other pod."""
    owner = pod.metadata.controller
    if owner is None or owner.kind not in ("ReplicaSet", "ReplicationController", "Job"):
        return ""
    return "" if pod.spec.volumes or pod.spec.resource_claims else f"{owner.kind}/{pod.namespace}/{owner.name}"


class RolloutStage:
    """The cluster during a rollout: pods are created, wait, become ready and leave."""

    def __init__(self, objects: Objects, scheduler: Scheduler) -> None:
        self.expansion = Expansion(objects)
        self.now = newest_time(objects.of(Pod))
        self._scheduler, self._cluster = scheduler, scheduler.cluster
        self._waiting = dict(self._cluster.pending)
        self._ready = {pod.key for pod in objects.of(Pod) if is_ready(pod) and not pod.terminating}
        self._leaving: dict[str, Pod] = {}
        self._nodes: dict[str, str] = {}
        """The nodes of the pods that were placed during the rollout."""
        self._made: dict[str, Pod] = dict(self._waiting)
        """The pods of the simulation: those that were waiting, and those created that still exist."""
        self._created: set[str] = set()
        self._there = {pod.key for pod in objects.of(Pod)}
        self._gone: dict[str, str | None] = {}
        self._messages: dict[str, str] = {}

    # -- what controllers do and see -------------------------------------------------------------------------------

    def create(self, made: Iterable[Object]) -> list[Pod]:
        pods = []
        for obj in made:
            self._cluster.update(obj)
            if isinstance(obj, Pod):
                self._waiting[obj.key] = self._made[obj.key] = obj
                pods.append(obj)
        self._created.update(pod.key for pod in pods)
        return pods

    def delete(self, pod: Pod) -> None:
        node = self._nodes.pop(pod.key, None) or pod.spec.node_name
        self._ready.discard(pod.key)
        self._made.pop(pod.key, None)
        self._created.discard(pod.key)
        if pod.key in self._there:
            self._there.remove(pod.key)
            self._gone[pod.key] = node or None
        if self._waiting.pop(pod.key, None) is not None or not node:
            self._cluster.end(pod)
            self.expansion.admission.forget(pod)
            return
        marked = replace(
            pod,
            metadata=replace(pod.metadata, deletion_timestamp=DELETED),
            spec=replace(pod.spec, node_name=node),
        )
        self._cluster.update(marked)
        self._leaving[pod.key] = marked

    def is_ready(self, pod: Pod) -> bool:
        return pod.key in self._ready

    def is_leaving(self, key: str) -> bool:
        return key in self._leaving

    def seen(self, pod: Pod) -> Pod:
        node = self._nodes.get(pod.key) or pod.spec.node_name
        phase = "Running" if pod.key in self._ready else "Pending"
        return replace(pod, spec=replace(pod.spec, node_name=node), status=replace(pod.status, phase=phase))

    # -- how it goes on --------------------------------------------------------------------------------------------

    def run(self, controllers: list[Controller]) -> list[RolloutStep]:
        """Continue until nothing changes any more; returns the steps of each workload."""
        steps: list[RolloutStep] = []
        number = 0
        while True:
            number += 1
            for controller in controllers:
                controller.created, controller.deleted = [], []
            acted = {id(controller) for controller in controllers if controller.sync()}
            placed = self._schedule()
            left = self._end_leaving()
            # Some controllers waited for this: a StatefulSet creates a pod under the name of the one that is gone.
            acted |= {id(controller) for controller in controllers if controller.sync()}
            placed |= self._schedule()
            self._ready |= set(placed)
            for controller in controllers:
                own = {pod.key for pod, _ in controller.pods()}
                found = {key: node for key, node in placed.items() if key in own}
                if id(controller) in acted or found:
                    steps.append(self._step(number, controller, found, own))
            if not acted and not placed and not left:
                break
        for pod in self._waiting.values():
            self._messages[pod.key] = self._scheduler.message(pod)
        return steps

    def _end_leaving(self) -> bool:
        leaving, self._leaving = self._leaving, {}
        for pod in leaving.values():
            self._cluster.end(pod)
            self.expansion.admission.forget(pod)
        return bool(leaving)

    def _schedule(self) -> dict[str, str]:
        """Decide the waiting pods; among equal pods, one that fits nowhere stands for the others."""
        placed: dict[str, str] = {}
        hopeless: set[str] = set()
        for pod in in_queue_order(self._waiting.values(), self._scheduler):
            alike = _alike(pod)
            if alike in hopeless:
                continue
            node = place(self._scheduler, pod)
            if node is not None:
                placed[pod.key] = self._nodes[pod.key] = node
                del self._waiting[pod.key]
            elif alike:
                hopeless.add(alike)
        return placed

    def _step(self, number: int, controller: Controller, placed: dict[str, str], own: set[str]) -> RolloutStep:
        ready = [is_new for pod, is_new in controller.pods() if self.is_ready(pod)]
        return RolloutStep(
            number,
            _title(controller.applied.after),
            tuple(pod.key for pod in controller.created if pod.key in own),
            tuple(pod.key for pod in controller.deleted),
            placed,
            tuple(key for key in self._waiting if key in own),
            len(ready) - sum(ready),
            sum(ready),
        )

    def placements(self) -> list[Placement]:
        """The placements of the pods that were waiting or created, in order."""
        return [Placement(pod, self._nodes.get(key), self._messages.get(key, "")) for key, pod in self._made.items()]

    def change(self, controller: Controller, steps: Iterable[RolloutStep]) -> ChangedObject:
        """The result for one workload."""
        after = controller.applied.after
        own = [pod.key for pod, _ in controller.pods() if pod.key in self._created]
        mine = [step for step in steps if step.workload == _title(after)]
        deleted = {key for step in mine for key in step.deleted}
        return ChangedObject(
            controller.applied.kind,
            after.namespace,
            after.name,
            controller.applied.paths,
            {key: node for key, node in self._gone.items() if key in deleted},
            {key: self._nodes.get(key) for key in own},
            {key: self._messages[key] for key in own if key in self._messages},
            controller.note,
            len(mine),
            not controller.complete,
        )
