"""The README shows what the commands print, and its Chinese version has the same commands and outputs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.running import run

ROOT = Path(__file__).parent.parent
README, CHINESE = (ROOT / "README.md").read_text(), (ROOT / "README.zh.md").read_text()
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
COMMANDS = [block for block in CONSOLE.findall(README) if block.startswith("$ podium")]


def test_the_chinese_version_has_the_same_commands_and_outputs() -> None:
    indented = re.compile(r"^    (?:make|podium|kubectl) [^#\n]*", re.MULTILINE)

    assert CONSOLE.findall(CHINESE) == CONSOLE.findall(README)
    assert [line.strip() for line in indented.findall(CHINESE)] == [line.strip() for line in indented.findall(README)]


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clusters")
    for name in ("shop", "fleet"):
        (folder / f"{name}.yaml").write_text(run("example", name).stdout)
    return folder


@pytest.mark.parametrize("block", COMMANDS, ids=[block.splitlines()[0] for block in COMMANDS])
def test_shows_what_commands_print(block: str, clusters: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(clusters)
    command, _, shown = block.partition("\n")

    printed = run(*command.split()[2:]).stdout

    assert printed.startswith(shown.rstrip("\n"))


def test_shows_how_the_demo_begins() -> None:
    (begins,) = (block for block in CONSOLE.findall(README) if not block.startswith("$"))

    assert run("demo").stdout.startswith(begins.rstrip("\n"))
