"""The yardstick: a fixed piece of work, measured in turns with all else, so that a busy machine does not matter."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterable

import msgspec
import numpy as np

SLICES = 20
"""The yardstick comes in so many equal slices."""


class Sample(msgspec.Struct, frozen=True):
    """One measurement: seconds of wall and processor time, the yardstick's processor time, peak bytes of memory."""

    seconds: float
    cpu: float
    reference: float
    peak: int


class Yardstick:
    """Measures the yardstick slice by slice, while other work goes on in between."""

    def __init__(self) -> None:
        self._seconds, self._slices = 0.0, 0

    def run(self, slices: int = 1) -> None:
        start = time.process_time()
        for _ in range(slices):
            reference_slice()
        self._seconds += time.process_time() - start
        self._slices += slices

    @property
    def seconds(self) -> float:
        """What all its slices take."""
        return self._seconds / self._slices * SLICES


def reference_slice() -> None:
    """Interpreter, small arrays, and arrays as long as a cluster has nodes: what deciding is made of."""
    nodes = np.arange(5_000, dtype=np.int64)
    few = nodes[:8]
    counts: dict[int, int] = {}
    for turn in range(250):
        int((nodes + turn).argmax())
        for key in range(40):
            counts[key] = counts.get(key, 0) + turn
        (few + 1) * 2 // 3


def take(steps: Iterable[Callable[[], object]]) -> Sample:
    """Measure work in this process: steps, with the yardstick before, between and after them."""
    steps = list(steps)
    yardstick, slices = Yardstick(), max(SLICES // (len(steps) + 1), 1)
    seconds = cpu = 0.0
    yardstick.run(slices)
    for step in steps:
        start, cpu_start = time.perf_counter(), time.process_time()
        step()
        seconds += time.perf_counter() - start
        cpu += time.process_time() - cpu_start
        yardstick.run(slices)
    return Sample(seconds, cpu, yardstick.seconds, peak_bytes(resource.getrusage(resource.RUSAGE_SELF)))


def peak_bytes(usage: resource.struct_rusage) -> int:
    """The most memory a process had at once; systems do not agree on the unit."""
    return usage.ru_maxrss if sys.platform == "darwin" else usage.ru_maxrss * 1024
