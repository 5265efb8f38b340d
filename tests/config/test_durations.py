"""Durations as Go writes them."""

from __future__ import annotations

from typing import Any

import pytest

from podium.config.fields import LONGEST, SECOND, parse_duration, seconds_of


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


@pytest.mark.parametrize(
    ("value", "seconds"), [("1h30m", 5400.0), ("500ms", 0.5), (90, 90.0), (0.25, 0.25), (0, 0.0), (LONGEST, LONGEST)]
)
def test_seconds_or_a_duration(value: float | str, seconds: float) -> None:
    assert seconds_of(value) == seconds


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("soon", "is not a duration such as 300s or 1h30m"),
        ("90", "is not a duration such as 300s or 1h30m"),
        ([90], "is not a duration such as 300s or 1h30m"),
        (10**400, "is not a duration such as 300s or 1h30m"),
        (True, "is not a duration from 0 on, up to ten years"),
        (-1, "is not a duration from 0 on, up to ten years"),
        (float("nan"), "is not a duration from 0 on, up to ten years"),
        ("100000h", "is not a duration from 0 on, up to ten years"),
    ],
    ids=str,
)
def test_neither_seconds_nor_a_duration(value: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}$"):
        seconds_of(value)


def test_a_time_is_called_a_time() -> None:
    with pytest.raises(ValueError, match="is not a time such as 3600 or 1h30m"):
        seconds_of("soon", "time", "3600")
