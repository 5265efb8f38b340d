"""How warnings say many names: the first few, and how many more."""

from __future__ import annotations

from collections.abc import Collection

_SHOWN = 3


def some(names: Collection[str]) -> str:
    """`a, b, c and 7 more`, in the order given."""
    shown = ", ".join(list(names)[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def count(number: int, noun: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
