"""Searches the plugin weights and the scoring strategy that suit a cluster best, in several processes at once."""

from __future__ import annotations

import importlib
import os
import signal
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence, Set
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from math import inf
from multiprocessing import get_context
from time import monotonic
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Unpack

from podium.answers.compare import Comparison, Way, compare, ready
from podium.answers.measures import NODE, cost_per_hour, fragmentation, imbalance, nodes_in_use, spread
from podium.answers.search_space import (
    SHAPE_AT,
    ConfigurationSpace,
    Document,
    PolicySpace,
    SearchSpace,
    TunedSettings,
    V1Alpha2Space,
    has_shape,
)
from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration
from podium.engine import Decision, Scheduler, Simulation, simulate
from podium.engine.release import release_of
from podium.engine.scheduler import SchedulerKeywords, SchedulerOptions
from podium.engine.simulation import in_queue_order
from podium.errors import ExtenderError, InputError, PluginError, PodiumError
from podium.model import Pod
from podium.model.objects import ZONE
from podium.model.resources import CPU, MEMORY

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import Trial as Asked

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
    """What the nodes in use cost per hour."""
    return cost_per_hour(simulation.cluster)


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
    options: SchedulerOptions
    """The configuration aside, which each try has of its own."""

    def options_with(self, settings: TunedSettings) -> SchedulerOptions:
        """The options of a scheduler with these settings."""
        return replace(self.options, config=self.space.config(settings))

    def run(self, settings: TunedSettings) -> TrialOutcome:
        """Place the pods with these settings."""
        simulation = simulate(self.cluster, config=self.options_with(settings), messages=False)
        pending = sorted((placement.pod.priority for placement in simulation.pending), reverse=True)
        return TrialOutcome(value_of(self.objective, simulation), tuple(pending))


MOST_LOOKED_AT = 2_000
"""How many pods are looked at to find out which plugins matter: each is decided in full."""


def idle_plugins(bench: TrialRunner) -> tuple[str, ...]:
    """The plugins whose weights cannot matter: they score all nodes alike for every pod of the profile.

    That is so with today's weights and each of the strategies, as where pods go decides what some plugins say of the
    next. A plugin that is the only one to tell nodes apart does so with any weight. Nothing is left out where there are
    more pods than are looked at, nor of an old release, which knows priorities in place of plugins.
    """
    today, space = bench.space.today, bench.space
    if len(bench.cluster.pending) > MOST_LOOKED_AT or release_of(bench.options.release).is_old:
        return ()
    told: set[str] = set()
    others = [each for each in space.strategies if today.strategy and each != today.strategy and not has_shape(each)]
    for settings in (today, *(TunedSettings(today.weights, strategy) for strategy in others)):
        told |= telling_plugins(bench, settings, told)
        if told >= set(today.weights):
            return ()
    return tuple(today.weights) if len(told) == 1 else tuple(each for each in today.weights if each not in told)


def telling_plugins(bench: TrialRunner, settings: TunedSettings, known: Set[str] = frozenset()) -> set[str]:
    """The plugins, and extenders by URL, that score two nodes differently for some pod; `known` are some of them."""
    telling, wanted = set(known), set(settings.weights)
    with closing(Scheduler(bench.cluster.fork(), bench.options_with(settings))) as scheduler:
        for pod in in_queue_order(bench.cluster.pending.values(), scheduler):
            decision = _placed(pod, scheduler)
            if decision is None or pod.spec.scheduler_name != bench.space.profile:
                continue
            telling |= {scores.plugin for scores in decision.scores if len(set(scores.normalized.values())) > 1}
            telling |= set(decision.extender_scores)
            if telling >= wanted:
                break
    return telling


def _placed(pod: Pod, scheduler: Scheduler) -> Decision | None:
    """Put a pod where it goes, with every score; None for one that cannot be decided."""
    try:
        return scheduler.place(pod)
    except (InputError, PluginError, ExtenderError):
        return None


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
def interrupts_held_back() -> Iterator[None]:
    """Hold back interrupts for the length of the block; processes that are started in it never get any.

    A terminal sends an interrupt to every process, but it is for the one that started the others.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def trial_workers(bench: TrialRunner, jobs: int) -> Iterator[RunTrials]:
    """A way to try configurations on so many processors."""
    if jobs <= 1 or not _can_travel(bench.objective):
        yield lambda batch, deadline: (None if _is_over(deadline) else bench.run(settings) for settings in batch)
        return
    # A fresh interpreter, as a fork of a process with threads may hang.
    with ProcessPoolExecutor(jobs, get_context("spawn"), _set_up, (bench,)) as pool:

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


def _can_travel(objective: Objective) -> bool:
    """Whether another process can import the function, which it cannot from a notebook or out of a function."""
    name = getattr(objective, "__qualname__", "<")
    return getattr(objective, "__module__", "__main__") != "__main__" and "<" not in name


_runner: TrialRunner | None = None


def _set_up(bench: TrialRunner) -> None:
    """What a process does first."""
    global _runner  # noqa: PLW0603 - what a process of the pool works with has no other place
    _runner = bench


def _run(settings: TunedSettings) -> TrialOutcome:
    assert _runner is not None
    try:
        return _runner.run(settings)
    except PodiumError as error:
        # Errors with more than a message do not survive the way back.
        raise InputError(str(error)) from None


TRIALS = 100
"""How many configurations are tried unless a budget is given."""
BATCH = 16
"""How many are chosen before the first of them is tried: the same however many run at once, or the choice would not be.

More of them keep more processors busy, fewer let the search learn sooner.
"""
LARGEST_WEIGHT = 20
"""Unless a plugin weighs more already."""
HIGHEST_SCORE = 10
"""Of a point of a shape."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A configuration that was tried, and what came of it."""

    number: int
    """0 for today's configuration."""
    settings: TunedSettings
    value: float
    """Of the objective: the smaller the better."""
    pending: tuple[int, ...]
    """The priorities of the pods that fit nowhere, highest first."""

    @property
    def rank(self) -> tuple[tuple[int, ...], float, int]:
        """What leaves no pod, or the least important ones, pending is best; then the objective, then the first tried.

        Priorities are compared one by one from the highest, so that no pod waits for a less important one.
        """
        return self.pending, self.value, self.number

    def to_dict(self) -> dict[str, Any]:
        return {"number": self.number, "value": self.value, "pending": len(self.pending), **self.settings.to_dict()}


@dataclass(frozen=True, slots=True)
class Tuning:
    """The best configuration that was found, and what it would change."""

    objective: str
    profile: str
    document: Document
    """The configuration, ready to be written; today's if nothing better was found."""
    trials: tuple[Trial, ...]
    """Every configuration that was tried, today's first."""
    comparison: Comparison
    """The same pods placed with today's configuration and with the one found."""
    left_out: tuple[str, ...] = ()
    """The plugins whose weights were left as they are: they score all nodes alike for every pod."""

    @property
    def today(self) -> Trial:
        return self.trials[0]

    @property
    def best(self) -> Trial:
        return min(self.trials, key=lambda trial: trial.rank)

    @property
    def improves(self) -> bool:
        return self.best is not self.today

    @property
    def responsible(self) -> dict[str, int]:
        """How many pods go elsewhere mostly on account of each plugin, that of most pods first."""
        plugins = Counter(move.cause.plugin for move in self.comparison.moves if move.cause.plugin)
        return dict(plugins.most_common())

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data."""
        comparison = self.comparison
        return {
            "objective": self.objective,
            "profile": self.profile,
            "improves": self.improves,
            "today": self.today.to_dict(),
            "best": self.best.to_dict(),
            "config": self.document,
            "leftOut": list(self.left_out),
            "responsible": self.responsible,
            "moved": len(comparison.moves),
            "before": comparison.before.measures.to_dict(),
            "after": comparison.after.measures.to_dict(),
            "moves": [move.to_dict() for move in comparison.moves],
            "trials": [trial.to_dict() for trial in self.trials],
        }


def tune(
    cluster: Cluster,
    objective: str | Objective = "fewest-nodes",
    config: Mapping[str, Any] | SchedulerOptions | None = None,
    *,
    profile: str | None = None,
    replay: bool = False,
    trials: int | None = None,
    seconds: float | None = None,
    jobs: int | None = 1,
    workers: Workers | None = None,
    on_tried: Callable[[], object] = lambda: None,
    **keywords: Unpack[SchedulerKeywords],
) -> Tuning:
    """Search the weights and the scoring strategy of a profile, the first unless named, for the smallest objective.

    The pods that are pending are placed with each configuration; with `replay` the running ones too, as `compare`
    does. One that leaves a more important pod pending than another does is never better. `config` is a
    configuration document, the default one unless given. The budget is a number of `trials` or of `seconds`, or
    whichever is used up first; with trials alone the same seed gives the same result, with any number of `jobs`,
    which are processes: None for one per processor; or on `workers`, such as those of a Dask cluster. `objective` is a
    name of `OBJECTIVES`, a function as `module:function`, or a function of a Simulation; one that other processes
    cannot import is tried in this one. `on_tried` is called after each trial. An old release is given and gives a
    Policy, or v1.18 what it is given.
    """
    _check_budget(trials, seconds, jobs)
    optuna = _optuna()
    options = SchedulerOptions.steady(config, **keywords)
    space = _space(options, profile)
    function = objective_named(objective) if isinstance(objective, str) else objective
    pods = ready(cluster, replay)
    if not pods.pending:
        raise InputError("there is nothing to place: no pod is pending; --replay places the running ones anew")
    bench = TrialRunner(cluster=pods, space=space, objective=function, options=options)
    left_out = idle_plugins(bench)
    search = _Search(optuna, space, left_out, options.seed)
    deadline = None if seconds is None else monotonic() + seconds
    most = trials if trials is not None else TRIALS if seconds is None else None
    found = []
    with (
        _runs(bench, jobs, workers) as run,
        closing(search.trials(run, most, deadline)) as tried,
    ):
        for trial in tried:
            found.append(trial)
            on_tried()
    best = min(found, key=lambda trial: trial.rank)
    comparison = compare(
        Way(cluster=cluster, config=space.config(space.today), release=options.release, name="today's configuration"),
        Way(cluster=cluster, config=space.config(best.settings), release=options.release, name="the tuned one"),
        options,
        replay=replay,
    )
    name = objective if isinstance(objective, str) else getattr(objective, "__name__", repr(objective))
    if best.number and len(left_out) < len(space.today.weights):
        # What was found may send pods where another plugin has a say; it is not called idle then.
        told = telling_plugins(bench, best.settings, set(best.settings.weights).difference(left_out))
        left_out = tuple(each for each in left_out if each not in told)
    return Tuning(name, space.profile, space.document(best.settings), tuple(found), comparison, left_out)


def _runs(bench: TrialRunner, jobs: int | None, workers: Workers | None) -> AbstractContextManager[RunTrials]:
    if workers is not None:
        return nullcontext(trials_on(bench, workers))
    return trial_workers(bench, cores() if jobs is None else jobs)


def _space(options: SchedulerOptions, profile: str | None) -> SearchSpace:
    """The settings of a configuration, or of the default one of a release."""
    config, registry, chosen = options.config, options.registry, release_of(options.release)
    if isinstance(config, KubeSchedulerConfiguration):
        raise InputError("tune changes a configuration document: give it the dict of the file, not what was parsed")
    if not chosen.is_old:
        return ConfigurationSpace(config, registry, profile, chosen.rules)
    from podium.releases.policy import is_policy  # loaded where an old release is tuned

    if config is None or is_policy(config):
        return PolicySpace(config, registry, profile, chosen.name)
    return V1Alpha2Space(config, registry, profile, chosen.name)


class _Search:
    """Asks Optuna what to try next, and tells it what came of it."""

    def __init__(self, optuna: ModuleType, space: SearchSpace, left_out: Collection[str], seed: int) -> None:
        """The weights of the plugins in `left_out` stay as they are."""
        self._panel = space
        self._plugins = [plugin for plugin in space.today.weights if plugin not in left_out]
        self._largest = max(LARGEST_WEIGHT, *space.today.weights.values())
        self._failed = optuna.trial.TrialState.FAIL
        self._study: Study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        for strategy in space.strategies if space.today.strategy else ():
            # Worth knowing before anything else: what the strategies do with the weights as they are.
            self._study.enqueue_trial(self._parameters(strategy), skip_if_exists=True)

    def trials(self, run: RunTrials, most: int | None, deadline: float | None) -> Generator[Trial]:
        """Today's configuration, then what the search comes up with, until the budget is used up."""
        space, number = self._panel, 1
        # However short the time, there has to be something to compare with.
        (first,) = run([space.today], None)
        assert first is not None
        today = Trial(0, space.today, *first)
        yield today
        if not self._plugins and space.today.strategy is None:
            return
        while (most is None or number <= most) and (deadline is None or monotonic() < deadline):
            asked = [self._study.ask() for _ in range(min(BATCH, BATCH if most is None else most - number + 1))]
            batch = [self._suggest(each) for each in asked]
            for each, settings, tried in zip(asked, batch, run(batch, deadline), strict=True):
                if tried is None:
                    self._study.tell(each, state=self._failed)
                    continue
                self._study.tell(each, _told(tried, today))
                yield Trial(number, settings, *tried)
                number += 1

    def _parameters(self, strategy: str) -> dict[str, Any]:
        """Today's weights, with a strategy, as the search has them; a steep shape where one is needed."""
        weights = {f"weight {plugin}": self._panel.today.weights[plugin] for plugin in self._plugins}
        shape = {f"score at {at}%": at * HIGHEST_SCORE // SHAPE_AT[-1] for at in SHAPE_AT}
        return {**weights, "strategy": strategy, **(shape if has_shape(strategy) else {})}

    def _suggest(self, trial: Asked) -> TunedSettings:
        chosen = {plugin: trial.suggest_int(f"weight {plugin}", 1, self._largest, log=True) for plugin in self._plugins}
        weights = {**self._panel.today.weights, **chosen}
        if self._panel.today.strategy is None:
            return TunedSettings(weights, None)
        strategy = trial.suggest_categorical("strategy", self._panel.strategies)
        if not has_shape(strategy):
            return TunedSettings(weights, strategy)
        shape = tuple((at, trial.suggest_int(f"score at {at}%", 0, HIGHEST_SCORE)) for at in SHAPE_AT)
        return TunedSettings(weights, strategy, shape)


def _told(tried: TrialOutcome, today: Trial) -> float:
    """What the search is told: a trial that leaves more important pods pending than today's gets the worst value."""
    return tried.value if tried.pending <= today.pending else float("inf")


def _check_budget(trials: int | None, seconds: float | None, jobs: int | None) -> None:
    for name, number in (("trials", trials), ("seconds", seconds), ("jobs", jobs)):
        if number is not None and not number > 0:
            raise InputError(f"{name} must be more than 0, not {number}")
        if number == inf:
            raise InputError(f"{name} must be a number, or the search never ends, not {number}")


def _optuna() -> ModuleType:
    try:
        import optuna
    except ImportError:
        raise InputError("tuning needs Optuna: pip install 'podium[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
