from __future__ import annotations

from typing import Any

import pytest

from builders import Fields, make_config
from podium.config import parse_config
from podium.errors import ConfigError, PodiumError
from podium.framework import FilterPlugin, Framework, Plugin, PreFilterPlugin, Registry, ReservePlugin, ScorePlugin
from podium.plugins import IN_TREE
from podium.rules import NEWEST_RULES
from profiles import DEFAULT_FILTERS


class Mine(PreFilterPlugin, FilterPlugin, ScorePlugin, ReservePlugin):
    name = "Mine"


class Picky(ScorePlugin):
    name = "Picky"

    def __init__(self, args: Any = None) -> None:
        super().__init__(args)
        self.limit = args["limit"]


REGISTRY = Registry((*IN_TREE.values(), Mine, Picky))


def framework(**profile: Any) -> Framework:
    config = parse_config(make_config(profile), REGISTRY.points_in(NEWEST_RULES), rules=NEWEST_RULES)
    return Framework(config.profiles[0], REGISTRY, NEWEST_RULES)


def names(plugins: list[Any]) -> list[str]:
    return [plugin.name for plugin in plugins]


def enabled(point: str, *plugins: Fields, disabled: tuple[str, ...] = ()) -> Fields:
    return {point: {"enabled": list(plugins), "disabled": [{"name": name} for name in disabled]}}


def test_the_default_profile_in_kube_schedulers_order() -> None:
    default = framework()
    assert names(default.queue_sort) == ["PrioritySort"]
    assert names(default.filter) == DEFAULT_FILTERS
    weights = {weighted.plugin.name: weighted.weight for weighted in default.score}
    assert weights["TaintToleration"] == 3
    assert weights["NodeResourcesFit"] == 1
    assert names(default.bind) == ["DefaultBinder"]


def test_a_plugin_is_made_once_and_serves_at_all_its_points() -> None:
    made = framework(plugins=enabled("multiPoint", {"name": "Mine", "weight": 4}))
    serving = [made.filter[-1], made.pre_filter[-1], made.reserve[-1], made.score[-1].plugin]
    assert serving == [made.plugins["Mine"]] * 4
    assert made.score[-1].weight == 4


def test_points_can_be_arranged_one_by_one() -> None:
    made = framework(
        plugins=enabled("filter", {"name": "Mine"}, {"name": "NodeName"}, disabled=("*",))
        | enabled("score", {"name": "Mine", "weight": 2}, disabled=("ImageLocality",))
    )
    assert names(made.filter) == ["Mine", "NodeName"]
    scores = [weighted.plugin.name for weighted in made.score]
    assert scores[-1] == "Mine"
    assert "ImageLocality" not in scores


def test_arguments_reach_the_plugin_as_they_stand() -> None:
    args = {"limit": 3, "nested": {"a": [1, 2]}}
    made = framework(plugins=enabled("score", {"name": "Picky"}), pluginConfig=[{"name": "Picky", "args": args}])
    picky = made.plugins["Picky"]
    assert isinstance(picky, Picky)
    assert picky.limit == 3
    assert picky.args == args


def test_a_constructor_that_fails_is_an_error_of_the_configuration() -> None:
    with pytest.raises(ConfigError, match="plugin 'Picky' cannot be set up: 'NoneType' object is not subscriptable"):
        framework(plugins=enabled("score", {"name": "Picky"}))


def test_a_plugin_may_reject_its_arguments_itself() -> None:
    class Strict(ScorePlugin):
        name = "Picky"

        def __init__(self, args: object = None) -> None:
            raise PodiumError("limit must be positive")

    config = parse_config(
        make_config({"plugins": enabled("score", {"name": "Picky"})}),
        REGISTRY.points_in(NEWEST_RULES),
        rules=NEWEST_RULES,
    )
    strict: list[type[Plugin]] = [plugin for plugin in REGISTRY.values() if plugin is not Picky]
    with pytest.raises(PodiumError, match="limit must be positive"):
        Framework(config.profiles[0], Registry((*strict, Strict)), NEWEST_RULES)
