"""The nodes of a decision by its plugins, as HTML: the more of a plugin's points a node has, the darker its cell."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from podium.engine.explanation import Scored, ranking, rejections, scored
from podium.engine.markup import Cell, Heading, Markup, table
from podium.engine.text import listed

if TYPE_CHECKING:
    from podium.engine.decision import Decision

SHADE = "37, 99, 175"
"""Red, green and blue."""
DARKEST = 0.95
LIGHT_TEXT = 0.8
"""How deep a shade has to be for white text to read better than black."""


def heat_map(decision: Decision, nodes: Sequence[str] | None = None) -> Markup:
    """Weighted scores per node and plugin, best node first: all that fit, unless `nodes` says which.

    Shades are by plugin: the fewest points any of all nodes has are white, the most are dark.
    """
    plugins = [(one, Shades(one.weighted.values())) for one in scored(decision)]
    headings = [Heading("Node"), Heading("Total", right=True), *(_heading(one) for one, _ in plugins)]
    totals = Shades(decision.totals.values())
    rows = []
    for node in ranking(decision) if nodes is None else nodes:
        name = Cell(node, class_="chosen" if node == decision.node else "", title=_about(node, decision))
        total = Cell(f"{decision.totals[node]:,}", totals.style(decision.totals[node]))
        scores = [
            Cell(f"{one.weighted[node]:,}", shades.style(one.weighted[node]), title=_parts(one, node))
            for one, shades in plugins
        ]
        rows.append([name, total, *scores])
    return table(headings, rows, class_="heat")


def rejection_table(decision: Decision, most: int | None = None) -> Markup:
    """The rejected nodes by plugin and reasons; of many with the same, the first `most` are named."""
    rows = [
        (f"{len(group.nodes):,}", group.why, listed(group.nodes, len(group.nodes) if most is None else most))
        for group in rejections(decision)
    ]
    return table([Heading("Rejected", right=True), "Because", "Nodes"], rows)


class Shades:
    """How dark a cell is says where its number stands among all."""

    def __init__(self, numbers: Collection[int]) -> None:
        self._low, self._high = min(numbers, default=0), max(numbers, default=0)

    def style(self, number: int) -> str:
        """The style of a cell; none if all numbers are alike."""
        if self._low == self._high:
            return ""
        depth = (number - self._low) / (self._high - self._low)
        light = "; color: #fff" if depth > LIGHT_TEXT else ""
        return f"background: rgba({SHADE}, {depth * DARKEST:.2f}){light}"


def _heading(one: Scored) -> Heading:
    return Heading(one.plugin, right=True, explained="" if one.weight is None else f"weight {one.weight}")


def _about(node: str, decision: Decision) -> str:
    return "chosen" if node == decision.node else "tied with the chosen one" if node in decision.ties else ""


def _parts(one: Scored, node: str) -> str:
    if one.raw is None or one.normalized is None:
        return ""
    return f"raw {one.raw[node]}, normalised {one.normalized[node]}, times {one.weight}"
