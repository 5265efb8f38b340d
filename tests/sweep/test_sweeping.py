"""Runs, rows, means over seeds, resuming, and runs that fail."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.running import node, run, written
from cli.running import pod as pod_of
from podium.errors import InputError
from podium.present.tuning import sweep_document, sweep_lines
from podium.sweep import Row, SweepResult, in_process, load_inputs, local_processes, read_sweep, sweep
from podium.sweep._spec import Goal
from sweep.sweep_files import STRATEGY, SWEEP, WEIGHT, write_module, write_sweep


def swept(folder: Path, on_done: Callable[[Row], object] = lambda row: None, **fields: Any) -> SweepResult:
    spec = read_sweep(write_sweep(folder, **fields))
    with in_process() as workers:
        return sweep(spec, load_inputs(spec), workers, str(folder / "out"), on_done)


def test_each_run_is_a_row_and_the_best_point_is_named(tmp_path: Path) -> None:
    result = swept(tmp_path)
    assert [row.number for row in result.rows] == [*range(1, 9)]
    assert result.best is not None
    assert result.best.point == {STRATEGY: "MostAllocated", WEIGHT: "1"}
    assert result.best.spread("nodes_in_use") == (1, 0)
    assert [group.spread("nodes_in_use").mean for group in result.groups] == [3, 3, 1, 1]


def test_a_frame_a_table_and_parquet_have_the_same_rows(tmp_path: Path) -> None:
    import polars

    result = swept(tmp_path)
    frame = result.to_frame()
    assert frame.columns[:4] == ["run", STRATEGY, WEIGHT, "seed"]
    assert frame["nodes_in_use"].to_list() == [3, 3, 3, 3, 1, 1, 1, 1]
    result.write_parquet(str(tmp_path / "rows.parquet"))
    assert polars.read_parquet(tmp_path / "rows.parquet").equals(frame)
    assert result.to_csv().splitlines()[8].startswith("8,MostAllocated,50,2,4,")
    assert result.summary_csv().splitlines()[4].startswith("2,MostAllocated,50,4.0,0.0,")


def test_a_sweep_that_is_started_again_does_what_is_missing(tmp_path: Path) -> None:
    whole = swept(tmp_path)
    journal = tmp_path / "out" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    # Interrupted in the middle of a line.
    journal.write_bytes(b"".join(lines[:4]) + lines[4][:20])
    again = swept(tmp_path)
    assert again == whole
    assert len(journal.read_bytes().splitlines()) == 8


def runs_done(folder: Path) -> int:
    """How many runs the journal has."""
    return len((folder / "out" / "journal.jsonl").read_bytes().splitlines())


@pytest.mark.parametrize(
    ("fields", "new"),
    [
        pytest.param({"minimize": None, "maximize": "nodes_in_use"}, 0, id="another goal"),
        pytest.param({"axes": SWEEP["axes"] | {"seed": [1, 2, 3]}}, 4, id="one more seed"),
        pytest.param({"axes": SWEEP["axes"] | {"seed": [2]}}, 0, id="one seed less"),
        pytest.param({"axes": SWEEP["axes"] | {WEIGHT: [50, 7]}}, 4, id="another weight"),
        pytest.param({"tieBreak": "first"}, 8, id="another tie-break"),
        pytest.param({"release": "v1.34"}, 8, id="another release"),
        pytest.param({"config": {"apiVersion": "kubescheduler.config.k8s.io/v1"}}, 8, id="a configuration"),
        pytest.param({"trace": {"openb": ["n.csv", "p.csv"]}, "cluster": None}, 8, id="another cluster"),
    ],
)
def test_an_edited_sweep_runs_what_the_edit_changes(tmp_path: Path, fields: dict[str, Any], new: int) -> None:
    (tmp_path / "n.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn1,1000,1,0,\n")
    (tmp_path / "p.csv").write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,1000,1,0,0\n")
    swept(tmp_path)
    again = swept(tmp_path, **fields)
    assert runs_done(tmp_path) == 8 + new
    (tmp_path / "out" / "journal.jsonl").unlink()
    assert swept(tmp_path, **fields) == again
    # And back: the rows of the first sweep were kept.
    swept(tmp_path)
    done = runs_done(tmp_path)
    swept(tmp_path, **fields)
    assert runs_done(tmp_path) == done


def test_a_comment_in_the_sweep_changes_no_run(tmp_path: Path) -> None:
    swept(tmp_path)
    file = tmp_path / "sweep.yaml"
    file.write_text(f"# nothing\n{file.read_text()}")
    spec = read_sweep(str(file))
    with in_process() as workers:
        sweep(spec, load_inputs(spec), workers, str(tmp_path / "out"), lambda row: None)
    assert runs_done(tmp_path) == 8


def test_runs_of_other_inputs_are_not_taken_for_done(tmp_path: Path) -> None:
    write_module(tmp_path, "def joy(result): return 1\n")
    fields: dict[str, Any] = {"measures": "own_study:joy", "axes": {"seed": [1]}, "minimize": "joy"}
    assert swept(tmp_path, **fields).rows[0].numbers["joy"] == 1
    write_module(tmp_path, "def joy(result): return len(result.cluster.nodes)\n")
    sys.modules.pop("own_study")
    assert swept(tmp_path, **fields).rows[0].numbers["joy"] == 3
    written(tmp_path / "cluster.json", node("n0"))
    spec = read_sweep(str(tmp_path / "sweep.yaml"))
    with in_process() as workers:
        result = sweep(spec, load_inputs(spec), workers, str(tmp_path / "out"), lambda row: None)
    assert (result.rows[0].numbers["joy"], runs_done(tmp_path)) == (1, 3)


def test_a_changed_module_of_a_package_is_another_input(tmp_path: Path) -> None:
    (tmp_path / "own_package").mkdir()
    for value in (1, 2):
        (tmp_path / "own_package" / "study.py").write_text(f"def joy(result): return {value}\n")
        for name in [name for name in sys.modules if name.startswith("own_package")]:
            del sys.modules[name]
        fields: dict[str, Any] = {"measures": "own_package.study:joy", "axes": {"seed": [1]}, "minimize": "joy"}
        importlib.invalidate_caches()
        assert swept(tmp_path, **fields).rows[0].numbers["joy"] == value
    assert runs_done(tmp_path) == 2


@pytest.mark.parametrize("text", ['{"digest": "abc"}\n', "[1]\n", "hello\n", '{"error": "", "numbers": {}}\n'])
def test_another_file_in_place_of_the_journal_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "journal.jsonl").write_text(text)
    with pytest.raises(InputError, match="is not a journal that this version of Podium wrote"):
        swept(tmp_path)


def test_a_run_that_fails_is_told_with_its_inputs_and_tried_again(tmp_path: Path) -> None:
    write_module(tmp_path, FAILING % str(tmp_path))
    fields: dict[str, Any] = {"prepare": "own_study:prepare", "axes": {"seed": [1, 2, 3]}, "minimize": "placed"}
    told: list[Row] = []
    result = swept(tmp_path, told.append, **fields)
    assert [(row.number, dict(row.point)) for row in told if row.error] == [(2, {"seed": "2"})]
    assert result.failed[0].error == "own_study:prepare failed: RuntimeError: no luck"
    (best,) = result.groups
    assert (len(best.rows), best.failed) == (2, 1)
    (tmp_path / "lucky").touch()
    assert not swept(tmp_path, **fields).failed


FAILING = """
import pathlib
def prepare(objects, seed):
    if seed == 2 and not (pathlib.Path(%r) / "lucky").exists():
        raise RuntimeError("no luck")
    return objects
"""


def test_measures_of_the_users_own_are_columns(tmp_path: Path) -> None:
    write_module(
        tmp_path, "def used(result): return {'one': 1, 'names': len(result.placements)}\ndef two(r): return 2.5\n"
    )
    result = swept(tmp_path, measures=["own_study:used", "own_study:two"], maximize="names", minimize=None, axes=None)
    numbers = result.rows[0].numbers
    assert [*numbers][-3:] == ["one", "names", "two"]
    assert numbers.items() >= {"placed": 4, "pending": 0, "nodes_in_use": 3, "one": 1, "names": 4, "two": 2.5}.items()


def test_a_goal_that_no_run_measures_is_refused_and_may_be_corrected(tmp_path: Path) -> None:
    write_module(tmp_path, "def glee(result): return 3\n")
    with pytest.raises(InputError, match=r"minimize: no run has a measure 'joy'; they have placed, .*, glee"):
        swept(tmp_path, measures="own_study:glee", minimize="joy", axes=None)
    assert swept(tmp_path, measures="own_study:glee", minimize="glee", axes=None).best is not None


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("float('inf')", "measure own_study:joy gave inf for joy; it must give a number"),
        ("10**400", "; it must give a number"),
        ("'much'", "gave 'much' for joy; it must give a number"),
        ("{'seed': 1}", "a measure is named 'seed', as another column is; give it another name"),
    ],
)
def test_a_measure_that_cannot_be_used_is_a_run_that_failed(tmp_path: Path, answer: str, message: str) -> None:
    write_module(tmp_path, f"def joy(result): return {answer}\n")
    result = swept(tmp_path, measures="own_study:joy", minimize="placed", axes={"seed": [1]})
    assert message in result.rows[0].error
    assert len(result.rows[0].error) < 100


def test_a_plugin_of_the_users_own_that_raises_is_a_run_that_failed(tmp_path: Path) -> None:
    write_module(tmp_path, RAISING)
    plugins = {"multiPoint": {"enabled": [{"name": "Raising", "weight": 1}]}}
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "profiles": [{"plugins": plugins}]}
    result = swept(tmp_path, plugins=["own_study:Raising"], config=config, axes=None)
    assert result.rows[0].error == "pod default/p2: plugin 'Raising' failed: RuntimeError: no luck"


def test_a_plugin_that_raises_in_a_timeline_is_a_run_that_failed(tmp_path: Path) -> None:
    write_module(tmp_path, RAISING)
    plugins = {"multiPoint": {"enabled": [{"name": "Raising", "weight": 1}]}}
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "profiles": [{"plugins": plugins}]}
    (tmp_path / "events.jsonl").write_text(json.dumps({"time": 1, "event": "add", "object": pod_of("late")}))
    timeline: dict[str, Any] = {"events": "events.jsonl", "until": "2m", "minimize": "mean_wait"}
    result = swept(tmp_path, plugins=["own_study:Raising"], config=config, axes=None, **timeline)
    assert result.rows[0].error == "pod default/p2: plugin 'Raising' failed: RuntimeError: no luck"


RAISING = """
import numpy as np
from podium import ScorePlugin

class Raising(ScorePlugin):
    name = "Raising"

    def score(self, state, pod, nodes):
        if pod.name == "p2":
            raise RuntimeError("no luck")
        return np.zeros(len(nodes.names), dtype=np.int64)
"""


def test_results_do_not_go_into_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(InputError, match="out: is not a directory"):
        swept(tmp_path)


def test_optuna_finds_the_best_and_the_same_again(tmp_path: Path) -> None:
    axes = {STRATEGY: ["LeastAllocated", "MostAllocated"], WEIGHT: {"from": 1, "to": 100, "log": True}, "seed": [1, 2]}
    fields: dict[str, Any] = {"axes": axes, "search": {"method": "optuna", "trials": 20, "seed": 4}}
    result = swept(tmp_path, **fields)
    # What is suggested twice is run once: every point has as many runs as there are seeds.
    assert {len(group.rows) for group in result.groups} == {2}
    assert len(result.rows) <= 40
    assert [row.number for row in result.rows] == [*range(1, len(result.rows) + 1)]
    assert result.best is not None
    assert result.best.spread("nodes_in_use").mean == 1
    (tmp_path / "out" / "journal.jsonl").unlink()
    assert swept(tmp_path, **fields) == result


def test_timelines_measure_waits_and_evictions(tmp_path: Path) -> None:
    event = '{"time": %d, "event": "add", "lifetime": 60, "object": {"apiVersion": "v1", "kind": "Pod", "metadata": '
    event += '{"name": "t%d"}, "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": '
    event += '"3"}}}]}}}\n'
    (tmp_path / "events.jsonl").write_text("".join(event % (n, n) for n in range(6)))
    result = swept(tmp_path, events="events.jsonl", axes={"seed": [1]}, minimize="mean_wait")
    (row,) = result.rows
    assert row.numbers["placed"] == 10
    assert row.numbers["longest_wait"] > 50


def test_the_cheapest_configuration_of_a_cluster_that_shrinks_is_found(tmp_path: Path) -> None:
    """Tasks that come every five minutes and keep their node: spread over two nodes they keep both."""
    template = {"status": {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}}}
    group = {"name": "pool", "maxSize": 2, "pricePerHour": 1.0, "template": template}
    (tmp_path / "groups.yaml").write_text(yaml.safe_dump({"groups": [group]}))
    events = [{"time": 300 * n, "event": "add", "object": pod_of(f"t{n}"), "lifetime": 540} for n in range(12)]
    (tmp_path / "events.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in events))
    there = [node(name, labels={"podium/node-group": "pool"}) for name in "ab"]
    written(tmp_path / "there.json", *there)
    result = swept(
        tmp_path,
        cluster="there.json",
        events="events.jsonl",
        nodeGroups="groups.yaml",
        until=3600,
        minimize="cost",
        search={"method": "optuna", "trials": 6},
        axes={STRATEGY: ["LeastAllocated", "MostAllocated"], WEIGHT: {"from": 1, "to": 50}},
    )
    assert result.best is not None
    assert result.best.point[STRATEGY] == "MostAllocated"
    costs = {row.point[STRATEGY]: row.numbers["cost"] for row in result.rows}
    assert costs["MostAllocated"] < costs["LeastAllocated"] == 2.0


def test_the_command_writes_everything_and_names_the_best(tmp_path: Path) -> None:
    out = tmp_path / "results"
    done = run("sweep", write_sweep(tmp_path), "--jobs", "1", "--out", out)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith(f"Best: {STRATEGY}=MostAllocated, {WEIGHT}=1\nIt has the lowest nodes_in_use: 1 ± 0")
    assert sorted(path.name for path in out.iterdir()) == [
        "journal.jsonl",
        "plot.svg",
        "rows.csv",
        "rows.parquet",
        "summary.csv",
    ]
    assert (out / "plot.svg").read_text().count("<rect") == 1 + 4 + 2


def test_a_plot_that_cannot_be_drawn_is_a_warning_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(result: SweepResult) -> str:
        raise IndexError("tuple index out of range")

    monkeypatch.setattr("podium.present.plot.sweep_plot", fail)
    done = run("sweep", write_sweep(tmp_path), "--jobs", "1", "--out", tmp_path / "results")
    assert (done.exit_code, done.stdout.startswith("Best: ")) == (0, True)
    assert "warning: plot.svg is left out: IndexError: tuple index out of range" in done.stderr
    assert (tmp_path / "results" / "rows.parquet").exists()


def test_the_result_has_the_formats_of_every_answer(tmp_path: Path) -> None:
    file, out = write_sweep(tmp_path), tmp_path / "results"
    shown = {
        form: run("sweep", file, "--jobs", "1", "--out", out, "-o", form).stdout
        for form in ("table", "wide", "json", "yaml", "csv")
    }

    assert shown["csv"] == (out / "rows.csv").read_text()
    assert yaml.safe_load(shown["yaml"]) == json.loads(shown["json"])
    assert json.loads(shown["json"])["kind"] == "Sweep"
    assert shown["wide"] == shown["table"]


def test_the_command_says_which_runs_failed(tmp_path: Path) -> None:
    write_module(tmp_path, FAILING % str(tmp_path))
    file = write_sweep(tmp_path, prepare="own_study:prepare", axes={"seed": [1, 2]}, minimize="placed")
    done = run("sweep", file, "--jobs", "1", "--out", tmp_path / "results")
    assert done.exit_code == 1
    assert "warning: run 2 (seed=2) failed: own_study:prepare failed: RuntimeError: no luck" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dask", "tcp://127.0.0.1:1"], "no Dask scheduler can be reached at tcp://127.0.0.1:1"),
        (["--dask", "nowhere", "--jobs", "2"], "cannot be used with --dask"),
    ],
)
def test_workers_that_cannot_be_had_are_one_line(
    tmp_path: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podium.sweep.running.CONNECT_WITHIN", 1)
    done = run("sweep", write_sweep(tmp_path), "--out", tmp_path / "o", *arguments)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr


def test_processes_that_do_not_start_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**options: Any) -> None:
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr("distributed.LocalCluster", fail)
    with pytest.raises(InputError, match="2 processes could not be started: Nanny failed"):
        local_processes(2).__enter__()


def test_the_fields_of_the_document_are_documented(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "output.md").read_text()
    section = page.partition("\n## Sweep\n")[2].partition("\n## ")[0]
    documented = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    assert documented == sweep_document(swept(tmp_path)).keys() - {"apiVersion", "kind"}


@pytest.mark.parametrize(
    ("fields", "lines"),
    [
        ({"axes": None}, ["Best: the only run", "It has the lowest nodes_in_use: 3 over 1 run."]),
        (
            {"axes": {"seed": [1, 2]}},
            ["Best: the only point; runs differ in their seed", "It has the lowest nodes_in_use: 3 ± 0 over 2 runs."],
        ),
        (
            {"axes": {WEIGHT: [1, 2, 3]}, "minimize": "pending"},
            [f"Best: {WEIGHT}=1", "It has the lowest pending: 0 over 1 run.", "2 other points are as good."],
        ),
    ],
)
def test_the_best_is_named_with_those_that_are_as_good(
    tmp_path: Path, fields: dict[str, Any], lines: list[str]
) -> None:
    shown = [line.text for line in sweep_lines(swept(tmp_path, **fields), "out")]
    assert shown[: len(lines)] == lines
    assert shown[len(lines)] == ""


def test_rounding_is_no_spread() -> None:
    rows = tuple(Row(n, {"seed": str(n)}, {"m": 0.1 + 0.2 if n else 0.3}) for n in range(3))
    result = SweepResult(("seed",), rows, Goal("m", is_highest=False))
    assert sweep_lines(result, "out")[1].text == "It has the lowest m: 0.3 ± 0 over 3 runs."
