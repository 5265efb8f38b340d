"""Values that only an attacker writes: each is an answer or one line, never an internal error, and soon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .running import node, pod, run, written


def _gt(value: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "size", "operator": "Gt", "values": [value]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


def _budget(value: str) -> dict[str, Any]:
    spec = {"minAvailable": value, "selector": {"matchLabels": {"app": "web"}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec}


DIGITS = "9" * 5_000
REFUSED: dict[str, tuple[list[dict[str, Any]], str]] = {
    "a budget's percentage": ([_budget(f"{DIGITS}%")], "must be a number or a percentage up to 100%, got '999"),
}
DECIDED: dict[str, list[dict[str, Any]]] = {
    "a bound of many digits": [node("n1", labels={"size": "5"}), pod("web", **_gt(DIGITS))],
    "a label of many digits": [node("n1", labels={"size": DIGITS}), pod("web", **_gt("1"))],
}


@pytest.mark.parametrize(("objects", "problem"), REFUSED.values(), ids=REFUSED)
def test_numbers_of_many_digits_are_refused(objects: list[dict[str, Any]], problem: str, tmp_path: Path) -> None:
    result = run("drain", "n1", "-f", written(tmp_path / "o.json", node("n1"), *objects))
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert problem in result.stderr
    assert len(result.stderr) < 1_000


@pytest.mark.parametrize("objects", DECIDED.values(), ids=DECIDED)
def test_numbers_of_many_digits_match_nothing(objects: list[dict[str, Any]], tmp_path: Path) -> None:
    result = run("explain", "web", "-f", written(tmp_path / "o.json", *objects))
    assert (result.exit_code, "does not fit on the only node" in result.stdout) == (1, True), result.output


@pytest.mark.parametrize("number", ["1e400", "-1e400"])
def test_json_numbers_out_of_range_are_refused(number: str, tmp_path: Path) -> None:
    text = json.dumps(node("n1")).replace('"4"', number)
    (tmp_path / "o.json").write_text(text)
    result = run("simulate", "-f", tmp_path / "o.json")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert f"{tmp_path / 'o.json'} document 1: cannot be read as JSON: Number out of range" in result.stderr


def test_aliases_of_a_long_text_are_counted_by_its_bytes(tmp_path: Path) -> None:
    aliases = "".join(f", k{number}: *a" for number in range(100))
    text = f"kind: Node\nmetadata: {{name: n1, annotations: {{a: &a {'x' * (1 << 20)}{aliases}}}}}\n"
    (tmp_path / "o.yaml").write_text(text)
    result = run("simulate", "-f", tmp_path / "o.yaml")
    assert (result.exit_code, "its aliases stand for more than 16 MiB" in result.stderr) == (2, True)


def test_deep_rows_of_a_trace_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "machines.json"
    file.write_text('{"a":' * 50_000 + "\n")
    result = run("import", "google-2019", file, file, "--out", tmp_path / "out")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert f"{file} line 1: is not a JSON object" in result.stderr


@pytest.mark.parametrize(
    "line", ['{"run": 1, "numbers": {}, "error": ""}', '{"run": "a", "numbers": {"x": "y"}, "error": ""}']
)
def test_a_tampered_journal_is_refused(line: str, tmp_path: Path) -> None:
    written(tmp_path / "cluster.json", node("n1"), pod("web"))
    (tmp_path / "sweep.yaml").write_text("cluster: cluster.json\naxes: {seed: [1]}\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "journal.jsonl").write_text(line + "\n")
    result = run("sweep", tmp_path / "sweep.yaml", "--out", tmp_path / "out")
    assert (result.exit_code, "is not a journal that this version of Podium wrote" in result.stderr) == (2, True)


def test_cells_that_a_spreadsheet_would_compute_are_texts() -> None:
    from podium.wording import csv_text

    rows = csv_text(["a", "b"], [["=1+1", -5], ["@x", "-y"], ["+z", "plain"]])
    assert rows == "a,b\n'=1+1,-5\n'@x,'-y\n'+z,plain\n"


def test_marks_of_direction_are_escaped_in_yaml() -> None:
    from podium.present import to_yaml

    assert "\u202e" not in to_yaml({"name": "a\u202eb"})
    assert to_yaml({"name": "grün"}) == "name: grün"
