"""A sweep from beginning to end: choose points, run what is missing, and gather the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from podium.errors import InputError
from podium.sweep.inputs import Inputs
from podium.sweep.journal import Journal
from podium.sweep.result import Group, Row, SweepResult
from podium.sweep.running import Job, Outcome
from podium.sweep.space import Point, grid_size
from podium.sweep.spec import SweepSpec
from podium.sweep.workers import Workers

if TYPE_CHECKING:
    from optuna.study import Study

BATCH = 16
"""How many points Optuna suggests before it is told what came of them: the same however many workers there are."""

Tell = Callable[[Row], object]


def run_count(spec: SweepSpec) -> int:
    """How many runs the sweep has, at most."""
    if spec.search.method == "grid":
        return grid_size(spec.space.axes)
    return spec.search.trials * len(spec.space.seeds)


def sweep(spec: SweepSpec, inputs: Inputs, workers: Workers, folder: str, on_done: Tell) -> SweepResult:
    """Do every run of a sweep that the journal in the folder does not have yet. `on_done` is told of each run."""
    with closing(Journal(Path(folder), inputs.digest)) as journal:
        sweeping = _Sweeping(Job(spec, inputs), workers, journal, on_done)
        match spec.search.method:
            case "grid":
                rows = sweeping.run(list(spec.space.grid()))
            case "random":
                rows = sweeping.run(list(spec.space.drawn(spec.search.trials, spec.search.seed)))
            case "optuna":
                rows = list(sweeping.searched(spec))
    return SweepResult(spec.space.names, tuple(rows), spec.goal)


class _Sweeping:
    def __init__(self, job: Job, workers: Workers, journal: Journal, on_done: Tell) -> None:
        self._job, self._workers, self._journal, self._on_done = job, workers, journal, on_done

    def run(self, points: Sequence[Point], first: int = 1) -> list[Row]:
        """The rows of these points, in their order, numbered from `first`."""
        outcomes = [self._journal.get(point) for point in points]
        missing = [place for place, outcome in enumerate(outcomes) if outcome is None]
        for place, outcome in enumerate(outcomes):
            if outcome is not None:
                self._on_done(_row(first + place, points[place], outcome))
        done = self._workers.run(Job.run, self._job, [points[place] for place in missing])
        for number, found in done:
            place = missing[number]
            outcome = found if isinstance(found, Outcome) else Outcome({}, _lost(found))
            self._check_goal(outcome)
            self._journal.add(points[place], outcome)
            outcomes[place] = outcome
            self._on_done(_row(first + place, points[place], outcome))
        return [_row(first + place, points[place], found) for place, found in enumerate(outcomes) if found is not None]

    def _check_goal(self, outcome: Outcome) -> None:
        goal = self._job.spec.goal.measure
        if not outcome.error and goal not in outcome.numbers:
            field = "maximize" if self._job.spec.goal.is_highest else "minimize"
            known = ", ".join(outcome.numbers)
            raise self._job.spec.document.error((field,), f"no run has a measure {goal!r}; they have {known}")

    def searched(self, spec: SweepSpec) -> Iterator[Row]:
        """The rows of the points that Optuna suggests, in batches."""
        optuna = _optuna()
        study = optuna.create_study(
            sampler=optuna.samplers.TPESampler(seed=spec.search.seed),
            direction="maximize" if spec.goal.is_highest else "minimize",
        )
        done = 0
        while done < spec.search.trials:
            asked = [study.ask() for _ in range(min(BATCH, spec.search.trials - done))]
            points = [{axis.name: axis.suggested(trial) for axis in spec.space.searched} for trial in asked]
            seeds = len(spec.space.seeds)
            rows = self.run([each for point in points for each in spec.space.with_seeds(point)], done * seeds + 1)
            for place, trial in enumerate(asked):
                own = rows[place * seeds : (place + 1) * seeds]
                _tell(study, trial, own, spec.goal.measure, optuna)
                yield from own
            done += len(asked)


def _tell(study: Study, trial: Any, rows: Sequence[Row], measure: str, optuna: ModuleType) -> None:
    """Say what came of a trial: the mean over its seeds, or that it failed."""
    if any(row.error for row in rows):
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    else:
        study.tell(trial, Group({}, tuple(rows), 0).spread(measure).mean)


def _row(number: int, point: Point, outcome: Outcome) -> Row:
    return Row(number, point, outcome.numbers, outcome.error)


def _lost(error: object) -> str:
    return f"no worker could do it: {type(error).__name__}: {error}"


def _optuna() -> ModuleType:
    try:
        import optuna
    except ImportError:
        raise InputError("`search: optuna` needs Optuna: pip install 'podium[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
