"""The nodes of a decision by its plugins, as HTML: the more of a plugin's points a node has, the darker its cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from podium.engine.explanation import Scored, ranking, rejections, scored
from podium.engine.markup import Cell, Heading, Markup, table
from podium.engine.text import listed

if TYPE_CHECKING:
    from podium.engine.decision import Decision

SHADE = "37, 99, 175"
"""Red, green and blue."""
DARKEST = 0.75


def heat_map(decision: Decision, nodes: Sequence[str] | None = None) -> Markup:
    """Weighted scores per node and plugin, best node first: all that fit, unless `nodes` says which.

    Shades are by plugin: the fewest points any of all nodes has are white, the most are dark.
    """
    plugins = scored(decision)
    headings = [Heading("Node"), Heading("Total", right=True), *(_heading(one) for one in plugins)]
    totals = decision.totals
    rows = [
        [
            Cell(node, class_="chosen" if node == decision.node else "", title=_about(node, decision)),
            Cell(f"{totals[node]:,}", shade(totals[node], totals.values())),
            *(
                Cell(
                    f"{one.weighted[node]:,}", shade(one.weighted[node], one.weighted.values()), title=_parts(one, node)
                )
                for one in plugins
            ),
        ]
        for node in (ranking(decision) if nodes is None else nodes)
    ]
    return table(headings, rows, class_="heat")


def rejection_table(decision: Decision, most: int | None = None) -> Markup:
    """The rejected nodes by plugin and reasons; of many with the same, the first `most` are named."""
    rows = [
        (f"{len(group.nodes):,}", group.why, listed(group.nodes, len(group.nodes) if most is None else most))
        for group in rejections(decision)
    ]
    return table([Heading("Rejected", right=True), "Because", "Nodes"], rows)


def shade(number: int, among: Iterable[int]) -> str:
    """The style of a cell: how dark it is says where the number stands among all."""
    numbers = list(among)
    low, high = min(numbers), max(numbers)
    if low == high:
        return ""
    depth = (number - low) / (high - low)
    light = "; color: #fff" if depth > 0.7 else ""
    return f"background: rgba({SHADE}, {depth * DARKEST:.2f}){light}"


def _heading(one: Scored) -> Heading:
    return Heading(one.plugin, right=True, explained="" if one.weight is None else f"weight {one.weight}")


def _about(node: str, decision: Decision) -> str:
    return "chosen" if node == decision.node else "tied with the chosen one" if node in decision.ties else ""


def _parts(one: Scored, node: str) -> str:
    if one.raw is None or one.normalized is None:
        return ""
    return f"raw {one.raw[node]}, normalised {one.normalized[node]}, times {one.weight}"
