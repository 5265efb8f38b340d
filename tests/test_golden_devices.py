"""Recorded decisions about devices, of kube-scheduler v1.36.4 and v1.37.1, decided again: all of it agrees."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podium.plugins import IN_TREE
from podium.recorded import Record, read_records, verify

GOLDEN = Path(__file__).parent / "golden" / "devices"
FAMILIES = {"dra": 98, "dra-full": 300}


def records(family: str) -> list[Record]:
    return list(read_records(str(GOLDEN / f"{family}.jsonl.gz")))


def of_v1_37() -> dict[str, Any]:
    """By case, what v1.37 decides differently; None where it was not recorded."""
    lines = gzip.decompress((GOLDEN / "v1.37-differences.jsonl.gz").read_bytes()).splitlines()
    return {entry["name"]: entry["expect"] for entry in map(msgspec.json.decode, lines)}


@pytest.mark.parametrize("family", FAMILIES)
def test_v1_36_agrees(family: str) -> None:
    recorded = records(family)

    differences = [str(each) for record in recorded for each in verify(record, IN_TREE, "v1.36")]

    assert differences == []
    assert len(recorded) == FAMILIES[family]


@pytest.mark.parametrize("family", FAMILIES)
def test_v1_37_agrees(family: str) -> None:
    others = of_v1_37()
    recorded = [
        record._replace(expect=others.get(record.case.name, record.expect))
        for record in records(family)
        if others.get(record.case.name, record.expect) is not None
    ]

    differences = [str(each) for record in recorded for each in verify(record, IN_TREE, "v1.37")]

    # VolumeBinding takes part in scoring since v1.37, which changes no total.
    assert [each for each in differences if "plugin VolumeBinding: score: expected nothing, got 0" not in each] == []


def test_what_is_new_in_v1_37_agrees() -> None:
    recorded = records("v1.37-new")

    assert [str(each) for record in recorded for each in verify(record, IN_TREE, "v1.37")] == []
    assert len(recorded) == 30
