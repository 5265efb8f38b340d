"""The same events in two ways: what each comes to, and what the command makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.running import node, pod, run, written

EVENTS = [{"time": 10 * n, "event": "add", "object": pod(f"p{n}"), "lifetime": 300} for n in range(4)]


def group(name: str, price: float, boot: str) -> dict[str, Any]:
    status = {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}}
    return {"name": name, "maxSize": 3, "bootTime": boot, "pricePerHour": price, "template": {"status": status}}


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("events.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in EVENTS))
    for name, price, boot in (("dear", 4.0, "20s"), ("cheap", 1.0, "60s")):
        Path(f"{name}.yaml").write_text(yaml.safe_dump({"groups": [group(name, price, boot)]}))
    written(Path("one.json"), node("n1"))
    written(Path("two.json"), node("n1"), node("n2"))
    Path("config.yaml").write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")


def compared(*arguments: str) -> dict[str, Any]:
    done = run("compare", "--timeline", "events.jsonl", "--until", "1h", "-o", "json", *arguments)
    assert done.exit_code == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_what_costs_less_takes_longer_to_boot() -> None:
    found = compared("--node-groups", "dear.yaml", "--node-groups", "cheap.yaml")
    before, after = found["before"]["measures"], found["after"]["measures"]
    assert (found["kind"], found["before"]["name"], found["after"]["name"]) == (
        "TimelineComparison",
        "dear.yaml",
        "cheap.yaml",
    )
    assert before["cost"] > 2 * after["cost"] > 0
    assert before["longest_wait"] < after["longest_wait"]


def test_one_file_of_groups_is_compared_with_none() -> None:
    found = compared("--node-groups", "cheap.yaml")
    assert found["before"]["name"] == "no node groups"
    assert "cost" not in found["before"]["measures"]
    assert (found["before"]["measures"]["placed"], found["after"]["measures"]["placed"]) == (0, 4)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--cluster", "one.json", "--cluster", "two.json"], ["one.json", "two.json"]),
        (["-f", "one.json", "--config", "config.yaml"], ["the default configuration", "config.yaml"]),
        (["-f", "one.json", "--release", "v1.33", "--release", "v1.36"], ["v1.33", "v1.36"]),
        (
            ["-f", "one.json", "--config", "config.yaml", "--node-groups", "cheap.yaml"],
            ["the default configuration", "config.yaml"],
        ),
    ],
)
def test_other_ways(arguments: list[str], names: list[str]) -> None:
    found = compared(*arguments)
    assert [found[side]["name"] for side in ("before", "after")] == names
    assert found["after"]["measures"]["placed"] == 4


@pytest.mark.parametrize(("condition", "code"), [("cost < before.cost", 1), ("pending > 0", 0), ("evictions > 0", 0)])
def test_the_exit_code_follows_conditions(condition: str, code: int) -> None:
    groups = ["--node-groups", "dear.yaml", "--node-groups", "cheap.yaml"]
    done = run("compare", "--timeline", "events.jsonl", "--until", "1h", *groups, "--fail-if", condition, "-o", "csv")
    assert done.exit_code == code
    assert done.stdout.splitlines()[0] == "measure,before,after"


BAD = {
    "no timeline": (["--node-groups", "dear.yaml"], "--node-groups needs --timeline EVENTS"),
    "until alone": (["--until", "1h"], "--until needs --timeline EVENTS"),
    "nothing differs": (["--timeline", "events.jsonl"], "nothing to compare: give --config, --cluster, --release or"),
    "the same": (
        ["--timeline", "events.jsonl", "--node-groups", "dear.yaml", "--node-groups", "dear.yaml"],
        "both ways are the same: dear.yaml",
    ),
    "three": (["--timeline", "events.jsonl", *["--node-groups", "dear.yaml"] * 3], "--node-groups is given 3 times"),
    "no events": (["--timeline", "nope.jsonl", "--node-groups", "dear.yaml"], "nope.jsonl"),
    "no groups": (["--timeline", "events.jsonl", "--node-groups", "nope.yaml"], "nope.yaml"),
    "a time": (["--timeline", "events.jsonl", "--until", "soon", "--node-groups", "dear.yaml"], "'soon' is not a time"),
    "a condition": (
        ["--timeline", "events.jsonl", "--node-groups", "dear.yaml", "--fail-if", "luck > 1"],
        "'luck' is not measured",
    ),
}


@pytest.mark.parametrize(("arguments", "problem"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_one_line(arguments: list[str], problem: str) -> None:
    done = run("compare", *arguments)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert problem in done.stderr
