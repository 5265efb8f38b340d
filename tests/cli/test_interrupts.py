"""Interrupts at any moment, and streams that are closed: no traceback, no internal error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from podium import __version__

from .running import EXAMPLE, node, pod, written

TOO_EARLY = 77
# The byte says that from here on it is for `main` to heed interrupts.
START = f"""
import os
try:
    from podium.__main__ import main
    os.write(1, b".")
    main()
except KeyboardInterrupt:
    os._exit({TOO_EARLY})
"""
DELAYS = (0, 30, 100, 250, 500)


def started(*arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """The command in a group of its own, once it runs Podium's own code."""
    process = subprocess.Popen(
        [sys.executable, "-c", START, *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.read(1) == b"."
    return process


def interrupted(process: subprocess.Popen[bytes], after: float) -> tuple[int, bytes]:
    """Exit code and stderr of a process whose group gets an interrupt after some seconds, as from a terminal."""
    time.sleep(after)
    os.killpg(process.pid, signal.SIGINT)
    try:
        _, stderr = process.communicate(timeout=30)
    finally:
        process.kill()
    return process.returncode, stderr


@pytest.mark.parametrize("delay", DELAYS)
def test_while_starting_and_working(delay: int) -> None:
    # It waits for stdin, so that it is still there after any delay.
    process = started("decide", stdin=subprocess.PIPE)
    code, stderr = interrupted(process, delay / 1000)
    assert stderr == b""
    assert code == 130 or (delay == 0 and code == TOO_EARLY)


SCRIPTS = Path(__file__).parents[2] / "scripts"
COMMANDS = ["podium", "kubectl-podium"]
NO_ENV = "/usr/bin/env", "/nowhere/env"


def installed(directory: Path, *changed: tuple[str, str]) -> Path:
    """The directory with the scripts in it as pip installs them, some text in them changed."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in (*COMMANDS, "podium-python"):
        text = (SCRIPTS / name).read_text()
        for old, new in (("#!python\n", f"#!{sys.executable}\n"), *changed):
            text = text.replace(old, new)
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
    return directory


def ran(*command: str | Path, **how: Any) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **how)
    return result.returncode, result.stdout, result.stderr


VERSION = (0, f"podium {__version__}\n", "")


@pytest.mark.parametrize("changed", [(), (NO_ENV,)], ids=["held back", "without GNU env"])
@pytest.mark.parametrize("script", COMMANDS)
def test_while_the_script_imports(script: str, changed: tuple[tuple[str, str], ...], tmp_path: Path) -> None:
    slow = tmp_path / "podium"
    slow.mkdir()
    # In short steps: a signal that comes just before a sleep begins is handled after it.
    (slow / "__init__.py").write_text("import os, time\nos.write(1, b'.')\nfor _ in range(600): time.sleep(0.05)\n")
    process = subprocess.Popen(
        [installed(tmp_path / "bin", *changed) / script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert process.stdout is not None
    assert process.stdout.read(1) == b"."
    assert interrupted(process, 0) == (130, b"")


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
def test_from_the_first_moment_on(shell: str, tmp_path: Path) -> None:
    podium = installed(tmp_path, ("#!/bin/sh", f"#!{shell}")) / "podium"
    for delay in (*range(0, 30, 2), *range(30, 300, 30)):
        process = subprocess.Popen(
            [podium, "decide"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        code, stderr = interrupted(process, delay / 1000)
        # Before the shell's first command the signal ends it, which other shells report as 130.
        assert (code in (130, -signal.SIGINT), stderr) == (True, b""), delay


def test_an_interrupt_is_held_back_while_python_starts(tmp_path: Path) -> None:
    # Run by Python's `site`, before any line of the script.
    (tmp_path / "sitecustomize.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    podium = installed(tmp_path / "bin") / "podium"
    assert ran(podium, "--version", env={**os.environ, "PYTHONPATH": str(tmp_path)}) == (130, "", "")


@pytest.mark.parametrize("script", COMMANDS)
def test_the_script_runs_the_command(script: str, tmp_path: Path) -> None:
    podium = installed(tmp_path / "bin") / script
    assert ran(podium, "--version") == VERSION
    assert ran(podium, "explain", "a b", "", "-f", EXAMPLE)[0] == 2
    assert (
        ran(podium, "simulate", "-f", "-", input="")[2]
        == "podium: stdin: no objects that scheduling reads, such as nodes and pods\n"
    )
    assert "Usage: podium explain " in ran(podium, "explain", "--help")[1]


@pytest.mark.parametrize("name", ["a place", "x" * 130, "a=b", "$HOME 'quoted\"", "-f"])
def test_the_script_runs_in_any_directory(name: str, tmp_path: Path) -> None:
    # pip writes this path into the first line, where neither a space nor a long one can be read.
    place = tmp_path / name
    place.mkdir()
    python = place / "python"
    python.symlink_to(sys.executable)
    installed(place / "bin", (f"#!{sys.executable}\n", f"#!{python}\n"))
    # A link to an interpreter does not find the packages beside it.
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    assert ran(place / "bin" / "podium", "--version", env=paths) == VERSION
    assert ran("sh", "podium", "--version", env=paths, cwd=place / "bin") == VERSION


def test_a_first_line_with_options(tmp_path: Path) -> None:
    line = f"#!{sys.executable}\n"
    assert ran(installed(tmp_path, (line, line[:-1] + " -B\n")) / "podium", "--version") == VERSION


def test_the_script_is_found_through_links(tmp_path: Path) -> None:
    installed(tmp_path / "venv" / "bin")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "podium").symlink_to("../venv/bin/podium")
    (tmp_path / "link").symlink_to(tmp_path / "bin" / "podium")
    (tmp_path / "elsewhere").symlink_to(tmp_path / "venv" / "bin")
    for place in ("bin/podium", "link", "elsewhere/podium"):
        assert ran(tmp_path / place, "--version") == VERSION
        assert ran(f"./{place}", "--version", cwd=tmp_path) == VERSION
    found = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    assert ran("podium", "--version", env=found) == VERSION


def test_a_script_that_was_copied_elsewhere_says_what_is_missing(tmp_path: Path) -> None:
    copied = installed(tmp_path) / "podium"
    (tmp_path / "podium-python").unlink()
    missing = f"podium: {tmp_path}/podium-python is missing; install Podium again, or use python -m podium\n"
    assert ran(copied, "--version") == (2, "", missing)


def test_other_signals_go_straight_to_the_command(tmp_path: Path) -> None:
    with subprocess.Popen([installed(tmp_path) / "podium", "decide"], stdin=subprocess.PIPE) as process:
        time.sleep(0.3)
        process.terminate()
        assert process.wait(timeout=30) == -signal.SIGTERM


@pytest.mark.parametrize("script", COMMANDS)
def test_workers_do_not_run_the_command_again(script: str, tmp_path: Path) -> None:
    nodes = [node("big", allocatable={"cpu": "8"}), node("small")]
    cluster = written(tmp_path / "cluster.json", *nodes, *(pod(f"p{number}") for number in range(3)))
    command = installed(tmp_path / "bin") / script
    code, stdout, stderr = ran(command, "tune", "-f", str(cluster), "--jobs", "2", "--trials", "4")
    assert stderr == ""
    assert code in (0, 1)
    assert stdout.count("4 configurations") == 1


def test_workers_are_quiet(tmp_path: Path) -> None:
    nodes = [node(f"n{number}") for number in range(40)]
    pods = [pod(f"p{number}") for number in range(100)]
    cluster = written(tmp_path / "cluster.json", *nodes, *pods)
    for delay in (0.7, 1.5):
        process = started("tune", "-f", str(cluster), "--jobs", "2", "--trials", "100000")
        assert interrupted(process, delay) == (130, b"")


def test_workers_of_the_installed_command_get_no_interrupts(tmp_path: Path) -> None:
    """Neither those that Dask starts nor Dask itself report one; whom it is for is the process that started them."""
    written(tmp_path / "cluster.json", node("n1"), *(pod(f"p{number}") for number in range(9)))
    (tmp_path / "own_study.py").write_text(
        "import os, pathlib, time\n"
        "def prepare(objects, seed):\n"
        "    pathlib.Path('started').touch()\n"
        "    time.sleep(0.01)\n"
        "    return objects\n"
    )
    (tmp_path / "sweep.yaml").write_text(
        "cluster: cluster.json\nprepare: own_study:prepare\naxes: {seed: {from: 1, to: 3000}}\n"
    )
    process = subprocess.Popen(
        [installed(tmp_path / "bin") / "podium", "sweep", "sweep.yaml", "--jobs", "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=tmp_path,
    )
    while process.poll() is None and not (tmp_path / "started").exists():
        time.sleep(0.02)
    assert interrupted(process, 0.2) == (130, b"")


@pytest.mark.parametrize("script", [None, "podium"], ids=["python -m podium", "podium"])
def test_interrupts_that_are_ignored_stay_ignored(script: str | None, tmp_path: Path) -> None:
    command = f'"{installed(tmp_path) / script}"' if script else f'"{sys.executable}" -m podium'
    script = f'trap "" INT; exec {command} demo'
    with subprocess.Popen(["bash", "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        time.sleep(0.1)
        for _ in range(5):
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        assert process.wait(timeout=30) == 0


CLOSED: Mapping[str, tuple[str, list[str], int, str]] = {
    "stdin": ("<&-", ["simulate", "-f", "-"], 2, "podium: stdin: is closed; there is nothing to read\n"),
    "stdin, of records": ("<&-", ["decide"], 2, "podium: stdin: is closed; there is nothing to read\n"),
    "stdin that nobody reads": ("<&-", ["explain", "ml/train-0", "-f", EXAMPLE], 1, ""),
    "stdout": (">&-", ["demo"], 2, "podium: stdout is closed; there is nowhere to write to\n"),
    "stderr": ("2>&-", ["explain", "nobody", "-f", EXAMPLE], 2, ""),
    "all": ("<&- >&- 2>&-", ["demo"], 2, ""),
}


def closed(closing: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = f'exec "{sys.executable}" -m podium "$@" {closing}'
    return subprocess.run(
        ["bash", "-c", script, "podium", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("closing", "arguments", "code", "message"), CLOSED.values(), ids=CLOSED)
def test_closed_streams(closing: str, arguments: list[str], code: int, message: str) -> None:
    result = closed(closing, *arguments)
    assert (result.returncode, result.stderr) == (code, message)


def test_an_interrupt_that_is_lost_comes_again() -> None:
    program = (
        "import podium.__main__ as entry, podium.cli.app, os, signal, sys, time\n"
        "entry.REPEATED_AFTER = 0.05\n"
        "def run():\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        time.sleep(10)\n"
        "    except KeyboardInterrupt:\n"
        "        time.sleep(10)\n"
        "sys.modules['podium.cli.app'].main = run\n"
        "entry.main()\n"
    )
    started = time.monotonic()
    found = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (130, "")
    assert time.monotonic() - started < 8


def test_an_interrupt_in_a_finaliser_is_repeated_at_once_and_not_reported() -> None:
    program = (
        "import podium.__main__ as entry, podium.cli.app, os, signal, sys, time\n"
        "class Finalised:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        time.sleep(10)\n"
        "def run():\n"
        "    Finalised()\n"
        "    time.sleep(10)\n"
        "sys.modules['podium.cli.app'].main = run\n"
        "entry.main()\n"
    )
    started = time.monotonic()
    assert ran(sys.executable, "-c", program) == (130, "", "")
    assert time.monotonic() - started < 4


def test_an_interrupt_in_the_middle_of_a_class_is_one() -> None:
    program = (
        "import podium.__main__ as entry, podium.cli.app, os, signal, sys, time\n"
        "class Named:\n"
        "    def __set_name__(self, owner, name):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        time.sleep(10)\n"
        "def resolve_command(self, ctx, args):\n"
        "    type('Owner', (), {'name': Named()})\n"
        "sys.modules['podium.cli.app'].Commands.resolve_command = resolve_command\n"
        "entry.main()\n"
    )
    assert ran(sys.executable, "-c", program, "demo") == (130, "", "")
