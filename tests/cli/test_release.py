"""`--release`: every command can be one of the older schedulers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from podium.cli.app import app

LEGACY = Path(__file__).parent.parent / "golden" / "legacy"
POLICY = """
kind: Policy
apiVersion: v1
predicates: [{name: PodFitsResources}]
priorities: [{name: LeastRequestedPriority, weight: 2}]
"""


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    nodes = [
        {
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "9"}},
        }
        for name, cpu in (("small", "2"), ("large", "8"))
    ]
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    pod = {"kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [container]}}
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"kind": "List", "items": [*nodes, pod]}))
    return str(file)


def test_explain_scores_with_the_priorities_of_the_release(cluster: str) -> None:
    code, out, _ = run("explain", "web", "-f", cluster, "--release", "v1.14", "-o", "json")
    assert code == 0
    scores = json.loads(out)["feasible"][0]["scores"]
    assert "LeastRequestedPriority" in scores
    assert "NodeResourcesFit" not in scores


def test_explain_reads_a_policy(cluster: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    code, out, _ = run("explain", "web", "-f", cluster, "--release", "v1.8", "--config", str(policy), "-o", "json")
    assert code == 0
    assert {name: score["weight"] for name, score in json.loads(out)["feasible"][0]["scores"].items()} == {
        "LeastRequestedPriority": 2
    }


def test_the_equivalence_cache_changes_nothing(cluster: str) -> None:
    one = run("explain", "web", "-f", cluster, "--release", "v1.8", "-o", "json")
    assert one == run("explain", "web", "-f", cluster, "--release", "v1.8", "-o", "json", "--no-equivalence-cache")


def test_simulate(cluster: str) -> None:
    code, out, _ = run("simulate", "-f", cluster, "--release", "v1.18", "-o", "json")
    assert code == 0
    assert json.loads(out)["kind"] == "Simulation"


def test_a_policy_with_an_unknown_name_is_one_line(cluster: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.replace("PodFitsResources", "PodFitsMood"))
    code, _, err = run("explain", "web", "-f", cluster, "--release", "v1.14", "--config", str(policy))
    assert code == 2
    assert err.count("\n") == 1
    assert "policy.yaml" in err
    assert "PodFitsMood" in err


def test_a_release_that_is_not_known(cluster: str) -> None:
    code, _, err = run("explain", "web", "-f", cluster, "--release", "v1.2")
    assert code == 2
    assert "v1.2" in err


def test_verify_can_fail_and_agree() -> None:
    family = str(LEGACY / "v1.14-default.jsonl.gz")
    assert run("verify", family, "--release", "v1.14")[0] == 0
    code, out, _ = run("verify", family, "--release", "v1.18", "--limit", "1")
    assert code == 1
    assert "cases agree" in out


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("capacity", "web"), id="capacity"),
        pytest.param(("drain", "small"), id="drain"),
        pytest.param(("fail", "node=small"), id="fail"),
        pytest.param(("audit",), id="audit"),
    ],
)
def test_answers_of_an_old_release(command: tuple[str, ...], cluster: str) -> None:
    code, out, err = run(*command, "-f", cluster, "--release", "v1.14", "-o", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["apiVersion"] == "podium/v1"


def test_verbose_says_which_results_came_from_the_cache(cluster: str) -> None:
    _, _, err = run("explain", "web", "-f", cluster, "--release", "v1.8", "-v")
    assert "results known from earlier pods of this kind: none" in err
