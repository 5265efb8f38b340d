"""Reads a sweep file: its axes and the points to run. docs/research.md describes the format."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from podium.engine.release import release_of
from podium.engine.select import tie_break
from podium.errors import InputError
from podium.manifests.located import LocatedDocument, Section, is_number

if TYPE_CHECKING:
    from optuna.trial import Trial

SEED = "seed"
"""The axis whose runs are averaged."""

Point = Mapping[str, str]
"""One value per axis, by its label."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis with listed values, each with a label that names it in rows."""

    name: str
    values: Mapping[str, Any]

    @property
    def size(self) -> int:
        return len(self.values)

    def suggested(self, trial: Trial) -> str:
        return str(trial.suggest_categorical(self.name, list(self.values)))

    def drawn(self, rng: random.Random) -> str:
        return rng.choice(list(self.values))

    def value(self, label: str) -> Any:
        return self.values[label]

    @property
    def extremes(self) -> Sequence[str]:
        """The labels to check before a sweep: if these can be used, all can."""
        return list(self.values)

    @property
    def drawable(self) -> float:
        """How many different labels a random search can draw."""
        return len(self.values)


@dataclass(frozen=True, slots=True)
class RangeAxis:
    """An axis of numbers from `low` to `high`, both included; a grid tries every `step`."""

    name: str
    low: float
    high: float
    step: float | None
    log: bool
    whole: bool

    @property
    def size(self) -> int:
        """How many numbers a grid tries."""
        assert self.step is not None
        return math.floor((_exact(self.high) - _exact(self.low)) / _exact(self.step)) + 1

    @property
    def values(self) -> Mapping[str, Any]:
        """The numbers that a grid tries, by label."""
        assert self.step is not None
        low, step = _exact(self.low), _exact(self.step)
        labels = (self.label(float(low + place * step)) for place in range(self.size))
        return {label: self.value(label) for label in labels}

    def suggested(self, trial: Trial) -> str:
        if self.whole:
            step = 1 if self.log else int(self.step or 1)
            return self.label(trial.suggest_int(self.name, int(self.low), int(self.high), step=step, log=self.log))
        step_of_float = None if self.log else self.step
        number = trial.suggest_float(self.name, self.low, self.high, step=step_of_float, log=self.log)
        if step_of_float is not None:
            # Of the numbers of the axis, which rounding may have missed.
            number = float(_exact(self.low) + round((number - self.low) / step_of_float) * _exact(step_of_float))
        return self.label(number)

    def drawn(self, rng: random.Random) -> str:
        if self.step is not None and not self.log:
            return rng.choice(list(self.values))
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        number = rng.uniform(low, high)
        return self.label(math.exp(number) if self.log else number)

    def label(self, number: float) -> str:
        """The label of a number in rows; it is rounded if the axis has whole numbers."""
        return str(min(max(round(number), int(self.low)), int(self.high))) if self.whole else repr(float(number))

    def value(self, label: str) -> Any:
        return int(label) if self.whole else float(label)

    @property
    def extremes(self) -> Sequence[str]:
        """The labels to check before a sweep: if these can be used, all can."""
        return [self.label(self.low), self.label(self.high)]

    @property
    def drawable(self) -> float:
        """How many different labels a random search can draw."""
        if self.step is not None and not self.log:
            return self.size
        return int(self.high) - int(self.low) + 1 if self.whole else math.inf


def _exact(number: float) -> Fraction:
    """The number as it is written: 0.1 is a tenth, so that ten steps of it are 1."""
    return Fraction(repr(number))


AnyAxis = Axis | RangeAxis


@dataclass(frozen=True, slots=True)
class Space:
    """All axes, in the order of the file."""

    axes: tuple[AnyAxis, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes)

    @property
    def seeds(self) -> tuple[str, ...]:
        """The labels of the seeds; one empty label if the file has no seeds."""
        return next((tuple(axis.values) for axis in self.axes if axis.name == SEED), ("",))

    @property
    def searched(self) -> tuple[AnyAxis, ...]:
        """All axes but the seed. Each of their points is run with all seeds."""
        return tuple(axis for axis in self.axes if axis.name != SEED)

    def grid(self) -> Iterator[Point]:
        """Every combination, the last axis varying fastest."""
        for labels in product(*(axis.values for axis in self.axes)):
            yield dict(zip(self.names, labels, strict=True))

    def drawn(self, number: int, seed: int) -> Iterator[Point]:
        """Draw `number` different combinations at random, each with all seeds; fewer if there are no more."""
        rng, seen = random.Random(seed), set()
        number = int(min(number, math.prod(axis.drawable for axis in self.searched)))
        for _ in range(100 * number):
            labels = tuple(axis.drawn(rng) for axis in self.searched)
            if labels not in seen:
                seen.add(labels)
                yield from self.with_seeds(dict(zip((axis.name for axis in self.searched), labels, strict=True)))
            if len(seen) == number:
                return

    def with_seeds(self, point: Point) -> Iterator[Point]:
        """A point of the searched axes once for each seed."""
        for seed in self.seeds:
            whole = {**point, SEED: seed}
            yield {name: whole[name] for name in self.names}

    def value(self, point: Point, name: str) -> Any:
        """The value of an axis at a point; None if it is no axis."""
        return next((axis.value(point[name]) for axis in self.axes if axis.name == name), None)

    def without_seed(self, point: Point) -> tuple[str, ...]:
        return tuple(point[axis.name] for axis in self.searched)


def grid_size(axes: Sequence[AnyAxis]) -> int:
    """How many combinations there are."""
    return math.prod(axis.size for axis in axes)


METHODS = ("grid", "random", "optuna")
RUNS = ("simulation", "timeline")
VARIED = ("cluster", "config", "events", "nodeGroups", "trace", "release", "tieBreak", SEED)
"""The names of axes, besides `args.PLUGIN.FIELD` and `weight.PLUGIN`."""
MOST_RUNS = 1_000_000


class PointSearch(NamedTuple):
    """How points are chosen: all of them, a number at random, or a number that Optuna suggests."""

    method: Literal["grid", "random", "optuna"]
    trials: int
    seed: int


class Goal(NamedTuple):
    """The measure that decides which runs are best."""

    measure: str
    is_highest: bool


@dataclass(frozen=True, kw_only=True)
class SweepSpec:
    """A checked sweep file. Paths in it are relative to `folder`."""

    document: LocatedDocument
    folder: Path
    space: Space
    search: PointSearch
    goal: Goal
    is_timeline: bool
    fixed: Mapping[str, Any]
    """The values that are the same in all runs, by the names of `VARIED`."""
    plugins: tuple[str, ...]
    prepare: str
    measures: tuple[str, ...]
    until: float | None

    @property
    def names_functions(self) -> bool:
        """Whether it uses functions or plugins of the user's own."""
        return bool(self.plugins or self.prepare or self.measures)

    def place(self, name: str) -> tuple[str, ...]:
        """Where the sweep file has a name: among its axes or next to them."""
        return ("axes", name) if name in self.space.names else (name,)

    def path(self, given: str) -> str:
        """A path of the sweep file, relative to this process."""
        return os.path.join(self.folder, os.path.expandvars(given))


def read_sweep(file: str) -> SweepSpec:
    """Read a sweep file; raises an InputError that names the file, the line and the field that is wrong."""
    document = LocatedDocument(file)
    top = document.section()
    axes = top.inner("axes")
    space = Space(tuple(_axis(axes, name) for name in axes.fields))
    fixed = {name: top.raw(name) for name in VARIED if name in top}
    for name in VARIED:
        top.raw(name)
        if name in fixed and name in space.names:
            top.refuse(name, "is an axis as well; keep one of the two")
    varied = {*fixed, *space.names}
    kind = top.one_of("run", RUNS, "timeline" if "events" in varied else "simulation")
    spec = SweepSpec(
        document=document,
        folder=Path(file).parent,
        space=space,
        search=_search(top, space),
        goal=_goal(top),
        is_timeline=kind == "timeline",
        fixed=fixed,
        plugins=top.texts("plugins"),
        prepare=top.text("prepare", "-").strip("-"),
        measures=top.texts("measures"),
        until=top.duration("until") if "until" in top else None,
    )
    top.raw("until")
    top.done()
    _check(spec, top, varied)
    return spec


def _check(spec: SweepSpec, top: Section, varied: set[str]) -> None:
    if not varied & {"cluster", "trace", "events"}:
        top.refuse("", "needs a `cluster` or a `trace`, for all runs or as an axis")
    if spec.is_timeline and not varied & {"events", "trace"}:
        top.refuse("run", "is timeline; it needs `events` or a `trace`")
    if not spec.is_timeline and "events" in varied:
        spec.document.refuse(spec.place("events"), "are for timelines; leave out `run: simulation`")
    if "nodeGroups" in varied and not spec.is_timeline:
        spec.document.refuse(spec.place("nodeGroups"), "are for timelines; set `run: timeline`")
    if spec.until is not None and not spec.is_timeline:
        top.refuse("until", "is for timelines; set `run: timeline`")
    for name, check in (("release", release_of), ("tieBreak", tie_break)):
        for path, value in _values(spec, name):
            try:
                check(str(value))
            except InputError as error:
                hint = "" if isinstance(value, str) else "; YAML reads 1.30 as the number 1.3: put it in quotes"
                raise spec.document.error(path, f"{error}{hint}") from None
    for path, value in _values(spec, SEED):
        if not _is_whole(value) or value < 0:
            spec.document.refuse(path, f"is {value!r}; a seed is a whole number from 0 on")
    for axis in spec.space.axes:
        if axis.name.startswith("weight."):
            for label in axis.extremes:
                if not _is_whole(axis.value(label)) or axis.value(label) < 1:
                    spec.document.refuse(("axes", axis.name), f"is {label}; a weight is a whole number from 1 on")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _values(spec: SweepSpec, name: str) -> list[tuple[tuple[str | int, ...], Any]]:
    """Every value that a name has in any run, and its place in the sweep file."""
    if name in spec.fixed:
        return [((name,), spec.fixed[name])]
    return [(("axes", name), value) for axis in spec.space.axes if axis.name == name for value in axis.values.values()]


def _axis(axes: Section, name: str) -> AnyAxis:
    parts = name.split(".")
    is_setting = (parts[0] == "args" and len(parts) > 2) or (parts[0] == "weight" and len(parts) == 2)
    if name not in VARIED and not is_setting:
        axes.refuse(name, f"cannot be varied; use {', '.join(VARIED)}, args.PLUGIN.FIELD or weight.PLUGIN")
    given = axes.raw(name)
    if isinstance(given, Mapping) and "from" in given and (is_setting or name == SEED):
        return _range(axes.inner(name), name)
    if isinstance(given, Mapping | list) and "" in given:
        axes.refuse(name, "has a value without a name")
    if isinstance(given, Mapping) and given and all(isinstance(label, str) for label in given):
        return Axis(name, dict(given))
    if isinstance(given, list) and given and all(isinstance(each, str | bool) or is_number(each) for each in given):
        labels = [str(each).lower() if isinstance(each, bool) else str(each) for each in given]
        if len({*labels}) < len(labels):
            axes.refuse(name, "has a value twice; keep one of them")
        return Axis(name, dict(zip(labels, given, strict=True)))
    return axes.refuse(name, "needs a list of values, or a mapping of names to values")


def _range(given: Section, name: str) -> RangeAxis:
    given.allow("from", "to", "step", "log")
    low, high = given.number("from"), given.number("to")
    whole = all(isinstance(given.fields.get(end, 1), int) for end in ("from", "to", "step"))
    step = given.number("step") if "step" in given else 1.0 if whole else None
    if high < low:
        given.refuse("to", f"is {high:g}, less than `from`")
    if step is not None and step <= 0:
        given.refuse("step", f"is {step:g}; it needs more than 0")
    if not math.isfinite((high - low) / (step or 1)):
        given.refuse("to", f"is {high:g}; that is too far from `from`")
    log = given.truth("log", default=False)
    if log and "step" in given:
        given.refuse("step", "stands next to `log`; keep one of the two")
    if log and low <= 0:
        given.refuse("from", f"is {low:g}; on a logarithmic scale it needs more than 0")
    return RangeAxis(name, low, high, step, log, whole)


def _search(top: Section, space: Space) -> PointSearch:
    given = top.raw("search")
    if given is None or isinstance(given, str):
        method, trials, seed = top.one_of("search", METHODS, "grid"), 100, 0
    else:
        inner = top.inner("search")
        inner.allow("method", "trials", "seed")
        method = inner.one_of("method", METHODS)
        for field in ("trials", "seed"):
            if method == "grid" and field in inner:
                inner.refuse(field, "is for random and optuna searches; a grid runs every point once")
        trials, seed = inner.whole("trials", 100, least=1), inner.whole("seed", 0)
        if trials > MOST_RUNS:
            inner.refuse("trials", f"is {trials:g}; {MOST_RUNS:,} are the most")
    axes = space.axes if method == "grid" else [axis for axis in space.axes if axis.name == SEED]
    for axis in axes:
        if isinstance(axis, RangeAxis) and axis.step is None:
            top.document.refuse(("axes", axis.name), "needs a `step` for a grid, or `search: random`")
        if isinstance(axis, RangeAxis) and axis.log:
            what = "seeds are all run" if axis.name == SEED else "a grid goes by `step`; use `search: random`"
            top.document.refuse(("axes", axis.name, "log"), f"is for random and optuna searches; {what}")
    runs = grid_size(axes) * (1 if method == "grid" else trials)
    if runs > MOST_RUNS:
        amount = f"{runs:,}" if runs < 10**15 else "far too many"
        top.refuse("axes", f"come to {amount} runs; {MOST_RUNS:,} are the most")
    if method == "grid":
        return PointSearch("grid", trials, seed)
    return PointSearch("random" if method == "random" else "optuna", trials, seed)


def _goal(top: Section) -> Goal:
    for field in ("minimize", "maximize"):
        top.raw(field)
    if "minimize" in top and "maximize" in top:
        top.refuse("maximize", "stands next to `minimize`; keep one of the two")
    if "maximize" in top:
        return Goal(top.text("maximize"), is_highest=True)
    return Goal(top.text("minimize", "pending"), is_highest=False)
