"""Plugins of the user's own in `podium run`, at every extension point around the decision."""

from __future__ import annotations

import json
import os
import ssl
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from live.cluster_objects import NODES, PODS, Fields, node, pod
from live.control_plane import ADMIN, ControlPlane
from live.schedulers import Podium, configuration, wait_until
from podium.framework import (
    SKIP,
    SUCCESS,
    WAIT,
    BindPlugin,
    CycleState,
    PermitPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    QueueSortPlugin,
    ReservePlugin,
    Status,
)
from podium.framework.events import Action, EventHint
from podium.framework.plugin import QueuedPod
from podium.loop import WAITING_PODS
from podium.model import Pod
from podium.plugins.default_binder import DefaultBinder

TESTS = Path(__file__).parents[1]
DIARY, SERVER, AUTHORITY = "PODIUM_TEST_DIARY", "PODIUM_TEST_SERVER", "PODIUM_TEST_AUTHORITY"
MERGE = "application/merge-patch+json"
PATIENCE = 3.0


def wants(pod: Pod, point: str) -> str:
    """What a pod wants of the plugins at a point, by its label."""
    return pod.metadata.labels.get(point, "")


def write(line: str) -> None:
    with Path(os.environ[DIARY]).open("a") as file:
        file.write(f"{line}\n")


class Diary(PreEnqueuePlugin, ReservePlugin, PreBindPlugin, PostBindPlugin, PostFilterPlugin):
    """Writes down when it is called; holds back, or fails once, the pods that want it."""

    name = "Diary"

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._failed: set[str] = set()

    def pre_enqueue(self, pod: Pod) -> Status:
        return Status.unresolvable("held back") if wants(pod, "enqueue") == "later" else SUCCESS

    def events_to_register(self) -> Sequence[EventHint]:
        return (EventHint("Pod", Action.UPDATE_POD_LABEL),)

    def post_filter(self, state: CycleState, pod: Pod, statuses: Mapping[str, Status]) -> PostFilterResult:
        write(f"post_filter {pod.name} {len(statuses)}")
        return PostFilterResult(Status.unschedulable("nothing to be done"))

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        write(f"reserve {pod.name}")
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        write(f"unreserve {pod.name}")

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        write(f"pre_bind {pod.name}")
        if wants(pod, "pre-bind") == "fail" and pod.name not in self._failed:
            self._failed.add(pod.name)
            raise ConnectionError("nobody there")
        # Other pods are not kept waiting by a plugin that takes its time.
        time.sleep(1.0 if wants(pod, "pre-bind") == "slow" else 0.0)
        return SUCCESS

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        write(f"post_bind {pod.name}")


class ByRank(QueueSortPlugin):
    """The pod with the lowest rank first."""

    name = "ByRank"

    def sort_key(self, queued: QueuedPod) -> int:
        return int(wants(queued.pod, "rank") or 0)


class InPairs(PermitPlugin):
    """Lets a pod wait until its partner has a node, too; turns down the pods of which there is none to be."""

    name = "InPairs"

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        pair = wants(pod, "pair")
        if pair in ("", "none"):
            return (Status.unschedulable("pod has no partner") if pair else SUCCESS), 0.0
        waiting = state[WAITING_PODS]
        partners = [each.pod.key for each in waiting if wants(each.pod, "pair") == pair]
        for key in partners:
            waiting.allow(key, self.name)
        return (SUCCESS, 0.0) if partners else (WAIT, PATIENCE)

    def events_to_register(self) -> Sequence[EventHint]:
        return (EventHint("Node", Action.ADD),)


class Audited(DefaultBinder):
    """Binds as the default does, and writes that down."""

    name = "Audited"

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        status = super().bind(state, pod, node_name)
        write(f"bind {pod.name} {status.code.value}")
        return status


class OwnBinder(BindPlugin):
    """Binds the pods that want it by a request of its own, and fails once, or leaves others to the next plugin."""

    name = "OwnBinder"

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._failed: set[str] = set()

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        if wants(pod, "bind") == "leave":
            return SKIP
        if wants(pod, "bind") == "fail" and pod.name not in self._failed:
            self._failed.add(pod.name)
            return Status.error("the wire is cut")
        metadata = {"name": pod.name, "uid": pod.metadata.uid, "annotations": {"bound-by": "own"}}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": {"name": node_name}}
        headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": "application/json"}
        url = f"{os.environ[SERVER]}{PODS}/{pod.name}/binding"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        context = ssl.create_default_context(cafile=os.environ[AUTHORITY])
        with urllib.request.urlopen(request, context=context):
            return SUCCESS


@contextmanager
def running(plane: ControlPlane, *names: str, plugins: Fields, arguments: Sequence[str] = ()) -> Iterator[Podium]:
    """Podium with plugins of this module, one node, and a diary; there is no traceback."""
    plane.create(NODES, node("a", cpu="10"))
    config = configuration(plane, "podium", profiles=[{"schedulerName": "podium", "plugins": plugins}])
    environment = {
        "PYTHONPATH": os.pathsep.join((str(TESTS), os.environ.get("PYTHONPATH", ""))),
        DIARY: str(diary_of(plane)),
        SERVER: plane.server,
        AUTHORITY: str(plane.directory / "ca.crt"),
    }
    named = [argument for name in names for argument in ("--plugin", f"live.test_plugins:{name}")]
    process = Podium(plane, *named, *arguments, config=config, environment=environment)
    process.wait_until_ready()
    yield process
    process.stop()
    assert "Traceback" not in process.output, process.output[-3000:]


def diary_of(plane: ControlPlane) -> Path:
    return plane.directory / "diary"


def written(plane: ControlPlane, name: str) -> list[str]:
    """What the plugins wrote of a pod."""
    path = diary_of(plane)
    lines = path.read_text().splitlines() if path.exists() else []
    return [" ".join(line.split(" ")[:1] + line.split(" ")[2:]) for line in lines if line.split(" ")[1] == name]


def create(plane: ControlPlane, name: str, cpu: str = "100m", **labels: str) -> None:
    wanted = {key.replace("_", "-"): value for key, value in labels.items()}
    plane.create(PODS, pod(name, cpu=cpu, labels=wanted, schedulerName="podium"))


def found(plane: ControlPlane, name: str) -> Fields:
    answer: Fields = plane.get(f"{PODS}/{name}")
    return answer


def is_bound(plane: ControlPlane, name: str) -> bool:
    return bool(found(plane, name)["spec"].get("nodeName"))


def condition(plane: ControlPlane, name: str) -> tuple[str, str]:
    """Reason and message of a pod that is not scheduled; empty if nothing is said."""
    conditions: list[dict[str, Any]] = found(plane, name)["status"].get("conditions", [])
    return next(((each.get("reason", ""), each.get("message", "")) for each in conditions), ("", ""))


def has_event(plane: ControlPlane, name: str, reason: str, note: str) -> bool:
    told = [event for event in plane.events() if event["regarding"]["name"] == name]
    return any((event["reason"], event["note"]) == (reason, note) for event in told)


ONLY_OWN = {"enabled": [{"name": "OwnBinder"}], "disabled": [{"name": "*"}]}


def test_a_bind_plugin_may_bind_in_its_own_way(fresh_plane: ControlPlane) -> None:
    with running(fresh_plane, "OwnBinder", plugins={"bind": ONLY_OWN}):
        create(fresh_plane, "own")
        wait_until(lambda: is_bound(fresh_plane, "own"))
        assert found(fresh_plane, "own")["metadata"]["annotations"] == {"bound-by": "own"}
        wait_until(lambda: has_event(fresh_plane, "own", "Scheduled", "Successfully assigned default/own to a"))
        # Without a plugin that binds it, a pod is not bound at all.
        create(fresh_plane, "left", bind="leave")
        wait_until(lambda: condition(fresh_plane, "left")[0] == "SchedulerError")
        assert not is_bound(fresh_plane, "left")


def test_a_bind_plugin_may_fail_or_leave_it_to_the_next(fresh_plane: ControlPlane) -> None:
    bind = {"enabled": [{"name": "OwnBinder"}, {"name": "Audited"}], "disabled": [{"name": "*"}]}
    with running(fresh_plane, "OwnBinder", "Audited", plugins={"bind": bind}):
        create(fresh_plane, "left", bind="leave")
        wait_until(lambda: is_bound(fresh_plane, "left"))
        assert "annotations" not in found(fresh_plane, "left")["metadata"]
        wait_until(lambda: written(fresh_plane, "left") == ["bind Success"])
        create(fresh_plane, "failing", bind="fail")
        message = 'running Bind plugin "OwnBinder": the wire is cut'
        wait_until(lambda: condition(fresh_plane, "failing") == ("SchedulerError", message))
        wait_until(lambda: has_event(fresh_plane, "failing", "FailedScheduling", message))
        wait_until(lambda: is_bound(fresh_plane, "failing"))
        assert found(fresh_plane, "failing")["metadata"]["annotations"] == {"bound-by": "own"}
        # Whether it is bound is up to the API server: it is not, where the binding is refused.
        assert written(fresh_plane, "failing") == []


def test_permit_plugins_let_pods_wait(fresh_plane: ControlPlane) -> None:
    enabled = {"multiPoint": {"enabled": [{"name": "InPairs"}, {"name": "Diary"}]}}
    with running(fresh_plane, "InPairs", "Diary", plugins=enabled) as process:
        create(fresh_plane, "first", pair="one")
        wait_until(lambda: found(fresh_plane, "first")["status"].get("nominatedNodeName") == "a")
        assert not is_bound(fresh_plane, "first")
        create(fresh_plane, "second", pair="one")
        wait_until(lambda: is_bound(fresh_plane, "first") and is_bound(fresh_plane, "second"))
        wait_until(lambda: written(fresh_plane, "first") == ["reserve", "pre_bind", "post_bind"])
        # In vain.
        create(fresh_plane, "alone", pair="two")
        reason = f"rejected due to timeout after waiting {PATIENCE:g}s at plugin InPairs"
        message = f"0/1 nodes are available: 1 {reason}."
        wait_until(lambda: condition(fresh_plane, "alone") == ("Unschedulable", message))
        wait_until(lambda: has_event(fresh_plane, "alone", "FailedScheduling", message))
        wait_until(lambda: "nominatedNodeName" not in found(fresh_plane, "alone")["status"])
        assert written(fresh_plane, "alone")[:2] == ["reserve", "unreserve"]
        create(fresh_plane, "turned-down", pair="none")
        message = "0/1 nodes are available: 1 pod has no partner."
        wait_until(lambda: condition(fresh_plane, "turned-down") == ("Unschedulable", message))
        assert written(fresh_plane, "turned-down") == ["reserve", "unreserve"]
        metrics = process.get("/metrics")
    assert 'scheduler_permit_wait_duration_seconds_count{result="Success"} 1.0' in metrics
    assert 'scheduler_permit_wait_duration_seconds_count{result="Unschedulable"} 1.0' in metrics


def test_plugins_before_and_after_the_decision(fresh_plane: ControlPlane) -> None:
    plugins = {
        "queueSort": {"enabled": [{"name": "ByRank"}], "disabled": [{"name": "*"}]},
        "multiPoint": {"enabled": [{"name": "Diary"}]},
        "postFilter": {"enabled": [{"name": "Diary"}], "disabled": [{"name": "*"}]},
    }
    for rank in (3, 1, 2):
        create(fresh_plane, f"rank-{rank}", rank=str(rank))
    create(fresh_plane, "held", enqueue="later")
    with running(fresh_plane, "Diary", "ByRank", plugins=plugins):
        wait_until(lambda: all(is_bound(fresh_plane, f"rank-{rank}") for rank in (1, 2, 3)))
        lines = [line for line in diary_of(fresh_plane).read_text().splitlines() if line.startswith("reserve")]
        assert lines == ["reserve rank-1", "reserve rank-2", "reserve rank-3"]
        assert written(fresh_plane, "held") == []
        patch = {"metadata": {"labels": {"enqueue": "now"}}}
        assert fresh_plane.request("PATCH", f"{PODS}/held", patch, content_type=MERGE)[0] == 200
        wait_until(lambda: is_bound(fresh_plane, "held"))
        create(fresh_plane, "huge", cpu="30")
        wait_until(lambda: written(fresh_plane, "huge") == ["post_filter 1"])
        create(fresh_plane, "failing", pre_bind="fail")
        message = 'running PreBind plugin "Diary": ConnectionError: nobody there'
        wait_until(lambda: has_event(fresh_plane, "failing", "FailedScheduling", message))
        wait_until(lambda: is_bound(fresh_plane, "failing"))
        expected = ["reserve", "pre_bind", "unreserve", "reserve", "pre_bind", "post_bind"]
        wait_until(lambda: written(fresh_plane, "failing") == expected)
        begin = time.monotonic()
        for number in range(20):
            create(fresh_plane, f"slow-{number}", pre_bind="slow")
        wait_until(lambda: all(is_bound(fresh_plane, f"slow-{number}") for number in range(20)))
        assert time.monotonic() - begin < 15


def test_a_dry_run_asks_no_plugin_to_bind(fresh_plane: ControlPlane) -> None:
    plugins = {"multiPoint": {"enabled": [{"name": "Diary"}]}, "bind": ONLY_OWN}
    create(fresh_plane, "web")
    with running(fresh_plane, "Diary", "OwnBinder", plugins=plugins, arguments=["--dry-run"]) as process:
        wait_until(lambda: 'result="scheduled"} 1.0' in process.get("/metrics"))
        time.sleep(0.5)
        assert written(fresh_plane, "web") == ["reserve"]
        assert not is_bound(fresh_plane, "web")
