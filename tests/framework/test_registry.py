from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, EntryPoints
from types import ModuleType

import pytest

from podium.errors import InputError
from podium.framework import FilterPlugin, Plugin, PreFilterPlugin, Registry, ScorePlugin, registry
from podium.rules import NEWEST_RULES


class Mine(FilterPlugin, ScorePlugin):
    name = "Mine"


class Other(PreFilterPlugin):
    name = "Other"


class Twin(ScorePlugin):
    name = "Mine"


class Nameless(ScorePlugin):
    pass


def test_plugins_are_found_by_name_with_the_points_they_serve() -> None:
    known = Registry((Mine, Other))
    assert known["Mine"] is Mine
    assert known.points_in(NEWEST_RULES) == {"Mine": {"filter", "score"}, "Other": {"preFilter"}}


def test_the_same_plugin_may_come_twice() -> None:
    assert list(Registry((Mine, Mine))) == ["Mine"]


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (Twin, "plugin 'Mine' is registered twice; give one of them another name"),
        (Nameless, "plugin class Nameless has no name; set its class attribute `name`"),
        (dict, "is not a plugin; derive it from podium's FilterPlugin, ScorePlugin"),
        (Mine(), "is not a plugin; derive it from podium's FilterPlugin, ScorePlugin"),
    ],
)
def test_what_cannot_be_registered(plugin: type[Plugin], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Registry((Mine,)).register(plugin)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ModuleType("third_party")
    made.Other = Other  # type: ignore[attr-defined]
    made.number = 1  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "third_party", made)


@pytest.mark.usefixtures("module")
def test_plugins_named_by_path_are_added() -> None:
    known = Registry((Mine,))
    assert set(known.with_installed(["third_party:Other"])) == {"Mine", "Other"}
    assert set(known) == {"Mine"}


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("third_party", "--plugin: plugin 'third_party' is not of the form module:Class"),
        (":Other", "is not of the form module:Class"),
        ("unheard_of:Other", "plugin module 'unheard_of' cannot be imported: No module named 'unheard_of'"),
        ("third_party:Missing", "module 'third_party' has no class 'Missing'"),
        ("third_party:number", "1 is not a plugin"),
    ],
)
def test_paths_that_lead_nowhere(path: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Registry().with_installed([path])


@pytest.mark.usefixtures("module")
def test_installed_packages_offer_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    def entry_points(group: str) -> EntryPoints:
        assert group == "podium.plugins"
        return EntryPoints([EntryPoint("other", "third_party:Other", group)])

    monkeypatch.setattr(registry, "entry_points", entry_points)
    assert Registry().with_installed()["Other"] is Other
