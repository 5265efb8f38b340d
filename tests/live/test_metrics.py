"""The metrics of `podium run` beside those of kube-scheduler, after the same story: names, labels and counts."""

from __future__ import annotations

import re
import time
from typing import Any, NamedTuple

import pytest

from live.cluster_objects import NODES, PODS, Fields, node, pod
from live.control_plane import ControlPlane, control_plane
from live.kubelets import Kubelets
from live.schedulers import COMPARED, SCHEDULERS, wait_until

MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
LISTED = (
    "scheduler_schedule_attempts_total",
    "scheduler_scheduling_attempt_duration_seconds",
    "scheduler_scheduling_algorithm_duration_seconds",
    "scheduler_pod_scheduling_sli_duration_seconds",
    "scheduler_pod_scheduling_attempts",
    "scheduler_pending_pods",
    "scheduler_framework_extension_point_duration_seconds",
    "scheduler_plugin_execution_duration_seconds",
    "scheduler_plugin_evaluation_total",
    "scheduler_preemption_victims",
    "scheduler_preemption_attempts_total",
    "scheduler_queue_incoming_pods_total",
    "scheduler_unschedulable_pods",
    "scheduler_cache_size",
    "scheduler_event_handling_duration_seconds",
)
COUNTED = (
    "scheduler_schedule_attempts_total",
    "scheduler_queue_incoming_pods_total",
    "scheduler_pod_scheduling_attempts_bucket",
    "scheduler_pod_scheduling_sli_duration_seconds_count",
    "scheduler_preemption_victims_bucket",
    "scheduler_preemption_attempts_total",
    "scheduler_unschedulable_pods",
    "scheduler_cache_size",
)
"""Those that must be the same to the number."""
_SAMPLE = re.compile(r"(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class Exposition(NamedTuple):
    """Metrics as Prometheus reads them."""

    types: dict[str, str]
    """By the name of a family."""
    samples: dict[str, dict[tuple[tuple[str, str], ...], float]]
    """By name, the value for labels."""

    def labels(self, family: str) -> set[str]:
        """The names of a family's labels, but for the limits of buckets."""
        names = (family, f"{family}_bucket", f"{family}_count")
        return {label for name in names for key in self.samples.get(name, ()) for label, _ in key} - {"le"}

    def limits(self, family: str) -> set[float]:
        """Where the buckets of a histogram end."""
        return {float(dict(key)["le"]) for key in self.samples.get(f"{family}_bucket", ())}

    def values(self, family: str, label: str) -> set[str]:
        return {dict(key)[label] for key in self.samples[family]}


def read(text: str) -> Exposition:
    found = Exposition({}, {})
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            found.types[name] = kind
        elif not line.startswith("#") and (match := _SAMPLE.fullmatch(line)):
            labels = tuple(
                (label, str(float(value)) if label == "le" else value)
                for label, value in sorted(_LABEL.findall(match["labels"] or ""))
            )
            found.samples.setdefault(match["name"], {})[labels] = float(match["value"])
    return found


def bound(plane: ControlPlane, name: str) -> bool:
    return bool(plane.get(f"{PODS}/{name}")["spec"].get("nodeName"))


def is_told(plane: ControlPlane, name: str) -> bool:
    return any(each.get("message") for each in plane.get(f"{PODS}/{name}")["status"].get("conditions", ()))


def change(plane: ControlPlane, path: str, patch: Fields, kind: str = MERGE) -> None:
    status, answer = plane.request("PATCH", path, patch, content_type=kind)
    assert status == 200, answer


def live_through(plane: ControlPlane) -> None:
    """Pods that wait for an event each, which comes when their backoff is over."""

    def create(name: str, **spec: Any) -> None:
        plane.create(PODS, pod(name, schedulerName=COMPARED, **spec))

    create("web", cpu="1")
    wait_until(lambda: bound(plane, "web"))
    create("big", cpu="30")
    create("picky", nodeSelector={"disk": "ssd"})
    create("gated", schedulingGates=[{"name": "example.com/later"}])
    wait_until(lambda: is_told(plane, "big") and is_told(plane, "picky"))
    change(plane, f"{PODS}/gated", {"spec": {"schedulingGates": []}})
    wait_until(lambda: bound(plane, "gated"))
    time.sleep(3)
    change(plane, f"{NODES}/a", {"metadata": {"labels": {"disk": "ssd"}}})
    wait_until(lambda: bound(plane, "picky"))
    change(plane, f"{NODES}/a/status", {"status": {"allocatable": {"cpu": "40"}, "capacity": {"cpu": "40"}}})
    wait_until(lambda: bound(plane, "big"))
    create("next", cpu="9500m")
    wait_until(lambda: is_told(plane, "next"))
    time.sleep(3)
    assert plane.request("DELETE", f"{PODS}/web", {"gracePeriodSeconds": 0})[0] == 200
    wait_until(lambda: bound(plane, "next"))
    create("tolerant", cpu="2", nodeSelector={"pool": "new"})
    wait_until(lambda: is_told(plane, "tolerant"))
    time.sleep(3)
    added = node("b")
    added["metadata"]["labels"]["pool"] = "new"
    plane.create(NODES, added)
    wait_until(lambda: bound(plane, "tolerant"))
    create("important", cpu="3", nodeSelector={"pool": "new"}, priorityClassName="high")
    wait_until(lambda: bound(plane, "important"))
    create("left", cpu="300")
    wait_until(lambda: is_told(plane, "left"))
    # kube-scheduler writes some of them down every few seconds only.
    time.sleep(6)


@pytest.fixture(scope="module")
def measured() -> dict[str, Exposition]:
    found = {}
    for name, scheduler in SCHEDULERS.items():
        with control_plane() as plane, Kubelets(plane):
            plane.create(NODES, node("a", cpu="4"))
            plane.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
            process = scheduler(plane)
            live_through(plane)
            found[name] = read(process.metrics())
            process.stop()
    return found


def test_every_metric_is_one_of_kube_scheduler(measured: dict[str, Exposition]) -> None:
    ours, theirs = measured["podium"], measured["kube-scheduler"]

    told = [
        name for name in ours.types if ours.samples.keys() & {name, f"{name}_count"} and not name.startswith("podium_")
    ]
    assert [name for name in told if theirs.types.get(name) != ours.types[name]] == []
    assert [name for name in LISTED if name not in ours.types] == []


@pytest.mark.parametrize("name", LISTED)
def test_labels_and_buckets_are_the_same(name: str, measured: dict[str, Exposition]) -> None:
    ours, theirs = measured["podium"], measured["kube-scheduler"]

    assert ours.labels(name) == theirs.labels(name)
    assert sorted(ours.limits(name)) == pytest.approx(sorted(theirs.limits(name)))


@pytest.mark.parametrize("name", COUNTED)
def test_counts_are_the_same(name: str, measured: dict[str, Exposition]) -> None:
    ours, theirs = (
        {key: value for key, value in measured[each].samples.get(name, {}).items() if value}
        for each in ("podium", "kube-scheduler")
    )

    assert ours == theirs


def test_the_story_has_every_kind_of_event(measured: dict[str, Exposition]) -> None:
    events = measured["kube-scheduler"].values("scheduler_queue_incoming_pods_total", "event")

    assert {"UnscheduledPodAdd", "ScheduleAttemptFailure", "NodeAdd", "NodeUpdateNodeLabel"} <= events
    assert {"NodeUpdateNodeAllocatable", "AssignedPodDelete", "TargetPodUpdatePodSchedulingGatesEliminated"} <= events


def test_events_are_named_as_kube_scheduler_names_them(measured: dict[str, Exposition]) -> None:
    name = "scheduler_event_handling_duration_seconds_count"
    ours, theirs = (measured[each].values(name, "event") for each in ("podium", "kube-scheduler"))

    assert ours == theirs
