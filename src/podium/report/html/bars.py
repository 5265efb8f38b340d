"""How full nodes are, as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from podium.cluster import Cluster
from podium.engine import Usage
from podium.engine.markup import Markup, element, table
from podium.report.amounts import amount, share
from podium.report.html.page import scrolling, section
from podium.resources import CPU, MEMORY

SHOWN = (CPU, MEMORY)


def usages(before: Cluster | None, after: Cluster) -> dict[str, Usage]:
    """Cpu and memory of each node of a cluster, and on another one before; the same if there is none."""
    then, now = _amounts(before or after, "requested"), _amounts(after, "requested")
    offered = _amounts(after, "allocatable")
    return {name: Usage(offered[name], then.get(name, {}), now[name]) for name in now}


def bar_section(title: str, nodes: Mapping[str, Usage], resources: Sequence[str] = SHOWN) -> Markup:
    """A table of bars, a row per node by name; what came and what went is marked where nodes changed."""
    rows = [(name, *(bar(usage, resource) for resource in resources)) for name, usage in sorted(nodes.items())]
    changed = any(usage.before != usage.after for usage in nodes.values())
    content = scrolling(table(["Node", *(resource.rpartition("/")[2] for resource in resources)], rows, class_="bars"))
    return section(title, *([_key()] if changed else []), content)


def bar(usage: Usage, resource: str) -> Markup:
    """How full a node is: what stays, what comes, what goes; nothing where it offers none."""
    of = usage.allocatable.get(resource, 0)
    before, after = usage.before.get(resource, 0), usage.after.get(resource, 0)
    if not of:
        return element("span", "-", class_="dim")
    parts = [
        _part("kept", 0, min(before, after), of),
        _part("more", before, after, of),
        _part("less", after, before, of),
    ]
    text = share(after, of) if before == after else f"{share(before, of)} → {share(after, of)}"
    about = f"{amount(resource, after)} of {amount(resource, of)}"
    return element("span", element("span", *filter(None, parts), class_="bar", title=about), text)


def _part(kind: str, start: int, end: int, of: int) -> Markup | None:
    if end <= start:
        return None
    left, right = (min(100 * place / of, 100.0) for place in (start, end))
    return element("span", class_=kind, style=f"left: {left:.1f}%; width: {right - left:.1f}%")


def _key() -> Markup:
    whole = "left: 0; width: 100%"
    words = {"kept": "as before", "more": "more than before", "less": "no longer"}
    marks = (
        (element("span", element("span", class_=kind, style=whole), class_="bar"), text) for kind, text in words.items()
    )
    return element("p", *(part for mark in marks for part in mark), class_="key note")


def _amounts(cluster: Cluster, what: Literal["allocatable", "requested"]) -> dict[str, dict[str, int]]:
    amounts = [getattr(cluster.nodes, what)(resource).tolist() for resource in SHOWN]
    return {
        str(name): dict(zip(SHOWN, numbers, strict=True))
        for name, *numbers in zip(cluster.nodes.names, *amounts, strict=True)
    }
