"""Input without an end, or of no use: refused in one line that names it, soon and in little memory."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from .running import EXAMPLE, node, run, written

ENDLESS = "/dev/zero"
COMMANDS: dict[str, list[str]] = {
    "objects": ["simulate", "-f", ENDLESS],
    "a configuration": ["simulate", "-f", EXAMPLE, "--config", ENDLESS],
    "a timeline": ["simulate", "-f", EXAMPLE, "--timeline", ENDLESS],
    "a state": ["simulate", "--timeline", ENDLESS, "--resume", ENDLESS],
    "groups of nodes": ["simulate", "-f", EXAMPLE, "--timeline", ENDLESS, "--node-groups", ENDLESS],
    "cases": ["decide", "-f", ENDLESS],
    "recordings": ["verify", ENDLESS],
    "a case": ["bench", ENDLESS],
    "a sweep": ["sweep", ENDLESS],
    "a workload": ["capacity", ENDLESS, "-f", EXAMPLE],
    "tables": ["import", "openb", ENDLESS, ENDLESS, "--out", "OUT"],
    "msgpack": ["import", "simkube", ENDLESS, "--out", "OUT"],
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_zeros_without_an_end(arguments: list[str], tmp_path: Path) -> None:
    result = run(*(str(tmp_path / "out") if each == "OUT" else each for each in arguments))

    assert result.exit_code == 2
    assert result.stderr.startswith((f"podium: {ENDLESS}: ", f"podium: {ENDLESS} line 1: "))
    assert result.stderr.count("\n") == 1


def test_a_gzip_bomb(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.json.gz"
    with gzip.open(bomb, "wb", 1) as file:
        file.write(b'{"kind": "List", "items": [')
        for _ in range(40):
            file.write(b" " * (1 << 20))
    result = run("simulate", "-f", bomb, "--max-input", "32Mi")

    assert result.exit_code == 2
    assert result.stderr == (
        f"podium: {bomb}: has more than the 33,554,432 bytes that are read; allow more with --max-input\n"
    )


def test_a_file_that_is_larger_than_allowed(tmp_path: Path) -> None:
    file = written(tmp_path / "input.json", node())
    result = run("simulate", "-f", file, "--max-input", "10")

    assert result.exit_code == 2
    assert f"{file}: has more than the 10 bytes" in result.stderr
