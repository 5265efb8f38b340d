"""Other weights for a configuration: which plugins score, how much each counts, and how NodeResourcesFit scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from podium.answers.search_space import SHAPE_AT, ConfigurationSpace, has_shape
from podium.config.profiles import MULTI_POINT
from podium.engine.release import Release
from podium.errors import InputError
from podium.framework import Registry
from podium.model.pod import DEFAULT_SCHEDULER_NAME

Weight = Annotated[int, Meta(ge=0, le=1_000_000)]
PluginName = Annotated[str, Meta(min_length=1, max_length=600)]
PACKING = tuple(zip(SHAPE_AT, (0, 5, 10), strict=True))
"""The default shape for RequestedToCapacityRatio: the fuller the better."""


class ScoreSettings(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Weights of scoring plugins, and how NodeResourcesFit scores; settings that are left out stay as they are."""

    weights: Annotated[dict[str, Weight], Meta(description="The weight of a plugin, by its name.")] = {}
    strategy: Annotated[
        Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] | None,
        Meta(description="The scoring strategy of NodeResourcesFit."),
    ] = None
    disabled: Annotated[
        list[PluginName], Meta(max_length=100, description="Plugins that are switched off at every extension point.")
    ] = []
    profile: Annotated[
        PluginName | None, Meta(description="The profile whose settings change; the first unless given.")
    ] = None

    def __bool__(self) -> bool:
        """Whether anything is set."""
        return bool(self.weights or self.strategy or self.disabled)

    @property
    def words(self) -> list[str]:
        """Each setting in a few words: `NodeResourcesFit 2`, `without ImageLocality`, `MostAllocated`."""
        return [
            *(f"{plugin} {weight}" for plugin, weight in sorted(self.weights.items())),
            *([self.strategy] if self.strategy else []),
            *(f"without {plugin}" for plugin in sorted(self.disabled)),
        ]


NO_SETTINGS = ScoreSettings()


def with_settings(
    document: Mapping[str, Any] | None,
    settings: ScoreSettings,
    registry: Registry,
    release: Release,
    profile: str | None = None,
) -> dict[str, Any]:
    """The configuration document with changed settings, ready for --config.

    The settings name their profile; `profile` is used if they do not. kube-scheduler treats a weight of 0 as the
    default, so a plugin with weight 0 is disabled at Score instead.
    """
    if release.is_old:
        raise InputError(f"weights can be changed for v1.29 and later, not for {release.name}")
    space = ConfigurationSpace(document, registry, settings.profile or profile, rules=release.rules)
    today = space.today
    for plugin in settings.weights:
        if plugin not in today.weights:
            raise InputError(f"plugin {plugin!r} does not score in profile {space.profile!r}: it has no weight")
    silent = {plugin for plugin, weight in settings.weights.items() if not weight and plugin not in settings.disabled}
    weights = {plugin: settings.weights.get(plugin) or weight for plugin, weight in today.weights.items()}
    wanted = replace(today, weights=weights)
    if settings.strategy is not None:
        shape = (today.shape or PACKING) if has_shape(settings.strategy) else None
        wanted = replace(wanted, strategy=settings.strategy, shape=shape)
    changed = space.document(wanted)
    if silent or settings.disabled:
        profiles = changed["profiles"] = list(changed.get("profiles") or [{}])
        names = [str((each or {}).get("schedulerName") or DEFAULT_SCHEDULER_NAME) for each in profiles]
        place = names.index(space.profile)
        profiles[place] = _without(_without(profiles[place] or {}, "score", silent), MULTI_POINT, settings.disabled)
    return changed


def _without(profile: dict[str, Any], point: str, plugins: Iterable[str]) -> dict[str, Any]:
    """The profile with plugins disabled at a point, or at all points for multiPoint; they are removed from
    `enabled`, too.
    """
    gone = sorted(set(plugins))
    if not gone:
        return profile
    sets = dict(profile.get("plugins") or {})
    for name in [*sets] if point == MULTI_POINT else [point]:
        if name in sets:
            kept = [each for each in (sets[name] or {}).get("enabled") or () if each.get("name") not in gone]
            sets[name] = {**(sets[name] or {}), "enabled": kept}
    chosen = dict(sets.get(point) or {})
    chosen["disabled"] = [*(chosen.get("disabled") or ()), *({"name": name} for name in gone)]
    sets[point] = chosen
    return {**profile, "plugins": sets}
