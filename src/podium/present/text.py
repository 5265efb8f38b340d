"""Laying out plain text: wrapped sentences, lists of names, aligned tables. Nothing here is wider than asked for."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from podium.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from podium.wording import csv_cell

API_VERSION = "podium/v1"
"""The version of the documents that `-o json` and `-o yaml` write; docs/output.md says what is in them."""


def to_json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2)


def to_yaml(document: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True).rstrip("\n")


def to_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows separated by line breaks, the header first; None is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([csv_cell(cell) for cell in row] for row in rows)
    return text.getvalue().rstrip("\n")


_BYTES = (MEMORY, EPHEMERAL_STORAGE)
_HUGE_PAGES = "hugepages-"
_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def amount(resource: str, number: int) -> str:
    """An amount in scheduler units (milli-cpu, bytes, units) with at most one decimal: `2.5`, `31.3Gi`, `110`."""
    if resource == CPU:
        return _short(number / 1000)
    if resource in _BYTES or resource.startswith(_HUGE_PAGES):
        size, unit = float(number), 0
        while abs(size) >= 1024 and unit < len(_UNITS) - 1:
            size, unit = size / 1024, unit + 1
        return f"{_short(size)}{_UNITS[unit]}"
    return f"{number:,}"


def share(number: int, of: int) -> str:
    """`37%`; nothing can be a share of nothing."""
    return f"{number / of:.0%}" if of else "-"


def _short(number: float) -> str:
    return f"{number:,.1f}".removesuffix(".0")


GAP = "  "


class Line(NamedTuple):
    """A line of text, and how a terminal that can do so shows it: `bold`, `green`, `red`, `dim` or nothing."""

    text: str
    style: str = ""


def wrapped(text: str, width: int, *, first: str = "", then: str = "", style: str = "") -> list[Line]:
    """The text in lines of at most `width`, the first and the following ones indented as given."""
    lines = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=then, break_on_hyphens=False, break_long_words=False
    )
    return [Line(line, style) for line in lines]


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
