from __future__ import annotations

import math

import pytest

from podium.manifests.yaml_documents import Scalar, key_text, resolve_scalar


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # Booleans, as kubectl reads them.
        *((text, True) for text in ("true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON")),
        *((text, False) for text in ("false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF")),
        *((text, text) for text in ("tRUE", "yEs", "oN", "nO", "none", "t", "f")),
        # Nothing.
        *((text, None) for text in ("", "~", "null", "Null", "NULL")),
        ("nil", "nil"),
        # Integers: Go's prefixes, and underscores between digits.
        ("0", 0),
        ("12", 12),
        ("+12", 12),
        ("-12", -12),
        ("1_000", 1000),
        ("0x1F", 31),
        ("-0x10", -16),
        ("0b101", 5),
        ("-0b11", -3),
        ("0o17", 15),
        ("017", 15),
        ("00", 0),
        ("0xzz", "0xzz"),
        ("0b2", "0b2"),
        ("0o8", "0o8"),
        ("9223372036854775808", 2**63),
        ("18446744073709551615", 2**64 - 1),
        # Out of 64 bits: a float in decimal, text in other bases.
        ("18446744073709551616", 2**64),
        ("0x10000000000000000", "0x10000000000000000"),
        # Floats; those without a fraction are integers once they are JSON.
        ("1.5", 1.5),
        ("-1.5e-3", -0.0015),
        (".5", 0.5),
        ("5.", 5),
        ("1e3", 1000),
        ("1E3", 1000),
        ("08", 8),
        ("1e22", 1e22),
        ("1e999", "1e999"),
        # What looks like a number and is not one.
        ("1:30", "1:30"),
        ("190:20:30", "190:20:30"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("100m", "100m"),
        ("1Gi", "1Gi"),
        ("1.2.3", "1.2.3"),
        ("10.0.0.1", "10.0.0.1"),
        ("1e", "1e"),
        ("-", "-"),
        (".", "."),
        (".1_0", ".1_0"),
        ("e3", "e3"),
        ("web", "web"),
    ],
)
def test_resolves(text: str, value: Scalar) -> None:
    resolved = resolve_scalar(text)

    assert resolved == value
    assert type(resolved) is type(value)


@pytest.mark.parametrize("text", [".inf", "+.Inf", "-.INF", ".nan", ".NaN"])
def test_what_json_cannot_hold_is_a_float(text: str) -> None:
    resolved = resolve_scalar(text)

    assert isinstance(resolved, float)
    assert not math.isfinite(resolved)


@pytest.mark.parametrize(
    ("key", "text"),
    [("a", "a"), (1, "1"), (True, "true"), (False, "false"), (1.5, "1.5"), (None, None)],
)
def test_keys_are_text(key: Scalar, text: str | None) -> None:
    assert key_text(key) == text
