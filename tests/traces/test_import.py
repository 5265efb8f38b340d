"""`podium import`: what it writes, and that commands take it."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from cli.running import node, pod, run
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


def test_an_unknown_format_is_said_before_files_are_looked_for(tmp_path: Path) -> None:
    done = run("import", "opemb", str(tmp_path / "a"), "--out", str(tmp_path))
    known = "openb, alibaba-2018, google-2019, simkube, kwok-record"
    assert (done.exit_code, done.stderr) == (2, f"podium: format 'opemb' is unknown; use {known}\n")


def test_a_file_that_is_gzip_by_its_name_alone_is_refused(tmp_path: Path) -> None:
    nodes, pods = write_tables(tmp_path)
    packed = Path(pods).rename(tmp_path / "pods.csv.gz")
    done = run("import", "openb", nodes, str(packed), "--out", str(tmp_path / "trace"))
    problem = "is not gzip, though its name ends in .gz; compress it, or rename it"
    assert (done.exit_code, done.stderr) == (2, f"podium: {packed}: {problem}\n")


def test_a_trace_without_tasks_is_refused_and_one_without_events_is_run(tmp_path: Path) -> None:
    out = tmp_path / "trace"
    done = run("import", "openb", *write_tables(tmp_path, pods=PODS.splitlines()[0]), "--out", str(out))
    assert (done.exit_code, done.stderr) == (2, f"podium: {tmp_path / 'pods.csv'}: has no tasks\n")
    record = tmp_path / "record.yaml"
    record.write_text(yaml.safe_dump_all([node("n1"), pod("p")]))
    done = run("import", "kwok-record", str(record), "--out", str(out))
    assert done.stdout.endswith("- all of it is there at the beginning: pods.json and events.jsonl are empty\n")
    files = ["-f", str(out / "cluster.json")]
    assert run("simulate", *files, "-f", str(out / "pods.json")).exit_code == 0
    done = run("simulate", *files, "--timeline", str(out / "events.jsonl"), "-o", "json")
    assert (done.exit_code, [life["node"] for life in json.loads(done.stdout)["pods"]]) == (0, ["n1"])


def test_a_time_that_no_timeline_takes_is_refused(tmp_path: Path) -> None:
    tables = write_tables(tmp_path, pods=PODS.replace(",110,", f",{10**15},"))
    done = run("import", "openb", *tables, "--out", str(tmp_path / "trace"))
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "deletion_time '1000000000000000' is more than 316,224,000" in done.stderr
