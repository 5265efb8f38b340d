"""`--release`: every command can be one of the older schedulers."""

from __future__ import annotations

import gzip
import json
from itertools import islice
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


def test_verbose_says_which_results_came_from_the_cache_and_which_another_pod_would_share(cluster: str) -> None:
    arguments = ("explain", "web", "-f", cluster, "--release", "v1.8", "-v")
    _, _, err = run(*arguments)
    assert "results known from earlier pods of this kind: none; another one would share: BalancedResource" in err
    _, _, err = run(*arguments, "--no-equivalence-cache")
    assert "another one would share: none" in err


COMMANDS = ("explain", "simulate", "why-not", "capacity", "compare", "drain", "fail", "audit", "tune")
CASES = ("decide", "verify", "bench")


@pytest.mark.parametrize("command", [*COMMANDS, *CASES])
def test_every_command_that_decides_can_be_an_old_release(command: str) -> None:
    assert "--release" in run(command, "--help")[1]


@pytest.mark.parametrize("command", ["verify", "decide"])
def test_cases_without_the_equivalence_cache(command: str, tmp_path: Path) -> None:
    with gzip.open(LEGACY / "v1.8-default.jsonl.gz", "rt") as recorded:
        few = "".join(islice(recorded, 6))
    file = tmp_path / "few.jsonl"
    file.write_text(few)
    arguments = ("verify", str(file)) if command == "verify" else ("decide", "-f", str(file))
    one = run(*arguments, "--release", "v1.8")
    assert one[0] == 0
    assert one == run(*arguments, "--release", "v1.8", "--no-equivalence-cache")


# -- configurations ----------------------------------------------------------------------------------------------------


def configured(cluster: str, release: str, *more: str) -> tuple[int, str, str]:
    return run("explain", "web", "-f", cluster, "--release", release, "-o", "json", *more)


@pytest.mark.parametrize(
    ("release", "kind"),
    [
        ("v1.8", "Policy"),
        ("v1.14", "Policy"),
        ("v1.18", "Policy or KubeSchedulerConfiguration"),
        ("v1.36", "KubeSchedulerConfiguration"),
    ],
)
@pytest.mark.parametrize("count", [0, 2])
def test_a_file_without_a_single_document(release: str, kind: str, count: int, cluster: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("\n---\n".join(["a: 1"] * count))
    said = f"podium: {file}: has {count} documents; a configuration is one {kind}\n"
    assert configured(cluster, release, "--config", str(file)) == (2, "", said)


@pytest.mark.parametrize("release", ["v1.8", "v1.14", "v1.18"])
@pytest.mark.parametrize("content", ["[1]", "{}", "kind: KubeSchedulerConfiguration"])
def test_a_file_of_another_kind_names_the_one_that_is_read(
    release: str, content: str, cluster: str, tmp_path: Path
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(content)
    code, out, err = configured(cluster, release, "--config", str(file))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert str(file) in err
    assert "Policy" in err or "apiVersion" in err


def test_fields_that_are_passed_over_are_mentioned_in_one_line(cluster: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f"{POLICY}\ncomment: ours\n")
    code, _, err = configured(cluster, "v1.14", "--config", str(file))
    assert (code, err) == (0, f'warning: {file}: v1.14 does not know and passes over "comment"\n')
    code, _, err = configured(cluster, "v1.18", "--config", str(file))
    assert (code, err) == (2, f'podium: {file}: unknown field "comment"\n')


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ("v1.8", "MostRequestedPriority"),
        ("v1.14", "MostRequestedPriority"),
        ("v1.18", "NodeResourcesMostAllocated"),
    ],
)
def test_a_provider_is_chosen_by_its_name(release: str, name: str, cluster: str) -> None:
    code, out, err = configured(cluster, release, "--config", "ClusterAutoscalerProvider")
    assert (code, err) == (0, "")
    assert name in json.loads(out)["feasible"][0]["scores"]


def test_today_there_are_no_providers(cluster: str) -> None:
    said = "podium: ClusterAutoscalerProvider: no such file or directory\n"
    assert configured(cluster, "v1.36", "--config", "ClusterAutoscalerProvider") == (2, "", said)


def test_a_configuration_of_today_in_the_input_is_not_for_an_old_release(cluster: str, tmp_path: Path) -> None:
    today = tmp_path / "today.yaml"
    today.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    code, out, err = configured(cluster, "v1.14", "-f", str(today))
    said = "warning: schedulerConfig of the input: is not a configuration of v1.14, which uses its defaults instead\n"
    assert (code, err) == (0, said)
    assert "LeastRequestedPriority" in json.loads(out)["feasible"][0]["scores"]
    v1alpha2 = tmp_path / "old.yaml"
    v1alpha2.write_text("apiVersion: kubescheduler.config.k8s.io/v1alpha2\nkind: KubeSchedulerConfiguration\n")
    assert configured(cluster, "v1.18", "-f", str(v1alpha2))[2] == ""


def test_what_a_case_says_in_vain_is_part_of_the_answer(tmp_path: Path) -> None:
    case = {"name": "one", "config": {"kind": "Policy", "apiVersion": "v1", "comment": "ours"}}
    file = tmp_path / "cases.jsonl"
    file.write_text(json.dumps(case))
    code, out, _ = run("decide", "-f", str(file), "--release", "v1.14")
    assert code == 0
    assert json.loads(out)["warnings"] == ['v1.14 does not know and passes over "comment"']


# -- compare -----------------------------------------------------------------------------------------------------------


def test_providers_are_compared(cluster: str) -> None:
    providers = ("--config", "DefaultProvider", "--config", "ClusterAutoscalerProvider")
    code, out, err = run("compare", "-f", cluster, "--release", "v1.14", *providers)
    assert (code, err) == (0, "")
    assert "with ClusterAutoscalerProvider than with DefaultProvider" in " ".join(out.split())


@pytest.mark.parametrize("releases", [("v1.8", "v1.14"), ("v1.14", "v1.36"), ("v1.36", "v1.8"), ("v1.18",)])
@pytest.mark.parametrize(
    "content", ["", "[1]", POLICY.replace("weight: 2", "weight: 0"), POLICY.replace("kind: Policy", "kind: Other")]
)
def test_what_is_wrong_with_a_configuration_names_its_file(
    releases: tuple[str, ...], content: str, cluster: str, tmp_path: Path
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(content)
    asked = [argument for release in releases for argument in ("--release", release)]
    code, out, err = run("compare", "-f", cluster, *asked, "--config", str(file))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"podium: {file}: ")


def test_the_same_policy_twice_is_nothing_to_compare(cluster: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    both = ("--config", str(file), "--config", str(file))
    code, _, err = run("compare", "-f", cluster, "--release", "v1.8", *both)
    assert code == 2
    assert "both ways are the same" in err


# -- the current releases --------------------------------------------------------------------------------------------


def test_explain_as_another_current_release(cluster: str) -> None:
    code, out, _ = run("explain", "web", "-f", cluster, "--release", "1.36", "-o", "json")
    assert code == 0
    assert "VolumeBinding" not in json.loads(out)["feasible"][0]["scores"]
    gates = ("--feature-gates", "StorageCapacityScoring=true")
    code, out, _ = run("explain", "web", "-f", cluster, "--release", "v1.36", "-o", "json", *gates)
    assert "VolumeBinding" in json.loads(out)["feasible"][0]["scores"]


@pytest.mark.parametrize(
    ("gates", "problem"),
    [
        ("Nope=true", "feature gate Nope"),
        ("NodeDeclaredFeatures=false", "locked"),
        ("NodeDeclaredFeatures", "are written A=true"),
    ],
)
def test_gates_that_are_refused_are_one_line(cluster: str, gates: str, problem: str) -> None:
    code, _, err = run("simulate", "-f", cluster, "--feature-gates", gates)
    assert code == 2
    assert err.count("\n") == 1
    assert problem in err


@pytest.mark.parametrize("command", ["verify", "decide"])
def test_cases_have_no_release_of_their_own(command: str, tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text('{"objects": [], "pods": []}\n')
    arguments = [str(file)] if command == "verify" else ["-f", str(file)]

    code, _, err = run(command, *arguments, "--release", "auto")

    assert (code, err.count("\n")) == (2, 1)
    assert "name the release that decides them" in err


def test_the_benchmark_takes_the_release_of_the_nodes(tmp_path: Path) -> None:
    file = tmp_path / "case.json"
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
    status = {"allocatable": {"cpu": "4", "pods": "9"}, "nodeInfo": {"kubeletVersion": "v1.33.1"}}
    file.write_text(json.dumps({"objects": [{**node, "status": status}], "pods": []}))

    code, _, err = run("bench", str(file), "--release", "auto")

    assert code == 0
    assert err.startswith("release v1.33: ")


def test_auto_names_the_release_it_takes(cluster: str, tmp_path: Path) -> None:
    code, _, err = run("explain", "web", "-f", cluster, "--release", "auto")
    assert (code, err.count("\n")) == (2, 1)
    document = json.loads(Path(cluster).read_text())
    for item in document["items"][:2]:
        item["status"]["nodeInfo"] = {"kubeletVersion": "v1.33.4"}
    file = tmp_path / "told.json"
    file.write_text(json.dumps(document))
    code, _, err = run("explain", "web", "-f", str(file), "--release", "auto")
    assert code == 0
    assert "release v1.33" in err


def test_the_nodes_say_by_default_which_release_decides(cluster: str, tmp_path: Path) -> None:
    document = json.loads(Path(cluster).read_text())
    nodes = [item for item in document["items"] if item["kind"] == "Node"]

    def decided(*arguments: str, versions: str) -> tuple[str, str]:
        for node in nodes:
            node["status"]["nodeInfo"] = {"kubeletVersion": versions}
        file = tmp_path / "versions.json"
        file.write_text(json.dumps(document))
        _, out, err = run(*arguments, "-f", str(file), "-o", "json")
        return json.loads(out)["release"], err

    for command in (("explain", "web"), ("simulate",), ("drain", nodes[0]["metadata"]["name"]), ("audit",)):
        release, err = decided(*command, versions="v1.33.4-eks-1")
        assert release == "v1.33"
        assert err.startswith("release v1.33: the ")
        assert decided(*command, "--release", "v1.36", versions="v1.33.4") == ("v1.36", "")
        for unknown in ("", "v1.20.1"):
            assert decided(*command, versions=unknown) == ("v1.37", "")


def test_upgrade(cluster: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    code, out, _ = run("upgrade", "--from", "v1.33", "-f", cluster, "-o", "json", "--html", str(page))
    assert code == 0
    assert (json.loads(out)["from"], json.loads(out)["to"]) == ("v1.33", "v1.37")
    assert "Upgrade from v1.33 to v1.37" in page.read_text()
    assert "From v1.33 to v1.37" in run("upgrade", "--from", "v1.33", "-f", cluster)[1]


def test_upgrade_knows_the_gates_of_both_releases(tmp_path: Path) -> None:
    """Pod-level requests count where the gate is on: the one pod fits only where they do not."""
    node = {"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "9"}}}
    containers = [{"name": "c", "image": "i"}]
    pod = {"metadata": {"name": "p"}, "spec": {"containers": containers, "resources": {"requests": {"cpu": "2"}}}}
    items = [{"apiVersion": "v1", "kind": "Node", **node}, {"apiVersion": "v1", "kind": "Pod", **pod}]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    off = "PodLevelResources=false"
    between = ("upgrade", "-f", str(file), "--from", "v1.34", "--to", "v1.35")

    assert "none of 1 pod changes" in run(*between)[1]
    assert "v1.34: Pod-level requests (spec.resources)" in run(*between, "--from-feature-gates", off)[1]
    assert "v1.34: No longer: Pod-level requests (spec.resources)" in run(*between, "--feature-gates", off)[1]


def test_upgrade_fails_where_the_configuration_is_refused(cluster: str, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: LeastAllocated, "
        "requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}}}}]}]\n"
    )
    code, out, _ = run("upgrade", "--from", "v1.35", "--to", "v1.36", "-f", cluster, "--config", str(config))
    assert code == 1
    assert "REFUSED BY v1.36" in out


def test_releases() -> None:
    code, out, _ = run("releases")
    assert code == 0
    assert "v1.29" in out
    assert json.loads(run("releases", "v1.36", "-o", "json")[1])["items"][0]["name"] == "v1.36"
