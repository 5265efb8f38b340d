"""The study in examples/fgd: its plugins against the paper's definitions, and a run of it on a small trace."""

from __future__ import annotations

import math
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from cli.running import node, pod
from podium import Cluster, Registry, Scheduler, check_plugin, load
from podium.answers.trials import function_named
from podium.plugins import IN_TREE
from podium.sweep import in_process, load_inputs, read_sweep, run_count, sweep
from podium.sweep._inputs import import_from
from traces.openb_tables import write_tables

FOLDER = Path(__file__).parents[2] / "examples" / "fgd"
POLICIES = ("Random", "DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD")
GPU, MODEL = "alibabacloud.com/gpu-milli", "alibabacloud.com/gpu-card-model"


def policies() -> ModuleType:
    import_from(FOLDER, {})
    return __import__("policies")


def gpu_node(name: str, gpus: int, model: str = "G2", cpu: int = 32) -> dict[str, Any]:
    return node(name, labels={MODEL: model}, allocatable={"cpu": str(cpu), GPU: str(1000 * gpus)})


def task(name: str, milli: int, cpu: int = 1, models: tuple[str, ...] = ()) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": MODEL, "operator": "In", "values": list(models)}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    affinity = {"affinity": {"nodeAffinity": required}} if models else {}
    return pod(name, requests={"cpu": str(cpu), "memory": "1Mi", **({GPU: str(milli)} if milli else {})}, **affinity)


def scheduler(policy: str, *objects: dict[str, Any]) -> Scheduler:
    config = yaml.safe_load((FOLDER / f"{policy.lower()}.yaml").read_text().replace("$seed", "7"))
    registry = Registry([*IN_TREE.values(), getattr(policies(), policy)])
    return Scheduler(Cluster.from_objects(load(list(objects))), config, registry=registry, tie_break="first")


def placed(policy: str, *objects: dict[str, Any]) -> list[str | None]:
    """Where the pending tasks go, one after the other."""
    deciding = scheduler(policy, *objects)
    return [deciding.schedule(each) for each in [*deciding.cluster.pending.values()]]


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_keeps_what_a_plugin_promises(policy: str) -> None:
    check_plugin(getattr(policies(), policy))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_share_needs_one_gpu_and_whole_gpus_are_entirely_free(policy: str) -> None:
    nodes = [gpu_node("n", 2)]
    assert placed(policy, *nodes, task("a", 600), task("b", 600), task("c", 600)) == ["n", "n", None]
    assert placed(policy, *nodes, task("a", 300), task("b", 2000)) == ["n", None]
    assert placed(policy, *nodes, task("a", 300), task("b", 1000), task("c", 1000)) == ["n", "n", None]


@pytest.mark.parametrize(
    ("policy", "objects", "node_name"),
    [
        ("BestFit", [gpu_node("large", 8), gpu_node("small", 1), task("t", 500)], "small"),
        ("DotProd", [gpu_node("large", 8), gpu_node("small", 1), task("t", 500)], "small"),
        ("GpuPacking", [gpu_node("a", 8), gpu_node("b", 8), task("p", 500), task("t", 400)], "a"),
        ("GpuPacking", [gpu_node("a", 8), gpu_node("b", 2), task("t", 2000)], "b"),
        ("GpuClustering", [gpu_node("a", 8), gpu_node("b", 8), task("p", 2000), task("t", 400)], "b"),
        ("GpuClustering", [gpu_node("a", 8), gpu_node("b", 8), task("p", 400), task("t", 400)], "a"),
        ("FGD", [gpu_node("a", 2), gpu_node("b", 2), task("p", 500), task("x", 2000), task("t", 500)], "a"),
    ],
)
def test_where_the_last_task_goes(policy: str, objects: list[dict[str, Any]], node_name: str) -> None:
    assert placed(policy, *objects)[-1] == node_name


def fragmentation(left: list[int], cpu: int, model: str, typical: Counter[tuple[int, int, tuple[str, ...]]]) -> float:
    """The paper's definition, pod by pod: what a typical pod that does not fit leaves unused, and odds and ends."""
    total = 0.0
    for (asked_cpu, milli, models), count in typical.items():
        size, number = min(milli, 1000), max(milli // 1000, 1)
        fits = sum(gpu >= size for gpu in left) >= number and cpu >= asked_cpu and (not models or model in models)
        unused = sum(gpu for gpu in left if gpu < size) if milli and fits else sum(left)
        total += count / sum(typical.values()) * unused
    return total


def fgd_score(left: list[int], cpu: int, asked: tuple[int, int], model: str, typical: Any) -> int:
    asked_cpu, milli = asked
    now, found = fragmentation(left, cpu, model, typical), []
    if 0 < milli < 1000:
        options = [[gpu - milli * (at == chosen) for at, gpu in enumerate(left)] for chosen in range(len(left))]
        options = [option for option in options if min(option) >= 0]
    else:
        rest, option = milli // 1000, []
        for gpu in left:
            option.append(0 if gpu == 1000 and rest else gpu)
            rest -= gpu == 1000 and rest > 0
        options = [option]
    for option in options:
        gain = round(now - fragmentation(option, cpu - asked_cpu, model, typical), 6)
        found.append(int(100 / (1 + math.exp(-gain / 1000))))
    return max(found)


@pytest.mark.parametrize("seed", range(5))
def test_fgd_scores_are_those_of_the_papers_definition(seed: int) -> None:
    rng = random.Random(seed)
    kinds = [(rng.choice([1, 2, 4]), milli, ("T4",) if milli == 300 else ()) for milli in (0, 300, 500, 1000, 2000)]
    tasks = [task(f"t{n}", kind[1], *kind[::2]) for n, kind in enumerate(rng.choices(kinds, k=40))]
    nodes = [gpu_node(f"n{n}", rng.choice([1, 2, 4]), rng.choice(["T4", "G2"]), 16) for n in range(6)]
    deciding = scheduler("FGD", *nodes, *tasks)
    typical = Counter((1000 * kind["cpu"], kind["milli"], kind["models"]) for kind in map(_asked, tasks))
    while sum(typical.values()) - min(typical.values()) >= 0.95 * len(tasks):
        del typical[min(typical, key=lambda kind: (typical[kind], kind))]
    plugin: Any = next(each.plugin for each in deciding.frameworks["default-scheduler"].score)
    for each in [*deciding.cluster.pending.values()]:
        decision = deciding.decide(each)
        if decision.scores:
            (scores,) = decision.scores
            left, cpu = plugin.left(deciding.cluster.nodes), deciding.cluster.nodes
            for row, name in enumerate(deciding.cluster.names):
                if name in scores.raw:
                    gpus = int(deciding.cluster.nodes.allocatable(GPU)[row]) // 1000
                    free = int(cpu.allocatable("cpu")[row] - cpu.requested("cpu")[row])
                    model = deciding.cluster.node(name).metadata.labels[MODEL]
                    asked = plugin.requested(deciding.cluster.info_of(each))
                    expected = fgd_score([int(gpu) for gpu in left[:gpus, row]], free, asked, model, typical)
                    assert scores.raw[name] == expected
        deciding.schedule(each)


def _asked(manifest: dict[str, Any]) -> dict[str, Any]:
    requests = manifest["spec"]["containers"][0]["resources"]["requests"]
    models = ("T4",) if "affinity" in manifest["spec"] else ()
    return {"cpu": int(requests["cpu"]), "milli": int(requests.get(GPU, 0)), "models": models}


def test_the_sweep_is_the_whole_study(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_count(read_sweep(str(FOLDER / "sweep.yaml"))) == 13 * 6 * 10


def small_trace(folder: Path) -> None:
    """Five nodes of eight GPUs, and sixty tasks."""
    rng, header = random.Random(0), "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
    tasks = [f"t{n},{rng.choice([2, 6, 12])}000,4096,1,{rng.choice([200, 460, 1000])}," for n in range(60)]
    nodes = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(f"n{n},96000,393216,8,G2\n" for n in range(5))
    folder.mkdir()
    write_tables(folder, nodes, header + "\n".join(tasks))


def test_a_run_of_the_study_on_a_small_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "fgd"
    shutil.copytree(FOLDER, folder)
    small_trace(tmp_path / "openb")
    document = yaml.safe_load((folder / "sweep.yaml").read_text())
    document["axes"] |= {"trace": {"small": {"openb": ["$OPENB/nodes.csv", "$OPENB/pods.csv"]}}, "seed": [42, 43]}
    (folder / "sweep.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    monkeypatch.setenv("OPENB", str(tmp_path / "openb"))
    spec = read_sweep(str(folder / "sweep.yaml"))
    with in_process() as workers:
        result = sweep(spec, load_inputs(spec), workers, str(tmp_path / "out"), lambda row: None)
    assert not result.failed
    means = {group.point["config"]: group.spread("allocated_130").mean for group in result.groups}
    assert set(means) == {*POLICIES}
    assert means["FGD"] >= means["Random"]
    assert all(50 < mean <= 100 for mean in means.values())


def test_what_docs_research_says_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (FOLDER.parents[1] / "docs" / "research.md").read_text()
    blocks = re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    folder = tmp_path / "fgd"
    shutil.copytree(FOLDER, folder)
    small_trace(tmp_path / "openb")
    for _, file, text in blocks:
        if file:
            (folder / file).write_text(text)
    monkeypatch.setenv("OPENB", str(tmp_path / "openb"))
    monkeypatch.chdir(folder)
    *_, snippet = [text for language, file, text in blocks if language == "python" and not file]
    names: dict[str, Any] = {}
    exec(compile(snippet, "docs/research.md", "exec"), names)
    assert len(names["frame"]) == 4
    (policy,) = (text for language, _, text in blocks if "class BestFit" in text)
    assert policy in (FOLDER / "policies.py").read_text()


def test_tasks_arrive_until_they_ask_for_130_percent(tmp_path: Path) -> None:
    import_from(FOLDER, {})
    nodes = [gpu_node(f"n{n}", 8) for n in range(4)]
    for number in (10, 100):
        objects = load([*nodes, *(task(f"t{n}", 500) for n in range(number))])
        found = function_named("study:arrivals")(objects, 42)
        assert [item.name for item in found[4:]] == [
            item.name for item in function_named("study:arrivals")(objects, 42)[4:]
        ]
        # 130 % of 32 GPUs are 41.6, and each task asks for half a GPU.
        assert len(found) - 4 == 83


def test_random_numbers_are_those_of_go() -> None:
    """As printed by a Go program: `rand.New(rand.NewSource(seed))`."""
    import_from(FOLDER, {})
    go_random = function_named("go_random:GoRandom")
    rng = go_random(1)
    assert [rng.intn(100) for _ in range(10)] == [81, 87, 47, 59, 81, 18, 25, 40, 56, 0]
    rng = go_random(42)
    rng.int63()
    assert rng.perm(9) == [7, 0, 1, 5, 6, 3, 2, 8, 4]
    items = [*range(9)]
    rng.shuffle(items)
    assert items == [5, 4, 8, 7, 3, 0, 2, 1, 6]


@pytest.mark.parametrize("number", [10, 100])
def test_the_typical_tasks_are_those_of_the_whole_trace(number: int) -> None:
    """Also where tasks are drawn again, or left out: the first of a kind counts for all of it."""
    import_from(FOLDER, {})
    trace = [task(f"t{n}", 500 if n % 2 else 1000, models=("T4",) if n % 5 == 0 else ()) for n in range(number)]
    _, *tasks = function_named("study:arrivals")(load([gpu_node("n", 8), *trace]), 42)
    counts = [int(each.metadata.annotations["podium/count"]) for each in tasks]
    assert sorted(count for count in counts if count) == sorted([number // 10, number // 10, *[number * 4 // 10] * 2])


def test_a_trace_without_gpu_tasks_is_refused() -> None:
    import_from(FOLDER, {})
    objects = load([gpu_node("n", 8), task("t", 0)])
    with pytest.raises(ValueError, match="no task of the trace asks for GPUs"):
        function_named("study:arrivals")(objects, 42)


EXPECTED = (
    "workload,policy,arrived_percent_of_gpu_capacity,allocated_gpu_percent_mean\nopenb_pod_list_default,FGD,130,95\n"
)


def table(folder: Path, summary: str) -> tuple[int, str]:
    """The exit code and the output of table.py."""
    (folder / "summary.csv").write_text(summary)
    (folder / "expected.csv").write_text(EXPECTED)
    command = [sys.executable, str(FOLDER / "table.py"), str(folder / "summary.csv"), str(folder / "expected.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_policy_of_ones_own_stands_in_the_table(tmp_path: Path) -> None:
    rows = "2,default,FGD,95.5\n2,default,Mine,96\n2,other,FGD,90\n1,other,Mine,90\n"
    code, text = table(tmp_path, f"runs,trace,config,allocated_130_mean\n{rows}")
    assert (code, text.splitlines()[2:4]) == (0, ["| default | 95.50 (+0.50) | 96.00 |", "| other | 90.00 |  |"])
    assert text.endswith(
        "\n3 means of 6 runs, 1 of which the paper has: at most 0.50 points off, 0 by more than 0.5.\n"
    )


def test_a_sweep_of_one_trace_is_one_row_and_one_without_policies_is_refused(tmp_path: Path) -> None:
    code, text = table(tmp_path, "runs,config,allocated_130_mean\n2,FGD,95.5\n")
    assert (code, text.splitlines()[2]) == (0, "| the only trace | 95.50 |")
    code, text = table(tmp_path, "runs,trace,allocated_130_mean\n2,default,95.5\n")
    assert (code, text.count("\n"), "has no column 'config'" in text) == (1, 1, True)
