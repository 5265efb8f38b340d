"""`podium import`: what it writes, and that commands take it."""

from __future__ import annotations

from pathlib import Path

from cli.running import run
from podium import Timeline, load
from traces.openb_tables import PODS, write_tables


def test_the_files_are_taken_by_simulate_and_by_a_timeline(tmp_path: Path) -> None:
    out = tmp_path / "trace"
    done = run("import", "openb", *write_tables(tmp_path), "--out", str(out))
    assert done.exit_code == 0
    assert done.stdout.startswith(f"{out}: 3 nodes, 3 pods, 3 events\n- ")
    assert run("simulate", "-f", str(out / "cluster.json"), "-f", str(out / "pods.json")).exit_code == 0

    result = Timeline(load(str(out / "cluster.json")), str(out / "events.jsonl")).run()
    ended = {life.pod: life.ended for life in result.lives}
    assert ended == {"default/share": 100, "default/whole": 90, "default/plain": None}


def test_a_bad_trace_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "trace"
    done = run("import", "openb", *write_tables(tmp_path, pods=PODS.replace("460", "x")), "--out", str(out))
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "pods.csv line 2: gpu_milli 'x' is not a number from 0 on" in done.stderr
    assert not out.exists() or not list(out.iterdir())


def test_files_are_looked_for_before_anything_is_read(tmp_path: Path) -> None:
    done = run("import", "openb", str(tmp_path / "a"), str(tmp_path / "b"), "--out", str(tmp_path))
    assert (done.exit_code, done.stderr) == (2, f"podium: {tmp_path / 'a'}: no such file or directory\n")
