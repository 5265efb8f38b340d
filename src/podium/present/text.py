"""Laying out plain text: wrapped sentences, lists of names, aligned tables. Nothing here is wider than asked for."""

from __future__ import annotations

import csv
import io
import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import takewhile
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


class NodeDomain:
    """The ending that all node names share, such as .eu-central-1.compute.internal, which text leaves out."""

    def __init__(self, domain: str) -> None:
        self.domain, self.was_left_out = domain, False
        # Not where a value is written that somebody may copy: kubernetes.io/hostname=NAME.
        self._names = re.compile(rf"(?<![\w.=-])([\w-][\w.-]*?){re.escape(domain)}(?![\w-]|\.\w)")

    def without(self, text: str) -> str:
        """The text with shorter node names."""
        if not self.domain or self.domain not in text:
            return text
        shorter = self._names.sub(r"\1", text)
        self.was_left_out |= shorter != text
        return shorter


_DOMAIN: ContextVar[NodeDomain | None] = ContextVar("node domain", default=None)


def _without_domain(text: str) -> str:
    left_out = _DOMAIN.get()
    return text if left_out is None else left_out.without(text)


@contextmanager
def leaving_out(domain: str) -> Iterator[NodeDomain]:
    """Leave the ending of node names out of everything that is laid out in the block."""
    left_out = NodeDomain(domain)
    token = _DOMAIN.set(left_out)
    try:
        yield left_out
    finally:
        _DOMAIN.reset(token)


def common_domain(names: Sequence[str]) -> str:
    """The ending that all names share, from a dot on, if there are several; of each name something is left."""
    if len(names) < 2:
        return ""
    backwards = zip(*(name.split(".")[:0:-1] for name in names), strict=False)
    shared = [labels[0] for labels in takewhile(lambda labels: len(set(labels)) == 1, backwards)]
    return "".join(f".{label}" for label in reversed(shared))


class Line(NamedTuple):
    """A line of text, and how a terminal that can do so shows it: `bold`, `green`, `red`, `dim` or nothing."""

    text: str
    style: str = ""


def wrapped(text: str, width: int, *, first: str = "", then: str = "", style: str = "") -> list[Line]:
    """The text in lines of at most `width`, the first and the following ones indented as given."""
    text = _without_domain(text)
    words = text.split()
    if first.strip() and words and len(first) + len(words[0]) > width:
        # No room is left beside the beginning.
        return [Line(first.rstrip(), style), *wrapped(text, width, first=then, then=then, style=style)]
    lines = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=then, break_on_hyphens=False, break_long_words=False
    )
    return [Line(line, style) for line in lines]


def shortened(text: str, width: int) -> str:
    """The text, its middle left out where it is too long: names tend to differ at either end."""
    text = _without_domain(text)
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
    def shown(self) -> list[str]:
        """The title and the cells, as wide as the widest of them."""
        texts = [_without_domain(text) for text in (self.title, *self.cells)]
        width = max(map(len, texts))
        return [text.rjust(width) if self.right else text.ljust(width) for text in texts]

    @property
    def width(self) -> int:
        return max(len(_without_domain(text)) for text in (self.title, *self.cells))


def table(columns: Sequence[Column]) -> list[str]:
    """The title line and a line per row, columns aligned."""
    return [GAP.join(row).rstrip() for row in zip(*(column.shown for column in columns), strict=True)]


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
