"""The profiles of a configuration: reading, checking and building them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from podium.config.fields import Fields, Problems, quote
from podium.config.plugin_args import NodeResourcesFitArgs, read_args, readers
from podium.config.plugin_args_checks import check_args, check_fit_args
from podium.config.plugin_sets import (
    API_VERSIONS,
    V1,
    PluginSets,
    enabled_names,
    expand,
    read_plugin_sets,
    with_defaults,
)
from podium.config.types import EXTENSION_POINTS, KnownPlugins, Profile
from podium.rules import Rules

DEFAULT_SCHEDULER_NAME = "default-scheduler"

REMOVED_PLUGINS = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
"""NodeVolumeLimits does their work; version v1 refuses their names even in pluginConfig."""


class PluginConfig(NamedTuple):
    name: str
    args: object


@dataclass(frozen=True, kw_only=True)
class ProfileDocument:
    """A profile as it stands in the document, with its default plugins and arguments."""

    path: str
    scheduler_name: str | None
    percentage_of_nodes_to_score: int | None
    plugins: PluginSets
    plugin_config: tuple[PluginConfig, ...]

    @property
    def args(self) -> dict[str, object]:
        """The arguments by plugin, for the plugins that have any."""
        return {config.name: config.args for config in self.plugin_config if config.args is not None}


def read_profiles(
    items: Sequence[Fields], api_version: str, known: KnownPlugins, rules: Rules
) -> list[ProfileDocument]:
    """The profiles, one by default, whose name has a default when it is the only one."""
    profiles = [_read_profile(item, api_version, known, rules) for item in items]
    if not profiles:
        profiles = [_read_profile(Fields(None, "profiles[0]", Problems()), api_version, known, rules)]
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        profiles = [replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER_NAME)]
    return profiles


def _read_profile(fields: Fields, api_version: str, known: KnownPlugins, rules: Rules) -> ProfileDocument:
    with fields:
        custom = read_plugin_sets(fields.child("plugins"), api_version, rules)
        plugins = with_defaults(custom, api_version, known, rules)
        given = [_read_plugin_config(item, api_version, rules) for item in fields.children("pluginConfig")]
        missing = sorted(enabled_names(plugins) & readers(rules).keys() - {config.name for config in given})
        added = [PluginConfig(name, readers(rules)[name](Fields(None, "", Problems()), rules)) for name in missing]
        return ProfileDocument(
            path=fields.path,
            scheduler_name=fields.optional_string("schedulerName"),
            percentage_of_nodes_to_score=(
                fields.optional_integer("percentageOfNodesToScore") if api_version == V1 else None
            ),
            plugins=plugins,
            plugin_config=(*given, *added),
        )


def _read_plugin_config(fields: Fields, api_version: str, rules: Rules) -> PluginConfig:
    # The schedulers that read a beta version read the arguments of all versions; today's knows its own alone.
    api_versions = (V1,) if api_version == V1 else API_VERSIONS
    with fields:
        name = fields.string("name")
        if name in readers(rules):
            return PluginConfig(name, read_args(name, fields.child("args"), api_versions, rules))
        return PluginConfig(name, fields.take("args"))


def check_profiles(profiles: Sequence[ProfileDocument], api_version: str, problems: Problems, rules: Rules) -> None:
    """Report what is wrong in each profile, and between them."""
    first_with: dict[str, str] = {}
    for profile in profiles:
        name_path, name = f"{profile.path}.schedulerName", profile.scheduler_name or ""
        if not name:
            problems.required(name_path)
        if name in first_with:
            problems.duplicate(name_path, first_with[name])
        first_with.setdefault(name, name_path)
        check_percentage(profile.percentage_of_nodes_to_score, f"{profile.path}.percentageOfNodesToScore", problems)
        if api_version == V1 and rules.refuses_in_tree_limits:
            _check_removed(profile, problems)
        _check_plugin_config(profile, problems, rules)
    _check_common_queue_sort(profiles, problems)


def check_percentage(percentage: int | None, path: str, problems: Problems) -> None:
    if percentage is not None and not 0 <= percentage <= 100:
        problems.invalid(path, percentage, "not in valid range [0-100]")


def _check_removed(profile: ProfileDocument, problems: Problems) -> None:
    why = "was removed: NodeVolumeLimits does its work"
    for point in EXTENSION_POINTS:
        for index, plugin in enumerate(profile.plugins[point].enabled):
            if plugin.name in REMOVED_PLUGINS:
                problems.invalid(f"{profile.path}.plugins.{point}.enabled[{index}]", plugin.name, why)
    for index, config in enumerate(profile.plugin_config):
        if config.name in REMOVED_PLUGINS:
            problems.invalid(f"{profile.path}.pluginConfig[{index}]", config.name, why)


def _check_plugin_config(profile: ProfileDocument, problems: Problems, rules: Rules) -> None:
    seen = set()
    for index, config in enumerate(profile.plugin_config):
        path = f"{profile.path}.pluginConfig[{index}]"
        if config.name in seen:
            problems.duplicate(path, config.name)
        seen.add(config.name)
        check_args(config.args, f"{path}.args", problems, rules)
        # kube-scheduler looks for typed arguments under this name, which no plugin has, and never finds them.
        if config.name == "NodeResourcesFitArgs":
            problems.invalid(
                f"{path}.name", config.name, "is the kind of the arguments: the plugin is NodeResourcesFit"
            )


def _check_common_queue_sort(profiles: Sequence[ProfileDocument], problems: Problems) -> None:
    """There is one queue for all profiles, so what they say about its order has to agree."""
    canonical = profiles[0].plugins["queueSort"]
    if len(canonical.enabled) > 1:
        path = f"{profiles[0].path}.plugins.queueSort.enabled"
        problems.invalid(path, len(canonical.enabled), "only one queue sort plugin can be enabled")
    for profile in profiles[1:]:
        if profile.plugins["queueSort"] != canonical:
            problems.add(f"{profile.path}.plugins.queueSort", "must be the same for all profiles")


def ignore_in_fit(
    profiles: Sequence[ProfileDocument], resources: tuple[str, ...], problems: Problems
) -> list[ProfileDocument]:
    """The profiles with NodeResourcesFit ignoring `resources`, instead of those it was told to ignore."""
    if not resources:
        return list(profiles)
    changed = []
    for profile in profiles:
        if "NodeResourcesFit" not in profile.args:
            why = "an extender has resources that are ignoredByScheduler, but NodeResourcesFit is off and cannot ignore"
            problems.add(profile.path, why)
        configs = tuple(
            PluginConfig(config.name, replace(config.args, ignored_resources=resources))
            if isinstance(config.args, NodeResourcesFitArgs)
            else config
            for config in profile.plugin_config
        )
        changed.append(replace(profile, plugin_config=configs))
    return changed


def build_profiles(
    profiles: Sequence[ProfileDocument], known: KnownPlugins, problems: Problems, rules: Rules
) -> tuple[Profile, ...]:
    """The effective profiles; reports what keeps one from being started."""
    built = tuple(_build_profile(profile, known, problems, rules) for profile in profiles)
    sorts = [profile.points["queueSort"] for profile in built]
    for document, profile, sort in zip(profiles, built, sorts, strict=True):
        if len(sort) != 1 or len(sorts[0]) != 1:
            continue
        if sort != sorts[0]:
            why = f"must be the same for all profiles: {quote(sort[0].name)}, but first {quote(sorts[0][0].name)}"
            problems.add(f"{document.path}.plugins.queueSort", why)
        elif profile.args.get(sort[0].name) != built[0].args.get(sort[0].name):
            problems.add(f"{document.path}.pluginConfig", f"args of {quote(sort[0].name)} must be the same everywhere")
    return built


def _build_profile(profile: ProfileDocument, known: KnownPlugins, problems: Problems, rules: Rules) -> Profile:
    enabled = enabled_names(profile.plugins)
    for index, config in enumerate(profile.plugin_config):
        if config.name in enabled and isinstance(config.args, NodeResourcesFitArgs):
            check_fit_args(config.args, f"{profile.path}.pluginConfig[{index}].args", problems, rules)
    path = f"{profile.path}.plugins"
    points = expand(profile.plugins, known, path, problems)
    if len(points["queueSort"]) != 1:
        problems.add(
            f"{path}.queueSort", f"one queue sort plugin is needed, but {len(points['queueSort'])} are enabled"
        )
    if not points["bind"]:
        problems.add(f"{path}.bind", "at least one bind plugin is needed")
    return Profile(
        scheduler_name=profile.scheduler_name or "",
        percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
        points=points,
        args=profile.args,
    )
