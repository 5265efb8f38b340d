"""A sweep in words and tables, and as a document."""

from __future__ import annotations

import math
from typing import Any

from podium.present.text import API_VERSION, Column, Line, table
from podium.sweep import Group, SweepResult
from podium.sweep.running import described
from podium.wording import counted

MOST_LINES = 20
"""Of more points, the best are shown."""


def to_lines(result: SweepResult, folder: str) -> list[Line]:
    """The best point, a table of points with the best first, and where everything was written."""
    goal, best = result.goal, result.best
    lines = []
    if best is None:
        lines.append(Line("No run came to anything.", "red"))
    else:
        mean, deviation = best.spread(goal.measure)
        what = "highest" if goal.is_highest else "lowest"
        spread = f" ± {number(deviation)}" if len(best.rows) > 1 else ""
        lines.append(Line(f"Best: {described(best.point)}", "green"))
        lines.append(Line(f"It has the {what} {goal.measure}: {number(mean)}{spread} over {_runs(best)}."))
        lines += [Line(""), *_table(result)]
    if result.failed:
        lines += [Line(""), Line(f"{counted(len(result.failed), 'run')} failed; rows.csv says why.", "red")]
    return [*lines, Line(""), Line(f"{counted(len(result.rows), 'run')} in {folder}.")]


def _table(result: SweepResult) -> list[Line]:
    ranked, goal = result.ranked[:MOST_LINES], result.goal.measure
    spreads = [group.spread(goal) for group in ranked]
    columns = [Column(name, [group.point[name] for group in ranked], right=False) for name in result.searched]
    columns += [
        Column(goal, [number(spread.mean) for spread in spreads]),
        Column("±", [number(spread.deviation) for spread in spreads]),
        Column("runs", [str(len(group.rows)) for group in ranked]),
    ]
    title, *rows = table(columns)
    left_out = len(result.ranked) - len(ranked)
    more = [Line(f"and {left_out:,} more in summary.csv")] if left_out else []
    return [Line(title, "bold"), *map(Line, rows), *more]


def _runs(group: Group) -> str:
    return counted(len(group.rows), "run")


def number(value: float) -> str:
    """A value of a measure, with as many digits as say something."""
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if value == int(value) else f"{value:.4g}" if abs(value) < 1 else f"{value:,.2f}"


def to_document(result: SweepResult) -> dict[str, Any]:
    """The result as plain data: the best point, and all points with means and deviations."""
    best = result.best
    return {
        "apiVersion": API_VERSION,
        "kind": "Sweep",
        "goal": {"measure": result.goal.measure, "highest": result.goal.is_highest},
        "best": None if best is None else _group(result, best),
        "points": [_group(result, group) for group in result.groups],
        "failed": [{"run": row.number, "point": dict(row.point), "error": row.error} for row in result.failed],
    }


def _group(result: SweepResult, group: Group) -> dict[str, Any]:
    spreads = {name: group.spread(name) for name in result.measures}
    known = {name: spread._asdict() for name, spread in spreads.items() if not math.isnan(spread.mean)}
    return {"point": dict(group.point), "runs": len(group.rows), "failed": group.failed, "measures": known}
