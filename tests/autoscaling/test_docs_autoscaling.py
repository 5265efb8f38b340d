"""docs/autoscaling.md: every block on the page is run, and comes to what it says there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from cli.running import run

PAGE = (Path(__file__).parents[2] / "docs" / "autoscaling.md").read_text()
BLOCKS = re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def _page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory with the files of the page."""
    for _, file, text in BLOCKS:
        if file and file != "log.jsonl":
            (tmp_path / file).write_text(text)
    groups = (tmp_path / "groups.yaml").read_text().replace("expander: price", "consolidateAfter: 30s")
    (tmp_path / "karpenter.yaml").write_text(f"strategy: karpenter\n{groups}")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("console", [text for language, _, text in BLOCKS if language == "console"])
def test_the_commands_write_what_the_page_says(console: str) -> None:
    command, *expected = console.removesuffix("...\n").splitlines()
    done = run(*shlex.split(command.removeprefix("$ podium ")))
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[: len(expected)] == expected


def test_the_log_says_when_and_why() -> None:
    run("simulate", "--timeline", "events.jsonl", "--node-groups", "groups.yaml", "--until", "2h", "--log", "log.jsonl")
    (log,) = (text for _, file, text in BLOCKS if file == "log.jsonl")
    assert [line for line in Path("log.jsonl").read_text().splitlines() if '"scale-' in line] == log.splitlines()


def test_the_sweep_finds_the_cheaper_strategy() -> None:
    done = run("sweep", "sweep.yaml", "--jobs", "1", "--out", "results")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("Best: nodeGroups=karpenter\nIt has the lowest cost: 1.25 over 1 run.")


def test_the_python_on_the_page_runs() -> None:
    (snippet,) = (text for language, _, text in BLOCKS if language == "python")
    names: dict[str, Any] = {}
    exec(compile(snippet, "docs/autoscaling.md", "exec"), names)
    assert round(names["result"].scaling["cost"], 2) == 1.44
