"""`podium simulate`: everything pending, and an exit code that says whether it fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .running import EXAMPLE, node, pod, run, written
from .test_explain import DEPLOYMENT


def test_everything_fits(tmp_path: Path) -> None:
    cluster = written(tmp_path / "c.json", node(), pod())
    app = written(tmp_path / "app.json", DEPLOYMENT)

    result = run("simulate", "-f", cluster, "-f", app)

    assert result.exit_code == 0
    assert result.stdout.startswith("3 pending pods: all fit.\n")
    assert "shop Deployment/api     2       2  n1 x2" in result.stdout


def test_something_does_not_fit() -> None:
    result = run("simulate", "-f", EXAMPLE)

    assert result.exit_code == 1
    assert "2 pending pods: 1 fits, 1 does not." in result.stdout
    assert "STAY PENDING\nml/train-0\n" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_nothing_is_pending(tmp_path: Path) -> None:
    result = run("simulate", "-f", written(tmp_path / "c.json", node()))

    assert result.exit_code == 0
    assert result.stdout == "Nothing is pending: no pod of the input waits for a node.\n"


def test_a_directory_adds_up_with_a_file(tmp_path: Path) -> None:
    (tmp_path / "new-app").mkdir()
    written(tmp_path / "new-app" / "app.json", DEPLOYMENT)
    cluster = written(tmp_path / "c.json", node())

    result = run("simulate", "-f", cluster, "-f", tmp_path / "new-app", "-o", "json")

    assert [placement["node"] for placement in json.loads(result.stdout)["placements"]] == ["n1", "n1"]


@pytest.mark.parametrize(
    ("output", "start"),
    [
        ("table", "1 pending pod: it fits.\n"),
        ("json", '{\n  "apiVersion": "podium/v1",\n  "kind": "Simulation",\n'),
        ("yaml", "apiVersion: podium/v1\nkind: Simulation\n"),
        ("csv", "namespace,pod,workload,node,message\ndefault,web,Pod/web,n1,\n"),
    ],
)
def test_outputs(output: str, start: str, tmp_path: Path) -> None:
    cluster = written(tmp_path / "c.json", node(), pod())

    assert run("simulate", "-f", cluster, "-o", output).stdout.startswith(start)


def test_bad_input_is_exit_code_2(tmp_path: Path) -> None:
    result = run("simulate", "-f", written(tmp_path / "c.json", pod()))

    assert result.exit_code == 2
    assert result.stderr.startswith("podium: no node in ")
