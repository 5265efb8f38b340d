"""Laying out plain text: wrapped sentences, lists of names, aligned tables. Nothing here is wider than asked for."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import NamedTuple

GAP = "  "


class Line(NamedTuple):
    """A line of text, and how a terminal that can do so shows it: `bold`, `green`, `red`, `dim` or nothing."""

    text: str
    style: str = ""


def wrapped(text: str, width: int, *, first: str = "", then: str = "", style: str = "") -> list[Line]:
    """The text in lines of at most `width`, the first and the following ones indented as given."""
    lines = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=then, break_on_hyphens=False, break_long_words=True
    )
    return [Line(line, style) for line in lines]


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


def shortened(text: str, width: int) -> str:
    """The text, its middle left out where it is too long: names tend to differ at either end."""
    if len(text) <= width:
        return text
    head = (width - 2) // 2
    return f"{text[:head]}..{text[len(text) - (width - 2 - head) :]}"


class Column(NamedTuple):
    """A column of a table: its title and one cell per row; numbers stand to the right."""

    title: str
    cells: Sequence[str]
    right: bool = True

    @property
    def width(self) -> int:
        return max(map(len, (self.title, *self.cells)))

    def padded(self, text: str) -> str:
        return text.rjust(self.width) if self.right else text.ljust(self.width)


def table(columns: Sequence[Column]) -> list[str]:
    """The title line and a line per row, columns aligned."""
    titles = GAP.join(column.padded(column.title) for column in columns)
    rows = zip(*(map(column.padded, column.cells) for column in columns), strict=True)
    return [titles.rstrip(), *(GAP.join(row).rstrip() for row in rows)]


def fitting(fixed: Sequence[Column], others: Sequence[Column], width: int) -> list[list[Column]]:
    """The columns in as many tables as it takes for each to fit; every one starts with the fixed columns."""
    room = width - sum(column.width + len(GAP) for column in fixed)
    tables: list[list[Column]] = [[]]
    left = room
    for column in others:
        if tables[-1] and column.width > left:
            tables.append([])
            left = room
        tables[-1].append(column)
        left -= column.width + len(GAP)
    return [[*fixed, *chosen] for chosen in tables]


def styled(lines: Iterable[str], styles: Iterable[str]) -> list[Line]:
    return [Line(text, style) for text, style in zip(lines, styles, strict=True)]
