"""The settings of a configuration that a search may change: plugin weights, and how free or used resources score.

Old releases have a Policy with priorities, or a v1alpha2 configuration with score plugins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

from podium.config import KubeSchedulerConfiguration, NodeResourcesFitArgs, Profile, ScoringStrategy, parse_config
from podium.config.plugin_args import LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO
from podium.config.profiles import V1, arguments, check_profile, with_argument, with_weight
from podium.engine.release import release_of
from podium.engine.scheduler import SchedulerOptions
from podium.errors import InputError
from podium.framework import Registry
from podium.rules import Rules

Document = dict[str, Any]

FIT = "NodeResourcesFit"
STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
SHAPE_AT = (0, 50, 100)
"""The utilisations, in percent, at which a shape of RequestedToCapacityRatio has a score."""


@dataclass(frozen=True, slots=True)
class TunedSettings:
    """The settings of one trial."""

    weights: Mapping[str, int]
    """Per scoring plugin of the profile."""
    strategy: str | None
    """How NodeResourcesFit, or the corresponding priority of an old release, scores; None if neither is configured."""
    shape: tuple[tuple[int, int], ...] | None = None
    """Utilisation in percent and score from 0 to 10, for RequestedToCapacityRatio."""

    @property
    def points(self) -> list[Document]:
        """The shape as configurations write it."""
        return [{"utilization": at, "score": score} for at, score in self.shape or ()]

    def to_dict(self) -> dict[str, Any]:
        return {"weights": dict(self.weights), "strategy": self.strategy, "shape": self.points or None}


class SearchSpace(Protocol):
    """A configuration with settings that can be changed; the rest of the document stays as it is.

    A trial reads its configuration from the resulting document, so what was tried is what is written.
    """

    profile: str
    today: TunedSettings
    strategies: tuple[str, ...]
    """The available ways to score resources; one of them, RequestedToCapacityRatio, has a shape."""

    def document(self, settings: TunedSettings) -> Document:
        """The configuration document with these settings."""

    def config(self, settings: TunedSettings) -> KubeSchedulerConfiguration | Document:
        """The configuration that the scheduler runs with."""

    def weight_of(self, plugin: str) -> str:
        """The name of a scoring plugin's weight: its own or, for a plugin that scores resources, today's."""


def has_shape(strategy: str | None) -> bool:
    return (strategy or "").startswith(REQUESTED_TO_CAPACITY_RATIO)


class ConfigurationSpace:
    """The settings of one profile of a KubeSchedulerConfiguration: the named profile, else the first."""

    strategies: tuple[str, ...] = STRATEGIES

    def __init__(
        self,
        document: Mapping[str, Any] | None,
        registry: Registry,
        profile: str | None = None,
        *,
        rules: Rules,
    ) -> None:
        self._document: Document = deepcopy(dict(document or {"apiVersion": V1, "kind": "KubeSchedulerConfiguration"}))
        self._points, self._rules = registry.points_in(rules), rules
        config = parse_config(self._document, self._points, "the configuration to tune", rules=rules)
        names = [each.scheduler_name for each in config.profiles]
        self._place = place_of(profile, names)
        self.profile = names[self._place]
        self.today = _settings_of(config.profiles[self._place])
        if not self.today.weights:
            raise InputError(f"profile {self.profile!r} has no plugin that scores: there is nothing to tune")

    def document(self, settings: TunedSettings) -> Document:
        """The configuration document with these settings."""
        if settings == self.today:
            return deepcopy(self._document)
        document = deepcopy(self._document)
        profiles = document["profiles"] = document.get("profiles") or [{}]
        profile = profiles[self._place] or {}
        for plugin, weight in settings.weights.items():
            if weight != self.today.weights[plugin]:
                profile = with_weight(profile, plugin, weight, str(document.get("apiVersion")))
        if (settings.strategy, settings.shape) != (self.today.strategy, self.today.shape):
            profile = _with_strategy(profile, settings)
        profiles[self._place] = profile
        return document

    def config(self, settings: TunedSettings) -> KubeSchedulerConfiguration:
        """The configuration that the scheduler runs with."""
        return parse_config(self.document(settings), self._points, rules=self._rules)

    def weight_of(self, plugin: str) -> str:
        return plugin


def place_of(profile: str | None, names: Sequence[str]) -> int:
    """The index of a profile by name; the first profile by default."""
    if profile is None:
        return 0
    check_profile(profile, names)
    return names.index(profile)


def _settings_of(profile: Profile) -> TunedSettings:
    weights = {ref.name: ref.weight for ref in profile.points["score"]}
    args = profile.args.get(FIT)
    if FIT not in weights or not isinstance(args, NodeResourcesFitArgs):
        return TunedSettings(weights, None)
    return TunedSettings(weights, args.scoring_strategy.type, _shape(args.scoring_strategy))


def _shape(strategy: ScoringStrategy) -> tuple[tuple[int, int], ...] | None:
    return None if strategy.shape is None else tuple((point.utilization, point.score) for point in strategy.shape)


def _with_strategy(profile: Document, settings: TunedSettings) -> Document:
    """The profile with another scoring strategy of NodeResourcesFit; the resources that count stay as they are."""
    resources = (arguments(profile, FIT).get("scoringStrategy") or {}).get("resources")
    strategy: Document = {"type": settings.strategy, **({"resources": resources} if resources else {})}
    if settings.shape is not None:
        strategy["requestedToCapacityRatio"] = {"shape": settings.points}
    return with_argument(profile, FIT, ["scoringStrategy"], strategy)


LEAST, MOST, RATIO = "LeastRequestedPriority", "MostRequestedPriority", "RequestedToCapacityRatioPriority"
PLUGIN = "RequestedToCapacityRatio"
"""v1.18's name for the last of them."""
RATIO_ARGUMENT = "requestedToCapacityRatioArguments"
SHARED = ("labelPreference", "serviceAntiAffinity")
"""Arguments whose priorities share one plugin in v1.18, and must have one weight there."""
_PLUGIN_OF = {"labelPreference": "NodeLabel", "serviceAntiAffinity": "ServiceAffinity"}
LEFT_ALONE = frozenset(("EqualPriority", "NodePreferAvoidPodsPriority", "NodePreferAvoidPods"))
"""Priorities that are constant, or set by the owner of a node: there is nothing to search for."""


class PolicySpace:
    """The settings of a Policy, by default that of the default provider.

    The priority that scores free or used resources may be replaced by another of its kind; its weight keeps today's
    name. Code for old releases is imported here, so that only they load it.
    """

    def __init__(
        self, document: Mapping[str, Any] | None, registry: Registry, profile: str | None, release: str
    ) -> None:
        from podium.releases import provider_policy
        from podium.releases.rules import RULES, V1_18

        self._document: Document = deepcopy(dict(document)) if document is not None else provider_policy(release)
        setup = release_of(release).set_up(self._document, registry=registry)
        names = [each.scheduler_name for each in setup.config.profiles]
        place = place_of(profile, names)
        self.profile = names[place]
        scores = {ref.name for ref in setup.config.profiles[place].points["score"]}
        if self._document.get("priorities") is None and scores - LEFT_ALONE:
            self._document["priorities"] = provider_policy(release)["priorities"]
        self._shares = release == V1_18.release
        has_ratio = RATIO_ARGUMENT not in RULES[release].lacks_fields
        self.strategies: tuple[str, ...] = (LEAST, MOST, RATIO) if has_ratio else (LEAST, MOST)
        self.today = self._settings_of()
        if not self.today.weights:
            raise InputError("the Policy has no priority whose weight matters: there is nothing to tune")

    def document(self, settings: TunedSettings) -> Document:
        """The Policy with these settings."""
        document = deepcopy(self._document)
        if settings != self.today:
            document["priorities"] = [self._tuned(entry, settings) for entry in self._entries]
        return document

    def config(self, settings: TunedSettings) -> Document:
        """The Policy that the scheduler runs with; not decoded, since plugins of old releases cannot be pickled."""
        return self.document(settings)

    def weight_of(self, plugin: str) -> str:
        """The name of a plugin's weight; in v1.18, plugins replace the priorities, some plugins several of them."""
        from podium.releases.framework_v118 import PRIORITIES

        scaling = {*self.strategies, *(PRIORITIES.get(each, PLUGIN) for each in self.strategies)}
        for entry in self._entries:
            stands_for = _PLUGIN_OF.get(_kind(entry)) or PRIORITIES.get(entry["name"])
            if plugin in (entry["name"], stands_for) or (plugin in scaling and _strategy(entry)):
                return self._weight_name(entry)
        return plugin

    @property
    def _entries(self) -> list[Document]:
        return list(self._document.get("priorities") or ())

    def _settings_of(self) -> TunedSettings:
        weights = {
            self._weight_name(entry): entry["weight"] for entry in self._entries if entry["name"] not in LEFT_ALONE
        }
        scaling = [entry for entry in self._entries if _strategy(entry)]
        if len(scaling) != 1:
            return TunedSettings(weights, None)
        return TunedSettings(weights, _strategy(scaling[0]), _policy_shape(scaling[0]))

    def _weight_name(self, entry: Document) -> str:
        """The name of an entry's weight: its own or, if the weight is shared, that of the first entry."""
        kind = _kind(entry)
        if not self._shares or kind not in SHARED:
            return str(entry["name"])
        return str(next(each["name"] for each in self._entries if _kind(each) == kind))

    def _tuned(self, entry: Document, settings: TunedSettings) -> Document:
        if entry["name"] in LEFT_ALONE:
            return entry
        weight = settings.weights[self._weight_name(entry)]
        if settings.strategy is None or not _strategy(entry) or (settings.strategy, settings.shape) == self._scaling:
            return {**entry, "weight": weight}
        tuned: Document = {"name": settings.strategy, "weight": weight}
        if has_shape(settings.strategy):
            resources = ((entry.get("argument") or {}).get(RATIO_ARGUMENT) or {}).get("resources")
            given = {"resources": resources} if resources else {}
            tuned["argument"] = {RATIO_ARGUMENT: {"shape": settings.points, **given}}
        return tuned

    @property
    def _scaling(self) -> tuple[str | None, tuple[tuple[int, int], ...] | None]:
        return self.today.strategy, self.today.shape


class V1Alpha2Space:
    """The settings of one profile of a KubeSchedulerConfiguration v1alpha2: the named profile, else the first."""

    strategies: tuple[str, ...] = ("NodeResourcesLeastAllocated", "NodeResourcesMostAllocated", PLUGIN)

    def __init__(self, document: Mapping[str, Any], registry: Registry, profile: str | None, release: str) -> None:
        self._document: Document = deepcopy(dict(document))
        profiles = release_of(release).set_up(self._document, registry=registry).config.profiles
        names = [each.scheduler_name for each in profiles]
        self._place = place_of(profile, names)
        self.profile = names[self._place]
        self.today = self._settings_of(profiles[self._place])
        if not self.today.weights:
            raise InputError(f"profile {self.profile!r} has no plugin whose weight matters: there is nothing to tune")

    def _settings_of(self, profile: Profile) -> TunedSettings:
        from podium.releases.priorities import RatioArgs

        weights = {ref.name: ref.weight for ref in profile.points["score"] if ref.name not in LEFT_ALONE}
        scaling = [name for name in weights if name in self.strategies]
        args = profile.args.get(PLUGIN)
        shape = tuple((x, y) for x, y in args.shape) if isinstance(args, RatioArgs) else None
        return TunedSettings(weights, scaling[0], shape) if len(scaling) == 1 else TunedSettings(weights, None)

    def document(self, settings: TunedSettings) -> Document:
        """The configuration document with these settings."""
        document, today = deepcopy(self._document), self.today
        profiles = document["profiles"] = document.get("profiles") or [{}]
        profile = profiles[self._place]
        for name, weight in settings.weights.items():
            now = settings.strategy if name == today.strategy and settings.strategy else name
            if (now, weight) != (name, today.weights[name]):
                _replace(profile, name, {"name": now, "weight": weight})
        if (settings.strategy, settings.shape) != (today.strategy, today.shape):
            _configure(profile, settings)
        return document if settings != today else deepcopy(self._document)

    def config(self, settings: TunedSettings) -> Document:
        """The configuration that the scheduler runs with."""
        return self.document(settings)

    def weight_of(self, plugin: str) -> str:
        return self.today.strategy if self.today.strategy and plugin in self.strategies else plugin


def _replace(profile: Document, name: str, entry: Document) -> None:
    """Replace the entry of a score plugin: where the profile names it, or else in place of the default."""
    plugins = profile["plugins"] = profile.get("plugins") or {}
    score = plugins["score"] = plugins.get("score") or {}
    enabled = score["enabled"] = score.get("enabled") or []
    if any(each["name"] == name for each in enabled):
        score["enabled"] = [entry if each["name"] == name else each for each in enabled]
        return
    score["disabled"] = [*(score.get("disabled") or ()), {"name": name}]
    enabled.append(entry)


def _configure(profile: Document, settings: TunedSettings) -> None:
    """Set the shape of RequestedToCapacityRatio, if it scores; the resources that count stay as they are."""
    configs = profile.get("pluginConfig") or []
    before: Document = next((each for each in configs if each["name"] == PLUGIN), {})
    profile["pluginConfig"] = [each for each in configs if each["name"] != PLUGIN]
    if has_shape(settings.strategy):
        args = {**(before.get("args") or {}), "shape": settings.points}
        profile["pluginConfig"].append({"name": PLUGIN, "args": args})


def _kind(entry: Document) -> str:
    return next((kind for kind, value in (entry.get("argument") or {}).items() if value is not None), "")


def _strategy(entry: Document) -> str | None:
    """The resource priority that an entry stands for; None for other entries."""
    if _kind(entry) == RATIO_ARGUMENT:
        return RATIO
    return entry["name"] if entry["name"] in (LEAST, MOST) and not _kind(entry) else None


def _policy_shape(entry: Document) -> tuple[tuple[int, int], ...] | None:
    ratio = (entry.get("argument") or {}).get(RATIO_ARGUMENT)
    if ratio is None:
        return None
    return tuple((point.get("utilization", 0), point.get("score", 0)) for point in ratio["shape"])


def search_space(options: SchedulerOptions, profile: str | None) -> SearchSpace:
    """The settings of a configuration, or of the default configuration of a release."""
    config, registry, chosen = options.config, options.registry, release_of(options.release)
    if isinstance(config, KubeSchedulerConfiguration):
        raise InputError(
            "tune changes a configuration document: give it the dict of the file, not a parsed configuration"
        )
    if not chosen.is_old:
        return ConfigurationSpace(config, registry, profile, rules=chosen.rules)
    from podium.releases.policy import is_policy  # loaded where an old release is tuned

    if config is None or is_policy(config):
        return PolicySpace(config, registry, profile, chosen.name)
    return V1Alpha2Space(config, registry, profile, chosen.name)


OPTUNA_BATCH = 16
"""How many points Optuna chooses before the first of them is tried. It does not depend on the number of processes, or
the choices would.

A larger batch keeps more processors busy, a smaller one lets the search learn sooner.
"""


def load_optuna(what: str) -> ModuleType:
    """The module optuna with its logging silenced; InputError if it is not installed."""
    try:
        import optuna
    except ImportError:
        raise InputError(f"{what} needs Optuna: pip install 'podium[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
