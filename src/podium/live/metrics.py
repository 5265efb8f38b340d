"""The metrics of a running scheduler and its plugins, under kube-scheduler's names, so that dashboards work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from time import perf_counter
from typing import Any

import prometheus_client
from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from podium.framework import Framework, Plugin, PostFilterResult, PreFilterResult, Status
from podium.framework.events import ClusterEvent
from podium.live.reflector import ReflectorHealth
from podium.loop import Event, EventType, SchedulerLoop
from podium.loop.events import ASSIGNED, label_of, node_changes, object_change, pod_changes
from podium.model import Node, Object, Pod
from podium.rules import Rules

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

ATTEMPT_SECONDS = tuple(0.001 * 2**power for power in range(15))
SLI_SECONDS = tuple(0.01 * 2**power for power in range(20))
PLUGIN_SECONDS = tuple(0.00001 * 1.5**power for power in range(20))
POINT_SECONDS = tuple(0.0001 * 2**power for power in range(12))
ATTEMPTS = (1.0, 2.0, 4.0, 8.0, 16.0)
VICTIMS = tuple(float(2**power) for power in range(7))

SCHEDULED, UNSCHEDULABLE, ERROR = "scheduled", "unschedulable", "error"
"""The possible results of an attempt."""

Values = Mapping[str, Mapping[tuple[str, ...], float]]
"""Per metric, its value by label values."""

STATE_METRICS = {
    "scheduler_pending_pods": (["queue"], "Pods that wait, by the part of the queue they are in."),
    "scheduler_queued_entities": (["queue", "type"], "The same, for whatever is scheduled as one: pods."),
    "scheduler_cache_size": (["type"], "Nodes, pods and assumed pods that the scheduler knows."),
    "scheduler_unschedulable_pods": (["plugin", "profile"], "Pods that wait, by the plugin that rejected them last."),
    "scheduler_goroutines": (["operation"], "Writes under way, by what they do."),
    "scheduler_queue_incoming_pods_total": (["queue", "event"], "Pods that came into the queue, by part and event."),
    "podium_watch_age_seconds": (["kind"], "Seconds since the last list, event or bookmark of a kind of object."),
    "podium_watch_lists_total": (["kind"], "How often the objects of a kind were listed."),
    "podium_watch_reconnects_total": (["kind"], "How often the watch of a kind was begun again."),
    "podium_unreadable_objects_total": (["kind"], "Objects that could not be read."),
    "podium_api_errors_total": (["code"], "Failed requests by HTTP status; 0 without an answer."),
}


class _State(Collector):
    """Metrics that describe a state."""

    def __init__(self, values: Callable[[], Values]) -> None:
        self._values = values

    def collect(self) -> list[Metric]:
        families, values = list[Metric](), self._values()
        for name, (labels, meaning) in STATE_METRICS.items():
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            family = kind(name, meaning, labels=labels)
            for key, value in values.get(name, {}).items():
                family.add_metric(key, value)
            families.append(family)
        return families


class Metrics:
    """One registry per scheduler, so that several schedulers in a process do not interfere."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.values: Values = {}
        """The metrics that describe the scheduler's state, as of when it was asked last."""
        self._registry.register(_State(lambda: self.values))
        self.attempts = self._counter(
            "scheduler_schedule_attempts_total", "Attempts to schedule pods.", "result", "profile"
        )
        self.attempt_seconds = self._histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "How long attempts take, with binding.",
            ATTEMPT_SECONDS,
            *("result", "profile"),
        )
        self.algorithm_seconds = self._histogram(
            "scheduler_scheduling_algorithm_duration_seconds", "How long finding a node takes.", ATTEMPT_SECONDS
        )
        self.sli_seconds = self._histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "How long pods take from the queue until they are bound.",
            SLI_SECONDS,
            "attempts",
        )
        self.pod_attempts = self._histogram(
            "scheduler_pod_scheduling_attempts", "How many attempts it takes to schedule a pod.", ATTEMPTS
        )
        self.point_seconds = self._histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "How long all plugins of an extension point take.",
            POINT_SECONDS,
            *("extension_point", "status", "profile"),
        )
        self.plugin_seconds = self._histogram(
            "scheduler_plugin_execution_duration_seconds",
            "How long a plugin takes at an extension point.",
            PLUGIN_SECONDS,
            *("plugin", "extension_point", "status"),
        )
        self.plugin_evaluations = self._counter(
            "scheduler_plugin_evaluation_total",
            "How often plugins were asked, at PreFilter, Filter, PreScore and Score.",
            *("plugin", "extension_point", "profile"),
        )
        self.event_seconds = self._histogram(
            "scheduler_event_handling_duration_seconds", "How long handling an event takes.", POINT_SECONDS, "event"
        )
        self.permit_seconds = self._histogram(
            "scheduler_permit_wait_duration_seconds", "How long pods wait at Permit.", ATTEMPT_SECONDS, "result"
        )
        self.victims = self._histogram("scheduler_preemption_victims", "How many pods a preemption evicts.", VICTIMS)
        self.preemptions = self._counter(
            "scheduler_preemption_attempts_total", "How often pods that fit nowhere asked for others to go."
        )
        self.leader = Gauge(
            "leader_election_master_status", "Whether this replica is the leader.", ["name"], registry=self._registry
        )

    def _counter(self, name: str, meaning: str, *labels: str) -> prometheus_client.Counter:
        return prometheus_client.Counter(name, meaning, labels, registry=self._registry)

    def _histogram(self, name: str, meaning: str, buckets: Sequence[float], *labels: str) -> Histogram:
        return Histogram(name, meaning, labels, buckets=buckets, registry=self._registry)

    def attempted(self, result: str, pod: Pod, seconds: float) -> None:
        """Record the end of an attempt to schedule a pod, including binding."""
        labels = result, pod.spec.scheduler_name
        self.attempts.labels(*labels).inc()
        self.attempt_seconds.labels(*labels).observe(seconds)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return exposition(self._registry)


def exposition(registry: CollectorRegistry) -> bytes:
    """The metrics as text, without the creation time of each series, which kube-scheduler does not write either."""
    lines = generate_latest(registry).splitlines(keepends=True)
    return b"".join(line for line in lines if b"_created" not in line)


def values_now(loop: SchedulerLoop, writes: int) -> Values:
    """The metrics computed from a scheduler's current state; `writes` is the number of writes under way."""
    queue = loop.queue
    gated = sum(1 for queued in queue.unschedulable if queued.is_gated)
    rejected: Counter[tuple[str, ...]] = Counter(
        (plugin, queued.pod.spec.scheduler_name) for queued in queue for plugin in queued.rejectors
    )
    waiting = {
        "active": len(queue.active),
        "backoff": len(queue.backoff),
        "unschedulable": len(queue.unschedulable) - gated,
        "gated": gated,
    }
    return {
        "scheduler_pending_pods": {(name,): count for name, count in waiting.items()},
        "scheduler_queued_entities": {(name, "pod"): count for name, count in waiting.items()},
        "scheduler_cache_size": {
            ("nodes",): loop.cluster.node_count,
            ("pods",): len(loop.pods) - len(loop.cluster.pending),
            ("assumed_pods",): len(loop.assumed),
        },
        "scheduler_unschedulable_pods": rejected,
        "scheduler_goroutines": {("binding",): writes},
        "scheduler_queue_incoming_pods_total": queue.incoming,
    }


def watch_values(health: Mapping[str, ReflectorHealth], errors: Mapping[int, int]) -> Values:
    """The metrics about following the cluster: the health of each kind, and failed requests by HTTP status."""
    return {
        "podium_watch_age_seconds": {(kind,): each.age for kind, each in health.items()},
        "podium_watch_lists_total": {(kind,): each.lists for kind, each in health.items()},
        "podium_watch_reconnects_total": {(kind,): each.reconnects for kind, each in health.items()},
        "podium_unreadable_objects_total": {(kind,): each.unreadable for kind, each in health.items()},
        "podium_api_errors_total": {(str(code),): count for code, count in errors.items()},
    }


UNTOLD = frozenset(
    (
        *("Namespace", "PodDisruptionBudget", "PriorityClass", "ReplicaSet", "ReplicationController", "Service"),
        *("DeviceTaintRule", "ResourceClaimTemplate", "StatefulSet"),
    )
)
"""Kinds that kube-scheduler looks up, but has no event handlers for."""


def event_labels(event: Event, old: Object | None, rules: Rules, *, is_ours: bool = True) -> Sequence[str]:
    """The names of an event in kube-scheduler's metrics, where `old` is the object before; several for some updates.

    `is_ours` tells for a pod whether this scheduler places it.
    """
    item, is_gone = event.object, event.type is EventType.DELETE
    if isinstance(item, Pod):
        return _pod_labels(item, old if isinstance(old, Pod) else None, rules, is_gone, is_ours)
    if type(item).__name__ in UNTOLD:
        return ()
    if isinstance(item, Node) and isinstance(old, Node) and not is_gone:
        return _labels(node_changes(old, item, rules))
    return _labels([object_change(item if is_gone else old, None if is_gone else item)])


def _pod_labels(pod: Pod, old: Pod | None, rules: Rules, is_gone: bool, is_ours: bool) -> Sequence[str]:
    unscheduled = "UnscheduledPod"
    if is_gone:
        return (f"{ASSIGNED if pod.spec.node_name else unscheduled}Delete",) if pod.spec.node_name or is_ours else ()
    if old is None or (pod.spec.node_name and not old.spec.node_name):
        added = (f"{ASSIGNED}Add",) if pod.spec.node_name else (f"{unscheduled}Add",) if is_ours else ()
        return (*added, f"{unscheduled}Delete") if old is not None and is_ours else added
    kind = ASSIGNED if pod.spec.node_name else unscheduled
    if kind is unscheduled and not is_ours:
        return ()
    changes = _labels(pod_changes(old, pod, rules), kind)
    return changes if f"{kind}Update" in changes else (f"{kind}Update", *changes)


def _labels(changes: Sequence[ClusterEvent], pod: str = ASSIGNED) -> Sequence[str]:
    return [label_of(change, pod) for change in changes]


POINTS = {
    "pre_enqueue_in": "PreEnqueue",
    "pre_filter": "PreFilter",
    "filter": "Filter",
    "post_filter": "PostFilter",
    "pre_score": "PreScore",
    "score": "Score",
    "normalize": "ScoreExtensionNormalize",
    "reserve": "Reserve",
    "unreserve": "Unreserve",
    "permit": "Permit",
}
"""The deciding methods of plugins, and kube-scheduler's names of their extension points; binding is measured
elsewhere.
"""
COUNTED = ("PreFilter", "Filter", "PreScore", "Score")
SAMPLED = 10
"""The plugins' times are measured for one attempt out of this many, as in kube-scheduler."""


class PluginTimes:
    """Measures the plugins of a scheduler. Results kept from earlier pods take no time and are not measured."""

    def __init__(self, metrics: Metrics) -> None:
        self._seconds: dict[str, float] = {}
        """By extension point, in the current attempt."""
        self._statuses: dict[str, str] = {}
        self._attempts = 0
        # Looking up the labels takes longer than counting.
        self._plugin = lru_cache(None)(metrics.plugin_seconds.labels)
        self._point = lru_cache(None)(metrics.point_seconds.labels)
        self._count = lru_cache(None)(metrics.plugin_evaluations.labels)

    def measure(self, frameworks: Mapping[str, Framework]) -> None:
        """Measure these profiles' plugins from now on."""
        for profile, framework in frameworks.items():
            for plugin in framework.plugins.values():
                for method, point in POINTS.items():
                    if hasattr(plugin, method):
                        setattr(plugin, method, self._measured(plugin, getattr(plugin, method), point, profile))

    def attempted(self, profile: str) -> None:
        """Record the time of each extension point at the end of an attempt."""
        for point, seconds in self._seconds.items():
            self._point(point, self._statuses.get(point, "Success"), profile).observe(seconds)
        self._seconds.clear()
        self._statuses.clear()
        self._attempts += 1

    def _measured(self, plugin: Plugin, method: Callable[..., Any], point: str, profile: str) -> Callable[..., Any]:
        is_counted, name = point in COUNTED, plugin.name

        def measured(*arguments: Any) -> Any:
            begin = perf_counter()
            result = method(*arguments)
            seconds = perf_counter() - begin
            self._seconds[point] = self._seconds.get(point, 0.0) + seconds
            if is_counted:
                self._count(name, point, profile).inc()
            status = _status(result)
            if status != "Success":
                self._statuses[point] = status
            if self._attempts % SAMPLED == 0:
                self._plugin(name, point, status).observe(seconds)
            return result

        return measured


def _status(result: object) -> str:
    """The code of a plugin's result; a result for many nodes counts as success."""
    if isinstance(result, PreFilterResult | PostFilterResult):
        result = result.status
    elif isinstance(result, tuple) and not isinstance(result, Status):
        result = result[0]
    return str(result.code.value) if isinstance(result, Status) else "Success"
