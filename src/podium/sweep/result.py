"""What a sweep comes to: a row per run, means and spreads over seeds, and the best point."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from podium.errors import InputError
from podium.sweep.measures import Numbers
from podium.sweep.space import SEED, Point
from podium.sweep.spec import Goal

if TYPE_CHECKING:
    import polars


class Row(NamedTuple):
    """One run."""

    number: int
    """From 1, in the order of the sweep."""
    point: Point
    numbers: Numbers
    error: str = ""
    """Why it failed; empty if it did not."""


class Spread(NamedTuple):
    """A measure over the seeds of one point."""

    mean: float
    deviation: float
    """The standard deviation of a sample; 0 for a single run."""


@dataclass(frozen=True, slots=True)
class Group:
    """The runs of one point that differ in their seed only."""

    point: Point
    """Without the seed."""
    rows: tuple[Row, ...]
    """Those that did not fail."""
    failed: int

    def spread(self, measure: str) -> Spread:
        """The mean and the spread of a measure; not a number where no run has it."""
        values = [row.numbers[measure] for row in self.rows if measure in row.numbers]
        if not values:
            return Spread(math.nan, math.nan)
        mean = math.fsum(values) / len(values)
        squares = math.fsum((value - mean) ** 2 for value in values)
        return Spread(mean, math.sqrt(squares / (len(values) - 1)) if len(values) > 1 else 0.0)


@dataclass(frozen=True, slots=True)
class SweepResult:
    """All runs of a sweep."""

    axes: tuple[str, ...]
    rows: tuple[Row, ...]
    goal: Goal

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the numbers, in the order they were first seen."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.numbers))

    @property
    def failed(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.error)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The runs by point, seeds together, in the order of the sweep."""
        found: dict[tuple[str, ...], list[Row]] = {}
        searched = self.searched
        for row in self.rows:
            found.setdefault(tuple(row.point[name] for name in searched), []).append(row)
        return tuple(
            Group(
                dict(zip(searched, labels, strict=True)),
                tuple(row for row in rows if not row.error),
                sum(1 for row in rows if row.error),
            )
            for labels, rows in found.items()
        )

    @property
    def searched(self) -> tuple[str, ...]:
        """The axes without the seed."""
        return tuple(name for name in self.axes if name != SEED)

    @property
    def ranked(self) -> tuple[Group, ...]:
        """The groups with a value of the goal's measure, the best first; of equals the earlier one."""
        measure, sign = self.goal.measure, -1 if self.goal.is_highest else 1
        known = [group for group in self.groups if not math.isnan(group.spread(measure).mean)]
        return tuple(sorted(known, key=lambda group: sign * group.spread(measure).mean))

    @property
    def best(self) -> Group | None:
        """The group with the best mean of the goal's measure; None if no run has it."""
        return next(iter(self.ranked), None)

    def to_csv(self) -> str:
        """A row per run: its number, its point, its numbers and its error."""
        measures = self.measures
        return _csv(
            ["run", *self.axes, *measures, "error"],
            [
                [row.number, *row.point.values(), *(row.numbers.get(name, "") for name in measures), row.error]
                for row in self.rows
            ],
        )

    def summary_csv(self) -> str:
        """A row per point: how many runs it has, and the mean and deviation of every measure."""
        measures = self.measures
        header = ["runs", *self.searched, *(f"{name}_{what}" for name in measures for what in ("mean", "deviation"))]
        lines = []
        for group in self.groups:
            spreads = [number for name in measures for number in group.spread(name)]
            values = ["" if math.isnan(number) else number for number in spreads]
            lines.append([len(group.rows), *group.point.values(), *values])
        return _csv(header, lines)

    def columns(self) -> dict[str, list[Any]]:
        """The rows of `to_csv` by column: texts for axes and errors, numbers for measures."""
        return {
            "run": [row.number for row in self.rows],
            **{name: [row.point[name] for row in self.rows] for name in self.axes},
            **{name: [_float(row.numbers.get(name)) for row in self.rows] for name in self.measures},
            "error": [row.error or None for row in self.rows],
        }

    def to_frame(self) -> polars.DataFrame:
        """A row per run as a data frame. Needs polars: the extra `frames`."""
        try:
            import polars
        except ImportError:
            raise InputError("data frames need polars: pip install 'podium[frames]'") from None
        texts = dict.fromkeys((*self.axes, "error"), polars.String)
        return polars.DataFrame(self.columns(), schema_overrides=texts)

    def write_parquet(self, path: str) -> None:
        """The same rows as a Parquet file. Needs pyarrow: the extra `sweep`."""
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise InputError("Parquet files need pyarrow: pip install 'podium[sweep]'") from None
        kinds = {"run": pyarrow.int64()} | {name: pyarrow.float64() for name in self.measures}
        columns = self.columns()
        schema = pyarrow.schema([(name, kinds.get(name, pyarrow.string())) for name in columns])
        pyarrow.parquet.write_table(pyarrow.table(columns, schema=schema), path)


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


def _csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
