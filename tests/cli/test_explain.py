"""`podium explain`: which pod, decided how, shown how."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .running import EXAMPLE, config, node, pod, run, written

DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "api", "namespace": "shop"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "api"}},
        "template": {"metadata": {"labels": {"app": "api"}}, "spec": {"containers": [{"name": "c"}]}},
    },
}


def explained(*arguments: str | Path) -> dict[str, Any]:
    result = run("explain", *arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_words_then_scores_then_rejections() -> None:
    result = run("explain", "web-5f7c9-new", "-f", EXAMPLE)

    assert result.exit_code == 0
    assert result.stderr == ""
    words, scores, rejected = result.stdout.split("\n\n")
    assert words.startswith("Pod shop/web-5f7c9-new goes to web-c1 with 1,044 points, 120 more than the")
    assert "* web-c1    1044    300      200   71     200     200       73      0" in scores
    assert "       3  TaintToleration: node(s) had untolerated taint(s)" in rejected
    assert "\x1b" not in result.output


def test_formulas_of_the_two_best_nodes_or_of_all(tmp_path: Path) -> None:
    plain = run("explain", "web-5f7c9-new", "-f", EXAMPLE).stdout
    shown = run("explain", "web-5f7c9-new", "-f", EXAMPLE, "--formulas").stdout
    headings = [line for line in shown.splitlines() if line.endswith(": how its scores come about")]

    assert [heading.partition(":")[0] for heading in headings] == ["web-c1", "web-b1"]
    assert "  NodeResourcesFit\n    cpu: " in shown
    assert "how its scores come about" not in plain

    documents = {
        flags: explained("web-5f7c9-new", "-f", EXAMPLE, *flags)["feasible"]
        for flags in ((), ("--formulas",), ("--formulas", "--all"))
    }
    counts = [sum("formulas" in node for node in feasible) for feasible in documents.values()]
    assert counts == [0, 2, len(documents[()])]
    for found in documents["--formulas", "--all"]:
        numbers = {each["plugin"]: each for each in found["formulas"]}
        assert numbers.keys() == found["scores"].keys()
        assert sum(each["weighted"] for each in numbers.values()) == found["total"]

    page = tmp_path / "page.html"
    run("explain", "web-5f7c9-new", "-f", EXAMPLE, "--formulas", "--html", page)
    assert "how its scores come about" in page.read_text()


def test_fits_80_columns() -> None:
    for name in ("web-5f7c9-new", "web-5f7c9-z1q9p", "train-0"):
        for more in ([], ["--nodes"], ["--all"], ["--formulas"]):
            assert max(map(len, run("explain", name, "-f", EXAMPLE, *more).stdout.splitlines())) <= 80


@pytest.mark.parametrize("arguments", [["web"], ["default/web"], ["web", "-n", "default"]])
def test_a_pod_can_be_named_with_its_namespace(arguments: list[str], tmp_path: Path) -> None:
    cluster = written(tmp_path / "c.json", node(), pod(), pod("other", namespace="shop"))

    assert explained(*arguments, "-f", cluster)["pod"] == "default/web"


def test_a_workload_stands_for_its_first_pod(tmp_path: Path) -> None:
    cluster = written(tmp_path / "c.json", node(), DEPLOYMENT)

    document = explained("api", "-f", cluster)

    assert document["pod"].startswith("shop/api-")
    assert document["node"] == "n1"


def cron_job(**spec: Any) -> dict[str, Any]:
    template = {"spec": {"template": {"spec": pod()["spec"]}}}
    spec = {"schedule": "0 3 * * *", "jobTemplate": template, **spec}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": spec}


@pytest.mark.parametrize("name", ["cj/nightly", "cronjob/nightly", "nightly", "job/nightly-0"])
@pytest.mark.parametrize("suspend", [False, True])
def test_a_cron_job_stands_for_the_pod_of_its_next_job(name: str, suspend: bool, tmp_path: Path) -> None:
    cluster = written(tmp_path / "cluster.json", node("n1"), cron_job(suspend=suspend))

    result = run("explain", name, "-f", cluster)

    if suspend and name.startswith("job/"):
        assert result.exit_code == 2
    else:
        assert result.stdout.startswith("Pod default/nightly-0-0 goes to n1")


def test_cron_jobs_are_spoken_of_only_where_one_is_explained(tmp_path: Path) -> None:
    cluster = written(tmp_path / "cluster.json", node("n1"), cron_job(), DEPLOYMENT)

    assert "CronJob" not in run("explain", "deploy/api", "-f", cluster).stderr
    assert "CronJob default/nightly treated as if due now" in run("explain", "cj/nightly", "-f", cluster).stderr
    assert "did you mean cronjob/nightly?" in run("explain", "cj/nightyl", "-f", cluster).stderr


def test_a_workload_without_pods_stands_for_the_first_it_would_make(tmp_path: Path) -> None:
    idle = {**DEPLOYMENT, "spec": DEPLOYMENT["spec"] | {"replicas": 0}}
    cluster = written(tmp_path / "cluster.json", node("n1"), idle)

    result = run("explain", "deploy/api", "-f", cluster)

    assert result.stdout.startswith("Pod shop/api-")
    assert result.stderr.startswith("deploy/api wants no pods now; shop/api-")
    assert "StatefulSet 'api' is not in the input" in run("explain", "sts/api", "-f", cluster).stderr


def test_a_running_pod_is_decided_again(tmp_path: Path) -> None:
    cluster = written(tmp_path / "c.json", node(), pod(requests={"cpu": "3"}, nodeName="n1"))

    document = explained("web", "-f", cluster)

    assert (document["runsOn"], document["node"]) == ("n1", "n1")


def test_a_finished_pod_is_said_to_be_finished(tmp_path: Path) -> None:
    cluster = written(tmp_path / "c.json", node(), pod(phase="Failed"))

    result = run("explain", "web", "-f", cluster)

    said = "podium: pod default/web cannot be decided: it has finished (Failed) and needs no node\n"
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", said)
    result = run("explain", "web", "-f", cluster, "-o", "json")
    assert (result.exit_code, result.stderr) == (2, said)
    assert json.loads(result.stdout)["node"] is None


def test_several_files_and_stdin_add_up(tmp_path: Path) -> None:
    nodes, pods = written(tmp_path / "nodes.json", node()), json.dumps(pod())

    result = run("explain", "web", "-f", nodes, "-f", "-", stdin=pods)

    assert result.stdout.startswith("Pod default/web goes to n1, the only node")


TWO_PROFILES = config(
    profiles=[
        {"schedulerName": "default-scheduler"},
        {"schedulerName": "bare", "plugins": {"score": {"disabled": [{"name": "*"}]}}},
    ]
)


def test_a_configuration_and_one_of_its_profiles(tmp_path: Path) -> None:
    scheduler = tmp_path / "scheduler.yaml"
    scheduler.write_text(json.dumps(TWO_PROFILES))
    cluster = written(tmp_path / "c.json", node(), node("n2"), pod())

    document = explained("web", "-f", cluster, "--config", scheduler, "--profile", "bare", "--tie-break", "first")

    assert document["words"][0] == "Pod default/web goes to n1, the first found to fit, so nothing is scored."


def test_a_configuration_among_the_objects_is_used(tmp_path: Path) -> None:
    export = tmp_path / "export.json"
    settings = config(
        profiles=[{"schedulerName": "default-scheduler", "plugins": {"score": {"disabled": [{"name": "*"}]}}}]
    )
    export.write_text(json.dumps({"nodes": [node(), node("n2")], "pods": [pod()], "schedulerConfig": settings}))

    assert "the first found to fit" in explained("web", "-f", export)["words"][0]


def test_ties_are_broken_as_asked(tmp_path: Path) -> None:
    cluster = written(tmp_path / "c.json", *(node(f"n{number}") for number in range(9)), pod())

    first = explained("web", "-f", cluster, "--tie-break", "first")
    seeded = {explained("web", "-f", cluster, "--seed", str(seed))["node"] for seed in range(9)}

    assert first["node"] == "n0"
    assert len(first["ties"]) == 9
    assert len(seeded) > 1


def test_sampling_as_upstream_does_it(tmp_path: Path) -> None:
    cluster = written(tmp_path / "c.json", *(node(f"n{number:03}") for number in range(300)), pod())

    sampled = explained("web", "-f", cluster, "--sampling", "upstream")["nodes"]

    assert (sampled["total"], sampled["feasible"], sampled["notLookedAt"]) == (300, 144, 156)
    assert explained("web", "-f", cluster)["nodes"]["feasible"] == 300


def test_a_plugin_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "picky.py").write_text(
        "from podium import SUCCESS, FilterPlugin, Status\n"
        "class Picky(FilterPlugin):\n"
        "    name = 'Picky'\n"
        "    def filter_node(self, state, pod, node):\n"
        "        return SUCCESS if node.name == 'n2' else Status.unschedulable('not the one')\n"
    )
    monkeypatch.chdir(tmp_path)
    scheduler = tmp_path / "scheduler.yaml"
    enabled = {"filter": {"enabled": [{"name": "Picky"}]}}
    scheduler.write_text(json.dumps(config(profiles=[{"schedulerName": "default-scheduler", "plugins": enabled}])))
    cluster = written(tmp_path / "c.json", node(), node("n2"), pod())

    document = explained("web", "-f", cluster, "--plugin", "picky:Picky", "--config", scheduler)

    assert document["node"] == "n2"
    assert document["rejected"] == [
        {"node": "n1", "plugin": "Picky", "code": "Unschedulable", "reasons": ["not the one"]}
        | {"detail": None, "inTheWay": []}
    ]


def test_verbose_names_what_scheduling_does_not_read(tmp_path: Path) -> None:
    secrets = [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}} for name in "ab"]
    cluster = written(tmp_path / "c.json", node(), pod(), *secrets)

    assert run("explain", "web", "-f", cluster).stderr == ""
    read, reused = run("explain", "web", "-f", cluster, "-v").stderr.splitlines()
    assert read == "2 objects read; not read by scheduling: 2 Secret"
    assert reused.startswith("results known from earlier pods of this kind: none; another one would share: ")


@pytest.mark.parametrize(
    ("output", "start"),
    [
        ("table", "Pod default/web goes to n1, "),
        ("wide", "Pod default/web goes to n1, "),
        ("json", '{\n  "apiVersion": "podium/v1",\n  "kind": "Explanation",\n'),
        ("yaml", "apiVersion: podium/v1\nkind: Explanation\n"),
        ("csv", "node,result,total,rejected by,code,reasons\nn1,chosen,"),
    ],
)
def test_outputs(output: str, start: str, tmp_path: Path) -> None:
    cluster = written(tmp_path / "c.json", node(), pod())

    assert run("explain", "web", "-f", cluster, "-o", output).stdout.startswith(start)


def test_wide_shows_raw_normalised_and_weighted_scores() -> None:
    assert "0/100/300" in run("explain", "web-5f7c9-new", "-f", EXAMPLE, "-o", "wide").stdout


def test_the_same_input_gives_the_same_output() -> None:
    one, two = (run("explain", "web-5f7c9-new", "-f", EXAMPLE, "-o", "json").stdout for _ in range(2))

    assert one == two


def test_a_plugin_that_no_profile_names_is_mentioned(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from podium import FilterPlugin\n\n\nclass Mine(FilterPlugin):\n    name = 'Mine'\n"
    )
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from podium.cli import main; main()"
    arguments = ["explain", "web-5f7c9-new", "-n", "shop", "-f", "-", "--plugin", "mine:Mine"]
    example = subprocess.run([sys.executable, "-c", CODE, "example", "shop"], capture_output=True, check=True)
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), *arguments], input=example.stdout, capture_output=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert b"plugin Mine is in no profile, so it does not run" in result.stderr


CODE = "from podium.cli import main; main()"


def test_a_replica_set_of_a_deployment_is_found_by_its_name(tmp_path: Path) -> None:
    def of(replica_set: str, number: int) -> dict[str, Any]:
        suffix = replica_set.rpartition("-")[2]
        made = pod(f"{replica_set}-{number}", labels={"pod-template-hash": suffix})
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": replica_set, "uid": suffix, "controller": True}
        made["metadata"]["ownerReferences"] = [owner]
        return made

    cluster = written(tmp_path / "c.json", node(), of("web-old", 1), of("web-new", 1), of("web-new", 2))
    for name, said in {
        "rs/web-new": "default/web-new-1, one of its 2 pods",
        "default/web-old": "default/web-old-1, its only pod",
        "deploy/web": "default/web-old-1, one of its 3 pods",
    }.items():
        assert run("explain", name, "-f", cluster).stderr.splitlines()[-1] == f"{name}: {said}"
