"""Draining and failing nodes: where pods go, what is lost, and what the commands make of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from answers.losing import SET, TOLERATE_ALL, budget, drained, failed, fates, nodes, web
from builders import ZONE, affinity, make_pod, pod_term
from cli.running import node, pod, run, written
from podium.answers import drain, fail
from podium.cluster import Cluster
from podium.model import Pod
from podium.present.disruption import to_lines


def test_a_pod_with_a_controller_goes_elsewhere_when_drained() -> None:
    found = drained(*nodes("a1 a2"), web("w", "a1"))

    assert fates(found) == {"w": ("moves", "a2")}
    assert found.harmless
    assert found.cluster.node("a1").spec.unschedulable


def test_a_pod_with_a_controller_goes_elsewhere_when_its_node_fails() -> None:
    found = failed(*nodes("a1 a2"), web("w", "a1"))

    assert fates(found) == {"w": ("moves", "a2")}
    assert "a1" not in found.cluster.rows


FATES: dict[str, tuple[Pod, str, str]] = {
    "of a DaemonSet": (make_pod("p", node="a1", owner={"kind": "DaemonSet", "name": "agent"}), "stays", "stays"),
    "of a static pod": (make_pod("p", node="a1", owner={"kind": "Node", "name": "a1"}), "stays", "stays"),
    "mirror of a static pod": (make_pod("p", node="a1", mirror=True), "stays", "stays"),
    "without a controller": (make_pod("p", node="a1"), "lost", "lost"),
    "on its way out": (make_pod("p", node="a1", owner=SET, deleted=True), "terminating", "terminating"),
    "of a Job": (make_pod("p", node="a1", owner={"kind": "Job", "name": "j"}), "moves", "moves"),
    "of something unheard of": (make_pod("p", node="a1", owner={"kind": "Rollout", "name": "r"}), "moves", "moves"),
    "too big for the rest": (web("p", "a1", cpu="5"), "pending", "pending"),
    "that tolerates everything": (web("p", "a1", cpu="5", tolerations=TOLERATE_ALL), "returns", "pending"),
}


def test_what_kubectl_drain_refuses_without_flags() -> None:
    scratch: dict[str, Any] = {"volumes": [{"name": "scratch", "emptyDir": {}}]}
    pods = [
        web("kept", "a1"),
        web("scratch", "a1", **scratch),
        make_pod("bare", node="a1", **scratch),
        make_pod("agent", node="a1", owner={"kind": "DaemonSet", "name": "agent"}, **scratch),
        make_pod("static", node="a1", owner={"kind": "Node", "name": "a1"}),
        make_pod("elsewhere", node="a2"),
    ]
    found = drained(*nodes("a1 a2"), *pods)

    assert {flag.flag: flag.pods for flag in found.flags} == {
        "--ignore-daemonsets": ("default/agent",),
        "--delete-emptydir-data": ("default/bare", "default/scratch"),
        "--force": ("default/bare",),
    }
    told = " ".join(line.text for line in to_lines(found, width=500))
    assert (
        "kubectl drain refuses without --delete-emptydir-data: 2 pods lose what is in their emptyDir volumes "
        "(default/bare, default/scratch). "
        "kubectl drain refuses without --force: 1 pod has no controller and is gone for good (default/bare)."
    ) in told
    assert failed(*nodes("a1 a2"), *pods).flags == ()


@pytest.mark.parametrize(("pod", "when_drained", "when_failed"), FATES.values(), ids=FATES)
def test_fate_of_a_pod(pod: Pod, when_drained: str, when_failed: str) -> None:
    rest = [*nodes("a1", cpu="8"), *nodes("a2"), pod]

    assert fates(drained(*rest))["p"][0] == when_drained
    assert fates(failed(*rest))["p"][0] == when_failed


def test_the_cluster_itself_stays_as_it_is() -> None:
    cluster = Cluster.from_objects([*nodes("a1 a2"), web("w", "a1"), budget(minAvailable=0)])

    for _ in range(2):
        assert fates(drain(cluster, ["a1"])) == fates(fail(cluster, ["a1"])) == {"w": ("moves", "a2")}
    assert [(pod.name, name) for pod, name in cluster.placed()] == [("w", "a1")]
    assert not cluster.node("a1").spec.unschedulable


def test_pods_of_high_priority_go_first() -> None:
    pods = [web("low", "a1", cpu="3", priority=1), web("high", "a1", cpu="3", priority=2)]

    assert fates(failed(*nodes("a1", cpu="8"), *nodes("a2"), *pods)) == {
        "high": ("moves", "a2"),
        "low": ("pending", None),
    }


def test_a_pod_that_waits_for_another_is_tried_again() -> None:
    # By priority the follower comes first, and then fits only once its leader is there.
    follow = affinity(required=[pod_term(ZONE, {"app": "leader"})])
    follower = web("follower", "a1", priority=2, affinity=follow, labels={"app": "follower"})
    leader = web("leader", "a1", labels={"app": "leader"})

    assert fates(failed(*nodes("a1 b1"), follower, leader)) == {"follower": ("moves", "b1"), "leader": ("moves", "b1")}


def test_preemption_makes_room_and_the_victim_is_made_anew() -> None:
    objects = [*nodes("a1 a2"), web("high", "a1", cpu="3", priority=9), web("low", "a2", cpu="3", priority=1)]

    found = failed(*objects)

    assert fates(found) == {"high": ("moves", "a2"), "low": ("pending", None)}
    assert {pod.pod: pod.preempted_by for pod in found.pods} == {"default/high": "", "default/low": "default/high"}
    assert found.values["preempted"] == 1
    assert fates(failed(*objects, preempt=False)) == {"high": ("pending", None)}


def test_a_victim_without_a_controller_is_lost() -> None:
    victim = make_pod("low", node="a2", requests={"cpu": "3"}, priority=1)

    assert fates(failed(*nodes("a1 a2"), web("high", "a1", cpu="3", priority=9), victim))["low"] == ("lost", None)


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Two nodes in two zones; one pod fits the other node, one is too big for it."""
    zones = [node(name, labels={ZONE: name[0]}, allocatable={"cpu": cpu}) for name, cpu in (("a1", "8"), ("b1", "2"))]
    pods = [pod(name, nodeName="a1", phase="Running", requests={"cpu": cpu}) for name, cpu in (("s", "1"), ("l", "4"))]
    for each in pods:
        each["metadata"]["ownerReferences"] = [{**SET, "controller": True, "apiVersion": "apps/v1", "uid": "u"}]
    return written(tmp_path / "cluster.json", *zones, *pods)


def test_drain_command(cluster: Path) -> None:
    result = run("drain", "a1", "-f", cluster)

    assert result.exit_code == 1
    assert result.stdout.startswith("When a1 is drained, of 2 pods 1 finds another node and 1 stays pending.\n")
    assert "STAY PENDING\ndefault/l (a1)\n    0/2 nodes are available" in result.stdout
    assert run("drain", "b1", "-f", cluster).exit_code == 0


def test_fail_command(cluster: Path) -> None:
    result = run("fail", "zone=a", "-f", cluster)

    assert result.exit_code == 1
    assert result.stdout.startswith("When a1 fails, of 2 pods 1 finds another node and 1 stays pending.\n")
    assert run("fail", "zone=b", "-f", cluster).stdout == "When b1 fails, no pod has to go elsewhere.\n"


@pytest.mark.parametrize("what", ["1", "zone"])
def test_fail_command_finds_the_worst(what: str, cluster: Path) -> None:
    result = run("fail", "--any", what, "-f", cluster, "-o", "json")

    document = json.loads(result.stdout)
    assert result.exit_code == 1
    assert document["kind"] == "Failure"
    assert document["nodes"] == ["a1"]
    assert document["search"]["exhaustive"] is True
    assert document["counts"]["pending"] == 1


def test_conditions_decide_when_there_are_some(cluster: Path) -> None:
    assert run("fail", "zone=a", "-f", cluster, "--fail-if", "pending > 1").exit_code == 0
    assert run("drain", "b1", "-f", cluster, "--fail-if", "nodes == 1").exit_code == 1
    document = json.loads(run("fail", "zone=a", "-f", cluster, "--fail-if", "pending > 0", "-o", "json").stdout)
    assert document["failIf"] == [{"condition": "pending > 0", "holds": True}]


def test_csv_has_every_pod(cluster: Path) -> None:
    lines = run("drain", "a1", "-f", cluster, "-o", "csv").stdout.splitlines()

    assert lines[0] == "pod,workload,from,fate,to,preempted by,pinned by,reason"
    assert "default/s,ReplicaSet/web,a1,moves,b1,,," in lines
    assert len(lines) == 3


BAD: dict[str, tuple[list[str], str]] = {
    "unknown node": (["drain", "x"], "node 'x' is not in the cluster"),
    "no such zone": (["fail", "zone=x"], f"no node with zone=x; {ZONE} is one of a, b"),
    "nothing said": (["fail"], "say which nodes fail"),
    "both said": (["fail", "zone=a", "--any", "1"], "say which nodes fail"),
    "none": (["fail", "--any", "0"], "--any 0: at least one node has to fail"),
    "no number": (["fail", "--any", "²"], "--any ²: no node has the label ²"),
    "two signs": (["fail", "--any=--5"], "no node has the label --5"),
    "too many digits": (["fail", "--any", "9" * 5000], "9...: a number of 5,000 digits is more than the nodes there"),
    "less than none": (["fail", "--any=-" + "9" * 5000], "at least one node has to fail"),
    "all": (["fail", "--any", "2"], "cannot lose 2 of 2 nodes; 1 can fail"),
    "no such label": (["fail", "--any", "rack"], "no node has the label rack"),
    "bad condition": (["drain", "a1", "--fail-if", "x > 1"], "'x' is not measured"),
}


@pytest.mark.parametrize(("arguments", "problem"), BAD.values(), ids=BAD)
def test_commands_say_what_is_wrong_in_one_line(arguments: list[str], problem: str, cluster: Path) -> None:
    result = run(*arguments, "-f", cluster)

    assert result.exit_code == 2
    assert result.stderr.startswith("podium: ")
    assert problem in result.stderr
    assert result.stderr.count("\n") == 1


def test_pods_that_wait_already_take_the_room_before_a_preempted_pod() -> None:
    found = failed(
        *nodes("a1 b1 c1", cpu="4"),
        web("high", "a1", cpu="4", priority=9, node_selector={ZONE: "b"}),
        web("first", "a1", cpu="4"),
        web("victim", "b1", cpu="4"),
    )

    assert fates(found) == {"high": ("moves", "b1"), "first": ("moves", "c1"), "victim": ("pending", None)}


def test_a_drain_evicts_all_pods_at_once_and_the_most_important_comes_first() -> None:
    pods = [web("a-low", "a1", cpu="3", priority=1), web("b-high", "a1", cpu="3", priority=2)]

    found = drained(*nodes("a1", cpu="8"), *nodes("b1"), *pods)

    assert fates(found) == {"a-low": ("pending", None), "b-high": ("moves", "b1")}
    assert found.values["preempted"] == 0
