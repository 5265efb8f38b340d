"""The frame of a report: title, words, sections, and the one stylesheet."""

from __future__ import annotations

from collections.abc import Sequence

from podium.engine.markup import Markup, element, together
from podium.engine.text import Line
from podium.report.html.style import STYLE

UNLIMITED = 10_000
"""A width that no line of text reaches: the browser wraps."""


def page(title: str, words: Sequence[str], *sections: Markup | None, good: bool | None = None) -> str:
    """A whole file; `good` says how the first sentence is to be taken."""
    tone = "" if good is None else "good" if good else "bad"
    paragraphs = [element("p", text, class_=f"lead {tone}" if not place else "") for place, text in enumerate(words)]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        # Nothing of a report needs anything but the report.
        element("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"),
        element("title", title),
        element("style", Markup(STYLE)),
    )
    main = element("main", element("h1", title), *paragraphs, together(filter(None, sections)))
    footer = element("footer", "Written by Podium, which decides as kube-scheduler does.")
    return f"<!doctype html>\n{element('html', head, element('body', main, footer), lang='en')}\n"


def section(title: str, *content: object, note: str = "") -> Markup:
    """A part of a report under a heading, with a remark below it."""
    remark = [element("p", note, class_="note")] if note else []
    return element("section", element("h2", title), *content, *remark)


def scrolling(content: Markup) -> Markup:
    """Something wide, in a box that can be scrolled on a screen."""
    return element("div", content, class_="wide")


def opening(lines: Sequence[Line]) -> list[str]:
    """The sentences that a text starts with, before its first table."""
    texts = [line.text for line in lines]
    return texts[: texts.index("")] if "" in texts else texts
