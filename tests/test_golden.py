"""Every committed recording of v1.29.15 to v1.37.1, decided again: all of it agrees.

`make test` decides all cases of the newest release and some of the others; `make golden` decides all of them.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from podium.recorded import Record, read_records, verify
from podium.rules.gates import NEWEST, RELEASE_NAMES

GOLDEN = Path(__file__).parent / "golden"
EVERY = 10
"""Of the older releases, every so many cases are decided by `make test`."""

FAMILIES = {
    "config": 149,
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
"""How many cases v1.36 and v1.37 have of each family: none of them may get lost."""
PREEMPT = ("preempt", "preempt-affinity")
OTHERS = {("configurations", "v1.36"): 73, ("configurations", "v1.37"): 73, ("new-in-v1.37", "v1.37"): 79}
RECORDED = {"v1.29": 752, "v1.30": 750, "v1.31": 751, "v1.32": 751, "v1.33": 751, "v1.34": 750, "v1.35": 750}
"""How many cases the older releases have of all families together, besides the 300 of preemption."""

EVERYTHING = [(family, release) for family in FAMILIES for release in RELEASE_NAMES] + list(OTHERS)


def records_of(family: str, release: str) -> list[Record]:
    return list(read_records(str(GOLDEN / f"{family}.jsonl.xz"), release))


def differences(records: list[Record], release: str) -> list[str]:
    return [str(difference) for record in records for difference in verify(record, release=release)]


@pytest.mark.parametrize(("family", "release"), EVERYTHING)
def test_agrees(family: str, release: str) -> None:
    records = records_of(family, release)
    start = RELEASE_NAMES.index(release)
    some = records if release == NEWEST or len(records) < EVERY else list(islice(records, start, None, EVERY))

    assert differences(some, release) == []


@pytest.mark.golden
@pytest.mark.parametrize(("family", "release"), [each for each in EVERYTHING if each[1] != NEWEST])
def test_all_agree(family: str, release: str) -> None:
    assert differences(records_of(family, release), release) == []


@pytest.mark.golden
def test_no_case_is_lost() -> None:
    counts = {(family, release): len(records_of(family, release)) for family, release in EVERYTHING}

    assert {each: counts[each] for each in OTHERS} == OTHERS
    for release in ("v1.36", NEWEST):
        assert {family: counts[family, release] for family in FAMILIES} == FAMILIES
    for release, expected in RECORDED.items():
        assert sum(counts[family, release] for family in FAMILIES if family not in PREEMPT) == expected, release
        assert sum(counts[family, release] for family in PREEMPT) == 300, release


def test_every_recording_is_decided_again() -> None:
    assert {path.name.removesuffix(".jsonl.xz") for path in GOLDEN.glob("*.xz")} == {each[0] for each in EVERYTHING}
