"""`why-not`, `capacity` and `example`: what they print in which format, and the exit codes a pipeline goes by."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from cli.running import config, node, pod, run, written

GPU = "nvidia.com/gpu"


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Two nodes of 4 cpu, one of them tainted, and a pending pod."""
    taints = [{"key": "team", "value": "blue", "effect": "NoSchedule"}]
    return written(tmp_path / "cluster.json", node("n1"), node("n2", taints=taints), pod("web"))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return written(tmp_path / "small.json", pod("small"))


def template(folder: Path, name: str, **allocatable: str) -> Path:
    return written(folder / f"{name}.json", node(name, allocatable=allocatable))


# -- why-not -------------------------------------------------------------------------------------------------------


def test_why_not_says_what_and_how(cluster: Path) -> None:
    result = run("why-not", "web", "n2", "-f", cluster)

    assert result.exit_code == 1
    assert "Pod default/web goes to n1, not to n2." in result.stdout
    assert (
        "TaintToleration: node(s) had untolerated taint(s)\n    untolerated taint team=blue:NoSchedule" in result.stdout
    )
    assert "remove the taint team=blue:NoSchedule from n2" in result.stdout


def test_why_not_ends_with_0_where_the_pod_goes_anyway(cluster: Path) -> None:
    result = run("why-not", "default/web", "n1", "-f", cluster)

    assert (result.exit_code, result.stdout) == (0, "Pod default/web goes to n1: nothing keeps it off.\n")


def test_why_not_as_json(cluster: Path) -> None:
    document = json.loads(run("why-not", "web", "n2", "-f", cluster, "-o", "json").stdout)

    assert (document["kind"], document["goesThere"], document["goesTo"]) == ("WhyNot", False, "n1")
    (blocker,) = document["blockers"]
    assert blocker["plugin"] == "TaintToleration"
    assert [(one["kind"], one["taint"]) for one in blocker["inTheWay"]] == [("taint", "team=blue:NoSchedule")]
    kinds = [[change["kind"] for change in suggestion["changes"]] for suggestion in document["suggestions"]]
    assert ["remove-taint", "cordon"] in kinds


def test_why_not_as_csv(cluster: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run("why-not", "web", "n2", "-f", cluster, "-o", "csv").stdout)))

    assert rows[0].keys() == {"suggestion", "kind", "on", "change"}
    assert rows[0]["suggestion"] == "1"


def test_why_not_looks_for_as_many_as_asked(cluster: Path) -> None:
    document = json.loads(run("why-not", "web", "n2", "-f", cluster, "-o", "json", "--most", "1").stdout)

    assert len(document["suggestions"]) == 1


def test_why_not_decides_with_the_profile_asked_for(cluster: Path, tmp_path: Path) -> None:
    untainted = {"plugins": {"multiPoint": {"disabled": [{"name": "TaintToleration"}]}}}
    profiles = [{"schedulerName": "default-scheduler"}, {"schedulerName": "lax", **untainted}]
    (tmp_path / "config.json").write_text(json.dumps(config(profiles=profiles)))
    options = ("-f", cluster, "--config", tmp_path / "config.json", "--profile", "lax", "-o", "json")

    assert json.loads(run("why-not", "web", "n2", *options).stdout)["blockers"] == []


# -- capacity ------------------------------------------------------------------------------------------------------


def test_capacity_counts_and_says_what_stops_the_next(cluster: Path, small: Path) -> None:
    result = run("capacity", small, "-f", cluster)

    assert result.exit_code == 0
    assert result.stdout.startswith("4 more pods of default/small fit on 1 of 2 nodes.\n")
    assert "WHAT STOPS THE NEXT ONE, default/small-4" in result.stdout
    assert "1 node  NodeResourcesFit: Insufficient cpu" in result.stdout


@pytest.mark.parametrize(("at_least", "code"), [(4, 0), (5, 1)])
def test_capacity_ends_with_1_if_fewer_fit_than_asked_for(cluster: Path, small: Path, at_least: int, code: int) -> None:
    assert run("capacity", small, "-f", cluster, "--at-least", str(at_least)).exit_code == code


def test_capacity_ends_with_1_if_none_fits(cluster: Path, tmp_path: Path) -> None:
    huge = written(tmp_path / "huge.json", pod("huge", requests={"cpu": "9"}))

    assert run("capacity", huge, "-f", cluster).exit_code == 1


def test_capacity_takes_a_pod_of_the_input_by_name(cluster: Path) -> None:
    assert run("capacity", "web", "-f", cluster).stdout.startswith("4 more pods of default/web fit")


def test_capacity_takes_a_workload(cluster: Path, tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"app": "api"}}, "spec": pod()["spec"]}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "api"}}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api"}, "spec": spec}

    result = run("capacity", written(tmp_path / "api.json", deployment), "-f", cluster, "-o", "json")

    assert json.loads(result.stdout)["count"] == 4


def test_capacity_of_a_mix_as_csv(cluster: Path, small: Path, tmp_path: Path) -> None:
    tiny = written(tmp_path / "tiny.json", pod("tiny", requests={"cpu": "100m"}))

    rows = csv.DictReader(io.StringIO(run("capacity", small, tiny, "--mix", "1:2", "-f", cluster, "-o", "csv").stdout))

    assert [(row["pod"], row["node"], row["count"]) for row in rows] == [
        ("default/small", "n1", "3"),
        ("default/tiny", "n1", "6"),
    ]


def test_capacity_as_json(cluster: Path, small: Path) -> None:
    document = json.loads(run("capacity", small, "-f", cluster, "-o", "json").stdout)

    assert (document["kind"], document["count"], document["limit"]) == ("Capacity", 4, None)
    assert document["pods"] == [{"pod": "default/small", "workload": "Pod/small", "count": 4, "nodes": {"n1": 4}}]
    assert document["stoppedBy"]["reasons"]["Insufficient cpu"] == 1


def test_capacity_with_the_flags_and_the_output_of_cluster_capacity(cluster: Path, tmp_path: Path) -> None:
    gpu_node = template(tmp_path, "n3", **{GPU: "1"})
    train = pod("train", requests={"cpu": "1", "memory": "512Mi", GPU: "1"})
    train["spec"]["containers"][0]["resources"]["limits"] = {GPU: "1"}
    asking = written(tmp_path / "gpu.json", train)
    flags = ("--podspec", asking, "--max-limit", "5", "--exclude-nodes", "n1,n2")

    review = json.loads(run("capacity", *flags, "-f", cluster, "-f", gpu_node, "-o", "cluster-capacity").stdout)

    assert review["spec"]["replicas"] == 5
    assert review["spec"]["templates"][0]["metadata"]["name"] == "train"
    assert review["spec"]["podRequirements"] == [
        {
            "podName": "train",
            "resources": {
                "primaryResources": {"cpu": "1", "memory": "512Mi", "nvdia.com/gpu": "0"},
                "scalarResources": {GPU: 1},
            },
            "nodeSelectors": None,
        }
    ]
    status = review["status"]
    assert (status["creationTimestamp"], status["replicas"]) == (None, 1)
    assert status["failReason"]["failType"] == "Unschedulable"
    assert status["failReason"]["failMessage"].startswith(f"0/1 nodes are available: 1 Insufficient {GPU}.")
    assert status["pods"] == [
        {"podName": "train", "replicasOnNodes": [{"nodeName": "n3", "replicas": 1}], "failSummary": None}
    ]


def test_capacity_up_to_a_limit_as_cluster_capacity_says_it(cluster: Path, small: Path) -> None:
    review = json.loads(run("capacity", small, "--max-limit", "2", "-f", cluster, "-o", "cluster-capacity").stdout)

    assert review["status"]["failReason"] == {
        "failType": "LimitReached",
        "failMessage": "Maximum number of pods simulated: 2",
    }


def test_capacity_names_the_nodes_needed_for_the_rest(cluster: Path, small: Path, tmp_path: Path) -> None:
    four, sixteen = template(tmp_path, "four"), template(tmp_path, "sixteen", cpu="16", memory="32Gi")
    nodes = ("--nodes-needed", f"{four}=1", "--nodes-needed", f"{sixteen}=3.5")

    result = run("capacity", small, "--at-least", "24", *nodes, "-f", cluster)

    assert result.exit_code == 1
    assert "The 20 pods that do not fit need 1 four and 1 sixteen for 4.50." in result.stdout
    assert "2 sixteen" in result.stdout


def test_capacity_names_the_nodes_needed_for_what_is_pending(tmp_path: Path) -> None:
    pods = [pod(f"web-{number}") for number in range(9)]
    cluster = written(tmp_path / "cluster.json", node("n1"), *pods)
    four = template(tmp_path, "four")

    result = run("capacity", "--nodes-needed", four, "-f", cluster, "-o", "json")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["nodesNeeded"]["best"] == {
        "nodes": {"four": 2},
        "count": 2,
        "price": 2.0,
        "left": [],
    }


def test_capacity_ends_with_0_if_nothing_is_needed(cluster: Path, tmp_path: Path) -> None:
    result = run("capacity", "--nodes-needed", template(tmp_path, "four"), "-f", cluster)

    assert (result.exit_code, result.stdout) == (0, "No nodes needed: every pod fits.\n")


# -- bad input -----------------------------------------------------------------------------------------------------

BAD: dict[str, tuple[tuple[str, ...], str]] = {
    "no pod": (("capacity",), "no pod to find the capacity for: name a file or a pod"),
    "a file that is not there": (("capacity", "gone.yaml"), "gone.yaml: "),
    "a pod that is not there": (("capacity", "gone"), "pod 'gone' is not in the input"),
    "a file without pods": (("capacity", "four.json"), "four.json: no pod and no workload that makes pods in it"),
    "a mix of words": (("capacity", "small.json", "--mix", "a:b"), "--mix 'a:b' must be numbers"),
    "a mix for other pods": (("capacity", "small.json", "--mix", "1:2"), "--mix 1:2: a mix of 2 numbers for 1 pod;"),
    "a mix with nothing": (("capacity", "small.json", "--mix", "0"), "--mix 0: a mix of 0; each number must be at"),
    "a mix of no pods": (
        ("capacity", "--nodes-needed", "four.json", "--mix", "3:1"),
        "--mix 3:1: no pod to find the capacity for; give at least one",
    ),
    "a node to exclude that is not there": (
        ("capacity", "small.json", "--exclude-nodes", "x"),
        "node 'x' is not in the cluster",
    ),
    "nodes for how many pods": (
        ("capacity", "small.json", "--nodes-needed", "four.json"),
        "--nodes-needed must know for how many pods: say --at-least N",
    ),
    "a node template that is none": (("capacity", "--nodes-needed", "small.json"), "has 0 nodes; a template is one"),
    "a price that is none": (("capacity", "--nodes-needed", "four.json=-1"), "the price '-1' of a node must be"),
    "a review of nothing": (
        ("capacity", "--nodes-needed", "four.json", "-o", "cluster-capacity"),
        "-o cluster-capacity is about pods to place; name one",
    ),
    "a node that is not there": (("why-not", "web", "n9"), "node 'n9' is not in the cluster"),
    "a pod nobody knows": (("why-not", "gone", "n1"), "pod 'gone' is not in the input"),
    "a profile nobody knows": (("why-not", "web", "n1", "--profile", "x"), "profile 'x' is not in the configuration"),
}


@pytest.mark.parametrize(("arguments", "problem"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_code_2(
    arguments: tuple[str, ...],
    problem: str,
    cluster: Path,
    small: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    template(tmp_path, "four")
    monkeypatch.chdir(tmp_path)

    result = run(*arguments, "-f", cluster)

    assert (result.exit_code, result.stdout) == (2, "")
    assert problem in result.stderr
    assert result.stderr.count("\n") == 1


# -- example -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "nodes"), [("fleet", 63), ("shop", 12)])
def test_example_clusters_can_be_read_again(name: str, nodes: int, tmp_path: Path) -> None:
    written_out: Any = run("example", name, "-o", "json")
    path = tmp_path / "example.json"
    path.write_text(written_out.stdout)

    kinds = [item["kind"] for item in json.loads(written_out.stdout)["items"]]
    assert kinds.count("Node") == nodes
    assert run("simulate", "-f", path).exit_code == 1
