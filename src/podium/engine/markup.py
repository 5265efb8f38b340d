"""HTML in small pieces: everything that is not markup already is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

VOID = frozenset({"br", "meta"})
LONGEST_NAME = 40


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def markup(content: object) -> Markup:
    """Content as HTML: markup as it is, anything else escaped."""
    return content if isinstance(content, Markup) else Markup(escape(str(content)))


def element(tag: str, *content: object, **attributes: object) -> Markup:
    """An element; of the attributes, those that are None or empty are left out, and `class_` is for `class`."""
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for name, value in attributes.items()
        if value not in (None, "")
    )
    inner = "".join(map(markup, content))
    return Markup(f"<{tag}{given}>" if tag in VOID else f"<{tag}{given}>{inner}</{tag}>")


def together(parts: Iterable[object]) -> Markup:
    """Pieces one after the other."""
    return Markup("".join(map(markup, parts)))


class Cell(NamedTuple):
    """A cell of a table with a look of its own."""

    content: object
    style: str = ""
    class_: str = ""
    title: str = ""


class Heading(NamedTuple):
    """What stands above a column; numbers stand to the right."""

    title: str
    right: bool = False
    explained: str = ""
    """Shown when somebody points at it."""


def table(headings: Sequence[Heading | str], rows: Iterable[Sequence[object]], class_: str = "") -> Markup:
    """A table with a line of headings; a cell may be a `Cell`."""
    columns = [heading if isinstance(heading, Heading) else Heading(heading) for heading in headings]
    head = [
        element("th", column.title, scope="col", class_="right" if column.right else "", title=column.explained)
        for column in columns
    ]
    body = [element("tr", *(_cell(cell, column) for cell, column in zip(row, columns, strict=True))) for row in rows]
    return element("table", element("thead", element("tr", *head)), element("tbody", *body), class_=class_)


def _is_name(cell: Cell) -> bool:
    """Whether the content is one short word, which is better not broken at its hyphens."""
    text = str(cell.content)
    return not isinstance(cell.content, Markup) and " " not in text and len(text) <= LONGEST_NAME


def _cell(content: object, column: Heading) -> Markup:
    cell = content if isinstance(content, Cell) else Cell(content)
    classes = " ".join(filter(None, ("right" if column.right else "", "name" if _is_name(cell) else "", cell.class_)))
    return element("td", cell.content, class_=classes, style=cell.style, title=cell.title)
