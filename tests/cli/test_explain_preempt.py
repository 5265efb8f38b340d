"""`podium explain --preempt`: the candidates considered, their victims, and why the winner won."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from podium.cli.app import app


def node(name: str) -> dict[str, Any]:
    size = {"cpu": "2", "memory": "4Gi", "pods": "10"}
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": size}}


def pod(name: str, cpu: str, priority: int, node_name: str = "") -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec = {"nodeName": node_name, "priority": priority, "containers": [container]}
    return {"kind": "Pod", "metadata": {"name": name}, "spec": spec}


CLUSTER = [
    node("a"),
    node("b"),
    pod("low1", "2", 1, "a"),
    pod("low2", "1", 0, "b"),
    pod("low3", "1", 0, "b"),
    pod("big", "1500m", 100),
    pod("weak", "1500m", 0),
]


def run(tmp_path: Path, *arguments: str) -> str:
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"kind": "List", "items": CLUSTER}))
    result = CliRunner().invoke(app, ["explain", *arguments, "-f", str(file)])
    assert result.exit_code == 1, result.output
    return result.stdout


def test_words_and_candidates(tmp_path: Path) -> None:
    lines = run(tmp_path, "big", "--preempt").splitlines()
    assert "Evicting default/low3, default/low2 makes room on b." in lines
    assert "It was taken from 2 candidates: lowest priority of the most important victim." in lines
    assert "* b                      0        0        2" in lines
    assert "  a                      0        1        1" in lines


def test_document(tmp_path: Path) -> None:
    preemption = json.loads(run(tmp_path, "big", "--preempt", "-o", "json"))["preemption"]
    assert (preemption["nominated"], preemption["victims"]) == ("b", ["default/low3", "default/low2"])
    assert [one["node"] for one in preemption["candidates"]] == ["b", "a"]
    assert preemption["candidates"][1]["victims"] == [{"pod": "default/low1", "priority": 1}]


def test_a_pod_that_may_not_evict_anything(tmp_path: Path) -> None:
    said = run(tmp_path, "weak", "--preempt")
    assert "Evicting pods was tried: none of a lower priority makes room." in said
    assert "makes room on" not in said
    assert json.loads(run(tmp_path, "weak", "--preempt", "-o", "json"))["preemption"] is None


def test_nothing_is_evicted_unless_asked(tmp_path: Path) -> None:
    assert "CANDIDATE" not in run(tmp_path, "big")


def test_old_releases_do_not_preempt(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"kind": "List", "items": CLUSTER}))

    result = CliRunner().invoke(app, ["explain", "big", "--preempt", "--release", "v1.14", "-f", str(file)])

    assert result.exit_code == 2
    assert "preemption of v1.14 is not modelled" in result.output
