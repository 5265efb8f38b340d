"""What another release makes of a configuration: what it refuses, and what means something else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from podium.config import KubeSchedulerConfiguration, Profile, UtilizationShapePoint
from podium.engine.options import Config
from podium.engine.release import Release
from podium.errors import ConfigError
from podium.framework import Registry


@dataclass(frozen=True, slots=True)
class ConfigurationChanges:
    """What changes in a configuration from one release to another."""

    refused: tuple[str, ...] = ()
    """What the new release refuses and the old one does not: field path, what is wrong, what to write instead."""
    refused_before: tuple[str, ...] = ()
    """What the old release refuses and the new one does not."""
    changed: tuple[str, ...] = ()
    """What both accept, and means something else."""

    def to_dict(self) -> dict[str, Any]:
        names = ("refused", "refused_before", "changed")
        keys = ("refused", "refusedBefore", "changed")
        return {key: list(getattr(self, name)) for key, name in zip(keys, names, strict=True)}


def configuration_changes(config: Config, old: Release, new: Release, registry: Registry) -> ConfigurationChanges:
    """Read a configuration as both releases do, and compare what they run with; nothing changes where there is none."""
    if config is None:
        return ConfigurationChanges()
    before, problems_before = _read(config, old, registry)
    after, problems_after = _read(config, new, registry)
    changed = [] if before is None or after is None else _changes(before, after, old.name, new.name)
    return ConfigurationChanges(
        tuple(problem for problem in problems_after if problem not in problems_before),
        tuple(problem for problem in problems_before if problem not in problems_after),
        tuple(changed),
    )


def _read(config: Config, release: Release, registry: Registry) -> tuple[KubeSchedulerConfiguration | None, list[str]]:
    try:
        return release.set_up(config, registry=registry).config, []
    except ConfigError as error:
        return None, error.errors


def _changes(before: KubeSchedulerConfiguration, after: KubeSchedulerConfiguration, old: str, new: str) -> list[str]:
    found = []
    for place, (one, other) in enumerate(zip(before.profiles, after.profiles, strict=False)):
        path = f"profiles[{place}]"
        found += _changed_points(one, other, path, old, new)
        for name in sorted(one.args.keys() & other.args.keys()):
            found += [
                f"{path}.pluginConfig: {field} of {name} is {after} in {new}, {before} in {old}"
                for field, before, after in _changed_args(one.args[name], other.args[name])
            ]
    return found


def _changed_args(one: object, other: object) -> Iterator[tuple[str, str, str]]:
    """The fields of a plugin's arguments that are not the same, under the names they have in a document."""
    if not is_dataclass(one) or type(one) is not type(other):
        return
    for each in fields(one):
        before, after = getattr(one, each.name), getattr(other, each.name)
        if before != after:
            first, *rest = each.name.split("_")
            yield first + "".join(map(str.capitalize, rest)), _shown(before), _shown(after)


def _changed_points(one: Profile, other: Profile, path: str, old: str, new: str) -> list[str]:
    """Plugins that run at a point in one release only, or with another weight."""
    gone: dict[str, list[str]] = {}
    come: dict[str, list[str]] = {}
    found = []
    for point, refs in one.points.items():
        before, after = dict(refs), dict(other.points.get(point, ()))
        for name in before.keys() - after.keys():
            gone.setdefault(name, []).append(point)
        for name in after.keys() - before.keys():
            come.setdefault(name, []).append(point)
        found += [
            f"{path}.plugins.{point}: {name} has the weight {after[name]} in {new}, {before[name]} in {old}"
            for name in sorted(before.keys() & after.keys())
            if before[name] != after[name]
        ]
    found += [f"{path}.plugins: {name} no longer runs at {', '.join(points)}" for name, points in sorted(gone.items())]
    found += [f"{path}.plugins: {name} runs at {', '.join(points)}" for name, points in sorted(come.items())]
    return found


def _shown(value: object) -> str:
    if isinstance(value, tuple) and value and all(isinstance(each, UtilizationShapePoint) for each in value):
        return ", ".join(f"{point.utilization}% -> {point.score}" for point in value)
    return "not set" if value is None else str(value)
