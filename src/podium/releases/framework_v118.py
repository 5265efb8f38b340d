"""v1.18: from a set of plugins per extension point to what runs, and KubeSchedulerConfiguration v1alpha2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from podium.cluster import Nodes
from podium.cluster.columns import Ints
from podium.config.extenders import check_extenders, ignored_resources, in_call_order
from podium.config.fields import Fields, Problems
from podium.config.parse import read_component
from podium.config.plugin_sets import V1BETA2
from podium.config.types import ExtenderConfig, KubeSchedulerConfiguration, PluginRef, Profile
from podium.engine.release import Conduct, Options, Setup
from podium.errors import ConfigError, PluginError
from podium.framework import CycleState, Plugin, PreFilterPlugin, PreScorePlugin, Registry, Status, Verdict
from podium.framework.plugin import points_of
from podium.model import Pod
from podium.releases.plugins_v118 import PLUGINS, POINTS, PRE_SCORED, SCORED, read_args
from podium.releases.policy import PolicyProblems, read_policy_extenders
from podium.releases.rules import V1_18
from podium.releases.volume_limits import MOST_FROM_ENVIRONMENT, VolumeLimitArgs, most_from

V1ALPHA2 = "kubescheduler.config.k8s.io/v1alpha2"
KIND = "KubeSchedulerConfiguration"
SCHEDULER_NAME = "default-scheduler"

READ_POINTS = (
    *("queueSort", "preFilter", "filter", "preScore", "score", "reserve", "permit", "preBind", "bind", "postBind"),
    "unreserve",
)
LIMITED = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")

PluginSets = dict[str, list[PluginRef]]
"""The plugins enabled at each extension point, in order."""


@dataclass(slots=True)
class ProfileDocument:
    """A profile before its plugins are looked up: which are enabled, and what is said about them."""

    scheduler_name: str
    plugins: PluginSets
    plugin_config: list[tuple[str, object]] = field(default_factory=list)


def default_plugins(options: Options) -> PluginSets:
    """The plugins of a provider."""
    filters = (
        *("NodeUnschedulable", "NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity", "VolumeRestrictions"),
        *("TaintToleration", "EBSLimits", "GCEPDLimits", "NodeVolumeLimits", "AzureDiskLimits", "VolumeBinding"),
        *("VolumeZone", "InterPodAffinity"),
    )
    scaled = "MostAllocated" if options.packs else "LeastAllocated"
    weights = {
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
        "InterPodAffinity": 1,
        f"NodeResources{scaled}": 1,
        "NodeAffinity": 1,
        "NodePreferAvoidPods": 10000,
        "DefaultPodTopologySpread": 1,
        "TaintToleration": 1,
    }
    found: PluginSets = {
        "queueSort": [PluginRef("PrioritySort")],
        "preFilter": [PluginRef(name) for name in ("NodeResourcesFit", "NodePorts", "InterPodAffinity")],
        "filter": [PluginRef(name) for name in filters],
        "preScore": [PluginRef(name) for name in ("InterPodAffinity", "DefaultPodTopologySpread", "TaintToleration")],
        "score": [PluginRef(name, weight) for name, weight in weights.items()],
        "bind": [PluginRef("DefaultBinder")],
    }
    if options.feature_gates.get("EvenPodsSpread", True):
        for point in ("preFilter", "filter", "preScore", "score"):
            found[point].append(PluginRef("PodTopologySpread", int(point == "score")))
    if options.feature_gates.get("ResourceLimitsPriorityFunction", False):
        found["preScore"].append(PluginRef("NodeResourceLimits"))
        found["score"].append(PluginRef("NodeResourceLimits", 1))
    return found


# -- reading -------------------------------------------------------------------------------------------------------


def configure_v1alpha2(document: object, conduct: Conduct, options: Options, own: Registry) -> Setup:
    """What a scheduler runs with that is given a KubeSchedulerConfiguration v1alpha2, or nothing."""
    problems, values = PolicyProblems(V1_18, strict=True), Problems()
    given = {"apiVersion": V1ALPHA2, "kind": KIND} if document is None else document
    if not isinstance(given, Mapping) or given.get("kind") != KIND:
        raise ConfigError([f"v1.18 reads an object of kind {KIND} {V1ALPHA2}, or a Policy"])
    with Fields(dict(given), "", problems) as fields:
        if fields.take("apiVersion") != V1ALPHA2:
            problems.unsupported("apiVersion", given.get("apiVersion"), (V1ALPHA2,))
        fields.take("kind")
        read_component(fields, V1BETA2, Problems())
        fields.optional_boolean("disablePreemption")
        fields.optional_integer("bindTimeoutSeconds", bits=64)
        percentage = fields.integer("percentageOfNodesToScore")
        initial = fields.integer("podInitialBackoffSeconds", 1, bits=64)
        longest = fields.integer("podMaxBackoffSeconds", 10, bits=64)
        profiles = _read_profiles(fields.children("profiles"), options)
        extenders = read_policy_extenders(fields.take("extenders"), problems)
    _raise_any(problems)
    if not 0 <= percentage <= 100:
        values.invalid("percentageOfNodesToScore", percentage, "not in valid range [0-100]")
    if initial <= 0:
        values.invalid("podInitialBackoffSeconds", initial, "must be greater than 0")
    if longest < initial:
        values.invalid("podMaxBackoffSeconds", longest, "must be greater than or equal to PodInitialBackoffSeconds")
    check_extenders(extenders, values)
    _check_names(profiles, values)
    _raise_any(values)
    return set_up(profiles, extenders, conduct, options, own, percentage, warnings=problems.warnings)


def _read_profiles(items: Sequence[Fields], options: Options) -> list[ProfileDocument]:
    if not items:
        return [ProfileDocument(SCHEDULER_NAME, default_plugins(options))]
    found = []
    for item in items:
        with item:
            name = item.optional_string("schedulerName")
            if name is None:
                name = SCHEDULER_NAME if len(items) == 1 else ""
            plugins = _read_plugins(item.child("plugins"), default_plugins(options))
            config = []
            for entry in item.children("pluginConfig"):
                with entry:
                    config.append((entry.string("name"), entry.take("args")))
            found.append(ProfileDocument(name, plugins, config))
    return found


def _read_plugins(fields: Fields, defaults: PluginSets) -> PluginSets:
    """The default plugins that are not disabled, and after them those that are enabled."""
    merged: PluginSets = {}
    with fields:
        for point in READ_POINTS:
            with fields.child(point) as given:
                enabled, disabled = (_read_refs(given.children(name)) for name in ("enabled", "disabled"))
            dropped = {ref.name for ref in disabled}
            kept = [] if "*" in dropped else [ref for ref in defaults.get(point, []) if ref.name not in dropped]
            merged[point] = kept + enabled
    return merged


def _read_refs(items: Sequence[Fields]) -> list[PluginRef]:
    found = []
    for item in items:
        with item:
            found.append(PluginRef(item.string("name"), item.integer("weight")))
    return found


def _check_names(profiles: Sequence[ProfileDocument], problems: Problems) -> None:
    names: list[str] = []
    for index, profile in enumerate(profiles):
        path = f"profiles[{index}]"
        if not profile.scheduler_name:
            problems.required(f"{path}.schedulerName")
        if profile.scheduler_name in names:
            problems.duplicate(f"{path}.schedulerName", profile.scheduler_name)
        names.append(profile.scheduler_name)
        if profile.plugins["queueSort"] != profiles[0].plugins["queueSort"]:
            problems.add(f"{path}.plugins.queueSort", "has to match for all profiles")


# -- setting up ----------------------------------------------------------------------------------------------------


def set_up(
    profiles: Sequence[ProfileDocument],
    extenders: tuple[ExtenderConfig, ...],
    conduct: Conduct,
    options: Options,
    own: Registry,
    percentage: int = 0,
    *,
    warnings: Sequence[str] = (),
) -> Setup:
    """What a scheduler with these profiles runs with; ConfigError for what keeps a plugin from being made."""
    ignored = ignored_resources(extenders)
    registry, problems = Registry({**PLUGINS, **own}.values()), PolicyProblems(V1_18, strict=False)
    built, effective = [], {}
    for profile in profiles:
        if ignored:
            profile.plugin_config.append(("NodeResourcesFit", {"ignoredResources": list(ignored)}))
        _check_points(profile.plugins, own, problems)
        effective[profile.scheduler_name] = {
            "predicates": [ref.name for ref in profile.plugins["filter"]],
            "priorities": {ref.name: ref.weight or 1 for ref in sorted(profile.plugins["score"])},
        }
        args = _arguments(profile, own, options, problems)
        if not profile.plugins["score"] and not extenders:
            profile.plugins["score"] = [PluginRef("EqualPriority", 1)]
        built.append(_build(profile, args))
        _forbid_unprepared(profile.plugins, registry)
    if problems.errors:
        raise ConfigError(list(dict.fromkeys(problems.errors)))
    config = KubeSchedulerConfiguration(
        profiles=tuple(built), percentage_of_nodes_to_score=percentage, extenders=in_call_order(extenders)
    )
    passed_over = tuple(dict.fromkeys((*warnings, *problems.warnings)))
    return Setup(config=config, registry=registry, conduct=conduct, effective=effective, warnings=passed_over)


def _check_points(plugins: PluginSets, own: Registry, problems: Problems) -> None:
    for point, refs in plugins.items():
        seen: set[str] = set()
        for ref in refs:
            kind = f"{point[:1].upper()}{point[1:]}Plugin"
            points = _points(ref.name, own)
            if points is None:
                problems.add("", f'{kind} "{ref.name}" does not exist')
            elif point not in points:
                problems.add("", f'plugin "{ref.name}" does not extend {kind} plugin')
            elif ref.name in seen:
                problems.add("", f'plugin "{ref.name}" already registered as "{kind}"')
            seen.add(ref.name)
    if len(plugins.get("queueSort", [])) != 1:
        problems.add("", "exactly one queue sort plugin has to be enabled")
    if not plugins.get("bind"):
        problems.add("", "at least one bind plugin is needed")


def _points(name: str, own: Registry) -> frozenset[str] | None:
    """The extension points a plugin serves in this release; None if there is no such plugin."""
    if name in own:
        return points_of(own[name])
    extra = [point for point, names in (("preScore", PRE_SCORED), ("score", SCORED)) if name in names]
    return POINTS.get(name, frozenset()) | frozenset(extra) if name in POINTS or extra else None


def _arguments(
    profile: ProfileDocument, own: Registry, options: Options, problems: PolicyProblems
) -> dict[str, object]:
    needed = {ref.name for refs in profile.plugins.values() for ref in refs}
    given: dict[str, object] = {}
    for name, document in profile.plugin_config:
        if name in given:
            problems.add("", f"repeated config for plugin {name}")
        given[name] = document
    limits = VolumeLimitArgs(most=most_from(options.env.get(MOST_FROM_ENVIRONMENT)))
    args: dict[str, object] = dict.fromkeys(LIMITED, limits)
    for name in sorted(needed):
        if name in own:
            args[name] = given.get(name)
        else:
            found = read_args(name, given.get(name), problems)
            args |= {} if found is None else {name: found}
    problems.unread += [f"the pluginConfig of {name}, which does not run" for name in sorted(given.keys() - needed)]
    return args


def _build(profile: ProfileDocument, args: dict[str, object]) -> Profile:
    """The points the engine runs: a plugin of ours may prepare where v1.18's does not, or need not where it does."""
    points: dict[str, tuple[PluginRef, ...]] = {point: tuple(refs) for point, refs in profile.plugins.items()}
    points.pop("unreserve", None)
    binding = tuple(PluginRef(ref.name) for ref in profile.plugins["filter"] if ref.name == "VolumeBinding")
    prepares = (PluginRef("PodPassesBasicChecks"), *binding)
    points["preFilter"] = (*prepares, *(ref for ref in points["preFilter"] if _is(ref, PreFilterPlugin)))
    points["preScore"] = tuple(ref for ref in points["preScore"] if _is(ref, PreScorePlugin))
    points["score"] = tuple(PluginRef(ref.name, ref.weight or 1) for ref in points["score"])
    points["reserve"] = (*points.get("reserve", ()), *binding)
    return Profile(scheduler_name=profile.scheduler_name, percentage_of_nodes_to_score=None, points=points, args=args)


def _is(ref: PluginRef, kind: type[Plugin]) -> bool:
    return ref.name not in PLUGINS or issubclass(PLUGINS[ref.name], kind)


# -- plugins that run without what they prepare ----------------------------------------------------------------------


def _forbid_unprepared(plugins: PluginSets, registry: Registry) -> None:
    """Make plugins fail, as they do there, that filter or score without their own PreFilter or PreScore."""
    for point, before, names in (("filter", "preFilter", POINTS), ("score", "preScore", PRE_SCORED)):
        prepared = {ref.name for ref in plugins[before]}
        for ref in plugins[point]:
            needs = before in POINTS.get(ref.name, ()) if point == "filter" else ref.name in names
            if needs and ref.name not in prepared and ref.name in PLUGINS:
                registry[ref.name] = _unprepared(registry[ref.name], point, before)


def _unprepared(plugin: type[Plugin], point: str, before: str) -> type[Plugin]:
    message = f'error reading "{before[:1].upper()}{before[1:]}{plugin.name}" from cycleState'

    def filter(self: Plugin, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        return Verdict.choose(np.ones(len(nodes), dtype=np.int64), (Status.error(message),))

    def score(self: Plugin, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        raise PluginError(plugin.name, message)

    members: dict[str, Any] = {"filter": filter} if point == "filter" else {"score": score}
    return type(plugin.__name__, (plugin,), {"name": plugin.name, **members})


def _raise_any(problems: Problems) -> None:
    if problems.errors:
        raise ConfigError(list(dict.fromkeys(problems.errors)))
