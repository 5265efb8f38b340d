"""What a search may turn in a configuration: the weights of scoring plugins and how free and used resources score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Protocol

from podium.config import KubeSchedulerConfiguration, NodeResourcesFitArgs, Profile, ScoringStrategy, parse_config
from podium.config.plugin_args import LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO
from podium.config.profiles import MULTI_POINT, V1, V1BETA2
from podium.errors import InputError
from podium.framework import Registry
from podium.rules import NEWEST_RULES, Rules

Document = dict[str, Any]

FIT = "NodeResourcesFit"
STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
SHAPE_AT = (0, 50, 100)
"""The utilisations, in percent, at which a shape of RequestedToCapacityRatio is given a score."""


@dataclass(frozen=True, slots=True)
class TunedSettings:
    """One way to turn them."""

    weights: Mapping[str, int]
    """Per scoring plugin of the profile."""
    strategy: str | None
    """How NodeResourcesFit scores, or the priority that does so in an old release; None where nothing does."""
    shape: tuple[tuple[int, int], ...] | None = None
    """Utilisation in percent and score from 0 to 10, for RequestedToCapacityRatio."""

    @property
    def points(self) -> list[Document]:
        """The shape as configurations write it."""
        return [{"utilization": at, "score": score} for at, score in self.shape or ()]

    def to_dict(self) -> dict[str, Any]:
        return {"weights": dict(self.weights), "strategy": self.strategy, "shape": self.points or None}


class SearchSpace(Protocol):
    """A configuration whose settings can be turned; the rest of the document stays as it is.

    A document is what comes out, and what a trial runs with is read from it like any other: what was tried is what is
    written.
    """

    profile: str
    today: TunedSettings
    strategies: tuple[str, ...]
    """The ways to score resources that there are; one of them, RequestedToCapacityRatio, has a shape."""

    def document(self, settings: TunedSettings) -> Document:
        """The configuration with its settings turned."""

    def config(self, settings: TunedSettings) -> KubeSchedulerConfiguration | Document:
        """What the scheduler runs with."""


def has_shape(strategy: str | None) -> bool:
    return (strategy or "").startswith(REQUESTED_TO_CAPACITY_RATIO)


class ConfigurationSpace:
    """The settings of a KubeSchedulerConfiguration: of the profile that is named, else of the first."""

    strategies: tuple[str, ...] = STRATEGIES

    def __init__(
        self,
        document: Mapping[str, Any] | None,
        registry: Registry,
        profile: str | None = None,
        rules: Rules = NEWEST_RULES,
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
        """The configuration with its settings turned."""
        if settings == self.today:
            return deepcopy(self._document)
        document = deepcopy(self._document)
        profiles = document.get("profiles") or [{}]
        document["profiles"] = profiles
        profile = profiles[self._place] = dict(profiles[self._place] or {})
        for plugin, weight in settings.weights.items():
            if weight != self.today.weights[plugin]:
                self._set_weight(profile, plugin, weight)
        if (settings.strategy, settings.shape) != (self.today.strategy, self.today.shape):
            _set_strategy(profile, settings)
        return document

    def config(self, settings: TunedSettings) -> KubeSchedulerConfiguration:
        """What the scheduler runs with."""
        return parse_config(self.document(settings), self._points, rules=self._rules)

    def _set_weight(self, profile: Document, plugin: str, weight: int) -> None:
        """Where the profile names the plugin, or else where its default stands; `score` overrules `multiPoint`."""
        plugins = profile["plugins"] = dict(profile.get("plugins") or {})
        for point in ("score", MULTI_POINT):
            for named in (plugins.get(point) or {}).get("enabled") or ():
                if named.get("name") == plugin:
                    named["weight"] = weight
                    return
        point = "score" if self._document.get("apiVersion") == V1BETA2 else MULTI_POINT
        chosen = plugins[point] = dict(plugins.get(point) or {})
        chosen["enabled"] = [*(chosen.get("enabled") or ()), {"name": plugin, "weight": weight}]


def place_of(profile: str | None, names: Sequence[str]) -> int:
    """Where a profile stands among the others; the first unless named."""
    if profile is not None and profile not in names:
        raise InputError(f"profile {profile!r} is not in the configuration; there is {', '.join(names)}")
    return names.index(profile) if profile is not None else 0


def _settings_of(profile: Profile) -> TunedSettings:
    weights = {ref.name: ref.weight for ref in profile.points["score"]}
    args = profile.args.get(FIT)
    if FIT not in weights or not isinstance(args, NodeResourcesFitArgs):
        return TunedSettings(weights, None)
    return TunedSettings(weights, args.scoring_strategy.type, _shape(args.scoring_strategy))


def _shape(strategy: ScoringStrategy) -> tuple[tuple[int, int], ...] | None:
    return None if strategy.shape is None else tuple((point.utilization, point.score) for point in strategy.shape)


def _set_strategy(profile: Document, settings: TunedSettings) -> None:
    """Replace how NodeResourcesFit scores; which resources count stays as it is."""
    configs = profile["pluginConfig"] = list(profile.get("pluginConfig") or ())
    place = next((place for place, each in enumerate(configs) if each.get("name") == FIT), len(configs))
    given: Document = dict(configs[place]) if place < len(configs) else {"name": FIT}
    args = given["args"] = dict(given.get("args") or {})
    resources = (args.get("scoringStrategy") or {}).get("resources")
    strategy: Document = {"type": settings.strategy, **({"resources": resources} if resources else {})}
    if settings.shape is not None:
        strategy["requestedToCapacityRatio"] = {"shape": settings.points}
    args["scoringStrategy"] = strategy
    configs[place : place + 1] = [given]
