"""What a running scheduler measures, under kube-scheduler's names, so that existing dashboards work."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

ATTEMPT_SECONDS = tuple(0.001 * 2**power for power in range(15))
SLI_SECONDS = tuple(0.01 * 2**power for power in range(20))
POINT_SECONDS = tuple(0.0001 * 2**power for power in range(12))
VICTIMS = tuple(float(2**power) for power in range(7))

SCHEDULED, UNSCHEDULABLE, ERROR = "scheduled", "unschedulable", "error"
"""How an attempt ends."""

Gauges = Callable[[], Mapping[str, Mapping[str, float]]]
"""Gives, per metric, its value for each value of its label."""

GAUGES = {
    "scheduler_pending_pods": ("queue", "Pods that wait, by the part of the queue they are in."),
    "scheduler_cache_size": ("type", "Nodes, pods and assumed pods that the scheduler knows."),
    "scheduler_unschedulable_pods": ("plugin", "Pods that wait, by the plugin that rejected them last."),
}


class _GaugesNow(Collector):
    """Gauges that are worked out when somebody asks."""

    def __init__(self, now: Gauges) -> None:
        self._now = now

    def collect(self) -> list[GaugeMetricFamily]:
        families, values = [], self._now()
        for name, (label, meaning) in GAUGES.items():
            family = GaugeMetricFamily(name, meaning, labels=[label])
            for key, value in values.get(name, {}).items():
                family.add_metric([key], value)
            families.append(family)
        return families


class Metrics:
    """One registry of its own, so that several schedulers in a process do not get in each other's way."""

    def __init__(self, gauges: Gauges) -> None:
        self._registry = registry = CollectorRegistry()
        registry.register(_GaugesNow(gauges))
        self.attempts = Counter(
            "scheduler_schedule_attempts_total", "Attempts to schedule pods.", ["result", "profile"], registry=registry
        )
        self.attempt_seconds = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "How long attempts take, without binding.",
            ["result", "profile"],
            buckets=ATTEMPT_SECONDS,
            registry=registry,
        )
        self.algorithm_seconds = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "How long finding a node takes.",
            buckets=ATTEMPT_SECONDS,
            registry=registry,
        )
        self.sli_seconds = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "How long pods take from the queue until they are bound.",
            ["attempts"],
            buckets=SLI_SECONDS,
            registry=registry,
        )
        self.pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "How many attempts it takes to schedule a pod.",
            buckets=(1, 2, 4, 8, 16),
            registry=registry,
        )
        self.point_seconds = Histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "How long the extension points take that talk to the API server.",
            ["extension_point", "status", "profile"],
            buckets=POINT_SECONDS,
            registry=registry,
        )
        self.victims = Histogram(
            "scheduler_preemption_victims", "How many pods a preemption evicts.", buckets=VICTIMS, registry=registry
        )
        self.preemptions = Counter(
            "scheduler_preemption_attempts_total", "Preemptions that were carried out.", registry=registry
        )
        self.incoming = Counter(
            "scheduler_queue_incoming_pods_total",
            "Pods that came into the queue, by part and event.",
            ["queue", "event"],
            registry=registry,
        )
        self.leader = Gauge(
            "leader_election_master_status", "Whether this replica is the leader.", ["name"], registry=registry
        )

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return exposition(self._registry)


def exposition(registry: CollectorRegistry) -> bytes:
    """The metrics as text, without when each series began, which kube-scheduler does not say either."""
    lines = generate_latest(registry).splitlines(keepends=True)
    return b"".join(line for line in lines if b"_created" not in line)
