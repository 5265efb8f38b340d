"""Tuning: better configurations are found, the same with the same seed, and what they would change is said."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from builders import make_node, make_pod
from cli.running import config, node, pod, run, written
from podium.answers import OBJECTIVES, Tuning, tune
from podium.answers.search_space import ConfigurationSpace, TunedSettings
from podium.answers.simulation import Simulation, simulate
from podium.cluster import Cluster
from podium.errors import InputError
from podium.example import fleet
from podium.manifests import load
from podium.plugins import IN_TREE
from podium.present.tuning import to_lines, to_rows
from podium.rules import NEWEST_RULES


def small(nodes: int = 6, pods: int = 9) -> Cluster:
    pending = [make_pod(f"p{number}", requests={"cpu": "1", "memory": "1Gi"}) for number in range(pods)]
    return Cluster.from_objects([*(make_node(f"n{number}") for number in range(nodes)), *pending])


def first_node(simulation: Simulation) -> float:
    """An objective of the user's own: as few pods on n0 as can be."""
    return sum(placement.node == "n0" for placement in simulation.placements)


# -- the search ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tuned() -> Tuning:
    return tune(Cluster.from_objects(load(fleet())), "fewest-nodes", replay=True, trials=6, seed=1)


def test_packs_the_fleet_on_fewer_nodes_and_says_how_many(tuned: Tuning) -> None:
    before, after = tuned.comparison.before.measures, tuned.comparison.after.measures

    assert tuned.improves
    assert (tuned.today.value, tuned.best.value) == (before.nodes_in_use, after.nodes_in_use)
    assert after.nodes_in_use < before.nodes_in_use
    expected = f"The pods take {after.nodes_in_use} nodes instead of {before.nodes_in_use}, the best of 6"
    assert to_lines(tuned)[0].text.startswith(expected)


def test_what_was_found_is_what_the_document_says(tuned: Tuning) -> None:
    cluster = Cluster.from_objects(load(fleet()))
    space = ConfigurationSpace(tuned.document, IN_TREE, rules=NEWEST_RULES)

    assert space.today == tuned.best.settings
    comparison = tune(cluster, replay=True, config=tuned.document, trials=1).comparison
    assert comparison.before.measures == tuned.comparison.after.measures


def test_the_same_seed_gives_the_same_in_any_number_of_processes() -> None:
    one, other = (tune(small(), trials=20, seed=5, jobs=jobs) for jobs in (1, 2))

    assert one.trials == other.trials
    assert one.document == other.document


def test_another_seed_tries_others() -> None:
    one, other = (tune(small(), trials=6, seed=seed).trials for seed in (1, 2))

    assert one[:4] == other[:4]  # today's, and each strategy with today's weights
    assert one[4:] != other[4:]


def test_the_cost_of_nodes_is_what_their_label_says() -> None:
    prices = {"dear": "0.9", "cheap": "0.2"}
    nodes = [node(name, labels={"podium/price-per-hour": price}) for name, price in prices.items()]
    cluster = Cluster.from_objects(load([*nodes, node("unlabelled"), pod("p", nodeName="dear"), pod("q")]))
    assert OBJECTIVES["lowest-cost"](simulate(cluster, tie_break="first")) == pytest.approx(0.9 + 0.2)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_is_lowered_or_kept(objective: str) -> None:
    found = tune(small(), objective, trials=4)

    assert found.best.value <= found.today.value
    assert min(trial.value for trial in found.trials) == found.best.value


def test_a_function_is_an_objective() -> None:
    found = tune(small(nodes=3), first_node, trials=4)

    assert found.objective == "first_node"
    assert found.best.value == first_node(simulate(small(nodes=3), config=found.document, tie_break="first"))


def test_more_important_pods_pending_is_never_better() -> None:
    # Spread over both nodes, the small pods leave no room for the large one; it comes last, but matters as much.
    large = make_pod("z", requests={"cpu": "4"})
    few = [make_pod(f"a{number}", requests={"cpu": "1"}, priority=1) for number in range(2)]
    cluster = Cluster.from_objects([make_node("n0", cpu="4"), make_node("n1", cpu="4"), *few, large])

    found = tune(cluster, lambda simulation: float(len(simulation.placed)), trials=3)

    assert (found.today.pending, found.best.pending) == ((0,), ())
    assert found.best.value > found.today.value


def test_time_is_a_budget() -> None:
    found = tune(small(), seconds=0.000001)

    assert [trial.number for trial in found.trials] == [0]
    assert not found.improves
    assert to_lines(found)[0].text == "None of 0 configurations is better than today's, by fewest-nodes: 6."


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no trials": ({"trials": 0}, "trials must be more than 0, not 0"),
    "no time": ({"seconds": -1.0}, "seconds must be more than 0, not -1.0"),
    "no jobs": ({"jobs": 0}, "jobs must be more than 0, not 0"),
    "an unknown objective": ({"objective": "best"}, "objective 'best' is not one of fewest-nodes"),
    "an unknown module": ({"objective": "gone:f"}, "module 'gone' cannot be imported"),
    "an unknown function": ({"objective": "json:gone"}, "module 'json' has no function 'gone'"),
    "a function that fails": ({"objective": "json:loads"}, "objective loads failed: TypeError"),
    "a function that gives no number": ({"objective": "builtins:repr"}, "it must give a number to minimise"),
    "an unknown profile": ({"profile": "x"}, "profile 'x' is not in the configuration, which has default-scheduler"),
    "a bad configuration": ({"config": {"kind": "Pod"}}, "the configuration to tune: "),
}


@pytest.mark.parametrize(("arguments", "problem"), BAD.values(), ids=BAD)
def test_bad_input(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        tune(small(nodes=1, pods=1), **{"trials": 1, **arguments})


def test_nothing_to_place() -> None:
    with pytest.raises(InputError, match="no pod is pending; --replay places the running ones again"):
        tune(small(pods=0), trials=1)


def test_without_optuna_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)

    with pytest.raises(InputError, match=r"tuning needs Optuna: pip install 'podium\[tune\]'"):
        tune(small(), trials=1)


# -- turning settings -------------------------------------------------------------------------------------------------

API = "kubescheduler.config.k8s.io/"
DOCUMENTS: dict[str, dict[str, Any] | None] = {
    "the default": None,
    "an empty one": config(),
    "weights at multiPoint": config(
        profiles=[{"plugins": {"multiPoint": {"enabled": [{"name": "ImageLocality", "weight": 7}]}}}]
    ),
    "weights at score": config(
        profiles=[{"plugins": {"score": {"enabled": [{"name": "NodeResourcesFit", "weight": 50}]}}}]
    ),
    "other plugins off": config(
        profiles=[{"plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}}}]
    ),
    "a strategy with resources": config(
        profiles=[
            {
                "pluginConfig": [
                    {
                        "name": "NodeResourcesFit",
                        "args": {
                            "ignoredResources": ["example.com/x"],
                            "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 3}]},
                        },
                    }
                ]
            }
        ]
    ),
    "v1beta2": {"apiVersion": f"{API}v1beta2", "kind": "KubeSchedulerConfiguration"},
    "v1beta3": {"apiVersion": f"{API}v1beta3", "kind": "KubeSchedulerConfiguration"},
}


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_document_says_what_was_turned_and_nothing_else(document: dict[str, Any] | None) -> None:
    before = json.dumps(document)
    space = ConfigurationSpace(document, IN_TREE, rules=NEWEST_RULES)
    turned = TunedSettings(
        {plugin: place + 3 for place, plugin in enumerate(space.today.weights)},
        "RequestedToCapacityRatio",
        ((0, 0), (50, 3), (100, 10)),
    )

    after = ConfigurationSpace(space.document(turned), IN_TREE, rules=NEWEST_RULES)

    assert after.today == turned
    assert after.config(space.today) == space.config(space.today)
    assert json.dumps(document) == before


def test_the_profile_that_is_named_is_tuned() -> None:
    document = config(profiles=[{"schedulerName": "one"}, {"schedulerName": "two"}])
    space = ConfigurationSpace(document, IN_TREE, "two", rules=NEWEST_RULES)

    after = space.document(TunedSettings({**space.today.weights, "ImageLocality": 9}, "MostAllocated"))

    assert after["profiles"][0] == {"schedulerName": "one"}
    assert ConfigurationSpace(after, IN_TREE, "two", rules=NEWEST_RULES).today.weights["ImageLocality"] == 9


def test_without_fit_there_is_no_strategy() -> None:
    document = config(profiles=[{"plugins": {"score": {"disabled": [{"name": "NodeResourcesFit"}]}}}])

    assert {trial.settings.strategy for trial in tune(small(), config=document, trials=3).trials} == {None}


# -- the command ---------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    nodes, pods = [node(f"n{number}") for number in range(4)], [pod(f"p{number}") for number in range(4)]
    return written(tmp_path / "cluster.json", *nodes, *pods)


def test_the_command_writes_a_configuration_that_packs(cluster: Path, tmp_path: Path) -> None:
    out = tmp_path / "tuned.yaml"

    result = run("tune", "-f", cluster, "--trials", "4", "--jobs", "1", "--out", out)

    assert result.exit_code == 0, result.stderr
    assert "The pods take 1 node instead of 4" in result.stdout
    # A long path is broken wherever the line ends.
    assert f"Theconfigurationisin{out}." in "".join(result.stdout.split())
    assert yaml.safe_load(out.read_text())["kind"] == "KubeSchedulerConfiguration"
    compared = json.loads(run("compare", "-f", cluster, "--config", out, "-o", "json").stdout)
    assert compared["after"]["measures"]["nodesInUse"] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cluster.json", "tuned.yaml"]


def test_nothing_better_is_code_1(cluster: Path) -> None:
    result = run("tune", "-f", cluster, "--trials", "2", "--jobs", "1", "--objective", "most-spread")

    assert result.exit_code == 1
    assert result.stdout.startswith("None of 2 configurations is better than today's, by most-spread: 0.\n")


def test_nothing_is_written_if_nothing_is_better(cluster: Path, tmp_path: Path) -> None:
    out = tmp_path / "tuned.yaml"

    result = run("tune", "-f", cluster, "--trials", "2", "--jobs", "1", "--objective", "most-spread", "--out", out)

    assert result.exit_code == 1
    assert not out.exists()
    assert "Nothing was written to" in result.stdout


IDLE = ["ImageLocality", "InterPodAffinity", "NodeAffinity", "PodTopologySpread", "TaintToleration", "VolumeBinding"]


def test_weights_that_cannot_matter_are_left_out(cluster: Path) -> None:
    result = run("tune", "-f", cluster, "--trials", "6", "--jobs", "1", "-o", "json")

    document = json.loads(result.stdout)
    assert {"NodeAffinity", "ImageLocality"} <= set(document["leftOut"]) <= set(IDLE) | {"DynamicResources"}
    today = document["today"]["weights"]
    for trial in document["trials"]:
        assert all(trial["weights"][plugin] == today[plugin] for plugin in document["leftOut"])
    assert any(trial["weights"] != today for trial in document["trials"])


PREFERS_DISKS = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
        ]
    }
}
WITH_A_DISK = [node("n0", labels={"disk": "ssd"}), node("n1"), node("n2")]


@pytest.mark.parametrize("looked_at", [2_000, 2])
def test_a_weight_that_tells_nodes_apart_for_one_pod_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looked_at: int
) -> None:
    monkeypatch.setattr("podium.answers.trials.MOST_LOOKED_AT", looked_at)
    monkeypatch.setattr("podium.answers.trials.SAMPLED", 1)
    pods = [pod("p"), pod("q"), pod("picky", affinity=PREFERS_DISKS)]
    tuned = ("tune", "-f", written(tmp_path / "cluster.json", *WITH_A_DISK, *pods), "--trials", "1", "--jobs", "1")

    document = json.loads(run(*tuned, "-o", "json").stdout)
    words = " ".join(run(*tuned).stdout.split())

    assert "NodeAffinity" not in document["leftOut"]
    assert "ImageLocality" in document["leftOut"]
    assert f"alike for every pod{' looked at' if looked_at == 2 else ''}." in words


def test_the_winner_is_explained(cluster: Path) -> None:
    text = run("tune", "-f", cluster, "--trials", "4", "--jobs", "1").stdout
    document = json.loads(run("tune", "-f", cluster, "--trials", "4", "--jobs", "1", "-o", "json").stdout)

    words = " ".join(text.split())
    assert "3 of 4 pods go elsewhere than with today's configuration. Responsible: NodeResourcesFit for 3." in words
    assert "Not searched: the weights of " in words
    assert "weight of NodeAffinity" not in text
    assert document["responsible"] == {"NodeResourcesFit": 3}
    assert [(move["before"], move["after"], move["plugin"]) for move in document["moves"]] == [
        ("n1", "n0", "NodeResourcesFit"),
        ("n2", "n0", "NodeResourcesFit"),
        ("n3", "n0", "NodeResourcesFit"),
    ]


def test_a_function_of_a_module_here(cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_objective.py").write_text("def spare_n0(simulation):\n    return len(simulation.pending)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    result = run("tune", "-f", cluster, "--trials", "2", "--jobs", "2", "--objective", "my_objective:spare_n0")

    assert result.exit_code == 1, result.stderr
    assert "by my_objective:spare_n0: 0." in result.stdout


def test_for_programs(cluster: Path) -> None:
    document = json.loads(run("tune", "-f", cluster, "--trials", "3", "--jobs", "1", "-o", "json").stdout)

    assert (document["kind"], document["improves"], len(document["trials"])) == ("Tuning", True, 4)
    assert (document["today"]["value"], document["best"]["value"]) == (4, 1)


def test_csv_has_every_trial(tuned: Tuning) -> None:
    header, *rows = to_rows(tuned).splitlines()

    assert header.startswith("trial,value,pending,strategy,shape,TaintToleration,")
    assert len(rows) == 7
    assert rows[0].startswith("0,58.0,4,LeastAllocated,,3,")


COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "a folder that is not there": (("--out", "gone/tuned.yaml"), "gone/tuned.yaml: no such file or directory"),
    "a configuration that is not there": (("--config", "gone.yaml"), "gone.yaml: "),
    "a file that is none": (("--config", "cluster.json"), "cluster.json: "),
    "trials": (("--trials", "0"), "trials must be more than 0"),
}


@pytest.mark.parametrize(("arguments", "problem"), COMMANDS.values(), ids=COMMANDS)
def test_bad_input_is_one_line_and_code_2(
    arguments: tuple[str, ...], problem: str, cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(cluster.parent)

    trials = () if "--trials" in arguments else ("--trials", "1")
    result = run("tune", "-f", cluster, "--jobs", "1", *trials, *arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert problem in result.stderr
    assert result.stderr.count("\n") == 1


# -- over time -----------------------------------------------------------------------------------------------------


def keeping(seconds: str) -> dict[str, Any]:
    """A pod of a Job that must not be moved."""
    made = pod("x", requests={"cpu": "1"})
    annotations = {"podium/lifetime": seconds, "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    return {"metadata": {"annotations": annotations}, "spec": made["spec"]}


def job(name: str, pods: int, seconds: str) -> dict[str, Any]:
    spec = {"parallelism": pods, "completions": pods, "template": keeping(seconds)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


@pytest.fixture
def timeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Eight pods for five minutes, then two for hours: spread over two nodes, or packed on one."""
    monkeypatch.chdir(tmp_path)
    lines = (
        {"time": 0, "event": "add", "object": job("a", 8, "5m")},
        {"time": 400, "event": "add", "object": job("b", 2, "2h")},
    )
    Path("events.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    template = {"status": {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}}}
    pool = {"name": "pool", "maxSize": 2, "pricePerHour": 1, "template": template}
    Path("groups.yaml").write_text(yaml.safe_dump({"groups": [pool]}))
    return tmp_path


TIMELINE = ("tune", "--timeline", "events.jsonl", "--until", "2h", "--trials", "4")
GROUPS = ("--node-groups", "groups.yaml")


def test_a_timeline_is_tuned_for_the_lowest_cost(timeline: Path) -> None:
    done = run(*TIMELINE, *GROUPS, "--jobs", "1", "--out", "tuned.yaml", "-o", "json")
    document = json.loads(done.stdout)

    assert done.exit_code == 0, done.stderr
    assert (document["kind"], document["objective"]) == ("TimelineTuning", "cost")
    assert document["today"]["value"] == document["before"]["cost"] > document["after"]["cost"]
    assert document["best"]["value"] == document["after"]["cost"]
    assert document["best"]["strategy"] == "MostAllocated"
    # What was written comes to what was found.
    compare = ("compare", *TIMELINE[1:-2], *GROUPS, "--config", "tuned.yaml", "-o", "json")
    assert json.loads(run(*compare).stdout)["after"]["measures"] == document["after"]


def test_weights_that_cannot_matter_over_time_are_left_out(timeline: Path) -> None:
    picky = job("picky", 2, "5m")
    picky["spec"]["template"]["spec"]["affinity"] = PREFERS_DISKS
    (timeline / "events.jsonl").write_text(json.dumps({"time": 0, "event": "add", "object": picky}))
    cluster = written(timeline / "cluster.json", *WITH_A_DISK)

    done = run(*TIMELINE, "-f", cluster, "--jobs", "1", "-o", "json")
    page = run(*TIMELINE, "-f", cluster, "--jobs", "1", "--html", "-").stdout

    document = json.loads(done.stdout)
    assert {"ImageLocality", "TaintToleration"} <= set(document["leftOut"])
    assert {"NodeAffinity", "NodeResourcesFit"}.isdisjoint(document["leftOut"])
    today = document["today"]["weights"]
    assert all(trial["weights"][name] == today[name] for trial in document["trials"] for name in document["leftOut"])
    assert "all nodes alike for every pod looked at." in page


def test_a_timeline_that_was_tuned_as_a_page(timeline: Path) -> None:
    done = run(*TIMELINE, *GROUPS, "--jobs", "1", "--html", "tuned.html")

    assert done.exit_code == 0, done.stderr
    page = (timeline / "tuned.html").read_text()
    assert "Tuned for cost" in page
    assert "pods that got a node" in page


def test_a_timeline_is_tuned_the_same_in_two_processes(timeline: Path) -> None:
    alone, together = (run(*TIMELINE, *GROUPS, "--jobs", jobs, "-o", "json").stdout for jobs in ("1", "2"))
    assert alone == together
    assert json.loads(alone)["improves"]


def test_no_timeline_is_better_that_leaves_a_pod_waiting(timeline: Path) -> None:
    Path("own_goal.py").write_text(
        "def placed(result):\n    return sum(life.bound is not None for life in result.lives)\n"
    )
    sys.modules.pop("own_goal", None)
    done = run(*TIMELINE, *GROUPS, "--jobs", "1", "--objective", "own_goal:placed", "-o", "json")
    document = json.loads(done.stdout)
    assert (done.exit_code, document["objective"]) == (1, "own_goal:placed")
    assert {trial["pending"] for trial in document["trials"]} == {0}


TIMELINE_PROBLEMS: dict[str, tuple[tuple[str, ...], str]] = {
    "an unknown objective": ((*TIMELINE, "--objective", "joy"), "'joy' is not one of cost, node_hours,"),
    "cost without groups": ((*TIMELINE, "--objective", "cost"), "objective 'cost' needs node groups"),
    "groups without events": (("tune", *GROUPS), "--node-groups needs --timeline EVENTS"),
    "an end without events": (("tune", "--until", "1h"), "--until needs --timeline EVENTS"),
    "running pods": ((*TIMELINE, "--replay"), "--replay: cannot be used with --timeline"),
    "events that are not there": (("tune", "--timeline", "gone.jsonl"), "gone.jsonl: "),
}


@pytest.mark.parametrize(("arguments", "problem"), TIMELINE_PROBLEMS.values(), ids=TIMELINE_PROBLEMS)
def test_bad_input_over_time_is_one_line(arguments: tuple[str, ...], problem: str, timeline: Path) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert problem in done.stderr
