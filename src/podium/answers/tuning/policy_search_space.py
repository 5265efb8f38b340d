"""The settings of old releases: the priorities of a Policy, and the score plugins of a v1alpha2 configuration."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from podium.answers.tuning.search_space import Document, TunedSettings, has_shape, place_of
from podium.config import Profile
from podium.engine.release import release_of
from podium.errors import InputError
from podium.framework import Registry
from podium.releases import provider_policy
from podium.releases.resource_priorities import RatioArgs
from podium.releases.rules import RULES, V1_18

LEAST, MOST, RATIO = "LeastRequestedPriority", "MostRequestedPriority", "RequestedToCapacityRatioPriority"
PLUGIN = "RequestedToCapacityRatio"
"""What v1.18 calls the last of them."""
RATIO_ARGUMENT = "requestedToCapacityRatioArguments"
SHARED = ("labelPreference", "serviceAntiAffinity")
"""Arguments whose priorities are one plugin in v1.18, and must have one weight there."""
LEFT_ALONE = frozenset(("EqualPriority", "NodePreferAvoidPodsPriority", "NodePreferAvoidPods"))
"""They say nothing, or what the owner of a node has decided: there is nothing to search for."""


class PolicySpace:
    """The settings of a Policy, that of the default provider unless given.

    The priority that scores free or used resources may become another of its kind; its weight goes by today's name.
    """

    def __init__(
        self, document: Mapping[str, Any] | None, registry: Registry, profile: str | None, release: str
    ) -> None:
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
        self.today = self._knobs()
        if not self.today.weights:
            raise InputError("the Policy has no priority whose weight matters: there is nothing to tune")

    def document(self, settings: TunedSettings) -> Document:
        """The Policy with its settings turned."""
        document = deepcopy(self._document)
        if settings != self.today:
            document["priorities"] = [self._turned(entry, settings) for entry in self._entries]
        return document

    def config(self, settings: TunedSettings) -> Document:
        """What the scheduler runs with: the Policy, as plugins of old releases do not travel to other processes."""
        return self.document(settings)

    @property
    def _entries(self) -> list[Document]:
        return list(self._document.get("priorities") or ())

    def _knobs(self) -> TunedSettings:
        weights = {self._knob(entry): entry["weight"] for entry in self._entries if entry["name"] not in LEFT_ALONE}
        scaling = [entry for entry in self._entries if _strategy(entry)]
        if len(scaling) != 1:
            return TunedSettings(weights, None)
        return TunedSettings(weights, _strategy(scaling[0]), _shape(scaling[0]))

    def _knob(self, entry: Document) -> str:
        """The name that an entry's weight goes by: its own or, where the weight is shared, that of the first."""
        kind = _kind(entry)
        if not self._shares or kind not in SHARED:
            return str(entry["name"])
        return str(next(each["name"] for each in self._entries if _kind(each) == kind))

    def _turned(self, entry: Document, settings: TunedSettings) -> Document:
        if entry["name"] in LEFT_ALONE:
            return entry
        weight = settings.weights[self._knob(entry)]
        if settings.strategy is None or not _strategy(entry) or (settings.strategy, settings.shape) == self._scaling:
            return {**entry, "weight": weight}
        turned: Document = {"name": settings.strategy, "weight": weight}
        if has_shape(settings.strategy):
            resources = ((entry.get("argument") or {}).get(RATIO_ARGUMENT) or {}).get("resources")
            given = {"resources": resources} if resources else {}
            turned["argument"] = {RATIO_ARGUMENT: {"shape": settings.points, **given}}
        return turned

    @property
    def _scaling(self) -> tuple[str | None, tuple[tuple[int, int], ...] | None]:
        return self.today.strategy, self.today.shape


class V1Alpha2Space:
    """The settings of a KubeSchedulerConfiguration v1alpha2: of the profile that is named, else of the first."""

    strategies: tuple[str, ...] = ("NodeResourcesLeastAllocated", "NodeResourcesMostAllocated", PLUGIN)

    def __init__(self, document: Mapping[str, Any], registry: Registry, profile: str | None, release: str) -> None:
        self._document: Document = deepcopy(dict(document))
        profiles = release_of(release).set_up(self._document, registry=registry).config.profiles
        names = [each.scheduler_name for each in profiles]
        self._place = place_of(profile, names)
        self.profile = names[self._place]
        self.today = self._knobs(profiles[self._place])
        if not self.today.weights:
            raise InputError(f"profile {self.profile!r} has no plugin whose weight matters: there is nothing to tune")

    def _knobs(self, profile: Profile) -> TunedSettings:
        weights = {ref.name: ref.weight for ref in profile.points["score"] if ref.name not in LEFT_ALONE}
        scaling = [name for name in weights if name in self.strategies]
        args = profile.args.get(PLUGIN)
        shape = tuple((x, y) for x, y in args.shape) if isinstance(args, RatioArgs) else None
        return TunedSettings(weights, scaling[0], shape) if len(scaling) == 1 else TunedSettings(weights, None)

    def document(self, settings: TunedSettings) -> Document:
        """The configuration with its settings turned."""
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
        """What the scheduler runs with."""
        return self.document(settings)


def _replace(profile: Document, name: str, entry: Document) -> None:
    """Let an entry stand for a score plugin: where the profile names that, or else instead of the default."""
    plugins = profile["plugins"] = profile.get("plugins") or {}
    score = plugins["score"] = plugins.get("score") or {}
    enabled = score["enabled"] = score.get("enabled") or []
    if any(each["name"] == name for each in enabled):
        score["enabled"] = [entry if each["name"] == name else each for each in enabled]
        return
    score["disabled"] = [*(score.get("disabled") or ()), {"name": name}]
    enabled.append(entry)


def _configure(profile: Document, settings: TunedSettings) -> None:
    """The shape of RequestedToCapacityRatio, if that scores; which resources count stays as it is."""
    configs = profile.get("pluginConfig") or []
    before: Document = next((each for each in configs if each["name"] == PLUGIN), {})
    profile["pluginConfig"] = [each for each in configs if each["name"] != PLUGIN]
    if has_shape(settings.strategy):
        args = {**(before.get("args") or {}), "shape": settings.points}
        profile["pluginConfig"].append({"name": PLUGIN, "args": args})


def _kind(entry: Document) -> str:
    return next((kind for kind, value in (entry.get("argument") or {}).items() if value is not None), "")


def _strategy(entry: Document) -> str | None:
    """Which of the priorities that score resources an entry is; None for others."""
    if _kind(entry) == RATIO_ARGUMENT:
        return RATIO
    return entry["name"] if entry["name"] in (LEAST, MOST) and not _kind(entry) else None


def _shape(entry: Document) -> tuple[tuple[int, int], ...] | None:
    ratio = (entry.get("argument") or {}).get(RATIO_ARGUMENT)
    if ratio is None:
        return None
    return tuple((point.get("utilization", 0), point.get("score", 0)) for point in ratio["shape"])
