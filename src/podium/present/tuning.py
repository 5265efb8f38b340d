"""Renders the results of `tune` and of sweeps: as text and tables, as a document, as CSV."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from podium.answers import TimelineTuning, Trial, Tuning
from podium.present import API_VERSION, to_csv
from podium.present.comparison import measure_lines, move_lines, responsible, timeline_lines
from podium.present.explanation import WIDTH
from podium.present.text import Column, Line, styled, table, wrapped
from podium.sweep import Group, Spread, SweepResult
from podium.sweep.running import described
from podium.wording import counted, joined

FEWEST_NODES = "fewest-nodes"


def to_lines(
    tuning: Tuning | TimelineTuning, *, out: str | None = None, width: int = WIDTH, everything: bool = False
) -> list[Line]:
    """The result, the settings it changes, the pods that move, and the measures that improve.

    At most ten pods are shown, unless `everything`. `out` is where the configuration was written.
    """
    lines = [line for text in words(tuning) for line in wrapped(text, width)]
    lines[0] = lines[0]._replace(style="green" if tuning.improves else "red")
    if tuning.improves:
        lines += [Line(""), *_setting_lines(tuning), Line("")]
        if isinstance(tuning, Tuning):
            lines += measure_lines(tuning.comparison, width)
        else:
            lines += timeline_lines(tuning.comparison, width)
    if isinstance(tuning, Tuning) and tuning.comparison.moves:
        lines += [Line(""), *move_lines(tuning.comparison, width, everything)]
    if not tuning.improves:
        return [*lines, *wrapped(f"Nothing was written to {out}.", width)] if out else lines
    written = f"The configuration is in {out}." if out else "Write the configuration to a file with --out."
    return [*lines, Line(""), *wrapped(written, width)]


def words(tuning: Tuning | TimelineTuning) -> Iterator[str]:
    """The result in sentences."""
    today, best, tried = tuning.today, tuning.best, counted(len(tuning.trials) - 1, "configuration")
    if not tuning.improves:
        yield f"None of {tried} is better than today's, by {tuning.objective}: {number(today.value)}."
        yield from _left_out(tuning)
        return
    if tuning.objective == FEWEST_NODES:
        nodes = "1 node" if best.value == 1 else f"{number(best.value)} nodes"
        yield f"The pods take {nodes} instead of {number(today.value)}, the best of {tried} tried."
    else:
        values = f"{number(best.value)} instead of {number(today.value)}"
        yield f"{tuning.objective}: {values}, the best of {tried} tried."
    moves = tuning.comparison.moves if isinstance(tuning, Tuning) else ()
    if isinstance(tuning, Tuning):
        pods, verb = counted(len(tuning.comparison.after.nodes), "pod"), "goes" if len(moves) == 1 else "go"
        yield f"{len(moves):,} of {pods} {verb} elsewhere than with today's configuration."
    if best.pending != today.pending:
        others = ": more important ones find a node" if len(best.pending) >= len(today.pending) else ""
        yield f"{_pending(best)} pending instead of {len(today.pending):,}{others}."
    if moves:
        yield responsible(moves)
    yield from _left_out(tuning)


def _left_out(tuning: Tuning | TimelineTuning) -> Iterator[str]:
    """Which weights were not searched, and why."""
    weights = tuning.today.settings.weights
    if tuning.left_out and len(tuning.left_out) == len(weights):
        yield "No weight was searched: at most one plugin scores nodes differently, so its weight does not matter."
    elif tuning.left_out:
        subject, verb = ("weight", "scores") if len(tuning.left_out) == 1 else ("weights", "score")
        pods = "every pod looked at" if tuning.sampled else "every pod"
        yield f"Not searched: the {subject} of {joined(tuning.left_out)}, which {verb} all nodes alike for {pods}."


def _pending(trial: Trial) -> str:
    return "1 pod stays" if len(trial.pending) == 1 else f"{len(trial.pending):,} pods stay"


def number(value: float) -> str:
    """A value of an objective, with its significant digits only."""
    return f"{value:,.0f}" if value == int(value) else f"{value:.4g}"


def settings(tuning: Tuning | TimelineTuning) -> list[tuple[str, str, str]]:
    """The searched settings: name, today's value, best value."""
    before, after = tuning.today.settings, tuning.best.settings
    rows = [
        (f"weight of {plugin}", str(weight), str(after.weights[plugin]))
        for plugin, weight in before.weights.items()
        if plugin not in tuning.left_out
    ]
    if before.strategy is not None:
        rows.insert(0, ("scoring strategy", before.strategy, after.strategy or ""))
    if before.shape or after.shape:
        rows.insert(1, ("shape", _shape(before.shape), _shape(after.shape)))
    return rows


def _shape(shape: tuple[tuple[int, int], ...] | None) -> str:
    return " ".join(f"{at}%:{score}" for at, score in shape or ()) or "-"


def _setting_lines(tuning: Tuning | TimelineTuning) -> list[Line]:
    rows = settings(tuning)
    columns = [
        Column("SETTING", [what for what, _, _ in rows], right=False),
        Column("TODAY", [before for _, before, _ in rows]),
        Column("TUNED", [after for _, _, after in rows]),
    ]
    return styled(table(columns), ["bold", *("" if before != after else "dim" for _, before, after in rows)])


def to_document(tuning: Tuning | TimelineTuning) -> dict[str, Any]:
    """The result as plain data, of kind Tuning or TimelineTuning."""
    return {"apiVersion": API_VERSION, "kind": type(tuning).__name__, **tuning.to_dict()}


def to_rows(tuning: Tuning | TimelineTuning) -> str:
    """Every configuration that was tried, as CSV; 0 is today's."""
    plugins = list(tuning.today.settings.weights)
    header = ("trial", "value", "pending", "strategy", "shape", *plugins)
    return to_csv(header, (_row(trial, plugins) for trial in tuning.trials))


def _row(trial: Trial, plugins: list[str]) -> tuple[Any, ...]:
    settings = trial.settings
    shape = _shape(settings.shape) if settings.shape else None
    weights = (settings.weights[plugin] for plugin in plugins)
    return (trial.number, trial.value, len(trial.pending), settings.strategy, shape, *weights)


ROUNDING = 1e-9
"""The share of a mean below which a deviation is that of rounding."""
MOST_LINES = 20
"""The maximum number of points shown, the best first."""


def sweep_lines(result: SweepResult, folder: str) -> list[Line]:
    """The best point, a table of points with the best first, and where everything was written."""
    goal, best = result.goal, result.best
    lines = []
    if best is None:
        lines.append(Line("No run came to anything.", "red"))
    else:
        spread = best.spread(goal.measure)
        what = "highest" if goal.is_highest else "lowest"
        about = f" ± {deviation(spread)}" if len(best.rows) > 1 else ""
        point = (
            described(best.point)
            if best.point or len(result.rows) == 1
            else "the only point; runs differ in their seed"
        )
        lines.append(Line(f"Best: {point}", "green"))
        lines.append(Line(f"It has the {what} {goal.measure}: {measured(spread.mean)}{about} over {_runs(best)}."))
        if result.as_good:
            others = counted(result.as_good, "other point")
            lines.append(Line(f"{others} {'is' if result.as_good == 1 else 'are'} as good."))
        lines += [Line(""), *_point_lines(result)]
    if result.failed:
        lines += [Line(""), Line(f"{counted(len(result.failed), 'run')} failed; rows.csv says why.", "red")]
    return [*lines, Line(""), Line(f"{counted(len(result.rows), 'run')} in {folder}.")]


def _point_lines(result: SweepResult) -> list[Line]:
    ranked, goal = result.ranked[:MOST_LINES], result.goal.measure
    spreads = [group.spread(goal) for group in ranked]
    columns = [Column(name, [group.point[name] for group in ranked], right=False) for name in result.searched]
    columns += [
        Column(goal, [measured(spread.mean) for spread in spreads]),
        Column("±", [deviation(spread) for spread in spreads]),
        Column("runs", [str(len(group.rows)) for group in ranked]),
    ]
    title, *rows = table(columns)
    left_out = len(result.ranked) - len(ranked)
    more = [Line(f"and {left_out:,} more in summary.csv")] if left_out else []
    return [Line(title, "bold"), *map(Line, rows), *more]


def _runs(group: Group) -> str:
    return counted(len(group.rows), "run")


def measured(value: float) -> str:
    """A value of a measure, with its significant digits only."""
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if value == int(value) else f"{value:.4g}" if abs(value) < 1 else f"{value:,.2f}"


def deviation(spread: Spread) -> str:
    """The deviation of a measure; 0 if it is that of rounding."""
    return measured(0.0 if spread.deviation <= ROUNDING * abs(spread.mean) else spread.deviation)


def sweep_document(result: SweepResult) -> dict[str, Any]:
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
