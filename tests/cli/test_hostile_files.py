"""Every command that reads a file, given one that is of no use: one line that names it, soon, in little memory."""

from __future__ import annotations

import gzip
import json
import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from .running import node, pod, run, written

MOST_SECONDS, MOST_MEMORY = 10, 500 << 20
GOOD, BAD, OUT = "good.json", "bad\x07.json", "out"

ROLES: dict[str, list[str]] = {
    "explain": ["explain", "web", "-f", BAD],
    "explain, its configuration": ["explain", "web", "-f", GOOD, "--config", BAD],
    "why-not": ["why-not", "web", "n1", "-f", BAD],
    "simulate": ["simulate", "-f", BAD, "-o", "json"],
    "simulate, its timeline": ["simulate", "-f", GOOD, "--timeline", BAD],
    "simulate, its state": ["simulate", "--timeline", "events.jsonl", "--resume", BAD],
    "simulate, its node groups": ["simulate", "-f", GOOD, "--timeline", "events.jsonl", "--node-groups", BAD],
    "capacity": ["capacity", "web", "-f", BAD],
    "capacity, its workload": ["capacity", BAD, "-f", GOOD],
    "capacity, its nodes": ["capacity", "web", "-f", GOOD, "--nodes-needed", BAD],
    "drain": ["drain", "n1", "-f", BAD],
    "fail": ["fail", "n1", "-f", BAD],
    "audit": ["audit", "-f", BAD],
    "devices": ["devices", "-f", BAD],
    "compare": ["compare", "-f", BAD, "--release", "v1.33"],
    "compare, a configuration": ["compare", "-f", GOOD, "--config", BAD],
    "compare, a cluster": ["compare", "--cluster", GOOD, "--cluster", BAD],
    "upgrade": ["upgrade", "-f", BAD, "--from", "v1.33"],
    "tune": ["tune", "-f", BAD, "--trials", "1", "--jobs", "1"],
    "sweep": ["sweep", BAD, "--out", OUT],
    "import openb": ["import", "openb", BAD, BAD, "--out", OUT],
    "import simkube": ["import", "simkube", BAD, "--out", OUT],
    "import kwok-record": ["import", "kwok-record", BAD, "--out", OUT],
    "dump": ["dump", "-f", BAD, "-o", OUT],
    "decide": ["decide", "-f", BAD],
    "verify": ["verify", BAD],
    "bench": ["bench", BAD],
    "an old release": ["explain", "web", "-f", GOOD, "--release", "v1.14", "--config", BAD],
}

DEEP = 100_000
CONTENTS: dict[str, bytes] = {
    "nothing": b"",
    "blank lines": b"\n \r\n\t\n",
    "zero bytes": b"\0" * 4096,
    "a program": b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 9,
    "a byte order mark alone": b"\xef\xbb\xbf",
    "UTF-16": '{"kind": "Node"}'.encode("utf-16"),
    "Latin-1": b'{"kind": "Node", "metadata": {"name": "caf\xe9"}}',
    "half a character": b'{"kind": "Node", "metadata": {"name": "\xc3',
    "half an object, lines ending in CRLF": b'{\r\n"kind": "Node",\r\n"metadata": {"na',
    "brackets without an end": b"[" * DEEP,
    "braces without an end": b'{"a":' * DEEP,
    "YAML that nests": b"- " * 5000,
    "YAML that is an anchor of itself": b"a: &a [*a]\n",
    "a tag of Python's": b"!!python/object/apply:os.system ['true']\n",
    "a word": b"hello\n",
    "a number": b"1e400\n",
    "NaN": b"NaN\n",
    "an integer of many digits": b"9" * 5000,
    "true": b"true\n",
    "a key twice": b'{"kind": "Pod", "kind": "Node"}',
    "a list of nothing": b"[null, null]\n",
    "gzip that ends early": gzip.compress(b'{"kind": "Node"}' * 50)[:-9],
    "gzip that is none": b"\x1f\x8b\x08\x00garbage",
    "control characters": b"\x1b[2J\x1b]0;title\x07\n",
    "HTML": b"<!DOCTYPE html><html><body>503</body></html>\n",
    "a diff that did not merge": b"<<<<<<< HEAD\nkind: Node\n=======\nkind: Pod\n>>>>>>> other\n",
}

PLACES: dict[str, Callable[[Path], object]] = {
    "nowhere": lambda path: None,
    "a link to itself": lambda path: path.symlink_to(path),
    "a link to nowhere": lambda path: path.symlink_to(path.parent / "gone"),
    "a directory": lambda path: path.mkdir(),
    "a device without an end": lambda path: path.symlink_to("/dev/zero"),
    "a device without anything": lambda path: path.symlink_to("/dev/null"),
    **{name: partial(Path.write_bytes, data=data) for name, data in CONTENTS.items()},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    written(tmp_path / GOOD, node(), pod())
    (tmp_path / "events.jsonl").write_text(
        json.dumps({"time": 1, "event": "cordon", "object": {"kind": "Node", "metadata": {"name": "n1"}}}) + "\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Every command with a third of the files, and every file with a third of the commands.
CASES = {
    f"{role}: {name}": (ROLES[role], PLACES[name])
    for row, role in enumerate(ROLES)
    for column, name in enumerate(PLACES)
    if (row + column) % 3 == 0
}


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 290


@pytest.mark.parametrize(("arguments", "place"), CASES.values(), ids=CASES)
def test_is_refused_in_one_line(arguments: list[str], place: Callable[[Path], object], folder: Path) -> None:
    place(folder / BAD)
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()

    result = run(*arguments)

    assert result.exit_code == 2, result.output
    lines = [line for line in result.stderr.splitlines() if not line.startswith("warning: ")]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("podium: bad .json"), result.stderr
    assert lines[0].isprintable()
    assert "PODIUM_TRACEBACK" not in lines[0]
    assert not (folder / OUT).exists()
    assert time.process_time() - started < MOST_SECONDS
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MOST_MEMORY
