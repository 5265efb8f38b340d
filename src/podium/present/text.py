"""Lays out plain text: wrapped sentences, lists of names, aligned tables. No line is wider than asked for."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import takewhile
from typing import NamedTuple

from podium.model.amounts import amount as amount


def share(number: int, of: int) -> str:
    """A percentage, `37%`; empty if `of` is 0."""
    return f"{number / of:.0%}" if of else "-"


GAP = "  "
UNLIMITED = 100_000
"""More columns than any line needs."""
LEAST_TEXT = 24
"""The minimum number of columns for text next to a table."""


class NodeDomain:
    """The suffix that all node names share, for example .eu-central-1.compute.internal; text leaves it out."""

    def __init__(self, domain: str) -> None:
        self.domain, self.was_left_out = domain, False
        # Not in values that a user may copy: kubernetes.io/hostname=NAME.
        self._names = re.compile(rf"(?<![\w.=-])([\w-][\w.-]*?){re.escape(domain)}(?![\w-]|\.\w)")

    def without(self, text: str) -> str:
        """The text with shorter node names."""
        if not self.domain or self.domain not in text:
            return text
        shorter = self._names.sub(r"\1", text)
        self.was_left_out |= shorter != text
        return shorter


_DOMAIN: ContextVar[NodeDomain | None] = ContextVar("node domain", default=None)


def without_domain(text: str) -> str:
    """The text with node names shortened as set by `leaving_out`."""
    left_out = _DOMAIN.get()
    return text if left_out is None else left_out.without(text)


def about_domain() -> str:
    """A sentence about the suffix that was left out of node names so far; empty if none was."""
    left_out = _DOMAIN.get()
    return f"Nodes are named without {left_out.domain}" if left_out is not None and left_out.was_left_out else ""


@contextmanager
def leaving_out(domain: str) -> Iterator[NodeDomain]:
    """Leave the suffix of node names out of all text that is laid out in the block."""
    left_out = NodeDomain(domain)
    token = _DOMAIN.set(left_out)
    try:
        yield left_out
    finally:
        _DOMAIN.reset(token)


def common_domain(names: Sequence[str]) -> str:
    """The suffix that all names share, from a dot on, if there are several names and none would become empty."""
    if len(names) < 2:
        return ""
    backwards = zip(*(name.split(".")[:0:-1] for name in names), strict=False)
    shared = [labels[0] for labels in takewhile(lambda labels: len(set(labels)) == 1, backwards)]
    return "".join(f".{label}" for label in reversed(shared))


class Line(NamedTuple):
    """A line of text, and its style on a terminal: `bold`, `green`, `red`, `dim` or empty."""

    text: str
    style: str = ""


class Sentence(NamedTuple):
    """A sentence of an answer, with its style and its indents in a text."""

    text: str
    style: str = ""
    first: str = ""
    """What stands before it; the lines after the first are indented by `then`."""
    then: str = ""

    @property
    def alone(self) -> str:
        """The sentence outside of a text with indents."""
        return f"{self.first}{self.text}".strip()


def flowing(sentences: Iterable[Sentence], width: int) -> list[Line]:
    """Each sentence in lines of at most `width`."""
    return [
        line
        for each in sentences
        for line in wrapped(each.text, width, first=each.first, then=each.then, style=each.style)
    ]


def wrapped(text: str, width: int, *, first: str = "", then: str = "", style: str = "") -> list[Line]:
    """The text in lines of at most `width`, the first and the following ones indented as given."""
    text = _unbroken(without_domain(text))
    words = text.split(" ")
    if first.strip() and words and len(first) + len(words[0]) > width:
        # There is no room left after the beginning.
        return [Line(first.rstrip(), style), *wrapped(text, width, first=then, then=then, style=style)]
    lines = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=then, break_on_hyphens=False, break_long_words=False
    )
    return [Line(line.replace(_HARD_SPACE, " "), style) for line in lines]


_HARD_SPACE = "\N{NO-BREAK SPACE}"
_TIMES = re.compile(r" (?=x\d)")


def _unbroken(text: str) -> str:
    """The text without a line break between a name and its count: `n1 x3`."""
    return _TIMES.sub(_HARD_SPACE, text)


class Column(NamedTuple):
    """A column of a table: its title and one cell per row; numbers are right-aligned."""

    title: str
    cells: Sequence[str]
    right: bool = True

    @property
    def texts(self) -> list[str]:
        """The title and the cells as shown: a line break in a name of the input is replaced."""
        return [without_domain(text).replace("\n", " ") for text in (self.title, *self.cells)]

    @property
    def width(self) -> int:
        return max(map(len, self.texts))


def table(columns: Sequence[Column], width: int = UNLIMITED) -> list[str]:
    """The title and then each row, columns aligned.

    A row whose names leave no room for its other cells takes several lines: the long name gets a line of its own.
    """
    widths = _widths(columns, width)
    rows = zip(*(column.texts for column in columns), strict=True)
    return [_row(row, columns, widths, width) for row in rows]


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    """The width of each column: that of its cells. If there is no room, columns of names shrink, the widest first."""
    widths = [column.width for column in columns]
    lengths = [[] if column.right else sorted({len(text) for text in column.texts}) for column in columns]
    over = sum(widths) + len(GAP) * (len(widths) - 1) - width
    while over > 0:
        # The widest column ignores its longest name, but never its title.
        giving = [place for place, column in enumerate(columns) if lengths[place][-1:] > [len(column.title)]]
        if not giving:
            break
        place = max(giving, key=lambda place: widths[place])
        lengths[place].pop()
        over -= widths[place] - lengths[place][-1]
        widths[place] = lengths[place][-1]
    return widths


def _row(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int], width: int) -> str:
    lines, start = [""], 0
    for cell, column, wide in zip(cells, columns, widths, strict=True):
        at = start
        if len(cell) > wide and start:
            at = max(min(start, width - len(cell)), len(GAP))
        if at and len(lines[-1]) > at - len(GAP):
            lines.append("")
        lines[-1] = (lines[-1].ljust(at) + (cell.rjust(wide) if column.right else cell)).rstrip()
        start += wide + len(GAP)
    return "\n".join(lines)


def table_with_text(
    columns: Sequence[Column],
    title: str,
    texts: Sequence[str],
    width: int,
    styles: Sequence[str] = (),
    remarks: Sequence[str] = (),
) -> list[Line]:
    """A table whose last column is wrapped text; a row may have a remark, which is shown below its text."""
    words = [len(word) for text in (title, *texts) for word in _unbroken(without_domain(text)).split(" ")]
    room = width - min(max(LEAST_TEXT, *words), width // 2) - len(GAP)
    indent = sum(_widths(columns, room)) + len(GAP) * len(columns)
    head, *starts = table(columns, room)
    lines = [Line(f"{head.ljust(indent)}{title}", "bold")]
    nothing = [""] * len(texts)
    for start, text, style, more in zip(starts, texts, styles or nothing, remarks or nothing, strict=True):
        *names, start = start.split("\n")
        lines += [Line(name, style) for name in names]
        beside = wrapped(text, width, first=start.ljust(indent), then=" " * indent, style=style)
        lines += beside or [Line(start, style)]
        lines += wrapped(more, width, first=" " * (indent + 2), then=" " * (indent + 2), style="dim")
    return lines


def fitting(fixed: Sequence[Column], others: Sequence[Column], width: int) -> list[list[Column]]:
    """The columns, split into as many tables as needed for each to fit; every table starts with the fixed columns."""
    room = width - sum(wide + len(GAP) for wide in _widths(fixed, width // 2))
    tables: list[list[Column]] = [[]]
    left = room
    for column in others:
        if tables[-1] and column.width > left:
            tables.append([])
            left = room
        tables[-1].append(column)
        left -= column.width + len(GAP)
    return [[*fixed, *chosen] for chosen in tables]


def styled(rows: Iterable[str], styles: Iterable[str]) -> list[Line]:
    """The lines of each row of a table, in the row's style."""
    return [Line(text, style) for row, style in zip(rows, styles, strict=True) for text in row.split("\n")]
