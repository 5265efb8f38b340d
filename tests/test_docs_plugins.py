"""docs/plugins.md: every block on the page is run, and comes to what it says there."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from podium import Cluster, Registry, Scheduler, load
from podium.cli import app
from podium.framework import EXTENSION_POINTS
from podium.framework.registry import ENTRY_POINT_GROUP
from podium.plugins import IN_TREE
from podium.testing import MUST_DEFINE

PAGE = (Path(__file__).parents[1] / "docs" / "plugins.md").read_text()
MODULES = ("cheapest", "cheapest_arrays")


class Block(NamedTuple):
    """A fenced block: its language, the file it is, if it is one, and the text."""

    language: str
    file: str
    text: str


BLOCKS = [Block(*found) for found in re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)]


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with the files of the page; its modules can be imported."""
    for block in BLOCKS:
        if block.file:
            (tmp_path / block.file).write_text(block.text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for module in MODULES:
        sys.modules.pop(module, None)


def test_the_python_on_the_page_runs(page: Path) -> None:
    names: dict[str, object] = {}
    snippets = [block.text for block in BLOCKS if block.language == "python" and not block.file]
    assert len(snippets) == 5
    for snippet in snippets:
        exec(compile(snippet, "docs/plugins.md", "exec"), names)


def test_the_command_on_the_page_writes_what_the_page_says(page: Path) -> None:
    (console,) = (block.text for block in BLOCKS if block.language == "console")
    command, _, expected = console.partition("\n")
    result = CliRunner().invoke(app, shlex.split(command.removeprefix("$ podium ")))
    assert result.output.rstrip() == expected.rstrip()
    assert result.exit_code == 0


def test_the_first_plugin_is_about_thirty_lines() -> None:
    (plugin,) = (block.text for block in BLOCKS if block.file == "cheapest.py")
    assert len([line for line in plugin.splitlines() if line.strip()]) <= 30


def test_both_forms_decide_the_same(page: Path) -> None:
    objects = load("cluster.yaml", "sched.yaml")
    decisions = []
    for module in MODULES:
        plugin = importlib.import_module(module).Cheapest
        cluster = Cluster.from_objects(objects)
        scheduler = Scheduler(cluster, objects.scheduler_config, registry=Registry([*IN_TREE.values(), plugin]))  # type: ignore[arg-type]
        (pod,) = cluster.pending.values()
        decisions.append(scheduler.decide(pod))
    assert decisions[0] == decisions[1]


def test_the_entry_point_on_the_page_is_the_one_that_is_read(page: Path) -> None:
    (toml,) = (tomllib.loads(block.text) for block in BLOCKS if block.language == "toml")
    ((name, path),) = toml["project"]["entry-points"][ENTRY_POINT_GROUP].items()
    assert IN_TREE.with_installed([path])[name].name == name


def test_every_extension_point_is_in_the_table() -> None:
    rows = re.findall(r"^\| `(\w+Plugin)` \| (.*?) \|.*\| `(\w+)` \|$", PAGE, re.MULTILINE)
    assert {point: kind for kind, _, point in rows} == {
        point: kind.__name__ for point, kind in EXTENSION_POINTS.items()
    }
    for _, methods, point in rows:
        assert all(f"`{method}(" in methods for method in MUST_DEFINE.get(point, ("reserve", "unreserve")))
