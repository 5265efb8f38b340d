"""Runs the scheduling loop on a cluster until nothing more happens, and says what became of each pod."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from podium.cluster import Cluster
from podium.config import without_post_filter
from podium.engine import Scheduler
from podium.engine.scheduler import SchedulerOptions
from podium.errors import ExtenderError, InputError, PluginError
from podium.loop.cycle import SchedulerLoop
from podium.model import Pod
from podium.timeline import TimedEvent, Timeline

PATIENCE = 1800.0
"""Simulated seconds after which a cluster counts as one that never comes to rest, as its pods evict each other."""


@dataclass(slots=True)
class PodOutcome:
    """What became of one pod. A pod that its controller creates again, whatever its new name, is still the same."""

    key: str
    """The name of the pod, or of the last one that replaced it."""
    node: str | None = None
    """Its node at the end; None if it has none."""
    exists: bool = True
    """Whether it exists at the end: a pod without a controller does not come back."""
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
    roots: Mapping[str, str]
    """For each pod that replaced another, the name of the first of them."""
    is_settled: bool = True
    """Whether it came to rest; if not, pods evict each other for ever, and this is how things stand after half an
    hour.
    """
    not_evicted: Mapping[str, str] = field(default_factory=dict)
    """The pods that a drain could not evict, and why."""

    @property
    def cluster(self) -> Cluster:
        return self.scheduler.cluster

    def pod_of(self, outcome: PodOutcome) -> Pod | None:
        """The pod as it is at the end; None if it is gone."""
        found = self.cluster.find_pod(outcome.key)
        return None if found is None or not outcome.exists else found[0]

    def why_pending(self, pod: Pod) -> tuple[str, str]:
        """Why a pod has no node, and the plugin that failed on it if that is the reason."""
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
    loop = SchedulerLoop(cluster, options, waiting=waiting)
    timeline = Timeline.of_cluster(loop, events)
    try:
        result = timeline.run(PATIENCE)
        roots, outcomes = _outcomes(result.log, waiting)
        for outcome in outcomes.values():
            found = cluster.find_pod(outcome.key)
            outcome.exists, outcome.node = found is not None, None if found is None else found[1]
        is_settled = timeline.history.last_change + timeline.keeps_trying <= PATIENCE
        left = {pod: why for pods in result.unfinished_drains.values() for pod, why in pods.items()}
        yield RestingCluster(loop.scheduler, outcomes, result.log, roots, is_settled, left)
    finally:
        timeline.close()


def _outcomes(log: Iterable[Mapping[str, Any]], waiting: Iterable[Pod]) -> tuple[dict[str, str], dict[str, PodOutcome]]:
    """The first name of each pod that replaced another, and the outcomes, without what the cluster says at the end."""
    roots: dict[str, str] = {}
    outcomes = {pod.key: PodOutcome(pod.key) for pod in waiting}
    for record in log:
        match record["event"]:
            case "create" if "replaces" in record:
                root = roots.get(record["replaces"], record["replaces"])
                roots[record["pod"]] = root
                outcomes[root].key = record["pod"]
            case "evict" | "lost":
                root = roots.get(record["pod"], record["pod"])
                outcome = outcomes.setdefault(root, PodOutcome(record["pod"]))
                outcome.old_node = outcome.old_node or record["node"]
                by = record.get("by", "")
                outcome.preempted_by = roots.get(by, by)
    return roots, outcomes
