"""The yardstick: a fixed piece of work, measured next to everything else, so that a busy machine does not matter."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

import msgspec
import numpy as np


class Sample(msgspec.Struct, frozen=True):
    """One measurement: seconds of wall and processor time, the yardstick's processor time, peak bytes of memory."""

    seconds: float
    cpu: float
    reference: float
    peak: int


def reference_loop() -> None:
    """About equal parts of interpreter, small arrays and arrays as long as a cluster has nodes: what deciding is."""
    nodes = np.arange(5_000, dtype=np.int64)
    few = nodes[:8]
    counts: dict[int, int] = {}
    for turn in range(5_000):
        int((nodes + turn).argmax())
        for key in range(40):
            counts[key] = counts.get(key, 0) + turn
        (few + 1) * 2 // 3


def reference_seconds() -> float:
    start = time.process_time()
    reference_loop()
    return time.process_time() - start


def take(work: Callable[[], object]) -> Sample:
    """Measure some work in this process, between two measurements of the yardstick."""
    before = reference_seconds()
    start, cpu = time.perf_counter(), time.process_time()
    work()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return Sample(seconds, cpu, min(before, reference_seconds()), peak_bytes(resource.getrusage(resource.RUSAGE_SELF)))


def peak_bytes(usage: resource.struct_rusage) -> int:
    """The most memory a process had at once; systems do not agree on the unit."""
    return usage.ru_maxrss if sys.platform == "darwin" else usage.ru_maxrss * 1024
