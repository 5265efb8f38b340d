"""Input without an end, or of no use: refused in one line that names it, soon and in little memory."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from podium import input_files

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


BOMBED: dict[str, list[str]] = {
    "objects": ["simulate", "-f", "BOMB"],
    "a configuration": ["simulate", "-f", EXAMPLE, "--config", "BOMB"],
    "a timeline": ["simulate", "-f", EXAMPLE, "--timeline", "BOMB"],
    "groups of nodes": ["simulate", "-f", EXAMPLE, "--timeline", "EVENTS", "--node-groups", "BOMB"],
    "a table": ["import", "openb", "BOMB", "BOMB", "--out", "OUT"],
    "msgpack": ["import", "simkube", "BOMB", "--out", "OUT"],
}


@pytest.mark.parametrize("arguments", BOMBED.values(), ids=BOMBED)
def test_gzip_bombs_meet_the_limit(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_files, "MOST_UNPACKED", 1 << 20)
    bomb, events = tmp_path / "bomb.gz", tmp_path / "events.jsonl"
    begin = b"{"
    if "simkube" in arguments:
        begin = b"\x81\xa1a\xda\xff\xff"
    elif "openb" in arguments:
        begin = b"sn,cpu_milli,memory_mib,gpu,model\n"
    bomb.write_bytes(gzip.compress(begin + b"\n" * (4 << 20)))
    events.write_text("")
    names = {"BOMB": str(bomb), "EVENTS": str(events), "OUT": str(tmp_path / "out")}
    result = run(*(names.get(each, each) for each in arguments))

    assert result.exit_code == 2
    assert f"{bomb}: has more than the 1,048,576 bytes that are read; allow more with --max-input" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("special", ["a named pipe", "/proc/cpuinfo", "/dev/null"])
def test_special_files_are_refused_and_not_waited_for(special: str, arguments: list[str], tmp_path: Path) -> None:
    name = special
    if special == "a named pipe":
        name = str(tmp_path / "pipe")
        os.mkfifo(name)
    names = {ENDLESS: name, "OUT": str(tmp_path / "out")}
    result = run(*(names.get(each, each) for each in arguments))

    assert result.exit_code == 2
    assert result.stderr.startswith(f"podium: {name}")
    assert "not a regular file" in result.stderr or "belongs to the kernel" in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_output_of_a_command_is_read_like_a_file() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as file:
        file.write('{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}')
    try:
        result = run("simulate", "-f", f"/dev/fd/{reading}")
    finally:
        os.close(reading)
    assert result.exit_code == 0


def test_a_file_that_is_larger_than_allowed(tmp_path: Path) -> None:
    file = written(tmp_path / "input.json", node())
    result = run("simulate", "-f", file, "--max-input", "10")

    assert result.exit_code == 2
    assert f"{file}: has more than the 10 bytes" in result.stderr
