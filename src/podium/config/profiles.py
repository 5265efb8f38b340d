"""The profiles of a configuration: the plugins of each, merged with the release's defaults, checked and built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from podium.config.fields import Fields, Problems, quote
from podium.config.plugin_args import NodeResourcesFitArgs, check_args, check_fit_args, read_args, readers
from podium.config.types import EXTENSION_POINTS, MAX_NODE_SCORE, KnownPlugins, PluginRef, Profile
from podium.errors import InputError
from podium.model.pod import DEFAULT_SCHEDULER_NAME
from podium.model.quantity import MAX_INT64, int64
from podium.rules import Rules

GROUP = "kubescheduler.config.k8s.io"
V1, V1BETA3, V1BETA2 = f"{GROUP}/v1", f"{GROUP}/v1beta3", f"{GROUP}/v1beta2"

MULTI_POINT = "multiPoint"

_ALL_LIMITS = "EBSLimits GCEPDLimits NodeVolumeLimits AzureDiskLimits"


def _refs(names: str) -> tuple[PluginRef, ...]:
    return tuple(PluginRef(name) for name in names.split())


_V1BETA2_PLUGINS = {
    "preEnqueue": _refs("SchedulingGates"),
    "queueSort": _refs("PrioritySort"),
    "preFilter": _refs(
        "NodeResourcesFit NodePorts VolumeRestrictions PodTopologySpread InterPodAffinity VolumeBinding VolumeZone "
        "NodeAffinity"
    ),
    "filter": _refs(
        "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions "
        "NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity"
    ),
    "postFilter": _refs("DefaultPreemption"),
    "preScore": _refs(
        "InterPodAffinity PodTopologySpread TaintToleration NodeAffinity NodeResourcesFit "
        "NodeResourcesBalancedAllocation"
    ),
    "score": (
        PluginRef("NodeResourcesBalancedAllocation", 1),
        PluginRef("ImageLocality", 1),
        PluginRef("InterPodAffinity", 1),
        PluginRef("NodeResourcesFit", 1),
        PluginRef("NodeAffinity", 1),
        PluginRef("PodTopologySpread", 2),
        PluginRef("TaintToleration", 1),
    ),
    "reserve": _refs("VolumeBinding"),
    "preBind": _refs("VolumeBinding"),
    "bind": _refs("DefaultBinder"),
}


def _multi_point_plugins(rules: Rules) -> tuple[PluginRef, ...]:
    gates = _refs("SchedulingGates")
    return (
        *(gates if rules.scheduling_gates_come_first else ()),
        PluginRef("PrioritySort"),
        *_refs("NodeName NodeUnschedulable" if rules.node_name_narrows else "NodeUnschedulable NodeName"),
        PluginRef("TaintToleration", 3),
        PluginRef("NodeAffinity", 2),
        PluginRef("NodePorts"),
        PluginRef("NodeResourcesFit", 1),
        PluginRef("VolumeRestrictions"),
        *_refs("NodeVolumeLimits" if rules.refuses_in_tree_limits else _ALL_LIMITS),
        PluginRef("VolumeBinding"),
        PluginRef("VolumeZone"),
        PluginRef("PodTopologySpread", 2),
        PluginRef("InterPodAffinity", 2),
        # Before DefaultPreemption: giving back an idle claim is better than evicting a pod.
        *([PluginRef("DynamicResources", 2)] if rules.dynamic_resources_by_default else ()),
        PluginRef("DefaultPreemption"),
        PluginRef("NodeResourcesBalancedAllocation", 1),
        PluginRef("ImageLocality", 1),
        PluginRef("DefaultBinder"),
        *(_refs("NodeDeclaredFeatures") if rules.node_declared_features else ()),
        *(() if rules.scheduling_gates_come_first else gates),
        *(_refs("GangScheduling") if rules.pod_groups else ()),
        *(_refs("TopologyPlacementGenerator") if rules.pod_group_placements else ()),
        *([PluginRef("PodGroupPodsCount", 1)] if rules.pod_group_placements else ()),
    )


API_VERSIONS = (V1, V1BETA3, V1BETA2)
"""The versions of the configuration that are read."""


def default_plugins(api_version: str, rules: Rules) -> dict[str, tuple[PluginRef, ...]]:
    """Extension point (or `multiPoint`) -> the plugins a release enables there."""
    return _V1BETA2_PLUGINS if api_version == V1BETA2 else {MULTI_POINT: _multi_point_plugins(rules)}


PLACEMENT_POINTS = ("placementGenerate", "placementScore")
"""Extension points for groups of pods; nothing runs there while groups are off."""
POD_GROUP_POST_FILTER = "podGroupPostFilter"
"""Another extension point for groups of pods."""

ALL = "*"


class PluginSet(NamedTuple):
    """The plugins enabled at one point, in order, and the names disabled there."""

    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[str, ...] = ()


PluginSets = dict[str, PluginSet]
"""By extension point, with `multiPoint` for all points a plugin implements."""


def _points(api_version: str, rules: Rules) -> tuple[str, ...]:
    if api_version != V1:
        return EXTENSION_POINTS
    placement = PLACEMENT_POINTS if rules.has_placement_points else ()
    return (*EXTENSION_POINTS, *placement, *((POD_GROUP_POST_FILTER,) if rules.has_pod_group_post_filter else ()))


def read_plugin_sets(fields: Fields, api_version: str, rules: Rules) -> PluginSets:
    with fields:
        return {point: _read_plugin_set(fields.child(point)) for point in (MULTI_POINT, *_points(api_version, rules))}


def _read_plugin_set(fields: Fields) -> PluginSet:
    with fields:
        enabled, disabled = (_read_plugins(fields, name) for name in ("enabled", "disabled"))
        return PluginSet(enabled, tuple(plugin.name for plugin in disabled))


def _read_plugins(fields: Fields, name: str) -> tuple[PluginRef, ...]:
    plugins = []
    for item in fields.children(name):
        with item:
            plugins.append(PluginRef(item.string("name"), item.integer("weight")))
    return tuple(plugins)


def with_defaults(custom: PluginSets, api_version: str, known: KnownPlugins, rules: Rules) -> PluginSets:
    """The profile's sets merged with the defaults; default plugins that are not `known` are left out."""
    defaults = default_plugins(api_version, rules)
    return {
        point: _merge([plugin for plugin in defaults.get(point, ()) if plugin.name in known], plugins)
        for point, plugins in custom.items()
    }


def _merge(defaults: list[PluginRef], custom: PluginSet) -> PluginSet:
    """Defaults that are not disabled, replaced in place by the profile's entries, then the profile's other plugins."""
    # If a plugin is named twice, the last entry replaces the default; the other stays, and is reported as a repetition.
    replacing = {plugin.name: index for index, plugin in enumerate(custom.enabled)}
    enabled, replaced = [], set()
    for plugin in defaults:
        if ALL in custom.disabled or plugin.name in custom.disabled:
            continue
        index = replacing.get(plugin.name)
        if index is not None:
            plugin = custom.enabled[index]
            replaced.add(index)
        enabled.append(plugin)
    enabled += [plugin for index, plugin in enumerate(custom.enabled) if index not in replaced]
    return PluginSet(tuple(enabled), custom.disabled)


def enabled_names(sets: PluginSets) -> set[str]:
    """The plugins that must exist for this profile."""
    return {plugin.name for plugin_set in sets.values() for plugin in plugin_set.enabled}


def expand(
    sets: PluginSets, known: KnownPlugins, path: str, problems: Problems, rules: Rules
) -> dict[str, tuple[PluginRef, ...]]:
    """The plugins that run at each extension point, in order, with their weights at `score` and `placementScore`."""
    for point, plugin_set in sets.items():
        _check_enabled(point, plugin_set, known, f"{path}.{point}.enabled", problems)
    names = {point: _names_at(point, sets, known, path, problems) for point in sets if point != MULTI_POINT}
    weights = {
        point: _weights(point, sets, known, f"{path}.{point}", problems)
        for point in ("score", "placementScore")
        if point in sets
    }
    if len(names.get("placementGenerate", ())) > 1:
        problems.add(f"{path}.placementGenerate", "at most one plugin may be enabled")
    for_groups = [point for point in (*PLACEMENT_POINTS, POD_GROUP_POST_FILTER) if rules.pod_groups and point in sets]
    return {
        point: tuple(PluginRef(name, weights[point].get(name, 1) if point in weights else 0) for name in names[point])
        for point in (*EXTENSION_POINTS, *for_groups)
    }


def _check_enabled(point: str, plugins: PluginSet, known: KnownPlugins, path: str, problems: Problems) -> None:
    seen = set()
    for index, plugin in enumerate(plugins.enabled):
        if problems.has(f"{path}[{index}]"):
            continue
        if plugin.name not in known:
            why = f": {REPLACED}" if plugin.name in REMOVED_PLUGINS else ""
            problems.add(path, f"plugin {quote(plugin.name)} does not exist{why}")
        elif point != MULTI_POINT:
            if point not in known[plugin.name]:
                problems.add(path, f"plugin {quote(plugin.name)} has nothing to run at {point}")
            if plugin.name in seen:
                problems.add(path, f"plugin {quote(plugin.name)} is enabled twice")
        seen.add(plugin.name)


def _names_at(point: str, sets: PluginSets, known: KnownPlugins, path: str, problems: Problems) -> list[str]:
    """First the multiPoint plugins that the point itself lists, then the other multiPoint plugins, then the rest."""
    listed = list(dict.fromkeys(plugin.name for plugin in sets[point].enabled))
    disabled = sets[point].disabled
    if ALL in disabled:
        return listed
    overriding, expanded = set(), []
    for plugin in sets[MULTI_POINT].enabled:
        name = plugin.name
        if point not in known.get(name, ()) or name in disabled:
            continue
        if name in listed:
            overriding.add(name)
        elif name in expanded:
            problems.add(f"{path}.{MULTI_POINT}.enabled", f"plugin {quote(name)} is enabled twice at {point}")
        else:
            expanded.append(name)
    return [name for name in listed if name in overriding] + expanded + [n for n in listed if n not in overriding]


def _weights(point: str, sets: PluginSets, known: KnownPlugins, path: str, problems: Problems) -> Mapping[str, int]:
    """The weight of each plugin: the point's own, else that given at multiPoint, else 1."""
    weights: dict[str, int] = {}
    total = 0
    for plugin in (*sets[point].enabled, *sets[MULTI_POINT].enabled):
        if point not in known.get(plugin.name, ()) or plugin.name in weights:
            continue
        weights[plugin.name] = plugin.weight or 1
        highest = weights[plugin.name] * MAX_NODE_SCORE
        # kube-scheduler subtracts in 64 bits: after a negative weight the room left wraps below zero, and any
        # further plugin overflows it. A negative weight that comes last passes.
        if highest > int64(MAX_INT64 - total):
            problems.add(path, "total score of the plugins could overflow: use smaller weights, none of them negative")
            break
        total += highest
    return weights


REMOVED_PLUGINS = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
"""Plugins whose names version v1 refuses even in pluginConfig."""
REPLACED = "NodeVolumeLimits does its work"


class PluginConfig(NamedTuple):
    name: str
    args: object


@dataclass(frozen=True, kw_only=True)
class ProfileDocument:
    """A profile as written in the document, with its default plugins and arguments."""

    path: str
    scheduler_name: str | None
    percentage_of_nodes_to_score: int | None
    plugins: PluginSets
    plugin_config: tuple[PluginConfig, ...]

    @property
    def args(self) -> dict[str, object]:
        """The arguments by plugin, for plugins that have arguments."""
        return {config.name: config.args for config in self.plugin_config if config.args is not None}


def read_profiles(
    items: Sequence[Fields], api_version: str, known: KnownPlugins, rules: Rules
) -> list[ProfileDocument]:
    """The profiles, one by default; a single profile has a default name."""
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
    # Schedulers that read a beta version read the arguments of all versions; the current one reads its own only.
    api_versions = (V1,) if api_version == V1 else API_VERSIONS
    with fields:
        name = fields.string("name")
        if name in readers(rules):
            return PluginConfig(name, read_args(name, fields.child("args"), api_versions, rules))
        return PluginConfig(name, fields.take("args"))


def check_profiles(profiles: Sequence[ProfileDocument], api_version: str, problems: Problems, rules: Rules) -> None:
    """Report the problems in each profile, and between them."""
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
    why = f"was removed: {REPLACED}"
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
    """Report differences in QueueSort: all profiles share one queue."""
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
    """The profiles with NodeResourcesFit ignoring `resources`, in place of its configured ones."""
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
    """The effective profiles; reports what prevents one from being started."""
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
    points = expand(profile.plugins, known, path, problems, rules)
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


def check_profile(profile: str, names: Iterable[str]) -> None:
    """Refuse a profile that is not one of a configuration's."""
    known = list(names)
    if profile not in known:
        raise InputError(f"profile {profile!r} is not in the configuration, which has {', '.join(known)}")


def with_weight(profile: Mapping[str, Any], plugin: str, weight: int, api_version: str) -> dict[str, Any]:
    """The profile of a document with another weight of a plugin.

    The weight is set where the profile enables the plugin, else where its default is; `score` overrides `multiPoint`.
    """
    sets = dict(profile.get("plugins") or {})
    enabled = {point: list((sets.get(point) or {}).get("enabled") or ()) for point in ("score", MULTI_POINT)}
    named = (point for point, entries in enabled.items() if _place(entries, plugin) < len(entries))
    point = next(named, "score" if api_version == V1BETA2 else MULTI_POINT)
    changed = _with_entry(enabled[point], plugin, {"weight": weight})
    return {**profile, "plugins": {**sets, point: {**(sets.get(point) or {}), "enabled": changed}}}


def arguments(profile: Mapping[str, Any], plugin: str) -> Mapping[str, Any]:
    """The arguments that the profile of a document has for a plugin."""
    configs = profile.get("pluginConfig") or ()
    return next((each.get("args") or {} for each in configs[_place(configs, plugin) :]), {})


def with_argument(profile: Mapping[str, Any], plugin: str, path: Sequence[str], value: Any) -> dict[str, Any]:
    """The profile of a document with another value of one field of a plugin's arguments.

    `path` are the names of the fields that lead to it.
    """
    args = _with_field(arguments(profile, plugin), path, value)
    return {**profile, "pluginConfig": _with_entry(profile.get("pluginConfig") or (), plugin, {"args": args})}


def _place(entries: Sequence[Mapping[str, Any]], plugin: str) -> int:
    """The index of a plugin's entry in a list; the length of the list if it has none."""
    return next((place for place, each in enumerate(entries) if each.get("name") == plugin), len(entries))


def _with_entry(entries: Sequence[Mapping[str, Any]], plugin: str, fields: Mapping[str, Any]) -> list[Any]:
    """The entries with other fields in a plugin's entry, which comes last if it is new."""
    changed, place = list(entries), _place(entries, plugin)
    changed[place : place + 1] = [{"name": plugin, **(entries[place] if place < len(entries) else {}), **fields}]
    return changed


def _with_field(section: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    name, *rest = path
    return {**section, name: _with_field(section.get(name) or {}, rest, value) if rest else value}
