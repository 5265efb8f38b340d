"""`podium decide`, `verify` and `bench`: recorded cases in, decisions and agreement out."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from podium.rules.gates import NEWEST

from .running import config, node, pod, run

GOLDEN = Path(__file__).parents[1] / "golden"


def recorded(family: str, count: int) -> list[dict[str, Any]]:
    """The first cases of a family, with the recordings of the newest release."""
    with lzma.open(GOLDEN / f"{family}.jsonl.xz", "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for _, line in zip(range(count), lines, strict=False)]
    return [{"case": each["case"], "expect": each["releases"][NEWEST]} for each in found]


def lines_of(*documents: Any) -> str:
    return "".join(f"{json.dumps(document)}\n" for document in documents)


def test_decides_cases_of_stdin() -> None:
    records = recorded("mixed", 3)

    result = run("decide", stdin=lines_of(*(record["case"] for record in records)))

    assert result.exit_code == 0
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    for answer, record in zip(answers, records, strict=True):
        assert answer["name"] == record["case"]["name"]
        nodes = [decision.get("node") for decision in answer["decisions"]]
        assert nodes == [decision.get("node") for decision in record["expect"]["decisions"]]


def test_decides_cases_of_files(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl.gz"
    file.write_bytes(gzip.compress(lines_of(*recorded("taints", 2)).encode()))

    assert len(run("decide", "-f", file, "-f", file).stdout.splitlines()) == 4


def test_a_refused_configuration_is_an_answer_not_a_failure() -> None:
    wrong = {"name": "wrong", "objects": [node()], "pods": [pod()], "config": config(parallelism=0)}
    right = {"name": "right", "objects": [node()], "pods": [pod()]}

    result = run("decide", stdin=lines_of(wrong, right))

    assert result.exit_code == 0
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert answers[0].keys() == {"name", "error"}
    assert answers[1]["decisions"][0]["node"] == "n1"


def test_what_came_before_a_broken_line_is_answered() -> None:
    result = run("decide", stdin=lines_of({"name": "a", "pods": [pod()]}) + "nonsense\n")

    assert result.exit_code == 2
    assert json.loads(result.stdout)["name"] == "a"
    assert result.stderr.startswith("podium: stdin line 2: is not a case in JSON")


def test_agreement_is_exit_code_0(tmp_path: Path) -> None:
    file = tmp_path / "taints.jsonl"
    file.write_text(lines_of(*recorded("taints", 4)))

    result = run("verify", file, file)

    assert result.exit_code == 0
    assert result.stdout == f"{file}: 4 of 4 cases agree (100.0%)\n" * 2


@pytest.fixture
def tampered(tmp_path: Path) -> Path:
    records = recorded("taints", 4)
    for record in records[:2]:
        record["expect"]["decisions"][0]["feasible"] = ["nowhere"]
        record["expect"]["decisions"][0]["node"] = "nowhere"
    file = tmp_path / "tampered.jsonl"
    file.write_text(lines_of(*records))
    return file


def test_any_difference_is_exit_code_1(tampered: Path) -> None:
    result = run("verify", tampered)

    assert result.exit_code == 1
    first, *differences = result.stdout.splitlines()
    assert first == f"{tampered}: 2 of 4 cases agree (50.0%)"
    assert len(differences) == 4
    assert differences[0].startswith("  case taints-1 pod ")
    assert 'feasible: expected ["nowhere"], got ' in differences[0]


def test_differences_are_limited(tampered: Path) -> None:
    lines = run("verify", tampered, "--limit", "1").stdout.splitlines()

    assert len(lines) == 3
    assert lines[-1] == "  and 3 more differences; see them with --limit 0"
    assert len(run("verify", tampered, "--limit", "0").stdout.splitlines()) == 5


def test_a_good_file_does_not_hide_a_bad_one(tampered: Path, tmp_path: Path) -> None:
    good = tmp_path / "good.jsonl"
    good.write_text(lines_of(*recorded("taints", 1)))

    assert run("verify", tampered, good).exit_code == 1


def test_bench_counts_and_times(tmp_path: Path) -> None:
    pods = [pod("a"), pod("b"), pod("big", requests={"cpu": "64"}), pod("gated", schedulingGates=[{"name": "g"}])]
    file = tmp_path / "case.json"
    file.write_text(json.dumps({"name": "small", "objects": [node()], "pods": pods}))

    result = run("bench", file)

    assert result.exit_code == 0
    measured = json.loads(result.stdout)
    assert measured.keys() == {"scheduled", "failed", "seconds", "pods_per_s"}
    assert (measured["scheduled"], measured["failed"]) == (2, 2)
    assert 4 / measured["pods_per_s"] == pytest.approx(measured["seconds"], abs=0.001)
