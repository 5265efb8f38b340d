"""Renders the comparison of two ways to place the same pods: as text and tables, as a document, as CSV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from podium.answers import Comparison, Measures, Move, SpreadChange
from podium.answers.compare import TimelineComparison
from podium.model.resources import CPU, MEMORY
from podium.present import API_VERSION, to_csv
from podium.present.explanation import TOP, WIDTH
from podium.present.text import Column, Line, Sentence, amount, flowing, styled, table, table_with_text, wrapped
from podium.wording import counted, joined, listed

MOST_LISTED_NAMES = 6


def to_lines(comparison: Comparison, *, width: int = WIDTH, everything: bool = False) -> list[Line]:
    """How many pods move and which plugins are responsible, the moves, the measures, and the workloads whose spread
    differs.

    At most ten pods and workloads are shown, unless `everything`.
    """
    lines = flowing(sentences(comparison), width)
    if comparison.moves:
        lines += [Line(""), *move_lines(comparison, width, everything)]
    lines += [Line(""), *measure_lines(comparison, width)]
    if comparison.spread:
        lines += [Line(""), *_spread_lines(comparison.spread, width, everything)]
    return lines


def sentences(comparison: Comparison) -> Iterator[Sentence]:
    """How many pods move, which plugins and differences are responsible, and which pods are not compared."""
    pods, moved = len(comparison.after.nodes) - len(comparison.only_after), len(comparison.moves)
    names = f"{comparison.after.name} than with {comparison.before.name}"
    if not pods:
        yield Sentence(f"No pod goes elsewhere with {names}: there is none to compare.")
    elif not moved:
        yield Sentence(f"None of {counted(pods, 'pod')} goes elsewhere with {names}.", "green")
    else:
        verb = "goes" if moved == 1 else "go"
        yield Sentence(f"{moved:,} of {counted(pods, 'pod')} {verb} elsewhere with {names}.", "bold")
        yield Sentence(responsible(comparison.moves))
        yield from _differences(comparison.moves)
    for keys, name in (
        (comparison.only_before, comparison.before.name),
        (comparison.only_after, comparison.after.name),
    ):
        if keys:
            yield Sentence(f"Not compared, as only {name} has them: {listed(keys, MOST_LISTED_NAMES)}.", "yellow")


def responsible(moves: Sequence[Move]) -> str:
    """How many pods each plugin has sent elsewhere, in a sentence."""
    plugins = Counter(move.cause.plugin or "a tie" for move in moves)
    parts = [f"{plugin} for {number:,}" for plugin, number in plugins.most_common()]
    knock_on = sum(move.cause.knock_on for move in moves)
    others = f" Of these, {counted(knock_on, 'pod')} only because others went elsewhere first." if knock_on else ""
    return f"Responsible: {joined(parts)}.{others}"


def _differences(moves: Sequence[Move]) -> Iterator[Sentence]:
    """Between two releases: the differences that move pods, that of most pods first."""
    counts = Counter(each for move in moves for each in move.cause.differences)
    for each, number in counts.most_common():
        yield Sentence(f"{each.release}: {each.sentence}", first=f"{number:>6,}  ", then=" " * 8)


def move_lines(comparison: Comparison, width: int, everything: bool) -> Iterator[Line]:
    moves = comparison.moves if everything else comparison.moves[:TOP]
    columns = [
        Column("POD", [move.pod for move in moves], right=False),
        Column("BEFORE", [move.before or "-" for move in moves], right=False),
        Column("AFTER", [move.after or "-" for move in moves], right=False),
    ]
    if any(move.cause.knock_on for move in moves):
        columns.append(Column("", ["*" if move.cause.knock_on else "" for move in moves]))
    yield from table_with_text(columns, "BECAUSE OF", [because(move) for move in moves], width)
    if len(moves) < len(comparison.moves):
        yield Line(f"and {counted(len(comparison.moves) - len(moves), 'more pod')}", "dim")
    if any(move.cause.points for move in moves):
        yield from wrapped("+ the points by which it shifted from the old node to the new one", width, style="dim")
    if any(move.cause.knock_on for move in moves):
        yield from wrapped("* only because others went elsewhere first", width, style="dim")


def because(move: Move) -> str:
    """The responsible plugin and its points, or that it rejects a node, or that there is a tie."""
    points = move.cause.points.get(move.cause.plugin)
    if points:
        return f"{move.cause.plugin} {points:+,}"
    return f"{move.cause.plugin} rejects" if move.cause.plugin else "a tie"


def measure_lines(comparison: Comparison, width: int) -> list[Line]:
    before, after = comparison.before.measures, comparison.after.measures
    rows = [(title, show(before), show(after)) for title, show in measures_shown(before, after).items()]
    changed = [one != other for _, one, other in rows]
    columns = [
        Column("MEASURE", [title for title, _, _ in rows], right=False),
        Column("BEFORE", [one for _, one, _ in rows]),
        Column("AFTER", [other for _, _, other in rows]),
    ]
    return styled(table(columns, width), ["bold", *("" if differs else "dim" for differs in changed)])


def largest(measures: Measures) -> str:
    """`4.5 cpu, 18Gi`."""
    return f"{amount(CPU, measures.largest_cpu)} cpu, {amount(MEMORY, measures.largest_memory)}"


COST = "cost per hour of those"

MEASURES: Mapping[str, Callable[[Measures], str]] = {
    "pods pending": lambda m: f"{m.pending:,}",
    "nodes in use": lambda m: f"{m.nodes_in_use:,}",
    COST: lambda m: f"{m.cost_per_hour:,.2f}",
    "cpu utilisation of those": lambda m: f"{m.cpu_utilisation:.1%}",
    "memory utilisation of those": lambda m: f"{m.memory_utilisation:.1%}",
    "cpu imbalance": lambda m: f"{m.cpu_imbalance:.3f}",
    "memory imbalance": lambda m: f"{m.memory_imbalance:.3f}",
    "spread over zones": lambda m: f"{m.zone_spread:.3f}",
    "spread over nodes": lambda m: f"{m.node_spread:.3f}",
    "fragmentation": lambda m: f"{m.fragmentation:.1%}",
    "stranded cpu": lambda m: amount(CPU, m.stranded_cpu),
    "stranded memory": lambda m: amount(MEMORY, m.stranded_memory),
    "largest pod that fits": largest,
}
"""The rows of the table of measures, and how each is shown."""


def measures_shown(*of: Measures) -> Mapping[str, Callable[[Measures], str]]:
    """The measures of a table, without the cost if no node has a price."""
    return {title: show for title, show in MEASURES.items() if title != COST or any(each.cost_per_hour for each in of)}


def _spread_lines(changes: Sequence[SpreadChange], width: int, everything: bool) -> Iterator[Line]:
    shown = changes if everything else changes[:TOP]
    zones = sorted({zone for change in shown for zone in (*change.before, *change.after)})
    names = [f"{change.workload.namespace} {change.workload.name}" for change in shown]
    columns = [
        Column("WORKLOAD", names, right=False),
        Column("ZONES BEFORE", [_zones(change.before, zones) for change in shown]),
        Column("AFTER", [_zones(change.after, zones) for change in shown]),
        Column("NODES BEFORE", [f"{change.nodes_before:,}" for change in shown]),
        Column("AFTER", [f"{change.nodes_after:,}" for change in shown]),
    ]
    yield from styled(table(columns, width), ["bold", *[""] * len(shown)])
    if len(shown) < len(changes):
        yield Line(f"and {counted(len(changes) - len(shown), 'more workload')}", "dim")
    if zones:
        yield from wrapped(f"zones: {listed(zones, MOST_LISTED_NAMES)}", width, style="dim")


def _zones(counts: Mapping[str, int], zones: Sequence[str]) -> str:
    return " ".join(str(counts.get(zone, 0)) for zone in zones[:MOST_LISTED_NAMES]) or "-"


def to_document(comparison: Comparison) -> dict[str, Any]:
    """The comparison as plain data, of kind Comparison; amounts are in milli-cpu and bytes."""
    return {"apiVersion": API_VERSION, "kind": "Comparison", **comparison.to_dict()}


def to_rows(comparison: Comparison) -> str:
    """The pods that move, as CSV."""
    header = ("pod", "workload", "before", "after", "plugin", "points", "knock-on", "reason")
    rows = [
        (
            move.pod,
            move.workload,
            move.before,
            move.after,
            move.cause.plugin,
            move.cause.points.get(move.cause.plugin, ""),
            "yes" if move.cause.knock_on else "no",
            move.cause.reason,
        )
        for move in comparison.moves
    ]
    return to_csv(header, rows)


# -- over time -----------------------------------------------------------------------------------------------------


def timeline_lines(comparison: TimelineComparison, width: int = WIDTH) -> list[Line]:
    """The results of the same events in two ways."""
    one, other = comparison.names
    rows = timeline_measures(comparison)
    columns = [
        Column("MEASURE", [title for title, _, _ in rows], right=False),
        Column("BEFORE", [before for _, before, _ in rows]),
        Column("AFTER", [after for _, _, after in rows]),
    ]
    styles = ["bold", *("" if before != after else "dim" for _, before, after in rows)]
    return [*wrapped(f"Before: {one}. After: {other}.", width), Line(""), *styled(table(columns, width), styles)]


def timeline_measures(comparison: TimelineComparison) -> list[tuple[str, str, str]]:
    """Each measure, with its value before and after."""
    return [
        (TIMELINE_MEASURES[name][0], _shown(name, comparison.before), _shown(name, comparison.after))
        for name in comparison.measures
    ]


def _shown(name: str, numbers: Mapping[str, float]) -> str:
    return TIMELINE_MEASURES[name][1](numbers[name]) if name in numbers else "-"


def _whole(number: float) -> str:
    return f"{number:,.0f}"


def _seconds(number: float) -> str:
    return f"{number:,.0f} s" if number >= 10 else f"{number:.2f} s"


def _share(number: float) -> str:
    return f"{number:.1%}"


TIMELINE_MEASURES: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "placed": ("pods that got a node", _whole),
    "pending": ("pods without one at the end", _whole),
    "evictions": ("evictions", _whole),
    "mean_wait": ("mean wait for a node", _seconds),
    "longest_wait": ("longest wait", _seconds),
    "p95_wait": ("95 % wait at most", _seconds),
    "end": ("the end", _seconds),
    "cpu_utilisation": ("mean cpu utilisation", _share),
    "memory_utilisation": ("mean memory utilisation", _share),
    "cost": ("cost", lambda number: f"{number:,.2f}"),
    "node_hours": ("node hours", lambda number: f"{number:,.1f}"),
    "nodes_added": ("nodes added", _whole),
    "nodes_removed": ("nodes removed", _whole),
}
"""The rows of the table of timelines, and how each is shown."""


def timeline_document(comparison: TimelineComparison) -> dict[str, Any]:
    """The comparison as plain data, of kind TimelineComparison; times are in seconds."""
    return {"apiVersion": API_VERSION, "kind": "TimelineComparison", **comparison.to_dict()}


def timeline_rows(comparison: TimelineComparison) -> str:
    """A row per measure, as CSV."""
    rows = [(name, comparison.before.get(name), comparison.after.get(name)) for name in comparison.measures]
    return to_csv(("measure", "before", "after"), rows)
