"""Which plugins a profile runs: what the document enables and disables, merged with the defaults and expanded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from podium.config.fields import Fields, Problems, quote
from podium.config.types import EXTENSION_POINTS, KnownPlugins, PluginRef
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
        # Ahead of DefaultPreemption: giving back an idle claim is better than evicting a pod.
        *([PluginRef("DynamicResources", 2)] if rules.dynamic_resources_by_default else ()),
        PluginRef("DefaultPreemption"),
        PluginRef("NodeResourcesBalancedAllocation", 1),
        PluginRef("ImageLocality", 1),
        PluginRef("DefaultBinder"),
        *(_refs("NodeDeclaredFeatures") if rules.node_declared_features else ()),
        *(() if rules.scheduling_gates_come_first else gates),
    )


API_VERSIONS = (V1, V1BETA3, V1BETA2)
"""The versions of the configuration that are read."""


def default_plugins(api_version: str, rules: Rules) -> dict[str, tuple[PluginRef, ...]]:
    """Extension point (or `multiPoint`) -> the plugins a release enables there."""
    return _V1BETA2_PLUGINS if api_version == V1BETA2 else {MULTI_POINT: _multi_point_plugins(rules)}


PLACEMENT_POINTS = ("placementGenerate", "placementScore")
"""Points for groups of pods, behind features that are off: checked like the others, but nothing runs there."""
POD_GROUP_POST_FILTER = "podGroupPostFilter"
"""Another one of these."""

ALL = "*"
MAX_NODE_SCORE = 100


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
    """Defaults that are not disabled, reconfigured in place where the profile names them, then the profile's others."""
    # Of a plugin named twice the last one replaces the default; the other stays, to be found as a repetition.
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
    """The plugins that have to exist for this profile."""
    return {plugin.name for plugin_set in sets.values() for plugin in plugin_set.enabled}


def expand(sets: PluginSets, known: KnownPlugins, path: str, problems: Problems) -> dict[str, tuple[PluginRef, ...]]:
    """The plugins that run at each extension point, in order, with their weights at `score`."""
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
    return {
        point: tuple(PluginRef(name, weights["score"].get(name, 1) if point == "score" else 0) for name in names[point])
        for point in EXTENSION_POINTS
    }


def _check_enabled(point: str, plugins: PluginSet, known: KnownPlugins, path: str, problems: Problems) -> None:
    seen = set()
    for plugin in plugins.enabled:
        if plugin.name not in known:
            problems.add(path, f"plugin {quote(plugin.name)} does not exist")
        elif point != MULTI_POINT:
            if point not in known[plugin.name]:
                problems.add(path, f"plugin {quote(plugin.name)} has nothing to run at {point}")
            if plugin.name in seen:
                problems.add(path, f"plugin {quote(plugin.name)} is enabled twice")
        seen.add(plugin.name)


def _names_at(point: str, sets: PluginSets, known: KnownPlugins, path: str, problems: Problems) -> list[str]:
    """First what the point itself lists of the multiPoint plugins, then the other multiPoint plugins, then the rest."""
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
    """The weight of each plugin: the point's own, else the one given at multiPoint, else 1."""
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
