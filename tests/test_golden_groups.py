"""Recorded cycles of kube-scheduler v1.37.1 with groups of pods, played again: all of it agrees.

`make test` plays some cases of each family; `make golden` plays all of them.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from podium.recorded import Record, read_records, verify

GROUPS = Path(__file__).parent / "golden" / "groups"
RELEASE = "v1.37"
CASES = 60
"""In each family."""
EVERY = 5
"""Every so many cases are played by `make test`."""
FAMILIES = [
    "gang-basic",
    "gang-devices",
    "gang-mixed",
    "gang-partial",
    "gang-preempt",
    "gang-queue",
    "gang-topology",
]


def records_of(family: str) -> list[Record]:
    return list(read_records(str(GROUPS / f"{family}.jsonl.xz"), RELEASE))


def differences(records: list[Record], *, equivalence_cache: bool = True) -> list[str]:
    found = (verify(record, release=RELEASE, equivalence_cache=equivalence_cache) for record in records)
    return [str(difference) for each in found for difference in each]


@pytest.mark.parametrize("family", FAMILIES)
def test_agrees(family: str) -> None:
    assert differences(list(islice(records_of(family), 0, None, EVERY))) == []


@pytest.mark.golden
@pytest.mark.parametrize("family", FAMILIES)
def test_all_agree(family: str) -> None:
    records = records_of(family)

    assert len(records) == CASES
    assert differences(records) == []


@pytest.mark.golden
@pytest.mark.parametrize("family", FAMILIES)
def test_agrees_from_scratch(family: str) -> None:
    assert differences(records_of(family), equivalence_cache=False) == []


def test_every_recording_is_played_again() -> None:
    assert sorted(path.name.removesuffix(".jsonl.xz") for path in GROUPS.glob("*.xz")) == FAMILIES
