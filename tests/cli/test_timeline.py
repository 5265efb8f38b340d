"""`podium simulate --timeline`: a cluster over time, in files and in a few lines."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from .running import node, pod, run, written


def events(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    return written(tmp_path / "cluster.json", node("n1", allocatable={"cpu": "1"}))


@pytest.fixture
def story(tmp_path: Path) -> Path:
    """Two pods for one node, one after the other."""
    return events(
        tmp_path / "events.jsonl",
        {"time": 0, "event": "add", "object": pod("a"), "lifetime": "1m"},
        {"time": 10, "event": "add", "object": pod("b"), "lifetime": 30},
    )


def test_a_summary_says_who_waited_and_how_full_it_was(cluster: Path, story: Path) -> None:
    result = run("simulate", "-f", cluster, "--timeline", story)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "90s simulated, 2 pods came, 2 got a node",
        "waited for a node: half at most 50s, 90% at most 50s, 99% at most 50s, all at",
        "    most 50s",
        "finished: 2; lost with their node: 0; evicted: 0; created by controllers: 0",
        "queue: at most 1 pod, at 10s",
        "cpu requested: 100.0% on average, at most 100.0%",
        "memory requested: 0.0% on average, at most 0.0%",
        "pods requested: 0.9% on average, at most 0.9%",
    ]


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_wrong_input_is_an_error_if_asked_for(command: str, tmp_path: Path, story: Path) -> None:
    misspelt = written(tmp_path / "cluster.json", node("n1", unschedulabel=True))
    sides = ["--release", "v1.36"] if command == "compare" else []
    arguments: list[str | Path] = [command, "-f", misspelt, "--timeline", story, *sides]
    assert run(*arguments).exit_code == 0

    result = run(*arguments, "--strict")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "unschedulabel" in result.stderr


def test_pods_that_still_wait_are_named_and_exit_with_1(cluster: Path, tmp_path: Path) -> None:
    large = events(tmp_path / "e.jsonl", {"time": 0, "event": "add", "object": pod("large", requests={"cpu": "9"})})
    result = run("simulate", "-f", cluster, "--timeline", large, "--until", "2m")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == "2m simulated, 1 pod came, 0 got a node"
    assert result.stdout.splitlines()[-1] == "still waiting: 1 pod: default/large"


def test_a_drain_that_a_budget_refuses_to_the_end_is_named(tmp_path: Path) -> None:
    selector = {"matchLabels": {"app": "db"}}
    metadata = {"name": "db", "namespace": "default"}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata}
    budget["spec"] = {"selector": selector, "minAvailable": 1}
    db = pod("db", labels={"app": "db"}, nodeName="n1", phase="Running")
    cluster = written(tmp_path / "c.json", node(), budget, db)
    drain = events(tmp_path / "e.jsonl", {"time": 5, "event": "drain", "object": node()})
    result = run("simulate", "-f", cluster, "--timeline", drain)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-2:] == [
        "still being drained: node n1, 1 pod left: default/db: PodDisruptionBudget",
        "    default/db needs 1 healthy pod and has 1",
    ]
    found = json.loads(run("simulate", "-f", cluster, "--timeline", drain, "-o", "json").stdout)
    reason = "PodDisruptionBudget default/db needs 1 healthy pod and has 1"
    assert found["unfinishedDrains"] == [{"node": "n1", "pods": [{"pod": "default/db", "reason": reason}]}]


def test_a_summary_keeps_to_the_width_and_leaves_out_what_nobody_uses(tmp_path: Path) -> None:
    cluster = written(tmp_path / "c.json", node(allocatable={"cpu": "1", "example.com/gpu": "4"}))
    large = [
        {"time": 0, "event": "add", "object": pod(f"a-rather-long-name-{number}", requests={"cpu": "9"})}
        for number in range(4)
    ]
    result = run("simulate", "-f", cluster, "--timeline", events(tmp_path / "e.jsonl", *large), "--until", "2m")
    lines = result.stdout.splitlines()
    assert "gpu" not in result.stdout
    assert max(map(len, lines)) <= 80
    assert lines[-3:] == [
        "still waiting: 4 pods: default/a-rather-long-name-0,",
        "    default/a-rather-long-name-1, default/a-rather-long-name-2,",
        "    default/a-rather-long-name-3",
    ]


def test_everything_can_be_written(cluster: Path, story: Path, tmp_path: Path) -> None:
    log, table, data, picture = (tmp_path / name for name in ("log.jsonl", "s.csv", "s.json", "p.svg"))
    arguments = ("simulate", "-f", cluster, "--timeline", story, "--log", log, "--plot", picture)
    assert run(*arguments, "--samples", table).exit_code == 0
    assert run(*arguments, "--samples", data).exit_code == 0
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(record["time"], record["event"]) for record in records if record["event"] in ("bind", "finish")] == [
        (0, "bind"),
        (60, "finish"),
        (60, "bind"),
        (90, "finish"),
    ]
    rows = list(csv.DictReader(table.read_text().splitlines()))
    changes = [(float(row["time"]), row["unschedulable"]) for row in rows]
    assert changes == [(0, "0"), (10, "1"), (50, "1"), (60, "0"), (80, "0"), (90, "0")]
    assert len(json.loads(data.read_text())["samples"]) == len(rows)
    assert picture.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("output", "expected"),
    [("json", '"pod": "default/a"'), ("yaml", "pod: default/a"), ("csv", "default/b,n1,10.0,60.0,90.0,50.0,2")],
)
def test_pods_can_be_printed_as_data(cluster: Path, story: Path, output: str, expected: str) -> None:
    assert expected in run("simulate", "-f", cluster, "--timeline", story, "-o", output).stdout


def test_a_run_can_be_stopped_and_gone_on_with(cluster: Path, story: Path, tmp_path: Path) -> None:
    whole, first, second, state = (tmp_path / name for name in ("whole", "first", "second", "state.json"))
    run("simulate", "-f", cluster, "--timeline", story, "--log", whole)
    stop = ("--snapshot-at", "30s", "--snapshot", state)
    run("simulate", "-f", cluster, "--timeline", story, *stop, "--log", first)
    result = run("simulate", "--resume", state, "--timeline", story, "--log", second)
    assert result.exit_code == 0
    assert first.read_bytes() + second.read_bytes() == whole.read_bytes()
    assert first.read_bytes()
    assert second.read_bytes()


def test_events_may_bring_the_nodes(tmp_path: Path) -> None:
    story = events(
        tmp_path / "e.jsonl",
        {"time": "2026-01-01T00:00:00Z", "event": "Add", "resource": node("n1")},
        {"time": "2026-01-01T00:00:05Z", "event": "Add", "resource": pod("a")},
    )
    assert run("simulate", "--timeline", story).stdout.startswith("5s simulated, 1 pod came, 1 got a node\n")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--until", "3"), "--until needs --timeline EVENTS"),
        (("--timeline", "missing.jsonl"), "missing.jsonl: no such file or directory"),
        (("--timeline", "STORY", "--until", "soon"), "'soon' is not a time such as 3600 or 1h30m"),
        (("--timeline", "STORY", "--until", "-3"), "'-3' is not a time from 0 on"),
        (("--timeline", "STORY", "--snapshot-at", "3"), "--snapshot-at needs --snapshot FILE"),
        (("--timeline", "STORY", "-f", "CLUSTER", "--resume", "x"), "--resume has the cluster already: leave out -f"),
        (("--timeline", "STORY", "--resume", "missing"), "missing: no such file or directory"),
        (("--timeline", "STORY", "--resume", "STORY"), "is not a snapshot of a simulation"),
        (("--timeline", "STORY", "--plot", "p.gif"), "p.gif: a plot is a .svg or a .png, not .gif"),
        (("--timeline", "STORY", "--log", "missing/log"), "missing/log: no such file or directory"),
        (("--timeline", "STORY", "--snapshot", "missing/state"), "missing/state: no such file or directory"),
        (("--timeline", "-", "-f", "-"), "--timeline and -f cannot both read stdin"),
        (("--timeline", ""), "Invalid value for --timeline: is empty"),
        (("--kubeconfig", "none"), "none: no such file or directory"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], problem: str, cluster: Path, story: Path) -> None:
    names = {"STORY": str(story), "CLUSTER": str(cluster)}
    result = run("simulate", *(names.get(argument, argument) for argument in arguments))
    assert result.exit_code == 2
    assert problem in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("stdin", "problem"),
    [
        ("", "podium: stdin: no events in it\n"),
        ("nonsense", "podium: stdin line 1: is not an event"),
        (
            json.dumps({"time": 0, "event": "add", "object": {"kind": "Gadget", "metadata": {"name": "g"}}}),
            "podium: stdin: no events about objects that scheduling reads, only 1 Gadget\n",
        ),
    ],
)
def test_events_on_stdin_are_named_so(stdin: str, problem: str, cluster: Path) -> None:
    result = run("simulate", "-f", cluster, "--timeline", "-", stdin=stdin)
    assert result.exit_code == 2
    assert result.stderr.startswith(problem)


def test_an_event_without_effect_is_a_warning(cluster: Path, tmp_path: Path) -> None:
    story = events(
        tmp_path / "e.jsonl",
        {"time": 0, "event": "add", "object": pod("a"), "lifetime": 5},
        {"time": 9, "event": "delete", "object": pod("a")},
    )
    result = run("simulate", "-f", cluster, "--timeline", story)
    assert result.exit_code == 0
    warning = "delete of Pod default/a has no effect: the object did not exist at that time"
    assert result.stderr == f"warning: {story} line 2: {warning}\n"
    assert result.stdout.startswith("9s simulated, 1 pod came")


def test_a_pod_with_an_odd_start_is_named(story: Path, tmp_path: Path) -> None:
    odd = pod("odd", nodeName="n1") | {"status": {"phase": "Running", "startTime": "soon"}}
    result = run("simulate", "-f", written(tmp_path / "odd.json", node("n1"), odd), "--timeline", story)
    assert result.exit_code == 2
    assert "odd.json: Pod default/odd: status.startTime: 'soon' is not a time such as" in result.stderr


def test_kinds_that_are_left_out_are_said_when_asked_for(cluster: Path, tmp_path: Path) -> None:
    gadget = {"apiVersion": "v1", "kind": "Gadget", "metadata": {"name": "g"}}
    story = events(
        tmp_path / "e.jsonl",
        {"time": 0, "event": "add", "object": pod("a")},
        {"time": 9, "event": "add", "object": gadget},
    )
    assert not run("simulate", "-f", cluster, "--timeline", story).stderr
    said = run("simulate", "-f", cluster, "--timeline", story, "-v").stderr
    assert said.splitlines()[0] == "1 event read; not read by scheduling: 1 Gadget"
