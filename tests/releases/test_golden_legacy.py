"""Every committed recording of v1.8.15, v1.14.10 and v1.18.20, decided again: all of it agrees."""

from __future__ import annotations

import pytest

from releases.recordings import GOLDEN, answer, comparable, recordings

FAMILIES = (
    *("v1.8-default", "v1.8-policy", "v1.8-volumes"),
    *("v1.14-conditions", "v1.14-default", "v1.14-policy", "v1.14-volumes"),
    *("v1.18-config", "v1.18-default", "v1.18-policy", "v1.18-volumes"),
)
CASES = 120
"""How many cases each family has: none of them may get lost."""


@pytest.mark.parametrize("family", FAMILIES)
def test_agrees(family: str) -> None:
    release = family.split("-")[0]
    seen = 0
    for recorded in recordings(family):
        case, expected = recorded["case"], recorded["expect"]
        assert comparable(answer(case, release)) == comparable(expected), case["name"]
        seen += 1
    assert seen == CASES


def test_every_recording_is_decided_again() -> None:
    assert sorted(path.name.removesuffix(".jsonl.gz") for path in GOLDEN.iterdir()) == sorted(FAMILIES)
