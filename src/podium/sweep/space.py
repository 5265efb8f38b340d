"""The axes of a sweep: what varies from run to run, and the points that are tried."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna.trial import Trial

SEED = "seed"
"""The axis over which means are taken."""

Point = Mapping[str, str]
"""One value per axis, by its label."""


@dataclass(frozen=True, slots=True)
class Axis:
    """What is varied, and the values it takes: each has a label, which names it in rows."""

    name: str
    values: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.values)

    def suggested(self, trial: Trial) -> str:
        return str(trial.suggest_categorical(self.name, list(self.values)))

    def drawn(self, rng: random.Random) -> str:
        return rng.choice(list(self.values))

    def value(self, label: str) -> Any:
        return self.values[label]

    @property
    def extremes(self) -> Sequence[str]:
        """The labels that have to be fine for all others to be."""
        return list(self.values)


@dataclass(frozen=True, slots=True)
class RangeAxis:
    """Numbers from `low` to `high`, both included; `step` is the distance between those a grid tries."""

    name: str
    low: float
    high: float
    step: float | None
    log: bool
    whole: bool

    def __len__(self) -> int:
        """How many numbers a grid tries."""
        assert self.step is not None
        return math.floor((self.high - self.low) / self.step) + 1

    @property
    def values(self) -> Mapping[str, Any]:
        """What a grid tries."""
        assert self.step is not None
        numbers = (self.low + place * self.step for place in range(len(self)))
        return {self.label(number): self.value(self.label(number)) for number in numbers}

    def suggested(self, trial: Trial) -> str:
        if self.whole:
            step = 1 if self.log else int(self.step or 1)
            return self.label(trial.suggest_int(self.name, int(self.low), int(self.high), step=step, log=self.log))
        step_of_float = None if self.log else self.step
        return self.label(trial.suggest_float(self.name, self.low, self.high, step=step_of_float, log=self.log))

    def drawn(self, rng: random.Random) -> str:
        if self.step is not None and not self.log:
            return rng.choice(list(self.values))
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        number = rng.uniform(low, high)
        return self.label(math.exp(number) if self.log else number)

    def label(self, number: float) -> str:
        """How a number stands in rows; it is rounded where the axis has whole numbers."""
        return str(min(max(round(number), int(self.low)), int(self.high))) if self.whole else repr(float(number))

    def value(self, label: str) -> Any:
        return int(label) if self.whole else float(label)

    @property
    def extremes(self) -> Sequence[str]:
        """The labels that have to be fine for all others to be."""
        return [self.label(self.low), self.label(self.high)]


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
        """The labels of the seeds; one nameless seed where the file varies none."""
        return next((tuple(axis.values) for axis in self.axes if axis.name == SEED), ("",))

    @property
    def searched(self) -> tuple[AnyAxis, ...]:
        """All axes but the seeds: at each of their points all seeds are run."""
        return tuple(axis for axis in self.axes if axis.name != SEED)

    def grid(self) -> Iterator[Point]:
        """Every combination, the last axis varying fastest."""
        for labels in product(*(axis.values for axis in self.axes)):
            yield dict(zip(self.names, labels, strict=True))

    def drawn(self, number: int, seed: int) -> Iterator[Point]:
        """So many different combinations drawn at random, each with all seeds; fewer if there are no more."""
        rng, seen = random.Random(seed), set()
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
    return math.prod(map(len, axes))
