"""Runs the scheduling loop on a cluster until nothing more happens, and says what became of each pod."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.config import without_post_filter
from podium.engine import Scheduler
from podium.engine.scheduler import SchedulerOptions
from podium.errors import ExtenderError, InputError, PluginError
from podium.loop.cycle import SchedulerLoop
from podium.loop.queued_pod import QueuedPod
from podium.model import Pod
from podium.timeline import TimedEvent, Timeline

PATIENCE = 1800.0
"""Simulated seconds after which a cluster counts as one that never comes to rest, as its pods evict each other."""


@dataclass(slots=True)
class PodOutcome:
    """What became of one pod. A pod that its controller creates again keeps its name here, and is still the same."""

    node: str | None = None
    """Its node at the end; None if it has none."""
    pod: Pod | None = None
    """The pod as it is at the end; None if it is gone: a pod without a controller does not come back."""
    old_node: str = ""
    """The first node that it lost; empty if it lost none."""
    preempted_by: str = ""
    """The pod that preempted it last; empty if none did."""


@dataclass(frozen=True, slots=True)
class RestingCluster:
    """A cluster after the loop came to rest."""

    scheduler: Scheduler
    """The loop's scheduler, which says why pods wait."""
    pods: Mapping[str, PodOutcome]
    """What became of the pods that waited or lost their node, by their name at the beginning."""
    log: tuple[Mapping[str, Any], ...]
    """Everything that happened, in order."""
    is_settled: bool = True
    """Whether it came to rest; if not, pods evict each other for ever, and this is how things stand after half an
    hour.
    """
    group_messages: Mapping[str, str] = field(default_factory=dict)
    """Why pods of PodGroups wait, by namespace/name."""
    not_evicted: Mapping[str, str] = field(default_factory=dict)
    """The pods that a drain could not evict, and why."""

    @property
    def cluster(self) -> Cluster:
        return self.scheduler.cluster

    def why_pending(self, pod: Pod) -> tuple[str, str]:
        """Why a pod has no node, and the plugin that failed on it if that is the reason."""
        if pod.key in self.group_messages:
            return self.group_messages[pod.key], ""
        try:
            self.scheduler.best(pod)
        except PluginError as error:
            return str(error), error.plugin
        except (InputError, ExtenderError) as error:
            return str(error), ""
        return self.scheduler.message(pod), ""


def without_preemption(options: SchedulerOptions) -> SchedulerOptions:
    """The same scheduler, except that it evicts no pod for another."""
    return dataclasses.replace(options, config=without_post_filter(options.set_up().config))


@contextmanager
def run_to_rest(
    cluster: Cluster,
    options: SchedulerOptions,
    *,
    waiting: Iterable[Pod],
    events: Iterable[TimedEvent] = (),
) -> Iterator[RestingCluster]:
    """Let events happen to a cluster, and schedule until nothing changes any more; changes the cluster.

    `waiting` are the pending pods that the loop schedules, first come first served. Controllers replace pods that are
    evicted or lose their node; victims of preemption take a second to end. Pods run for ever. Gives up after
    half an hour.
    """
    waiting = list(waiting)
    _bind_assumed(cluster)
    loop = SchedulerLoop(cluster, options, waiting=waiting)
    timeline = Timeline.of_cluster(loop, events)
    try:
        result = timeline.run(PATIENCE)
        outcomes = _outcomes(result.log, waiting)
        for key, outcome in outcomes.items():
            outcome.pod, outcome.node = cluster.find_pod(key) or (None, None)
        is_settled = timeline.history.last_change + timeline.keeps_trying <= PATIENCE
        left = {pod: why for pods in result.unfinished_drains.values() for pod, why in pods.items()}
        messages = {queued.key: _why_waiting(queued, loop.scheduler) for queued in loop.queue.groups}
        yield RestingCluster(loop.scheduler, outcomes, result.log, is_settled, messages, left)
    finally:
        timeline.close()


def _why_waiting(queued: QueuedPod, scheduler: Scheduler) -> str:
    """Why a pod of a group waits: what holds it back, else why the last attempt failed."""
    try:
        scheduler.check_queue(queued.pod)
    except PluginError as error:
        return str(error)
    return queued.message or "another pod of its PodGroup is held back"


def _bind_assumed(cluster: Cluster) -> None:
    """Give the pods that a scheduler placed, without binding them, the name of their node, as the loop expects."""
    for pod, node in list(cluster.placed()):
        if pod.spec.node_name != node:
            cluster.update(replace(pod, spec=replace(pod.spec, node_name=node)))


def _outcomes(log: Iterable[Mapping[str, Any]], waiting: Iterable[Pod]) -> dict[str, PodOutcome]:
    """The pods that waited or lost their node, without what the cluster says at the end."""
    outcomes = {pod.key: PodOutcome() for pod in waiting}
    for record in log:
        if record["event"] in ("evict", "lost"):
            outcome = outcomes.setdefault(record["pod"], PodOutcome())
            outcome.old_node = outcome.old_node or record["node"]
            outcome.preempted_by = record.get("by", "")
    return outcomes
