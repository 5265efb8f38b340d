"""Points of a sweep, the configuration of each, and means over seeds."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from podium.config import Profile
from podium.engine.release import release_of
from podium.plugins import IN_TREE
from podium.sweep._inputs import configured
from podium.sweep._spec import Axis, Goal, RangeAxis, Space
from podium.sweep._sweeping import Group, Row, Spread, SweepResult
from podium.sweep.running import described

KIND = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def numbers(low: float, high: float, step: float | None = None, **fields: Any) -> RangeAxis:
    return RangeAxis("x", low, high, step, **({"log": False, "whole": True} | fields))


def axis(name: str, *values: Any) -> Axis:
    return Axis(name, {str(value): value for value in values})


def enabling(point: str, *plugins: dict[str, Any]) -> dict[str, Any]:
    return KIND | {"profiles": [{"plugins": {point: {"enabled": list(plugins)}}}]}


@pytest.mark.parametrize(
    ("name", "document", "settings", "profile"),
    [
        (
            "a weight that the profile does not set",
            None,
            {"weight.A": 3},
            {"plugins": {"multiPoint": {"enabled": [{"name": "A", "weight": 3}]}}},
        ),
        (
            "a weight at score comes first",
            enabling("score", {"name": "A", "weight": 1}),
            {"weight.A": 3},
            {"plugins": {"score": {"enabled": [{"name": "A", "weight": 3}]}}},
        ),
        (
            "an argument inside another",
            None,
            {"args.A.b.c": 1, "args.A.d": 2},
            {"pluginConfig": [{"name": "A", "args": {"b": {"c": 1}, "d": 2}}]},
        ),
        (
            "a weight where sections are null",
            KIND | {"profiles": [{"plugins": {"score": None, "multiPoint": {"enabled": None}}}]},
            {"weight.A": 3},
            {"plugins": {"score": None, "multiPoint": {"enabled": [{"name": "A", "weight": 3}]}}},
        ),
        (
            "an argument where sections are null",
            KIND | {"profiles": [{"plugins": None, "pluginConfig": [{"name": "A", "args": {"b": None}}]}]},
            {"args.A.b.c": 1},
            {"plugins": None, "pluginConfig": [{"name": "A", "args": {"b": {"c": 1}}}]},
        ),
        (
            "the seed of the run",
            KIND | {"profiles": [{"pluginConfig": [{"name": "A", "args": {"s": ["$seed", "x"]}}]}]},
            {},
            {"pluginConfig": [{"name": "A", "args": {"s": [7, "x"]}}]},
        ),
    ],
)
def test_the_configuration_of_a_run(name: str, document: Any, settings: dict[str, Any], profile: Any) -> None:
    before = repr(document)
    assert configured(document, settings, 7) == KIND | {"profiles": [profile]}
    assert repr(document) == before


def test_a_weight_is_set_where_the_version_of_the_configuration_has_its_default() -> None:
    old = {"apiVersion": "kubescheduler.config.k8s.io/v1beta2", "kind": "KubeSchedulerConfiguration"}
    found = configured(old, {"weight.NodeResourcesFit": 3}, 0)
    assert found is not None
    weights = {ref.name: ref.weight for ref in parsed(found).points["score"]}

    assert found["profiles"] == [{"plugins": {"score": {"enabled": [{"name": "NodeResourcesFit", "weight": 3}]}}}]
    assert (weights["NodeResourcesFit"], weights["NodeAffinity"]) == (3, 1)


def parsed(document: dict[str, Any]) -> Profile:
    """The first profile, as v1.29 reads it."""
    return release_of("v1.29").set_up(document, registry=IN_TREE).config.profiles[0]


def test_the_default_configuration_is_none() -> None:
    assert configured(None, {}, 7) is None


def test_settings_hold_for_every_profile() -> None:
    found = configured(KIND | {"profiles": [{"schedulerName": "a"}, None]}, {"args.A.b": 1}, 0)
    assert found is not None
    assert [profile["pluginConfig"] for profile in found["profiles"]] == [[{"name": "A", "args": {"b": 1}}]] * 2


@pytest.mark.parametrize(
    ("given", "labels", "drawable"),
    [
        (numbers(1, 5, 2), ["1", "3", "5"], 3),
        (numbers(1, 4, 2), ["1", "3"], 2),
        (numbers(0, 1, 0.5, whole=False), ["0.0", "0.5", "1.0"], 3),
        (numbers(2, 2, 1), ["2"], 1),
    ],
)
def test_the_numbers_of_a_range(given: RangeAxis, labels: list[str], drawable: float) -> None:
    assert list(given.values) == labels
    assert given.drawable == drawable


def test_what_is_drawn_of_a_range_stays_inside() -> None:
    rng = random.Random(1)
    whole = {int(numbers(1, 4, None).drawn(rng)) for _ in range(200)}
    tiny = [float(numbers(0.001, 1, None, log=True, whole=False).drawn(rng)) for _ in range(200)]
    assert whole == {1, 2, 3, 4}
    assert all(0.001 <= number <= 1 for number in tiny)
    # On a logarithmic scale a third of the numbers is below 0.01.
    assert 40 < sum(number < 0.01 for number in tiny) < 95
    assert numbers(1, 4, None).drawable == 4
    assert numbers(0, 1, None, whole=False).drawable == math.inf


def test_a_suggested_number_is_one_of_the_axis() -> None:
    optuna = pytest.importorskip("optuna")
    given = numbers(0.0, 0.9, 0.1, whole=False)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    assert {given.suggested(study.ask()) for _ in range(200)} == {*given.values}


SPACE = Space((axis("a", "p", "q"), axis("seed", 1, 2), axis("b", "x", "y")))


def test_a_grid_has_every_combination_in_order() -> None:
    grid = list(SPACE.grid())
    assert len(grid) == 8
    assert grid[:3] == [
        {"a": "p", "seed": "1", "b": "x"},
        {"a": "p", "seed": "1", "b": "y"},
        {"a": "p", "seed": "2", "b": "x"},
    ]


@pytest.mark.parametrize(("number", "points"), [(1, 1), (3, 3), (4, 4), (100, 4)])
def test_drawn_points_differ_and_have_all_seeds(number: int, points: int) -> None:
    drawn = list(SPACE.drawn(number, seed=5))
    assert len({(point["a"], point["b"]) for point in drawn}) == points
    assert [point["seed"] for point in drawn] == ["1", "2"] * points
    assert drawn == list(SPACE.drawn(number, seed=5))


def test_a_point_without_seeds_has_none() -> None:
    space = Space((axis("a", "p"),))
    assert list(space.with_seeds({"a": "p"})) == [{"a": "p"}]
    assert (space.value({"a": "p"}, "a"), space.value({"a": "p"}, "b")) == ("p", None)


def group(*values: float) -> Group:
    return Group({}, tuple(Row(n, {}, {"m": value}) for n, value in enumerate(values)), 0)


@pytest.mark.parametrize(
    ("values", "spread"),
    [
        ((4.0,), Spread(4, 0)),
        ((1.0, 3.0), Spread(2, math.sqrt(2))),
        ((5.0, 5.0), Spread(5, 0)),
        ((0.7,) * 3, Spread(0.7, 0)),
    ],
)
def test_mean_and_deviation(values: tuple[float, ...], spread: Spread) -> None:
    assert group(*values).spread("m") == pytest.approx(spread)
    assert spread.deviation or group(*values).spread("m") == spread
    assert all(map(math.isnan, group(*values).spread("other")))


@pytest.mark.parametrize(("is_highest", "order"), [(False, ["q", "p", "r"]), (True, ["p", "r", "q"])])
def test_groups_are_ranked_by_their_mean(is_highest: bool, order: list[str]) -> None:
    values = {("p", "1"): 2.0, ("p", "2"): 4.0, ("q", "1"): 1.0, ("r", "1"): 3.0}
    rows = [Row(n, {"a": a, "seed": seed}, {"m": value}) for n, ((a, seed), value) in enumerate(values.items())]
    broken = Row(9, {"a": "s", "seed": "1"}, {}, "failed")
    result = SweepResult(("a", "seed"), (*rows, broken), Goal("m", is_highest))

    assert [each.point["a"] for each in result.ranked] == order
    assert result.best is not None
    assert result.best.point == {"a": order[0]}
    assert [(each.point["a"], each.failed) for each in result.groups][-1] == ("s", 1)
    assert result.failed == (broken,)


def test_a_run_in_a_message() -> None:
    assert described({"config": "FGD", "seed": "3"}) == "config=FGD, seed=3"
    assert described({}) == "the only run"


def test_control_characters_of_labels_and_errors_are_escaped_in_csv() -> None:
    rows = (Row(1, {"a": "x\x1b[31m"}, {"m": 1}), Row(2, {"a": "y"}, {}, "failed\r\nhere"))
    found = SweepResult(("a",), rows, Goal("m", is_highest=False))

    assert found.to_csv().splitlines() == ["run,a,m,error", "1,x\\x1b[31m,1,", "2,y,,failed\\r\\nhere"]
    assert found.summary_csv().splitlines()[1].startswith("1,x\\x1b[31m,")
