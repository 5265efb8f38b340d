"""Numbers and lists of names as they stand in sentences: `1 pod`, `2 pods`, `a, b and 3 more`."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """`1 node`, `5,000 nodes`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(names: Sequence[str], most: int) -> str:
    """`a, b, c and 7 more`: at most so many names."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most:,} more"


def joined(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def csv_cell(value: object) -> object:
    """A value for a cell of CSV: control characters of names from the input are written as escapes."""
    if isinstance(value, str) and not value.isprintable():
        return "".join(char if char.isprintable() else repr(char)[1:-1] for char in value)
    return value
