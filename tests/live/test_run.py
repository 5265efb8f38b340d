"""`podium run` beside kube-scheduler: the same pods on the same nodes, and the same words in what users see."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from live.cluster_objects import NODES, PODS, ZONE, node, pod
from live.commands import Run
from live.control_plane import ControlPlane, Process, control_plane
from live.kubelets import Kubelets
from live.schedulers import COMPARED, SCHEDULERS, Podium, configuration, wait_until

Fields = dict[str, Any]


def in_zone(*zones: str) -> Fields:
    match = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [match]}}
    return {"affinity": {"nodeAffinity": required}}


def apart(app: str) -> Fields:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


CLUSTER = (
    node("a", cpu="4", memory="8Gi", zone="one"),
    node("b", cpu="8", memory="23Gi", zone="one"),
    node("c", cpu="6", memory="5Gi", zone="two"),
    node("d", cpu="16", zone="three", taints=[{"key": "team", "value": "x", "effect": "NoSchedule"}]),
    node("e", cpu="5", zone="two", unschedulable=True),
)
# Whenever a pod fits on several nodes, one of them is best: between nodes that are as good, the schedulers draw lots.
STORY = (
    pod("plain-1", cpu="1"),
    pod("plain-2", cpu="1200m"),
    pod("in-two", cpu="500m", **in_zone("two")),
    pod("nowhere", cpu="500m", **in_zone("four")),
    pod("too-big", cpu="30"),
    pod("alone-1", labels={"app": "alone"}, **apart("alone")),
    pod("alone-2", labels={"app": "alone"}, **apart("alone")),
    pod("alone-3", labels={"app": "alone"}, **apart("alone")),
    pod("alone-4", labels={"app": "alone"}, **apart("alone")),
    pod("tolerant", cpu="10", tolerations=[{"key": "team", "operator": "Exists"}]),
    pod("gated", schedulingGates=[{"name": "example.com/later"}]),
    pod("selects", nodeSelector={"disk": "ssd"}),
    pod("no-claim", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}]),
    pod("important", cpu="7500m", priorityClassName="high", **in_zone("one")),
)


class Outcome(NamedTuple):
    """What a scheduler did, as users see it."""

    nodes: dict[str, str]
    conditions: dict[str, list[Fields]]
    events: list[Fields]


def settled(plane: ControlPlane, name: str) -> bool:
    """Whether a pod is bound, gone, or told that it fits nowhere."""
    found = {each["metadata"]["name"]: each for each in plane.pods()}
    if name not in found:
        return True
    conditions = found[name]["status"].get("conditions", ())
    return bool(found[name]["spec"].get("nodeName")) or any(each.get("message") for each in conditions)


def told(plane: ControlPlane, scheduler: Callable[[ControlPlane], Process]) -> Outcome:
    """Let a scheduler live through the story, a pod at a time, so that nothing depends on who is faster."""
    for each in CLUSTER:
        plane.create(NODES, each)
    plane.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
    process = scheduler(plane)
    try:
        for each in STORY:
            each = {**each, "spec": {**each["spec"], "schedulerName": COMPARED}}
            plane.create(PODS, each)
            name = each["metadata"]["name"]
            wait_until(lambda name=name: settled(plane, name))  # type: ignore[misc]
            time.sleep(0.3)
        wait_until(lambda: bool(nodes_of(plane)["important"]))
        wait_until(lambda: any(event["reason"] == "Preempted" for event in plane.events()))
        time.sleep(1.5)
        return Outcome(nodes_of(plane), conditions_of(plane), events_of(plane))
    finally:
        process.stop()


def nodes_of(plane: ControlPlane) -> dict[str, str]:
    return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in plane.pods()}


def conditions_of(plane: ControlPlane) -> dict[str, list[Fields]]:
    timeless = ("lastTransitionTime", "lastProbeTime")
    return {
        each["metadata"]["name"]: [
            {field: value for field, value in condition.items() if field not in timeless}
            for condition in each["status"].get("conditions", ())
        ]
        for each in plane.pods()
    }


def events_of(plane: ControlPlane) -> list[Fields]:
    """The events without times, and without how often one came again, which depends on the time."""
    uids = {each["metadata"]["uid"]: each["metadata"]["name"] for each in plane.pods()}
    kept = ("reason", "action", "type", "reportingController", "note")
    found = []
    for event in plane.events():
        fields = {field: event[field] for field in kept}
        for uid, name in uids.items():
            fields["note"] = fields["note"].replace(uid, name)
        regarding, related = event["regarding"], event.get("related") or {}
        fields |= {"regarding": (regarding["kind"], regarding["namespace"], regarding["name"])}
        fields |= {"related": related.get("name")}
        if fields not in found:
            found.append(fields)
    return sorted(found, key=lambda fields: json.dumps(fields, sort_keys=True))


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    found = {}
    for name, scheduler in SCHEDULERS.items():
        with control_plane() as plane, Kubelets(plane):
            found[name] = told(plane, scheduler)
    return found


@pytest.mark.parametrize("part", Outcome._fields)
def test_does_what_kube_scheduler_does(part: str, outcomes: dict[str, Outcome]) -> None:
    assert getattr(outcomes["podium"], part) == getattr(outcomes["kube-scheduler"], part)


def test_the_story_has_every_outcome(outcomes: dict[str, Outcome]) -> None:
    found = outcomes["kube-scheduler"]

    assert {"Scheduled", "FailedScheduling", "Preempted"} <= {event["reason"] for event in found.events}
    assert found.nodes["tolerant"] == "d"
    assert found.nodes["important"] == "b"
    assert "nowhere" in found.nodes
    assert len(found.nodes) < len(STORY)


# -- the process -----------------------------------------------------------------------------------------------------


MEASURED = (
    'scheduler_queue_incoming_pods_total{event="UnscheduledPodAdd",queue="active"} 2.0',
    'scheduler_queue_incoming_pods_total{event="ScheduleAttemptFailure",queue="unschedulable"} 1.0',
    'scheduler_plugin_execution_duration_seconds_count{extension_point="Filter",plugin="NodeResourcesFit",',
    'scheduler_plugin_evaluation_total{extension_point="PreFilter",plugin="NodeResourcesFit",profile="podium"}',
    'scheduler_framework_extension_point_duration_seconds_count{extension_point="PreFilter",profile="podium",status=',
    'scheduler_framework_extension_point_duration_seconds_count{extension_point="Bind",profile="podium",status="Success"}',
    'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"} 1.0',
    'scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="podium"} 1.0',
    'scheduler_event_handling_duration_seconds_count{event="',
    "scheduler_preemption_victims_count 0.0",
)


def test_answers_over_http(fresh_plane: ControlPlane, run: Run) -> None:
    fresh_plane.create(NODES, node("a", cpu="4"))
    token = fresh_plane.directory / "decisions.token"
    token.write_text("secret\n")
    process = Podium(fresh_plane, "--decisions-token-file", str(token))
    process.wait_until_ready()
    asking = "--token-file", token, "--from-scheduler", f"http://127.0.0.1:{process.port}"
    fresh_plane.create(PODS, pod("web", schedulerName="podium"))
    fresh_plane.create(PODS, pod("big", cpu="30", schedulerName="podium"))
    wait_until(lambda: settled(fresh_plane, "web") and settled(fresh_plane, "big"))

    assert process.get("/livez") == "ok"
    scheduled = 'scheduler_schedule_attempts_total{profile="podium",result="scheduled"} 1.0'
    wait_until(lambda: scheduled in process.get("/metrics"))
    metrics = process.get("/metrics")
    assert 'scheduler_pending_pods{queue="unschedulable"} 1.0' in metrics
    assert [line for line in MEASURED if line not in metrics] == []
    decision = json.loads(process.get("/decisions/default/big", "secret"))
    assert decision["decided"]["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert decision["explanation"]["rejected"][0]["plugin"] == "NodeResourcesFit"
    shown = run("explain", "big", *asking)
    assert shown.returncode == 1
    assert "attempt 1: 0/1 nodes are available: 1 Insufficient cpu." in shown.stdout
    missing = run("explain", "none", *asking)
    assert missing.returncode == 2
    assert missing.stderr == f"podium: http://127.0.0.1:{process.port}: pod default/none is not in the cluster\n"
    # Another node now, but not when the pod was decided.
    fresh_plane.create(NODES, node("b", cpu="40"))
    wait_until(lambda: settled(fresh_plane, "big") and bool(nodes_of(fresh_plane)["big"]))
    decision = json.loads(process.get("/decisions/default/web", "secret"))
    assert (decision["asOf"], decision["decided"]["node"]) == ("then", "a")
    assert (decision["explanation"]["node"], decision["explanation"]["nodes"]["total"]) == ("a", 1)
    process.stop()
    assert "Traceback" not in process.output


def test_stops_on_sigterm_and_gives_the_lease_back(fresh_plane: ControlPlane) -> None:
    fresh_plane.create(NODES, node("a"))
    config = configuration(fresh_plane, "podium", lease="podium")
    first, second = (Podium(fresh_plane, config=config, log=f"{name}.log") for name in ("first", "second"))
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/podium"
    wait_until(lambda: fresh_plane.request("GET", lease)[0] == 200)
    holder = fresh_plane.get(lease)["spec"]["holderIdentity"]
    leader, other = (first, second) if holder in first.output else (second, first)
    wait_until(lambda: holder in leader.output)

    leader.send(signal.SIGTERM)

    assert leader.wait(20) == 0
    wait_until(lambda: fresh_plane.get(lease)["spec"]["holderIdentity"] not in ("", holder), 5)
    fresh_plane.create(PODS, pod("web", schedulerName="podium"))
    wait_until(lambda: nodes_of(fresh_plane)["web"] == "a")
    other.stop()


def test_a_dry_run_writes_nothing(fresh_plane: ControlPlane) -> None:
    fresh_plane.create(NODES, node("a"))
    fresh_plane.create(PODS, pod("web", schedulerName="podium"))
    process = Podium(fresh_plane, "--dry-run")
    process.wait_until_ready()

    wait_until(lambda: 'result="scheduled"} 1.0' in process.get("/metrics"))

    time.sleep(1)
    assert nodes_of(fresh_plane) == {"web": ""}
    # The API server writes events of its own, about addresses.
    assert [each for each in fresh_plane.events() if each["metadata"]["name"].startswith("web")] == []
    process.stop()
