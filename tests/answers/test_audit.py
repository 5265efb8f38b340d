"""Running pods decided again: who stays, who drifted and why, who no longer fits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from builders import ZONE, make_node, make_pod, with_args
from cli.running import node, pod, run, written
from podium.answers import Audited, Finding, audit
from podium.answers.audit import AUDIT_NAMES
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.example import fleet
from podium.manifests import load
from podium.model import Object

PACKED = with_args(
    "NodeResourcesFit", scoringStrategy={"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
)
CPU: dict[str, Any] = {"requests": {"cpu": "1"}}


def audited(*objects: Object, config: dict[str, Any] | None = None) -> dict[str, Audited]:
    return {found.pod.partition("/")[2]: found for found in audit(Cluster.from_objects(objects), config).pods}


def test_a_node_that_is_as_good_as_the_best_agrees() -> None:
    found = audited(make_node("a"), make_node("b"), make_pod("on-b", node="b", **CPU))["on-b"]

    assert (found.finding, found.best, found.feasible) == (Finding.AGREES, "b", 2)


def test_a_pod_is_decided_without_itself_and_with_all_others() -> None:
    # Where it is there is one other pod, on the other node there are none.
    found = audited(make_node("a"), make_node("b"), make_pod("x", node="b", **CPU), make_pod("y", node="b", **CPU))

    assert {each.finding for each in found.values()} == {Finding.DRIFTED}
    assert (found["x"].best, found["x"].place, found["x"].feasible) == ("a", 2, 2)
    assert found["x"].points == sum(found["x"].plugins.values()) > 0
    assert max(found["x"].plugins, key=lambda name: found["x"].plugins[name]) == "NodeResourcesFit"


def test_another_configuration_finds_other_drift() -> None:
    objects = [make_node("a"), make_node("b"), make_pod("x", node="b", **CPU), make_pod("y", node="b", **CPU)]

    assert {each.finding for each in audited(*objects, config=PACKED).values()} == {Finding.AGREES}


UNFIT: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a taint that came later": (
        {"taints": ["x=y:NoSchedule"]},
        {},
        "TaintToleration: node(s) had untolerated taint(s)",
    ),
    "a cordon": ({"unschedulable": True}, {}, "NodeUnschedulable: node(s) were unschedulable"),
    "a label that went": (
        {},
        {"node_selector": {"disk": "ssd"}},
        "NodeAffinity: node(s) didn't match Pod's node affinity/selector",
    ),
    "a node that shrank": ({"cpu": "500m"}, {}, "NodeResourcesFit: Insufficient cpu"),
}


@pytest.mark.parametrize(("of_node", "of_pod", "reason"), UNFIT.values(), ids=UNFIT)
def test_a_pod_that_no_longer_fits_where_it_is(of_node: dict[str, Any], of_pod: dict[str, Any], reason: str) -> None:
    better = make_node("better", labels={"disk": "ssd"})
    found = audited(make_node("here", **of_node), better, make_pod("p", node="here", **CPU, **of_pod))["p"]

    assert (found.finding, found.best, found.reason) == (Finding.UNFIT, "better", reason)


def test_a_pod_that_fits_nowhere_has_no_best_node() -> None:
    found = audited(make_node("here", unschedulable=True), make_pod("p", node="here"))["p"]

    assert (found.finding, found.best) == (Finding.UNFIT, None)


def test_pods_that_go_with_their_node_are_only_asked_whether_they_fit() -> None:
    daemon: dict[str, Any] = {"owner": {"kind": "DaemonSet", "name": "agent"}}
    static = make_pod("static", node="busy", mirror=True)
    others = [make_pod(f"w{number}", node="busy", **CPU) for number in range(2)]
    nodes = [make_node("busy"), make_node("free"), make_node("off", unschedulable=True)]

    found = audited(
        *nodes, *others, static, make_pod("d1", node="busy", **daemon), make_pod("d2", node="off", **daemon)
    )

    assert found["static"].to_dict()["feasible"] is None
    assert (found["d1"].finding, found["static"].finding) == (Finding.SKIPPED, Finding.SKIPPED)
    assert (found["d2"].finding, found["d2"].best) == (Finding.UNFIT, None)


def test_a_pod_of_another_scheduler_is_undecided() -> None:
    found = audited(make_node("a"), make_pod("p", node="a", scheduler_name="other"))["p"]

    assert found.finding is Finding.UNDECIDED
    assert "no profile for scheduler name 'other'" in found.reason


def test_agreement_is_the_share_of_those_that_were_decided() -> None:
    objects = [
        make_node("a"),
        make_node("b"),
        make_pod("x", node="a", **CPU),
        make_pod("p", node="a", scheduler_name="o"),
    ]
    found = audit(Cluster.from_objects([*objects, make_pod("y", node="b", node_selector={"no": "where"})]))

    assert found.agreement == 0.5
    assert tuple(found.values) == AUDIT_NAMES
    assert (found.values["unfit"], found.values["undecided"]) == (1, 1)
    assert audit(Cluster.from_objects([make_node("a")])).agreement == 1


def test_the_cluster_itself_stays_as_it_is() -> None:
    cluster = Cluster.from_objects(
        [make_node("a"), make_node("b"), make_pod("x", node="b", **CPU), make_pod("y", node="b", **CPU)]
    )

    assert audit(cluster) == audit(cluster)
    assert [name for _, name in cluster.placed()] == ["b", "b"]


def test_findings_are_those_of_one_decision_each() -> None:
    cluster = Cluster.from_objects(load(fleet()))

    for found in audit(cluster).pods[::9]:
        copy = cluster.fork()
        running, _ = copy.find_pod(found.pod) or (None, None)
        assert running is not None
        copy.remove(running)
        unbound = replace(running, spec=replace(running.spec, node_name=""))
        decision = Scheduler(copy, tie_break="first").decide(unbound)
        if found.finding is Finding.AGREES:
            assert found.node in decision.ties
        elif found.finding is Finding.DRIFTED:
            assert decision.totals[found.node] + found.points == max(decision.totals.values())
        elif found.finding is Finding.UNFIT:
            assert found.node in decision.rejected


# -- the command ---------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    pods = [pod(name, nodeName="a", phase="Running") for name in ("x", "y")]
    return written(tmp_path / "cluster.json", node("a", labels={ZONE: "z"}), node("b"), *pods)


@pytest.fixture
def cordoned(tmp_path: Path) -> Path:
    return written(tmp_path / "cordoned.json", node("a", unschedulable=True), pod("x", nodeName="a", phase="Running"))


def test_command_shows_drift(cluster: Path) -> None:
    result = run("audit", "-f", cluster)

    assert result.exit_code == 0
    assert result.stdout.startswith("0 of 2 running pods (0%) are where they would go now; 2 would go elsewhere.\n")
    assert "default/x         a        2/2  b " in result.stdout


def test_command_fails_if_a_pod_no_longer_fits(cordoned: Path) -> None:
    result = run("audit", "-f", cordoned)

    assert result.exit_code == 1
    assert "   1  NodeUnschedulable: node(s) were unschedulable\n      default/x (a)\n" in result.stdout


def test_conditions_decide_when_there_are_some(cluster: Path, cordoned: Path) -> None:
    assert run("audit", "-f", cluster, "--fail-if", "agreement < 0.5").exit_code == 1
    assert run("audit", "-f", cordoned, "--fail-if", "drifted > 0").exit_code == 0


def test_outputs(cluster: Path) -> None:
    document = json.loads(run("audit", "-f", cluster, "-o", "json").stdout)
    assert (document["kind"], document["counts"]["drifted"]) == ("Audit", 2)
    header, row, _ = run("audit", "-f", cluster, "-o", "csv").stdout.splitlines()
    assert header == "pod,workload,node,finding,best,points,place,feasible,plugins,reason"
    assert row.startswith("default/x,Pod/x,a,drifted,b,")


def test_bad_input_is_one_line(cluster: Path) -> None:
    result = run("audit", "-f", cluster, "--fail-if", "agrement < 1")

    assert result.exit_code == 2
    assert result.stderr.startswith("podium: condition 'agrement < 1': 'agrement' is not measured; there are pods, ")
