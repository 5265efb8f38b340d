"""What was measured: kept as JSON, compared with the baseline."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import TypeVar

import msgspec
import numpy as np

from bench.figures import BY_NAME, Figure
from bench.reference import Sample

HERE = Path(__file__).parent
RESULTS, BASELINE = HERE / "results.json", HERE / "baseline.json"
T = TypeVar("T")
TOLERATED = 0.75
"""A figure that does less than this part of what it did for the baseline has dropped."""


class Result(msgspec.Struct, frozen=True):
    """A figure's samples as one: the best times, the median ratio, the most memory."""

    name: str
    units: int
    """How many pods were decided, or 1 for what is done once."""
    seconds: float
    """Wall time."""
    cpu: float
    """Processor time. Scheduling is one thread that waits for nothing: on an idle machine the two are the same."""
    ratio: float
    """How much is done in the time that the yardstick takes: about the same on a slower or a busy machine."""
    peak: int
    """Bytes of memory."""

    @classmethod
    def of(cls, figure: Figure, samples: Sequence[Sample]) -> Result:
        return cls(
            figure.name,
            figure.units,
            min(sample.seconds for sample in samples),
            min(sample.cpu for sample in samples),
            median(figure.units * sample.reference / sample.cpu for sample in samples),
            max(sample.peak for sample in samples),
        )

    @property
    def figure(self) -> Figure:
        return BY_NAME[self.name]

    @property
    def rate(self) -> float:
        """Pods a second of processor time."""
        return self.units / self.cpu

    @property
    def cost(self) -> float:
        """Seconds of processor time a pod."""
        return self.cpu / self.units


class Machine(msgspec.Struct, frozen=True):
    """Where it was measured."""

    processor: str
    cores: int
    python: str
    numpy: str

    @classmethod
    def this(cls) -> Machine:
        return cls(_processor(), os.cpu_count() or 1, platform.python_version(), np.__version__)

    def __str__(self) -> str:
        return f"{self.processor}, {self.cores} cores, Python {self.python}, NumPy {self.numpy}"


class Results(msgspec.Struct, frozen=True):
    """Results by figure, in the order of the figures."""

    machine: Machine
    results: dict[str, Result] = {}

    def updated(self, results: Iterable[Result]) -> Results:
        """These results, with newer ones in place of those of the same figures."""
        merged = self.results | {result.name: result for result in results}
        return Results(self.machine, {name: merged[name] for name in BY_NAME if name in merged})


class Baseline(msgspec.Struct, frozen=True):
    """The ratio of each figure that others are compared with."""

    ratios: dict[str, float] = {}

    def change(self, result: Result) -> float | None:
        """How much faster than the baseline: 1.0 is as fast; None for a figure it does not have."""
        known = self.ratios.get(result.name)
        return None if known is None else result.ratio / known

    def has_dropped(self, result: Result) -> bool:
        change = self.change(result)
        return change is not None and change < TOLERATED

    def updated(self, results: Iterable[Result]) -> Baseline:
        merged = self.ratios | {result.name: float(f"{result.ratio:.4g}") for result in results}
        return Baseline({name: merged[name] for name in BY_NAME if name in merged})


def read_results(path: Path = RESULTS) -> Results:
    """What was measured last; nothing, on this machine, if that is not there."""
    return _read(path, Results) if path.exists() else Results(Machine.this())


def read_baseline(path: Path = BASELINE) -> Baseline:
    return _read(path, Baseline) if path.exists() else Baseline()


def _read(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}: {error}; remove it, it will be written anew") from None


def write(value: Results | Baseline, path: Path) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def _processor() -> str:
    """The processor's name, where the system tells."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if sys.platform == "linux" and cpuinfo.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
