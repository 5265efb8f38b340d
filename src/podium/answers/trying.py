"""Trying configurations on the same pods, several at once in processes of their own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from time import monotonic
from typing import NamedTuple, Protocol

from podium.answers.knobs import Knobs, Panel
from podium.answers.objectives import Objective, value_of
from podium.cluster import Cluster
from podium.engine import simulate
from podium.errors import InputError, PodiumError
from podium.framework import Registry


class Tried(NamedTuple):
    """What came of a configuration."""

    value: float
    """Of the objective."""
    pending: tuple[int, ...]
    """The priorities of the pods that fit nowhere, highest first: of two, the smaller one is better."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Everything that a try needs and that stays the same from one to the next."""

    cluster: Cluster
    """With the pods to place pending."""
    panel: Panel
    objective: Objective
    registry: Registry
    release: str
    tie_break: str
    seed: int

    def run(self, knobs: Knobs) -> Tried:
        """Place the pods with the knobs turned so."""
        simulation = simulate(
            self.cluster,
            config=self.panel.config(knobs),
            registry=self.registry,
            release=self.release,
            tie_break=self.tie_break,
            seed=self.seed,
        )
        pending = sorted((placement.pod.priority for placement in simulation.pending), reverse=True)
        return Tried(value_of(self.objective, simulation), tuple(pending))


class Try(Protocol):
    """Tries configurations, in any order; None for those that it did not get to before the deadline."""

    def __call__(self, batch: Sequence[Knobs], deadline: float | None) -> Iterator[Tried | None]: ...


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def trying(bench: Bench, jobs: int) -> Iterator[Try]:
    """A way to try configurations on so many processors."""
    if jobs <= 1 or not _can_travel(bench.objective):
        yield lambda batch, deadline: (None if _is_over(deadline) else bench.run(knobs) for knobs in batch)
        return
    # A fresh interpreter, as a fork of a process with threads may hang.
    with ProcessPoolExecutor(jobs, get_context("spawn"), _set_up, (bench,)) as pool:

        def run(batch: Sequence[Knobs], deadline: float | None) -> Iterator[Tried | None]:
            futures = [pool.submit(_run, knobs) for knobs in batch]
            for future in futures:
                yield None if _is_over(deadline) and future.cancel() else future.result()

        try:
            yield run
        except BrokenProcessPool:
            raise PodiumError("a process that tries configurations ended; try --jobs 1 to see why") from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and monotonic() >= deadline


def _can_travel(objective: Objective) -> bool:
    """Whether another process can import the function, which it cannot from a notebook or out of a function."""
    name = getattr(objective, "__qualname__", "<")
    return getattr(objective, "__module__", "__main__") != "__main__" and "<" not in name


_bench: Bench | None = None


def _set_up(bench: Bench) -> None:
    """What a process does first; an interrupt is for the one that started it."""
    global _bench  # noqa: PLW0603 - what a process of the pool works with has no other place
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _bench = bench


def _run(knobs: Knobs) -> Tried:
    assert _bench is not None
    try:
        return _bench.run(knobs)
    except PodiumError as error:
        # Errors with more than a message do not survive the way back.
        raise InputError(str(error)) from None
