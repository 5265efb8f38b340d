"""Decisions and simulations as data frames, and as HTML tables for notebooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from podium.engine.decision import Scored, ranking, scored
from podium.errors import InputError
from podium.present.explanation import NAMED, NO_OBSTACLES, TOP, Obstacles, rejections, summarized, words
from podium.present.html_page import Cell, Heading, Markup, element, table
from podium.wording import counted, listed

if TYPE_CHECKING:
    import polars

    from podium.engine.decision import Decision
    from podium.engine.simulation import Placement, Simulation


TEXT, TEXTS, NUMBER = "text", "texts", "number"


def decision_frame(decision: Decision) -> polars.DataFrame:
    """One row per node, the best first, then the rejected nodes; one weighted score per plugin."""
    plugins = scored(decision)
    best = dict.fromkeys(decision.ties, "tied") | {decision.node: "chosen"}
    rows: list[tuple[Any, ...]] = [
        (
            node,
            best.get(node, "feasible"),
            None,
            None,
            decision.totals.get(node),
            *(one.weighted[node] for one in plugins),
        )
        for node in ranking(decision)
    ]
    rows += [
        (node, "rejected", status.plugin, list(status.reasons), None, *[None] * len(plugins))
        for node, status in decision.rejected.items()
    ]
    text = {"node": TEXT, "status": TEXT, "plugin": TEXT, "reasons": TEXTS}
    return _frame(rows, {**text, "total": NUMBER, **{one.plugin: NUMBER for one in plugins}})


def simulation_frame(simulation: Simulation) -> polars.DataFrame:
    """One row per pod in the order of deciding; for a pod without a node, `message` says why."""
    rows = [
        (each.pod.namespace, each.pod.name, each.workload, each.pod.priority, each.node, each.message or None)
        for each in simulation.placements
    ]
    about = {"namespace": TEXT, "pod": TEXT, "workload": TEXT, "priority": NUMBER}
    return _frame(rows, {**about, "node": TEXT, "message": TEXT})


def _frame(rows: Sequence[tuple[Any, ...]], columns: Mapping[str, str]) -> polars.DataFrame:
    """Rows as a frame, each column of the named type."""
    try:
        import polars
    except ImportError:
        raise InputError("data frames need polars: pip install 'podium[frames]'") from None
    types: dict[str, Any] = {TEXT: polars.String, TEXTS: polars.List(polars.String), NUMBER: polars.Int64}
    return polars.DataFrame(rows, schema={name: types[kind] for name, kind in columns.items()}, orient="row")


SHADE = "37, 99, 175"
"""Red, green and blue of the shade."""
DARKEST = 0.95
LIGHT_TEXT = 0.8
"""From this depth of shade on, white text reads better than black."""


def heat_map(decision: Decision, nodes: Sequence[str] | None = None) -> Markup:
    """Weighted scores per node and plugin, best node first: of all feasible nodes, or of `nodes`.

    Shades are per plugin: the lowest score of all nodes is white, the highest is dark. A plugin that gave every node 0
    has no column.
    """
    plugins = [(one, Shades(one.weighted.values())) for one in scored(decision) if any(one.weighted.values())]
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


def rejection_table(decision: Decision, most: int | None = None, obstacles: Obstacles = NO_OBSTACLES) -> Markup:
    """The rejected nodes by plugin and reasons, and the obstacles; at most `most` nodes are named."""
    rows = []
    for group in rejections(decision):
        nodes = listed(group.nodes, len(group.nodes) if most is None else most)
        found = [". ".join(summarized(group.nodes, obstacles))] if obstacles else []
        rows.append((f"{len(group.nodes):,}", group.why, *found, nodes))
    return table([Heading("Rejected", right=True), "Because", *(["In the way"] if obstacles else []), "Nodes"], rows)


class Shades:
    """The shade of a cell, by the position of its number between the lowest and the highest."""

    def __init__(self, numbers: Collection[int]) -> None:
        self._low, self._high = min(numbers, default=0), max(numbers, default=0)

    def style(self, number: int) -> str:
        """The style of a cell; empty if all numbers are equal."""
        if self._low == self._high:
            return ""
        depth = (number - self._low) / (self._high - self._low)
        light = "; color: #fff" if depth > LIGHT_TEXT else ""
        return f"background: rgba({SHADE}, {depth * DARKEST:.2f}){light}"


def _heading(one: Scored) -> Heading:
    weight = "" if one.weight is None else f", weight {one.weight}"
    return Heading(one.title or one.plugin, right=True, explained=f"{one.plugin}{weight}")


def _about(node: str, decision: Decision) -> str:
    return "chosen" if node == decision.node else "tied with the chosen one" if node in decision.ties else ""


def _parts(one: Scored, node: str) -> str:
    if one.raw is None or one.normalized is None:
        return ""
    return f"raw {one.raw[node]}, normalised {one.normalized[node]}, times {one.weight}"


def decision_html(decision: Decision) -> str:
    """The decision in words, the scores of the ten best nodes, and the rejections by reason."""
    parts = [element("p", " ".join(words(decision)))]
    if scored(decision):
        order = ranking(decision)
        parts.append(heat_map(decision, order[:TOP]))
        parts += [element("p", f"and {counted(len(order) - TOP, 'more node')}")] if len(order) > TOP else []
    if decision.rejected:
        parts.append(rejection_table(decision, NAMED))
    return element("div", *parts)


def simulation_html(simulation: Simulation) -> str:
    """How many pods fit, where the pods of each workload go, and why others stay pending."""
    pods, pending = counted(len(simulation.placements), "pending pod"), len(simulation.pending)
    parts = [element("p", f"{pods}: {len(simulation.placed):,} placed, {pending:,} still pending.")]
    if simulation.placements:
        parts.append(workload_table(simulation, NAMED))
    if simulation.pending:
        parts.append(pending_table(simulation, NAMED))
    return element("div", *parts)


def workload_table(simulation: Simulation, most: int | None = None) -> Markup:
    """Where the pods of each workload go; at most `most` nodes are named."""
    groups: dict[tuple[str, str], list[Placement]] = {}
    for each in simulation.placements:
        groups.setdefault((each.pod.namespace, each.workload), []).append(each)
    rows = []
    for (namespace, workload), placements in groups.items():
        nodes = Counter(each.node for each in placements if each.node is not None).most_common()
        on = [node if count == 1 else f"{node} x{count:,}" for node, count in nodes]
        named = listed(on, len(on) if most is None else most) or "-"
        rows.append((namespace, workload, f"{len(placements):,}", f"{sum(count for _, count in nodes):,}", named))
    return table(["Namespace", "Workload", Heading("Pods", right=True), Heading("Placed", right=True), "On"], rows)


def pending_table(simulation: Simulation, most: int | None = None) -> Markup:
    """Why pods stay pending; at most `most` pods with the same reason are named."""
    groups: dict[str, list[str]] = {}
    for each in simulation.pending:
        groups.setdefault(each.message, []).append(each.pod.key)
    rows = [(listed(keys, len(keys) if most is None else most), message) for message, keys in groups.items()]
    return table(["Stay pending", "Because"], rows)
