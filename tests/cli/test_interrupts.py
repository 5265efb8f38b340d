"""Interrupts at any moment, and streams that are closed: no traceback, no internal error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("script", ["podium", "kubectl-podium"])
def test_while_the_script_imports(script: str, tmp_path: Path) -> None:
    slow = tmp_path / "podium"
    slow.mkdir()
    (slow / "__init__.py").write_text("import os, time\nos.write(1, b'.')\ntime.sleep(30)\n")
    process = subprocess.Popen(
        [sys.executable, SCRIPTS / script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert process.stdout is not None
    assert process.stdout.read(1) == b"."
    assert interrupted(process, 0) == (130, b"")


def test_the_script_runs_the_command() -> None:
    result = subprocess.run([sys.executable, SCRIPTS / "podium", "--version"], capture_output=True, check=False)
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.startswith(b"podium ")


@pytest.mark.parametrize("script", ["podium", "kubectl-podium"])
def test_workers_do_not_run_the_command_again(script: str, tmp_path: Path) -> None:
    nodes = [node("big", allocatable={"cpu": "8"}), node("small")]
    cluster = written(tmp_path / "cluster.json", *nodes, *(pod(f"p{number}") for number in range(3)))
    arguments = ["tune", "-f", str(cluster), "--jobs", "2", "--trials", "4"]
    result = subprocess.run(
        [sys.executable, SCRIPTS / script, *arguments], capture_output=True, check=False, timeout=60
    )
    assert result.stderr == b""
    assert result.returncode in (0, 1)
    assert result.stdout.count(b"4 configurations") == 1


def test_workers_are_quiet(tmp_path: Path) -> None:
    nodes = [node(f"n{number}") for number in range(40)]
    pods = [pod(f"p{number}") for number in range(100)]
    cluster = written(tmp_path / "cluster.json", *nodes, *pods)
    for delay in (0.7, 1.5):
        process = started("tune", "-f", str(cluster), "--jobs", "2", "--trials", "100000")
        assert interrupted(process, delay) == (130, b"")


@pytest.mark.parametrize("command", ["-m podium", str(SCRIPTS / "podium")])
def test_interrupts_that_are_ignored_stay_ignored(command: str) -> None:
    script = f'trap "" INT; exec "{sys.executable}" {command} demo'
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
