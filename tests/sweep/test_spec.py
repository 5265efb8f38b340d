"""What a sweep file may say, and how it is refused: the file, the line and the field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podium.errors import InputError
from podium.sweep import load_inputs, read_sweep, run_count
from sweep.sweep_files import WEIGHT, write_sweep

KIND = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def test_a_grid_has_every_combination_and_seeds_last(tmp_path: Path) -> None:
    spec = read_sweep(write_sweep(tmp_path))
    points = [tuple(point.values()) for point in spec.space.grid()]
    assert points == [
        (strategy, weight, seed)
        for strategy in ("LeastAllocated", "MostAllocated")
        for weight in ("1", "50")
        for seed in ("1", "2")
    ]
    assert run_count(spec) == 8


def test_random_points_are_different_and_the_same_for_a_seed(tmp_path: Path) -> None:
    axes = {"weight.NodeResourcesFit": {"from": 1, "to": 100, "log": True}, "seed": [5, 6]}
    spec = read_sweep(write_sweep(tmp_path, axes=axes, search={"method": "random", "trials": 7}))
    points = list(spec.space.drawn(7, 3))
    assert points == list(spec.space.drawn(7, 3))
    assert [point["seed"] for point in points] == ["5", "6"] * 7
    weights = [int(point["weight.NodeResourcesFit"]) for point in points[::2]]
    assert len({*weights}) == 7
    assert all(1 <= weight <= 100 for weight in weights)


def test_a_space_with_few_points_has_no_more(tmp_path: Path) -> None:
    spec = read_sweep(write_sweep(tmp_path, axes={"weight.NodeResourcesFit": [1, 2]}, search="random"))
    assert sorted(point["weight.NodeResourcesFit"] for point in spec.space.drawn(50, 0)) == ["1", "2"]


def test_all_points_of_a_small_space_are_drawn_without_going_on(tmp_path: Path) -> None:
    search = {"method": "random", "trials": 1_000_000}
    axes = {WEIGHT: {"from": 1, "to": 3, "log": True}}
    spec = read_sweep(write_sweep(tmp_path, axes=axes, search=search))
    # A hundred million draws would take minutes.
    assert sorted(point[WEIGHT] for point in spec.space.drawn(1_000_000, 0)) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({"axis": {}}, "line 13: axis: is not a field here; there are axes, cluster", id="unknown field"),
        pytest.param({"axis": {}}, ", plugins, prepare, measures, until", id="all fields"),
        pytest.param({"axes": {"weight.NodeName": [1, 2]}}, "plugin 'NodeName' does not score", id="no score"),
        pytest.param({"axes": {"args.ImageLocality.x": [1]}}, "'ImageLocality' takes no arguments", id="no arguments"),
        pytest.param(
            {"axes": {WEIGHT: {"from": 1, "to": 8, "log": True}}},
            f"line 7: axes.{WEIGHT}.log: is for random and optuna searches; a grid goes by `step`",
            id="grid on a logarithmic scale",
        ),
        pytest.param(
            {"search": {"method": "grid", "trials": 5}}, "search.trials: is for random and", id="grid, trials"
        ),
        pytest.param(
            {"axes": {"config": {"": "c.yaml"}}}, "line 4: axes.config: has a value without a name", id="name"
        ),
        pytest.param({"release": 1.3}, "as the number 1.3: put it in quotes", id="release without quotes"),
        pytest.param({"trace": {"foo": ["a", "b"]}}, "trace: format 'foo' is unknown; use openb", id="unknown format"),
        pytest.param({"axes": {"seed": {"from": 3, "ot": 5}}}, "line 6: axes.seed.ot: is not a field", id="misspelt"),
        pytest.param(
            {"axes": {WEIGHT: {"from": 1, "to": 9, "step": 2, "log": True}}, "search": "random"},
            f"line 7: axes.{WEIGHT}.step: stands next to `log`",
            id="steps on a logarithmic scale",
        ),
        pytest.param({"search": {"metod": "random"}}, "search.metod: is not a field here; there are m", id="metod"),
        pytest.param({"axes": {"nodeGroups": {"a": "b"}}}, "line 4: axes.nodeGroups: are for timelines", id="groups"),
        pytest.param({"axes": {"weather": [1]}}, "line 4: axes.weather: cannot be varied; use", id="unknown axis"),
        pytest.param({"axes": {"seed": []}}, "line 4: axes.seed: needs a list of values", id="no values"),
        pytest.param({"axes": {"seed": [1, 1]}}, "line 4: axes.seed: has a value twice", id="a value twice"),
        pytest.param({"axes": {"seed": [-1]}}, "axes.seed: is -1; a seed is a whole number", id="negative seed"),
        pytest.param({"axes": {"seed": [True]}}, "axes.seed: is True; a seed is a whole number", id="truth as a seed"),
        pytest.param({"axes": {WEIGHT: [0]}}, "is 0; a weight is a whole number from 1 on", id="weight 0"),
        pytest.param({"axes": {WEIGHT: [2, 1.5]}}, "is 1.5; a weight is a whole number", id="half a weight"),
        pytest.param({"axes": {WEIGHT: {"from": -2, "to": 3}}}, "is -2; a weight is a whole", id="negative weight"),
        pytest.param({"axes": {"weight.Nope": [1]}}, "axes.weight.Nope: plugin 'Nope' does not exist", id="weighed"),
        pytest.param({"axes": {"args.Nope.x": [1]}}, "axes.args.Nope.x: plugin 'Nope' does not exist", id="no plugin"),
        pytest.param({"cluster": []}, "line 1: cluster: is empty; it needs a file", id="no files"),
        pytest.param({"axes": {"seed": {"from": 3, "to": 1}}}, "line 6: axes.seed.to: is 1, less than", id="order"),
        pytest.param({"axes": {"seed": {"from": 3}}}, "line 4: axes.seed.to: needs a number", id="half a range"),
        pytest.param({"axes": {"seed": {"from": 0, "to": 9, "step": 0}}}, "axes.seed.step: is 0; it needs", id="step"),
        pytest.param(
            {"axes": {"args.X.y": {"from": 0.5, "to": 1.5}}}, "axes.args.X.y: needs a `step` for a grid", id="grid"
        ),
        pytest.param(
            {"axes": {"args.X.y": {"from": 0, "to": 1, "log": True}}}, "from: is 0; on a logarithmic", id="logarithm"
        ),
        pytest.param({"axes": {WEIGHT: {"from": 1, "to": 2, "step": 1e-300}}}, "far too many runs; 1", id="tiny steps"),
        pytest.param(
            {"axes": {"seed": {"from": 0, "to": 1e308, "step": 1e-300}}}, "to: is 1e+308; that is too far", id="range"
        ),
        pytest.param({"search": {"method": "random", "trials": 1e300}}, "search.trials: is 1e+300; 1,0", id="trials"),
        pytest.param({"minimize": "joy"}, "line 2: minimize: no run has a measure 'joy'; they have", id="no measure"),
        pytest.param({"axes": {"seed": {"from": 0, "to": 10**7}}}, "come to 10,000,001 runs", id="too many"),
        pytest.param(
            {"axes": {"cluster": ["cluster.json"]}}, "line 1: cluster: is an axis as well", id="fixed, varied"
        ),
        pytest.param({"axes": {"release": ["v9.9"]}}, "axes.release: release 'v9.9' is unknown", id="release"),
        pytest.param({"tieBreak": "coin"}, "tieBreak: tie-break 'coin' is unknown", id="tie-break"),
        pytest.param({"search": "luck"}, "search: is 'luck'; use grid, random, optuna", id="search"),
        pytest.param({"search": {"method": "random", "trials": 0}}, "search.trials: is 0; it", id="no trials"),
        pytest.param({"maximize": "placed"}, "maximize: stands next to `minimize`", id="two goals"),
        pytest.param({"cluster": None}, "line 1: needs a `cluster` or a `trace`", id="no cluster"),
        pytest.param({"cluster": "nope.json"}, "line 1: cluster: ", id="no such file"),
        pytest.param({"cluster": "$NOPE_X/a"}, "cluster: $NOPE_X/a names an environment variable", id="variable"),
        pytest.param({"trace": {"openc": []}}, "trace: format 'openc' is unknown; use openb", id="trace format"),
        pytest.param({"trace": "x.csv"}, "trace: needs a format and its files", id="trace without format"),
        pytest.param({"until": 5}, "until: is for timelines", id="until"),
        pytest.param({"until": "soon"}, "until: is 'soon'; it needs a duration such as 10m", id="no duration"),
        pytest.param({"until": -1}, "until: is -1; it needs a duration such as 10m", id="negative duration"),
        pytest.param({"run": "timeline"}, "run: is timeline; it needs `events` or a `trace`", id="no events"),
        pytest.param({"events": "e.jsonl", "run": "simulation"}, "events: are for timelines", id="events"),
        pytest.param({"plugins": ["nope_x:Y"]}, "plugins: plugin module 'nope_x'", id="plugin"),
        pytest.param({"prepare": "nope_x:y"}, "prepare: module 'nope_x' cannot be imported", id="prepare"),
        pytest.param({"measures": ["os:nope_x"]}, "measures: module 'os' has no function 'nope_x'", id="measure"),
        pytest.param({"config": {"kind": "X"}}, "config: ", id="configuration"),
        pytest.param(
            {"axes": {WEIGHT: [2], "config": {"a": KIND, "b": KIND | {"profiles": 5}}}},
            "axes.config.b: profiles",
            id="a configuration that no weight can be set in",
        ),
        pytest.param(
            {"axes": {"args.NodeResourcesFit.nope": [1]}},
            "line 4: axes.args.NodeResourcesFit.nope.1: unknown field",
            id="arguments",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_runs(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    file = write_sweep(tmp_path, **fields)
    with pytest.raises(InputError) as caught:
        load_inputs(read_sweep(file))
    assert str(caught.value).startswith(f"{file} line ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("given", "seconds"), [(90, 90), (0.5, 0.5), ("2h", 7200), ("1m30s", 90), (None, None)])
def test_until_is_a_duration_or_seconds(tmp_path: Path, given: Any, seconds: float | None) -> None:
    assert read_sweep(write_sweep(tmp_path, run="timeline", events="e.jsonl", until=given)).until == seconds


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        ({"from": 0, "to": 1, "step": 0.5}, ["0.0", "0.5", "1.0"]),
        ({"from": 0, "to": 2}, ["0", "1", "2"]),
        ({"from": 0.0, "to": 0.3, "step": 0.1}, ["0.0", "0.1", "0.2", "0.3"]),
        ({"from": 0.1, "to": 0.7, "step": 0.2}, ["0.1", "0.3", "0.5", "0.7"]),
        ({"from": 1e-05, "to": 3e-05, "step": 1e-05}, ["1e-05", "2e-05", "3e-05"]),
        ({"from": 0.5, "to": 2.5, "step": 1}, ["0.5", "1.5", "2.5"]),
        ([True, False], ["true", "false"]),
        (["a", 1, 0.5], ["a", "1", "0.5"]),
    ],
)
def test_the_values_of_an_axis(tmp_path: Path, given: Any, labels: list[str]) -> None:
    spec = read_sweep(write_sweep(tmp_path, axes={"args.NodeResourcesFit.x": given}))
    assert [*spec.space.axes[0].values] == labels


@pytest.mark.parametrize("text", ["", "[1, 2]", "a: 1\n---\nb: 2\n", "a: [", "- \x00"])
def test_what_is_no_sweep_file_is_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        read_sweep(str(file))
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "place"),
    [({"config": "bad.yaml"}, "line 13: config"), ({"axes": {"config": ["bad.yaml"]}}, "line 4: axes.config.bad.yaml")],
)
def test_a_bad_configuration_is_named_with_its_file(tmp_path: Path, fields: dict[str, Any], place: str) -> None:
    (tmp_path / "bad.yaml").write_text("apiVersion: kubescheduler.config.k8s.io/v1\nprofiles: [{foo: 1}]\n")
    file = write_sweep(tmp_path, **fields)
    with pytest.raises(InputError) as caught:
        load_inputs(read_sweep(file))
    assert str(caught.value) == f'{file} {place}: bad.yaml: unknown field "profiles[0].foo"'
