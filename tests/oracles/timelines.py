"""The slow way to an answer: a timeline with its own names, times and controllers, run until nothing happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from podium.cluster import Cluster
from podium.loop import SchedulerLoop
from podium.model import Object, Pod
from podium.timeline import Surroundings, TimedEvent, Timeline
from podium.workloads import workload_of

LONG_ENOUGH = 1800.0
Whereabouts = Counter[tuple[str, str | None]]
"""How many pods of each workload there are on each node, None for pending; names of pods do not matter."""


def run_timeline(
    objects: Iterable[Object], events: Iterable[TimedEvent] = (), waiting: Iterable[Pod] | None = None
) -> Timeline:
    """Run events on a cluster; `waiting` are the pending pods to schedule, by default all."""
    cluster = Cluster.from_objects(objects)
    loop = SchedulerLoop(cluster, tie_break="first", waiting=waiting)
    timeline = Timeline.of_cluster(loop, events, Surroundings())
    timeline.run(LONG_ENOUGH)
    return timeline


def comes_to_rest(timeline: Timeline) -> bool:
    """Whether nothing happened any more at the end: pods may evict each other for ever."""
    return timeline.history.last_change + timeline.keeps_trying <= LONG_ENOUGH


def whereabouts(cluster: Cluster) -> Whereabouts:
    placed = Counter[tuple[str, str | None]]((workload_of(pod), node) for pod, node in cluster.placed())
    placed.update((workload_of(pod), None) for pod in cluster.pending.values())
    return placed
