"""Trying configurations on the same pods, several at once in processes of their own."""

from __future__ import annotations

import importlib
import math
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from time import monotonic
from typing import Any, NamedTuple, Protocol

from podium.answers.measures import NODE, fragmentation, imbalance, nodes_in_use, rows_in_use, spread
from podium.answers.tuning.search_space import SearchSpace, TunedSettings
from podium.cluster import Cluster
from podium.engine import Simulation, simulate
from podium.engine.release import AnyRelease
from podium.errors import InputError, PodiumError
from podium.framework import Registry
from podium.model.node import PRICE_PER_HOUR, ZONE
from podium.model.resources import CPU, MEMORY

Objective = Callable[[Simulation], float]


def fewest_nodes(simulation: Simulation) -> float:
    """How many nodes are in use."""
    return nodes_in_use(simulation.cluster)


def lowest_imbalance(simulation: Simulation) -> float:
    """The mean imbalance of cpu and memory."""
    return (imbalance(simulation.cluster, CPU) + imbalance(simulation.cluster, MEMORY)) / 2


def most_spread(simulation: Simulation) -> float:
    """How far the mean spread over zones and nodes is from 1."""
    return 1 - (spread(simulation.cluster, ZONE) + spread(simulation.cluster, NODE)) / 2


def least_fragmentation(simulation: Simulation) -> float:
    """Which share of what is free is stranded."""
    return fragmentation(simulation.cluster)


def lowest_cost(simulation: Simulation) -> float:
    """What the nodes in use cost per hour, by their label for that; a node without it counts as 1."""
    cluster = simulation.cluster
    names = zip(cluster.nodes.names, rows_in_use(cluster), strict=True)
    used = [cluster.node(name).metadata.labels for name, is_in_use in names if is_in_use]
    return math.fsum(float(labels.get(PRICE_PER_HOUR, 1)) for labels in used)


OBJECTIVES: Mapping[str, Objective] = {
    "fewest-nodes": fewest_nodes,
    "lowest-imbalance": lowest_imbalance,
    "most-spread": most_spread,
    "least-fragmentation": least_fragmentation,
    "lowest-cost": lowest_cost,
}


def objective_named(name: str) -> Objective:
    """One of `OBJECTIVES`, or a Python function as `module:function`."""
    if name in OBJECTIVES:
        return OBJECTIVES[name]
    module_name, colon, function_name = name.partition(":")
    if not colon or not module_name or not function_name:
        known = ", ".join(OBJECTIVES)
        raise InputError(f"objective {name!r} is not one of {known}, nor a function as module:function")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a user's module may fail in any way; say which and how
        raise InputError(f"objective {name!r}: module {module_name!r} cannot be imported: {error}") from error
    function: Objective | None = getattr(module, function_name, None)
    if not callable(function):
        raise InputError(f"objective {name!r}: module {module_name!r} has no function {function_name!r}")
    return function


def value_of(objective: Objective, simulation: Simulation) -> float:
    """The number the objective comes to; InputError if a user's function fails or gives none."""
    name = getattr(objective, "__name__", repr(objective))
    try:
        value = objective(simulation)
    except Exception as error:  # a user's function may fail in any way
        raise InputError(f"objective {name} failed: {type(error).__name__}: {error}") from error
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"objective {name} gave {value!r}; it must give a number to minimise") from None
    if number != number:
        raise InputError(f"objective {name} gave no number (NaN); it must give one to minimise")
    return number


class TrialOutcome(NamedTuple):
    """What came of a configuration."""

    value: float
    """Of the objective."""
    pending: tuple[int, ...]
    """The priorities of the pods that fit nowhere, highest first: of two, the smaller one is better."""


@dataclass(frozen=True, kw_only=True)
class TrialRunner:
    """Everything that a try needs and that stays the same from one to the next."""

    cluster: Cluster
    """With the pods to place pending."""
    space: SearchSpace
    objective: Objective
    registry: Registry
    release: AnyRelease
    tie_break: str
    seed: int

    def run(self, settings: TunedSettings) -> TrialOutcome:
        """Place the pods with the settings turned so."""
        simulation = simulate(
            self.cluster,
            config=self.space.config(settings),
            registry=self.registry,
            release=self.release,
            tie_break=self.tie_break,
            seed=self.seed,
            messages=False,
        )
        pending = sorted((placement.pod.priority for placement in simulation.pending), reverse=True)
        return TrialOutcome(value_of(self.objective, simulation), tuple(pending))


class RunTrials(Protocol):
    """Tries configurations, in any order; None for those that it did not get to before the deadline."""

    def __call__(self, batch: Sequence[TunedSettings], deadline: float | None) -> Iterator[TrialOutcome | None]: ...


class Workers(Protocol):
    """Other processes, on any machine, that call a method of a shared object for many items."""

    def run(
        self, method: Callable[[Any, Any], Any], shared: Any, items: Sequence[Any]
    ) -> Iterator[tuple[int, Any]]: ...


def trials_on(bench: TrialRunner, workers: Workers) -> RunTrials:
    """A way to try configurations on workers that somebody else has started; a batch is tried as a whole."""

    def run(batch: Sequence[TunedSettings], deadline: float | None) -> Iterator[TrialOutcome | None]:
        found = dict(workers.run(TrialRunner.run, bench, batch))
        for place in range(len(batch)):
            outcome = found[place]
            if not isinstance(outcome, TrialOutcome):
                raise InputError(f"a worker could not try a configuration: {outcome}")
            yield outcome

    return run


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def trial_workers(bench: TrialRunner, jobs: int) -> Iterator[RunTrials]:
    """A way to try configurations on so many processors."""
    if jobs <= 1 or not _can_travel(bench.objective):
        yield lambda batch, deadline: (None if _is_over(deadline) else bench.run(settings) for settings in batch)
        return
    # A fresh interpreter, as a fork of a process with threads may hang.
    with ProcessPoolExecutor(jobs, get_context("spawn"), _set_up, (bench,)) as pool:

        def run(batch: Sequence[TunedSettings], deadline: float | None) -> Iterator[TrialOutcome | None]:
            futures = [pool.submit(_run, settings) for settings in batch]
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


_runner: TrialRunner | None = None


def _set_up(bench: TrialRunner) -> None:
    """What a process does first; an interrupt is for the one that started it."""
    global _runner  # noqa: PLW0603 - what a process of the pool works with has no other place
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _runner = bench


def _run(settings: TunedSettings) -> TrialOutcome:
    assert _runner is not None
    try:
        return _runner.run(settings)
    except PodiumError as error:
        # Errors with more than a message do not survive the way back.
        raise InputError(str(error)) from None
