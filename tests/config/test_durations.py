"""Durations as Go writes them."""

from __future__ import annotations

import pytest

from podium.config.fields import SECOND, parse_duration


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("+0", 0),
        ("0s", 0),
        ("5s", 5 * SECOND),
        ("1m30s", 90 * SECOND),
        ("1h1m1s1ms1us1ns", 3661 * SECOND + 1_001_001),
        ("100ms", 100_000_000),
        ("1.5h", 5400 * SECOND),
        (".5s", SECOND // 2),
        ("1.s", SECOND),
        ("-2s", -2 * SECOND),
        ("+2s", 2 * SECOND),
        ("3\u00b5s", 3000),
        ("3\u03bcs", 3000),
        ("0.9ns", 0),
        ("30s1m", 90 * SECOND),
        ("-9223372036854775808ns", -(2**63)),
    ],
)
def test_durations(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    ["", "-", "soon", "5", "5 s", " 5s", "5s ", "s", ".s", "1d", "1.2.3s", "5S", "--5s", "9223372036854775808ns"],
)
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="invalid duration"):
        parse_duration(text)
