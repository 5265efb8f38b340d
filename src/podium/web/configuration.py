"""A configuration with other weights, another scoring strategy, or plugins switched off."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from podium.answers.tuning.search_space import SHAPE_AT, ConfigurationSpace, has_shape
from podium.config.plugin_sets import MULTI_POINT
from podium.errors import InputError
from podium.web.questions import ScoreSettings
from podium.web.subject import Subject

PACKING = tuple(zip(SHAPE_AT, (0, 5, 10), strict=True))
"""The shape that RequestedToCapacityRatio gets where there is none: the fuller the better."""


def turned(subject: Subject, settings: ScoreSettings, profile: str | None = None) -> dict[str, Any]:
    """The configuration as a document with its settings turned, ready for --config.

    kube-scheduler takes a weight of 0 for the default one, so a plugin of weight 0 is disabled at Score instead.
    """
    if subject.release.is_old:
        raise InputError(f"weights can be turned of v1.29 and later, not of {subject.release.name}")
    space = ConfigurationSpace(subject.document, subject.registry, profile, subject.release.rules)
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
    document = space.document(wanted)
    if silent or settings.disabled:
        profiles = document["profiles"] = list(document.get("profiles") or [{}])
        names = [str((each or {}).get("schedulerName") or "default-scheduler") for each in profiles]
        place = names.index(space.profile)
        profiles[place] = _without(_without(profiles[place] or {}, "score", silent), MULTI_POINT, settings.disabled)
    return document


def _without(profile: dict[str, Any], point: str, plugins: Iterable[str]) -> dict[str, Any]:
    """The profile with plugins disabled at a point, and at every point for multiPoint; enabled by name, they go too."""
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
