"""Runs a whole sweep: chooses points, keeps a journal of finished runs, and averages over seeds."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from podium.answers.search_space import OPTUNA_BATCH, load_optuna
from podium.answers.trials import Workers
from podium.errors import InputError, os_problem
from podium.input_files import open_input
from podium.sweep._inputs import Inputs, check_goal, run_digest
from podium.sweep._spec import SEED, Goal, Point, SweepSpec, grid_size
from podium.sweep.running import Numbers, RunOutcome, SharedInputs
from podium.wording import csv_text

if TYPE_CHECKING:
    import polars
    from optuna.study import Study

NAME = "journal.jsonl"


class JournalRecord(msgspec.Struct, frozen=True):
    """A line of the journal."""

    run: str
    numbers: dict[str, int | float | None]
    """A number that JSON cannot write is null."""
    error: str


_RECORD = msgspec.json.Decoder(JournalRecord)


class Journal:
    """A file of JSON lines: a line per run, with a digest of all that the run depends on."""

    def __init__(self, folder: Path) -> None:
        """Raises an InputError if the folder cannot be used, or has another file of that name."""
        self._path = folder / NAME
        self._done: dict[str, RunOutcome] = {}
        if folder.exists() and not folder.is_dir():
            raise InputError("is not a directory", str(folder))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            complete = self._read() if self._path.exists() else 0
            self._file = open(self._path, "ab")  # noqa: SIM115 - closed by `close`
            # An interruption may leave an incomplete last line.
            self._file.truncate(complete)
        except OSError as error:
            raise InputError(os_problem(error), str(self._path)) from None

    def _read(self) -> int:
        """Read the runs that are done; returns how many bytes of the file are complete lines."""
        with open_input(self._path) as file:
            lines = file.read().split(b"\n")[:-1]
        try:
            for line in lines:
                record = _RECORD.decode(line)
                # A failed run is run again.
                if not record.error:
                    numbers = {name: math.nan if value is None else value for name, value in record.numbers.items()}
                    self._done[record.run] = RunOutcome(numbers)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise InputError(
                "is not a journal that this version of Podium wrote; choose another --out, or delete it",
                str(self._path),
            ) from None
        return sum(len(line) + 1 for line in lines)

    def get(self, digest: str) -> RunOutcome | None:
        """The outcome of a run that was finished and did not fail, else None."""
        return self._done.get(digest)

    def add(self, digest: str, point: Point, outcome: RunOutcome) -> None:
        record = {"run": digest, "point": dict(point), "numbers": outcome.numbers, "error": outcome.error}
        self._file.write(msgspec.json.encode(record) + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()
        if not self._path.stat().st_size:
            self._path.unlink()


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
    """The runs that did not fail."""
    failed: int

    def spread(self, measure: str) -> Spread:
        """The mean and the deviation of a measure; NaN if no run has it."""
        values = [row.numbers[measure] for row in self.rows if measure in row.numbers]
        if not values:
            return Spread(math.nan, math.nan)
        if len({*values}) == 1:
            # Their sum may be rounded, and their mean be another number.
            return Spread(float(values[0]), 0.0)
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
        """The names of all measures, in the order of first appearance."""
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
        """The groups that have the goal's measure, best first; of equal groups, the earlier one first."""
        measure, sign = self.goal.measure, -1 if self.goal.is_highest else 1
        known = [group for group in self.groups if not math.isnan(group.spread(measure).mean)]
        return tuple(sorted(known, key=lambda group: sign * group.spread(measure).mean))

    @property
    def best(self) -> Group | None:
        """The group with the best mean of the goal's measure; None if no run has it."""
        return next(iter(self.ranked), None)

    @property
    def as_good(self) -> int:
        """How many other groups have the mean of the best one, up to rounding."""
        means = [group.spread(self.goal.measure).mean for group in self.ranked]
        return sum(math.isclose(mean, means[0], rel_tol=1e-12, abs_tol=1e-12) for mean in means[1:])

    def to_csv(self) -> str:
        """A row per run: its number, its point, its numbers and its error."""
        measures = self.measures
        return csv_text(
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
        return csv_text(header, lines)

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
        # A reader finds the old or the new file, never a part.
        temporary = f"{path}.{os.getpid()}.tmp"
        try:
            pyarrow.parquet.write_table(pyarrow.table(columns, schema=schema), temporary)
            os.replace(temporary, path)
        finally:
            Path(temporary).unlink(missing_ok=True)


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


Tell = Callable[[Row], object]


def run_count(spec: SweepSpec) -> int:
    """How many runs the sweep has, at most."""
    if spec.search.method == "grid":
        return grid_size(spec.space.axes)
    return spec.search.trials * len(spec.space.seeds)


def sweep(spec: SweepSpec, inputs: Inputs, workers: Workers, folder: str, on_done: Tell) -> SweepResult:
    """Run every point of a sweep that is not in the journal yet. `on_done` is called after each run."""
    with closing(Journal(Path(folder))) as journal:
        sweeping = _Sweeping(SharedInputs(spec, inputs), workers, journal, on_done)
        match spec.search.method:
            case "grid":
                rows = sweeping.run(list(spec.space.grid()))
            case "random":
                rows = sweeping.run(list(spec.space.drawn(spec.search.trials, spec.search.seed)))
            case "optuna":
                rows = list(sweeping.searched(spec))
    return SweepResult(spec.space.names, tuple(rows), spec.goal)


class _Sweeping:
    def __init__(self, job: SharedInputs, workers: Workers, journal: Journal, on_done: Tell) -> None:
        self._job, self._workers, self._journal, self._on_done = job, workers, journal, on_done

    def run(self, points: Sequence[Point], first: int = 1) -> list[Row]:
        """The rows of these points, in their order, numbered from `first`."""
        digests = [run_digest(self._job.spec, self._job.inputs, point) for point in points]
        outcomes = [self._journal.get(digest) for digest in digests]
        missing = [place for place, outcome in enumerate(outcomes) if outcome is None]
        for place, outcome in enumerate(outcomes):
            if outcome is not None:
                check_goal(self._job.spec, outcome.numbers)
                self._on_done(_row(first + place, points[place], outcome))
        done = self._workers.run(SharedInputs.run, self._job, [points[place] for place in missing])
        for number, found in done:
            place = missing[number]
            outcome = found if isinstance(found, RunOutcome) else RunOutcome({}, _lost(found))
            self._journal.add(digests[place], points[place], outcome)
            if not outcome.error:
                check_goal(self._job.spec, outcome.numbers)
            outcomes[place] = outcome
            self._on_done(_row(first + place, points[place], outcome))
        return [_row(first + place, points[place], found) for place, found in enumerate(outcomes) if found is not None]

    def searched(self, spec: SweepSpec) -> Iterator[Row]:
        """The rows of the points that Optuna suggests, in batches."""
        optuna = load_optuna("`search: optuna`")
        study = optuna.create_study(
            sampler=optuna.samplers.TPESampler(seed=spec.search.seed),
            direction="maximize" if spec.goal.is_highest else "minimize",
        )
        known: dict[tuple[str, ...], list[Row]] = {}
        first = 1
        for done in range(0, spec.search.trials, OPTUNA_BATCH):
            asked = [study.ask() for _ in range(min(OPTUNA_BATCH, spec.search.trials - done))]
            suggested = [{axis.name: axis.suggested(trial) for axis in spec.space.searched} for trial in asked]
            # A point that is suggested again is not run again: its mean would count the same run twice.
            new = {tuple(point.values()): point for point in suggested if tuple(point.values()) not in known}
            rows = self.run([each for point in new.values() for each in spec.space.with_seeds(point)], first)
            first += len(rows)
            for row in rows:
                known.setdefault(spec.space.without_seed(row.point), []).append(row)
            for trial, point in zip(asked, suggested, strict=True):
                _tell(study, trial, known[tuple(point.values())], spec.goal.measure, optuna)
            yield from rows


def _tell(study: Study, trial: Any, rows: Sequence[Row], measure: str, optuna: ModuleType) -> None:
    """Report the result of a trial to Optuna: the mean over its seeds, or that it failed."""
    if any(row.error for row in rows):
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    else:
        study.tell(trial, Group({}, tuple(rows), 0).spread(measure).mean)


def _row(number: int, point: Point, outcome: RunOutcome) -> Row:
    return Row(number, point, outcome.numbers, outcome.error)


def _lost(error: object) -> str:
    return f"no worker could do it: {type(error).__name__}: {error}"
