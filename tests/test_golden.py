"""Every committed recording of kube-scheduler v1.36.4, decided again: all of it agrees."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.recorded import read_records, verify

GOLDEN = Path(__file__).parent / "golden"

CASES = {
    "config": 149,
    "configurations": 73,
    "interpod": 150,
    "mixed": 148,
    "nodeaffinity": 150,
    "owners": 150,
    "ports": 150,
    "preempt": 150,
    "preempt-affinity": 150,
    "resources": 145,
    "rollout": 10,
    "spread": 150,
    "taints": 150,
    "volumes": 150,
}
"""How many cases each family has: none of them may get lost."""


@pytest.mark.parametrize("family", CASES)
def test_agrees(family: str) -> None:
    records = list(read_records(str(GOLDEN / f"{family}.jsonl.gz")))

    differences = [str(difference) for record in records for difference in verify(record)]

    assert differences == []
    assert len(records) == CASES[family]


def test_every_recording_is_decided_again() -> None:
    assert {path.name.removesuffix(".jsonl.gz") for path in GOLDEN.glob("*.jsonl.gz")} == CASES.keys()
