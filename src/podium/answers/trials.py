"""Trials of a configuration: what one trial runs, the objective to minimise, and the processes that run trials."""

from __future__ import annotations

import importlib
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from math import ceil
from multiprocessing import get_context, resource_tracker
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from podium.answers import _replicas as replicas
from podium.answers.compare import NODE_GROUP_NUMBERS, timeline_numbers
from podium.answers.measures import NODE, cost_per_hour, fragmentation, imbalance, nodes_in_use, spread
from podium.answers.search_space import SearchSpace, TunedSettings
from podium.answers.simulation import Simulation, in_queue_order, place_in_order
from podium.cluster import Cluster
from podium.engine import Decision, Scheduler
from podium.engine.scheduler import SchedulerOptions
from podium.errors import ExtenderError, InputError, PluginError, PodiumError
from podium.manifests import Objects
from podium.model import Pod
from podium.model.objects import ZONE
from podium.model.resources import CPU, MEMORY
from podium.workloads import workload_of
from podium.workloads.owners import recreated

if TYPE_CHECKING:
    from podium.autoscaling import NodeGroups
    from podium.loop import SchedulerLoop
    from podium.timeline import TimelineEvents, TimelineResult

MOST_LOOKED_AT = 2_000
"""The maximum number of pods that are decided in full to find out which weights matter; of more pods, a sample is."""
LOOKS, KINDS_AT_ONCE, SAMPLED = 20, 25, 500
"""Sample sizes: times and event times of a timeline, workloads at each of them, and pods of a placement."""

Objective = Callable[[Simulation], float]
TimelineObjective = Callable[["TimelineResult"], float]


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
    """The share of the free resources that is stranded."""
    return fragmentation(simulation.cluster)


def lowest_cost(simulation: Simulation) -> float:
    """The cost of the nodes in use per hour."""
    return cost_per_hour(simulation.cluster)


OBJECTIVES: Mapping[str, Objective] = {
    "fewest-nodes": fewest_nodes,
    "lowest-imbalance": lowest_imbalance,
    "most-spread": most_spread,
    "least-fragmentation": least_fragmentation,
    "lowest-cost": lowest_cost,
}


@dataclass(frozen=True)
class LowestNumber:
    """An objective of timelines: one of the numbers of `timeline_numbers`."""

    name: str

    def __call__(self, result: TimelineResult) -> float:
        return timeline_numbers(result)[self.name]


TIMELINE_OBJECTIVES: Mapping[str, LowestNumber] = {
    name: LowestNumber(name)
    for name in (*NODE_GROUP_NUMBERS, "evictions", "mean_wait", "longest_wait", "p95_wait", "end")
} | {"lowest-cost": LowestNumber("cost")}


def objective_named(name: str) -> Objective:
    """One of `OBJECTIVES`, or a Python function as `module:function`."""
    return OBJECTIVES[name] if name in OBJECTIVES else _own_objective(name, OBJECTIVES)


def timeline_objective(name: str, *, has_groups: bool) -> TimelineObjective:
    """One of `TIMELINE_OBJECTIVES`, or a Python function as `module:function`."""
    found = TIMELINE_OBJECTIVES.get(name)
    if found is not None and found.name in NODE_GROUP_NUMBERS and not has_groups:
        raise InputError(f"objective {name!r} needs node groups: give them with --node-groups")
    return found or _own_objective(name, TIMELINE_OBJECTIVES)


def _own_objective(name: str, known: Iterable[str]) -> Callable[[Any], float]:
    if ":" not in name:
        raise InputError(f"objective {name!r} is not one of {', '.join(known)}, nor a function as module:function")
    try:
        return function_named(name)
    except InputError as error:
        raise InputError(f"objective {name!r}: {error.message}") from error


def function_named(name: str) -> Callable[..., Any]:
    """The function that `module:function` names; InputError if it cannot be imported."""
    module_name, _, function_name = name.partition(":")
    if not module_name or not function_name:
        raise InputError(f"{name!r} is not a function as module:function")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a user's module may fail in any way; say which and how
        raise InputError(f"module {module_name!r} cannot be imported: {error}") from error
    function: Callable[..., Any] | None = getattr(module, function_name, None)
    if not callable(function):
        raise InputError(f"module {module_name!r} has no function {function_name!r}")
    return function


def value_of(objective: Callable[[Any], float], result: Simulation | TimelineResult) -> float:
    """The value of the objective; InputError if a user's function fails or returns no number."""
    name = getattr(objective, "__name__", repr(objective))
    try:
        value = objective(result)
    except InputError:
        raise
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
    """The result of a configuration."""

    value: float
    """The value of the objective."""
    pending: tuple[int, ...]
    """The priorities of the pods that fit nowhere, highest first; the smaller tuple is better."""


@dataclass(frozen=True, kw_only=True)
class TrialRunner(ABC):
    """Everything that a trial needs and that is the same for all trials."""

    space: SearchSpace
    objective: Callable[[Any], float]
    options: SchedulerOptions
    """The options without the configuration, which each trial sets."""

    def options_with(self, settings: TunedSettings) -> SchedulerOptions:
        """The options of a scheduler with these settings."""
        return replace(self.options, config=self.space.config(settings))

    @abstractmethod
    def run(self, settings: TunedSettings) -> TrialOutcome:
        """Try these settings."""

    @property
    @abstractmethod
    def samples(self) -> bool:
        """Whether `decisions` covers a sample of the pods only."""

    @abstractmethod
    def decisions(self, settings: TunedSettings) -> Generator[Decision]:
        """The decisions with these settings about the pods of the profile, with every score."""


@dataclass(frozen=True, kw_only=True)
class PlacementRunner(TrialRunner):
    """A trial that places pending pods."""

    cluster: Cluster
    """The cluster, in which the pods to place are pending."""

    def run(self, settings: TunedSettings) -> TrialOutcome:
        """Place the pods with these settings."""
        simulation = place_in_order(self.cluster, config=self.options_with(settings), messages=False)
        pending = sorted((placement.pod.priority for placement in simulation.pending), reverse=True)
        return TrialOutcome(value_of(self.objective, simulation), tuple(pending))

    @property
    def samples(self) -> bool:
        return len(self.cluster.pending) > MOST_LOOKED_AT

    def decisions(self, settings: TunedSettings) -> Generator[Decision]:
        """The decision about each pod; of very many pods, a sample of each workload, from its first to its last."""
        with closing(Scheduler(self.cluster.fork(), self.options_with(settings))) as scheduler:
            pods = in_queue_order(self.cluster.pending.values(), scheduler)
            looked_at = _sample(pods) if self.samples else {pod.key for pod in pods}
            for pod in pods:
                if pod.key not in looked_at:
                    replicas.place(scheduler, pod)
                    continue
                try:
                    decision = scheduler.place(pod)
                except (InputError, PluginError, ExtenderError):
                    continue
                if pod.spec.scheduler_name == self.space.profile:
                    yield decision


def _sample(pods: Sequence[Pod]) -> set[str]:
    every, chosen = len(pods) // SAMPLED, list[str]()
    for keys in _by_workload(pods).values():
        chosen += [*keys[::every], keys[-1]]
    return set(chosen[:: ceil(len(chosen) / MOST_LOOKED_AT)])


def _by_workload(pods: Iterable[Pod]) -> dict[str, list[str]]:
    """The keys of the pods of each workload; pods without a workload are together."""
    found: dict[str, list[str]] = {}
    for pod in pods:
        found.setdefault(f"{pod.namespace} {workload_of(pod) if pod.metadata.controller else ''}", []).append(pod.key)
    return found


@dataclass(frozen=True, kw_only=True)
class TimelineRunner(TrialRunner):
    """A trial that runs the events of a timeline."""

    objects: Objects
    events: TimelineEvents
    node_groups: NodeGroups | None
    until: float | None

    def run(self, settings: TunedSettings) -> TrialOutcome:
        """Run the events with these settings."""
        # Imported here because most answers need no simulated time.
        from podium.autoscaling import scaled
        from podium.timeline import Timeline

        timeline = Timeline(self.objects, self.events, self.options_with(settings))
        with closing(scaled(timeline, self.node_groups)):
            result = timeline.run(self.until)
            pending = sorted((timeline.loop.pods[life.pod].priority for life in result.unplaced), reverse=True)
        return TrialOutcome(value_of(self.objective, result), tuple(pending))

    samples = True

    def decisions(self, settings: TunedSettings) -> Generator[Decision]:
        """At some moments, the decision about one more pod of each workload that exists then."""
        from podium.autoscaling import scaled
        from podium.timeline import Timeline

        times = sorted({event.time for event in self.events.events if self.until is None or event.time <= self.until})
        end = self.until if self.until is not None else times[-1] if times else 0.0
        moments = {*times[:: len(times) // LOOKS + 1], *(end * look / LOOKS for look in range(LOOKS + 1))}
        timeline = Timeline(self.objects, self.events, self.options_with(settings))
        with closing(scaled(timeline, self.node_groups)):
            for moment in sorted(moments):
                timeline.run(moment)
                yield from self._decisions_now(timeline.loop)

    def _decisions_now(self, loop: SchedulerLoop) -> Iterator[Decision]:
        pods = [pod for pod in loop.pods.values() if pod.spec.scheduler_name == self.space.profile]
        keys = [keys[-1] for keys in _by_workload(pods).values()]
        with closing(loop.scheduler_on(loop.cluster.fork())) as scheduler:
            for key in keys[:: len(keys) // KINDS_AT_ONCE + 1]:
                another = recreated(loop.pods[key], f"{loop.pods[key].name}-x")
                with suppress(InputError, PluginError, ExtenderError):
                    yield scheduler.decide(another)


class RunTrials(Protocol):
    """Tries configurations, in any order; the result is None for those not tried before the deadline."""

    def __call__(self, batch: Sequence[TunedSettings], deadline: float | None) -> Iterator[TrialOutcome | None]: ...


class Workers(Protocol):
    """Other processes, on any machine, that call a method of a shared object for many items."""

    def run(self, method: Callable[[Any, Any], Any], shared: Any, items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yield the result of each item as it is finished, with its index; an exception if no worker could do it."""
        ...


def trials_on(runner: TrialRunner, workers: Workers) -> RunTrials:
    """Runs trials on workers that the caller has started; a batch is tried as a whole."""

    def run(batch: Sequence[TunedSettings], deadline: float | None) -> Iterator[TrialOutcome | None]:
        found = dict(workers.run(type(runner).run, runner, batch))
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
def interrupts_held_back() -> Iterator[None]:
    """Hold back interrupts for the length of the block; processes started in it never receive any.

    A terminal sends an interrupt to every process, but only the parent should handle it.
    """
    # The resource tracker starts with the first process, and lets interrupts through again once it runs.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def trial_workers(runner: TrialRunner, jobs: int) -> Iterator[RunTrials]:
    """Runs trials on this many processors."""
    if jobs <= 1 or not _can_travel(runner.objective):
        yield lambda batch, deadline: (None if _is_over(deadline) else runner.run(settings) for settings in batch)
        return
    # A fresh interpreter, as a fork of a process with threads may hang.
    with ProcessPoolExecutor(jobs, get_context("spawn"), _set_up, (runner,)) as pool:

        def run(batch: Sequence[TunedSettings], deadline: float | None) -> Iterator[TrialOutcome | None]:
            with interrupts_held_back():
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


def _can_travel(objective: Callable[[Any], float]) -> bool:
    """Whether another process can import the function, which it cannot from a notebook or a local scope."""
    named = objective if hasattr(objective, "__qualname__") else type(objective)
    return named.__module__ != "__main__" and "<" not in named.__qualname__


_runner: TrialRunner | None = None


def _set_up(runner: TrialRunner) -> None:
    """The first call in a new process."""
    global _runner  # noqa: PLW0603 - what a process of the pool works with has no other place
    _runner = runner


def _run(settings: TunedSettings) -> TrialOutcome:
    assert _runner is not None
    try:
        return _runner.run(settings)
    except PodiumError as error:
        # Exceptions with more than a message cannot be pickled.
        raise InputError(str(error)) from None
