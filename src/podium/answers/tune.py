"""Searches for the plugin weights and the scoring strategy that suit a cluster best, in several processes at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping, Set
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from math import inf
from time import monotonic
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from podium.answers.compare import (
    Comparison,
    TimelineComparison,
    TimelineWay,
    Way,
    compare,
    compare_timelines,
    copy_to_place_on,
)
from podium.answers.search_space import (
    OPTUNA_BATCH,
    SHAPE_AT,
    Document,
    SearchSpace,
    TunedSettings,
    has_shape,
    load_optuna,
    search_space,
)
from podium.answers.trials import (
    Objective,
    PlacementRunner,
    RunTrials,
    TimelineObjective,
    TimelineRunner,
    TrialOutcome,
    TrialRunner,
    Workers,
    cores,
    objective_named,
    timeline_objective,
    trial_workers,
    trials_on,
)
from podium.cluster import Cluster
from podium.engine.release import release_of
from podium.engine.scheduler import SchedulerKeywords, SchedulerOptions
from podium.errors import InputError
from podium.manifests import Objects

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import Trial as Asked

    from podium.autoscaling import NodeGroups
    from podium.timeline import TimelineEvents


def idle_plugins(runner: TrialRunner) -> tuple[str, ...]:
    """The plugins whose weights cannot matter: they score all nodes the same for every pod examined.

    They must do so with today's weights and with each of the strategies, since some plugins' scores depend on where
    earlier pods went. A plugin that is the only one to distinguish nodes does so with any weight.
    """
    today, space = runner.space.today, runner.space
    told: set[str] = set()
    others = [each for each in space.strategies if today.strategy and each != today.strategy and not has_shape(each)]
    for settings in (today, *(TunedSettings(today.weights, strategy) for strategy in others)):
        told |= telling_plugins(runner, settings, told)
        if told >= set(today.weights):
            return ()
    if not told and runner.samples:
        # No decision was examined in which weights mattered.
        return ()
    return tuple(today.weights) if len(told) == 1 else tuple(each for each in today.weights if each not in told)


def telling_plugins(runner: TrialRunner, settings: TunedSettings, known: Set[str] = frozenset()) -> set[str]:
    """The plugins, and extenders by URL, that score two nodes differently for some pod; `known` are some of them."""
    telling, wanted = set(known), set(settings.weights)
    with closing(runner.decisions(settings)) as decisions:
        for decision in decisions:
            plugins = {scores.plugin for scores in decision.scores if len(set(scores.normalized.values())) > 1}
            telling |= {runner.space.weight_of(plugin) for plugin in plugins} & wanted
            telling |= set(decision.extender_scores)
            if telling >= wanted:
                break
    return telling


def _idle_with(runner: TrialRunner, best: Trial, left_out: tuple[str, ...]) -> tuple[str, ...]:
    """The left-out plugins that are also idle with the best settings, which may send pods elsewhere."""
    if not best.number or len(left_out) == len(runner.space.today.weights):
        return left_out
    told = telling_plugins(runner, best.settings, set(best.settings.weights).difference(left_out))
    return tuple(each for each in left_out if each not in told)


TRIALS = 100
"""The default number of configurations to try."""
LARGEST_WEIGHT = 20
"""The largest weight tried, unless a plugin already has a larger one."""
HIGHEST_SCORE = 10
"""The highest score of a point of a shape."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A configuration that was tried, and its result."""

    number: int
    """0 for today's configuration."""
    settings: TunedSettings
    value: float
    """The value of the objective: smaller is better."""
    pending: tuple[int, ...]
    """The priorities of the pods that fit nowhere, highest first."""

    @property
    def rank(self) -> tuple[tuple[int, ...], float, int]:
        """The sort key: fewest and least important pending pods first, then the objective, then the earlier trial.

        Priorities are compared one by one from the highest, so that no pod waits for a less important one.
        """
        return self.pending, self.value, self.number

    def to_dict(self) -> dict[str, Any]:
        return {"number": self.number, "value": self.value, "pending": len(self.pending), **self.settings.to_dict()}


@dataclass(frozen=True, kw_only=True)
class BestConfiguration:
    """The best configuration that was found."""

    objective: str
    profile: str
    document: Document
    """The configuration document; today's if nothing better was found."""
    trials: tuple[Trial, ...]
    """Every configuration that was tried, today's first."""
    left_out: tuple[str, ...] = ()
    """The plugins whose weights were not searched: they score all nodes the same for every pod examined."""
    sampled: bool = False
    """Whether only a sample of the pods was examined for that."""

    @property
    def today(self) -> Trial:
        return self.trials[0]

    @property
    def best(self) -> Trial:
        return min(self.trials, key=lambda trial: trial.rank)

    @property
    def improves(self) -> bool:
        return self.best is not self.today

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "objective": self.objective,
            "profile": self.profile,
            "improves": self.improves,
            "today": self.today.to_dict(),
            "best": self.best.to_dict(),
            "config": self.document,
            **self._changes(),
            "trials": [trial.to_dict() for trial in self.trials],
        }

    def _changes(self) -> dict[str, Any]:
        """The resulting changes, as plain data."""
        return {}


@dataclass(frozen=True, kw_only=True)
class Tuning(BestConfiguration):
    """The best configuration for placing pods, and what it would change."""

    comparison: Comparison
    """The same pods placed with today's configuration and with the one found."""

    @property
    def responsible(self) -> dict[str, int]:
        """How many pods move mainly because of each plugin, most pods first."""
        plugins = Counter(move.cause.plugin for move in self.comparison.moves if move.cause.plugin)
        return dict(plugins.most_common())

    def _changes(self) -> dict[str, Any]:
        comparison = self.comparison
        return {
            "leftOut": list(self.left_out),
            "responsible": self.responsible,
            "moved": len(comparison.moves),
            "before": comparison.before.measures.to_dict(),
            "after": comparison.after.measures.to_dict(),
            "moves": [move.to_dict() for move in comparison.moves],
        }


@dataclass(frozen=True, kw_only=True)
class TimelineTuning(BestConfiguration):
    """The best configuration for a timeline, and its results."""

    comparison: TimelineComparison
    """The same events with today's configuration and with the one found."""

    def _changes(self) -> dict[str, Any]:
        return {"leftOut": list(self.left_out), "before": self.comparison.before, "after": self.comparison.after}


class SearchBudget(NamedTuple):
    """How long to search, and with which processes: see `tune`."""

    trials: int | None = None
    seconds: float | None = None
    jobs: int | None = 1
    workers: Workers | None = None
    on_tried: Callable[[], object] = lambda: None

    def check(self) -> None:
        for name in ("trials", "seconds", "jobs"):
            number = getattr(self, name)
            if number is not None and not number > 0:
                raise InputError(f"{name} must be more than 0, not {number}")
            if number == inf:
                raise InputError(f"{name} must be a number, or the search never ends, not {number}")


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
    """Search the weights and the scoring strategy of a profile, by default the first, for the smallest objective.

    Each trial places the pending pods; with `replay` also the running ones, as `compare` does. A configuration that
    leaves a more important pod pending than another is never better. `config` is a configuration document, by default
    the release's.

    The budget is a number of `trials` or of `seconds`, or whichever is used up first. With trials alone the same seed
    gives the same result, with any number of `jobs`, which are processes (None for one per processor), or on `workers`,
    for example those of a Dask cluster.

    `objective` is a name of `OBJECTIVES`, a function as `module:function`, or a function of a Simulation; a function
    that other processes cannot import is run in this one. `on_tried` is called after each trial. For an old release,
    input and output are a Policy; v1.18 also takes a v1alpha2 configuration, and then returns one.
    """
    budget = SearchBudget(trials, seconds, jobs, workers, on_tried)
    budget.check()
    optuna = load_optuna("tuning")
    options = SchedulerOptions.steady(config, **keywords)
    space = search_space(options, profile)
    function = objective_named(objective) if isinstance(objective, str) else objective
    pods = copy_to_place_on(cluster, replay)
    if not pods.pending:
        raise InputError("there is nothing to place: no pod is pending; --replay places the running ones again")
    runner = PlacementRunner(cluster=pods, space=space, objective=function, options=options)
    left_out = idle_plugins(runner)
    found = _tried(runner, budget, _Search(optuna, space, left_out, options.seed))
    best = min(found, key=lambda trial: trial.rank)
    comparison = compare(
        Way(cluster=cluster, config=space.config(space.today), release=options.release, name=TODAY),
        Way(cluster=cluster, config=space.config(best.settings), release=options.release, name=TUNED),
        options,
        replay=replay,
    )
    return Tuning(
        objective=_name(objective),
        profile=space.profile,
        document=space.document(best.settings),
        trials=found,
        comparison=comparison,
        left_out=_idle_with(runner, best, left_out),
        sampled=runner.samples,
    )


def tune_timeline(
    objects: Objects,
    events: TimelineEvents,
    objective: str | TimelineObjective | None = None,
    config: Mapping[str, Any] | SchedulerOptions | None = None,
    *,
    node_groups: NodeGroups | None = None,
    until: float | None = None,
    profile: str | None = None,
    trials: int | None = None,
    seconds: float | None = None,
    jobs: int | None = 1,
    workers: Workers | None = None,
    on_tried: Callable[[], object] = lambda: None,
    **keywords: Unpack[SchedulerKeywords],
) -> TimelineTuning:
    """Search as `tune` does, where each trial runs the events, up to `until` seconds.

    `objective` is a name of `TIMELINE_OBJECTIVES`, a function as `module:function`, or a function of a TimelineResult;
    by default the cost of the nodes, or without node groups the mean wait. A configuration that leaves more, or more
    important, pods waiting at the end is never better.
    """
    budget = SearchBudget(trials, seconds, jobs, workers, on_tried)
    budget.check()
    optuna = load_optuna("tuning")
    options = SchedulerOptions.steady(config, **keywords)
    space = search_space(options, profile)
    chosen = objective or ("mean_wait" if node_groups is None else "cost")
    function = timeline_objective(chosen, has_groups=node_groups is not None) if isinstance(chosen, str) else chosen
    runner = TimelineRunner(
        objects=objects,
        events=events,
        node_groups=node_groups,
        until=until,
        space=space,
        objective=function,
        options=options,
    )
    left_out = idle_plugins(runner)
    found = _tried(runner, budget, _Search(optuna, space, left_out, options.seed))
    best = min(found, key=lambda trial: trial.rank)
    release = release_of(options.release).name
    today, tuned = (
        TimelineWay(objects=objects, name=name, config=space.config(settings), release=release, node_groups=node_groups)
        for name, settings in ((TODAY, space.today), (TUNED, best.settings))
    )
    return TimelineTuning(
        objective=_name(chosen),
        profile=space.profile,
        document=space.document(best.settings),
        trials=found,
        comparison=compare_timelines(today, tuned, events, options, until=until),
        left_out=_idle_with(runner, best, left_out),
        sampled=runner.samples,
    )


TODAY, TUNED = "today's configuration", "the tuned one"


def _name(objective: object) -> str:
    return objective if isinstance(objective, str) else getattr(objective, "__name__", repr(objective))


def _tried(runner: TrialRunner, budget: SearchBudget, search: _Search) -> tuple[Trial, ...]:
    """Every configuration that is tried before the budget is used up."""
    deadline = None if budget.seconds is None else monotonic() + budget.seconds
    most = budget.trials if budget.trials is not None else TRIALS if budget.seconds is None else None
    found = []
    with (
        _runs(runner, budget.jobs, budget.workers) as run,
        closing(search.trials(run, most, deadline)) as tried,
    ):
        for trial in tried:
            found.append(trial)
            budget.on_tried()
    return tuple(found)


def _runs(runner: TrialRunner, jobs: int | None, workers: Workers | None) -> AbstractContextManager[RunTrials]:
    if workers is not None:
        return nullcontext(trials_on(runner, workers))
    return trial_workers(runner, cores() if jobs is None else jobs)


class _Search:
    """Asks Optuna what to try next, and reports the results to it."""

    def __init__(self, optuna: ModuleType, space: SearchSpace, left_out: Collection[str], seed: int) -> None:
        """The weights of the plugins in `left_out` stay as they are."""
        self._space = space
        self._plugins = [plugin for plugin in space.today.weights if plugin not in left_out]
        self._largest = max(LARGEST_WEIGHT, *space.today.weights.values())
        self._failed = optuna.trial.TrialState.FAIL
        self._study: Study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        for strategy in space.strategies if space.today.strategy else ():
            # First of all, try each strategy with the weights as they are.
            self._study.enqueue_trial(self._parameters(strategy), skip_if_exists=True)

    def trials(self, run: RunTrials, most: int | None, deadline: float | None) -> Generator[Trial]:
        """Today's configuration, then those that the search proposes, until the budget is used up."""
        space, number = self._space, 1
        # Tried without a deadline: there must be a result to compare with.
        (first,) = run([space.today], None)
        assert first is not None
        today = Trial(0, space.today, *first)
        yield today
        if not self._plugins and space.today.strategy is None:
            return
        while (most is None or number <= most) and (deadline is None or monotonic() < deadline):
            left = OPTUNA_BATCH if most is None else most - number + 1
            asked = [self._study.ask() for _ in range(min(OPTUNA_BATCH, left))]
            batch = [self._suggest(each) for each in asked]
            for each, settings, tried in zip(asked, batch, run(batch, deadline), strict=True):
                if tried is None:
                    self._study.tell(each, state=self._failed)
                    continue
                self._study.tell(each, _told(tried, today))
                yield Trial(number, settings, *tried)
                number += 1

    def _parameters(self, strategy: str) -> dict[str, Any]:
        """Today's weights with a strategy, as parameters of the search; with a steep shape if the strategy
        needs one.
        """
        weights = {f"weight {plugin}": self._space.today.weights[plugin] for plugin in self._plugins}
        shape = {f"score at {at}%": at * HIGHEST_SCORE // SHAPE_AT[-1] for at in SHAPE_AT}
        return {**weights, "strategy": strategy, **(shape if has_shape(strategy) else {})}

    def _suggest(self, trial: Asked) -> TunedSettings:
        chosen = {plugin: trial.suggest_int(f"weight {plugin}", 1, self._largest, log=True) for plugin in self._plugins}
        weights = {**self._space.today.weights, **chosen}
        if self._space.today.strategy is None:
            return TunedSettings(weights, None)
        strategy = trial.suggest_categorical("strategy", self._space.strategies)
        if not has_shape(strategy):
            return TunedSettings(weights, strategy)
        shape = tuple((at, trial.suggest_int(f"score at {at}%", 0, HIGHEST_SCORE)) for at in SHAPE_AT)
        return TunedSettings(weights, strategy, shape)


def _told(tried: TrialOutcome, today: Trial) -> float:
    """The value reported to the search: a trial that leaves more important pods pending than today's gets the
    worst value.
    """
    return tried.value if tried.pending <= today.pending else float("inf")
