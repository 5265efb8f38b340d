"""Running the examples of a page: what a `console` block says a command prints, it prints."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from cli.running import run

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\S+\.yaml)\n")


class Step(NamedTuple):
    """A command after `$`, and what stands below it."""

    command: str
    output: str


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of a page in one language."""
    return [text for found, text in _BLOCK.findall(page.read_text()) if found == language]


def steps(block: str) -> Iterator[Step]:
    """The commands of a console block."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield Step(command, output)


def write_files(page: Path, folder: Path) -> None:
    """Write the YAML blocks that start with a file's name."""
    for block in blocks(page, "yaml"):
        named = _FILE.match(block)
        if named:
            (folder / named[1]).write_text(block)


def folder_of(page: Path, factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that a page shows, and with those that its first console block writes."""
    path = factory.mktemp(page.stem)
    write_files(page, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        assert [output for _, output in outputs(blocks(page, "console")[0])] == [""]
    return path


def outputs(block: str) -> Iterator[tuple[Step, str]]:
    """Every command of a block with what it prints, in the current folder; `echo $?` is the code of the one before."""
    code = 0
    for step in steps(block):
        if step.command == "echo $?":
            yield step, f"{code}\n"
            continue
        command, _, target = step.command.partition(" > ")
        program, *arguments = shlex.split(command)
        assert program == "podium", step.command
        result = run(*arguments)
        assert not result.stderr, f"{step.command}: {result.stderr}"
        code = result.exit_code
        if target:
            Path(target).write_text(result.stdout)
        yield step, "" if target else result.stdout
