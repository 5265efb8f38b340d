"""v1.18: its plugins and their arguments, their setup per extension point, and the configuration v1alpha2."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from podium.cluster import Nodes
from podium.cluster.columns import Ints
from podium.config.fields import Fields, Problems
from podium.config.parse import KIND, check_extenders, ignored_resources, in_call_order, read_component
from podium.config.plugin_args import CPU_AND_MEMORY, InterPodAffinityArgs, PodTopologySpreadArgs
from podium.config.profiles import V1BETA2
from podium.config.types import ExtenderConfig, KubeSchedulerConfiguration, PluginRef, Profile
from podium.engine.release import Options, ReleaseBehaviour, Setup
from podium.errors import ConfigError, PluginError
from podium.framework import CycleState, Plugin, PreFilterPlugin, PreScorePlugin, Registry, Status, Verdict
from podium.framework.plugin import QueuedPod, QueueSortPlugin, points_of
from podium.model import Pod, TopologySpreadConstraint
from podium.model.meta import qualified_name_errors
from podium.model.pod import DEFAULT_SCHEDULER_NAME
from podium.plugins.queue_and_bind import DefaultBinder, PrioritySort
from podium.releases import _predicates as predicates
from podium.releases import _volume_predicates as volume_predicates
from podium.releases import priorities
from podium.releases._topology import (
    DefaultPodTopologySpread,
    LegacyInterPodAffinity,
    LegacyPodTopologySpread,
    ServiceAffinity,
    ServiceAffinityArgs,
)
from podium.releases.policy import PolicyProblems, read_policy_extenders, read_ratio, shape_problem
from podium.releases.rules import V1_18, of_release


class FirstInFirstOut(QueueSortPlugin):
    """Orders the queue by waiting time, longest first."""

    name = "FirstInFirstOut"

    def sort_key(self, queued: QueuedPod) -> float:
        return queued.timestamp


def read_args(plugin: str, document: object, problems: PolicyProblems) -> object:
    """The arguments of a plugin, or None if it takes none; reports what prevents the plugin from being created."""
    reader = _READERS.get(plugin)
    if reader is None:
        if document:
            problems.unread.append(f"the pluginConfig of {plugin}, which takes none")
        return None
    found = PolicyProblems(problems.rules, strict=False)
    with Fields(document, "", found) as fields:
        args = reader(fields, found)
    for error in found.errors:
        problems.add("", f'error initializing plugin "{plugin}": {error}')
    problems.unknown_fields += [f"{plugin}.{path}" for path in found.unknown_fields]
    return args


def _fit(fields: Fields, problems: PolicyProblems) -> predicates.FitArgs:
    return predicates.FitArgs(ignored_resources=frozenset(fields.strings("ignoredResources")))


def _inter_pod_affinity(fields: Fields, problems: PolicyProblems) -> InterPodAffinityArgs:
    weight = fields.integer("hardPodAffinityWeight", 1)
    if not 0 <= weight <= 100:
        problems.invalid("hardPodAffinityWeight", weight, "not in valid range [0-100]")
    return InterPodAffinityArgs(hard_pod_affinity_weight=weight)


def _node_label(fields: Fields, problems: PolicyProblems) -> predicates.NodeLabelArgs:
    args = predicates.NodeLabelArgs(
        present_labels=tuple(fields.strings("presentLabels")),
        absent_labels=tuple(fields.strings("absentLabels")),
        present_labels_preference=tuple(fields.strings("presentLabelsPreference")),
        absent_labels_preference=tuple(fields.strings("absentLabelsPreference")),
    )
    check_labels(args, problems)
    return args


def check_labels(args: predicates.NodeLabelArgs, problems: Problems) -> None:
    """Check that no label is both required and forbidden."""
    pairs = (args.present_labels, args.absent_labels), (args.present_labels_preference, args.absent_labels_preference)
    for present, absent in pairs:
        for label in sorted(set(present) & set(absent)):
            problems.add("", f'detecting at least one label (e.g., "{label}") that exist in both label lists')


def _pod_topology_spread(fields: Fields, problems: PolicyProblems) -> PodTopologySpreadArgs:
    found: list[TopologySpreadConstraint] = []
    for index, item in enumerate(fields.children("defaultConstraints")):
        path = f"defaultConstraints[{index}]"
        with item:
            if item.take("labelSelector") is not None:
                problems.forbidden(f"{path}.labelSelector", "constraint must not define a selector")
            constraint = TopologySpreadConstraint(
                max_skew=item.integer("maxSkew"),
                topology_key=item.string("topologyKey"),
                when_unsatisfiable=item.string("whenUnsatisfiable"),
            )
        if constraint.max_skew <= 0:
            problems.invalid(f"{path}.maxSkew", constraint.max_skew, "must be greater than zero")
        for error in qualified_name_errors(constraint.topology_key):
            problems.invalid(f"{path}.topologyKey", constraint.topology_key, error)
        if constraint.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
            supported = ("DoNotSchedule", "ScheduleAnyway")
            problems.unsupported(f"{path}.whenUnsatisfiable", constraint.when_unsatisfiable, supported)
        kind = (constraint.topology_key, constraint.when_unsatisfiable)
        if kind in [(other.topology_key, other.when_unsatisfiable) for other in found]:
            problems.duplicate(path, f"{{{kind[0]}, {kind[1]}}}")
        found.append(constraint)
    return PodTopologySpreadArgs(default_constraints=tuple(found), defaulting_type="List")


def _ratio(fields: Fields, problems: PolicyProblems) -> priorities.RatioArgs:
    given = read_ratio(fields, problems)
    problem = shape_problem(given.shape)
    if problem:
        problems.add("", problem)
    resources = {spec.name: spec for spec in given.resources}
    return priorities.RatioArgs(shape=given.shape, resources=tuple(resources.values()) or CPU_AND_MEMORY)


def _service_affinity(fields: Fields, problems: PolicyProblems) -> ServiceAffinityArgs:
    return ServiceAffinityArgs(
        affinity_labels=tuple(fields.strings("affinityLabels")),
        anti_affinity_labels_preference=tuple(fields.strings("antiAffinityLabelsPreference")),
    )


_READERS: dict[str, Callable[[Fields, PolicyProblems], object]] = {
    "InterPodAffinity": _inter_pod_affinity,
    "NodeLabel": _node_label,
    "NodeResourcesFit": _fit,
    "PodTopologySpread": _pod_topology_spread,
    "RequestedToCapacityRatio": _ratio,
    "ServiceAffinity": _service_affinity,
}


class NodeAffinity(predicates.MatchNodeSelector, priorities.NodeAffinityPriority):
    """Reject nodes that the pod's selector or required affinity excludes; prefer nodes that meet its preferences."""


class NodeLabel(predicates.CheckNodeLabelPresence, priorities.NodeLabelPriority):
    """Reject, or prefer, nodes for labels they have or lack."""


class TaintToleration(predicates.PodToleratesNodeTaints, priorities.TaintTolerationPriority):
    """Reject nodes with a taint that the pod does not tolerate; prefer nodes with fewer PreferNoSchedule taints."""


_NAMES: dict[str, type[Plugin]] = {
    "AzureDiskLimits": volume_predicates.MaxAzureDiskVolumeCount,
    "CinderLimits": volume_predicates.MaxCinderVolumeCount,
    "DefaultPodTopologySpread": DefaultPodTopologySpread,
    "EBSLimits": volume_predicates.MaxEBSVolumeCount,
    "EqualPriority": priorities.EqualPriority,
    "GCEPDLimits": volume_predicates.MaxGCEPDVolumeCount,
    "ImageLocality": priorities.ImageLocalityPriority,
    "InterPodAffinity": LegacyInterPodAffinity,
    "NodeAffinity": NodeAffinity,
    "NodeLabel": NodeLabel,
    "NodeName": predicates.HostName,
    "NodePorts": predicates.PodFitsHostPorts,
    "NodePreferAvoidPods": priorities.NodePreferAvoidPodsPriority,
    "NodeResourceLimits": priorities.ResourceLimitsPriority,
    "NodeResourcesBalancedAllocation": priorities.BalancedResourceAllocation,
    "NodeResourcesFit": predicates.PodFitsResources,
    "NodeResourcesLeastAllocated": priorities.LeastRequestedPriority,
    "NodeResourcesMostAllocated": priorities.MostRequestedPriority,
    "NodeUnschedulable": predicates.CheckNodeUnschedulable,
    "NodeVolumeLimits": volume_predicates.MaxCSIVolumeCount,
    "PodTopologySpread": LegacyPodTopologySpread,
    "RequestedToCapacityRatio": priorities.RequestedToCapacityRatioPriority,
    "ServiceAffinity": ServiceAffinity,
    "TaintToleration": TaintToleration,
    "VolumeBinding": volume_predicates.CheckVolumeBinding,
    "VolumeRestrictions": volume_predicates.NoDiskConflict,
    "VolumeZone": volume_predicates.NoVolumeZoneConflict,
}

_OTHERS: tuple[type[Plugin], ...] = (DefaultBinder, volume_predicates.PodPassesBasicChecks, PrioritySort)

PLUGINS = Registry((*(of_release(plugin, V1_18, name) for name, plugin in _NAMES.items()), *_OTHERS))
"""Every plugin of v1.18 that affects decisions."""

POINTS: dict[str, frozenset[str]] = {
    **{
        name: frozenset(("preFilter", "filter"))
        for name in ("NodeResourcesFit", "NodePorts", "InterPodAffinity", "PodTopologySpread", "ServiceAffinity")
    },
    **{
        name: frozenset(("filter",))
        for name in (
            *("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits", "NodeVolumeLimits", "NodeAffinity"),
            *("NodeLabel", "NodeName", "NodeUnschedulable", "TaintToleration", "VolumeBinding"),
            *("VolumeRestrictions", "VolumeZone"),
        )
    },
    "PrioritySort": frozenset(("queueSort",)),
    "DefaultBinder": frozenset(("bind",)),
}
"""The extension points of the release's plugins, except scoring."""

PRE_SCORED = (
    *("DefaultPodTopologySpread", "InterPodAffinity", "NodeResourceLimits", "PodTopologySpread", "TaintToleration"),
)
SCORED = (
    *("DefaultPodTopologySpread", "ImageLocality", "InterPodAffinity", "NodeAffinity", "NodeLabel"),
    *("NodePreferAvoidPods", "NodeResourceLimits", "NodeResourcesBalancedAllocation", "NodeResourcesLeastAllocated"),
    *("NodeResourcesMostAllocated", "PodTopologySpread", "RequestedToCapacityRatio", "ServiceAffinity"),
    "TaintToleration",
)


V1ALPHA2 = "kubescheduler.config.k8s.io/v1alpha2"

READ_POINTS = (
    *("queueSort", "preFilter", "filter", "preScore", "score", "reserve", "permit", "preBind", "bind", "postBind"),
    "unreserve",
)
LIMITED = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")

EnabledPlugins = dict[str, list[PluginRef]]
"""The plugins enabled at each extension point, in order."""


@dataclass(slots=True)
class UnresolvedProfile:
    """A profile before its plugins are looked up: which are enabled, and their arguments."""

    scheduler_name: str
    plugins: EnabledPlugins
    plugin_config: list[tuple[str, object]] = field(default_factory=list)


def default_plugins(options: Options) -> EnabledPlugins:
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
    found: EnabledPlugins = {
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


def configure_v1alpha2(document: object, behaviour: ReleaseBehaviour, options: Options, own: Registry) -> Setup:
    """Set up a scheduler that is given a KubeSchedulerConfiguration v1alpha2, or nothing."""
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
    return set_up(profiles, extenders, behaviour, options, own, percentage, warnings=problems.warnings)


def _read_profiles(items: Sequence[Fields], options: Options) -> list[UnresolvedProfile]:
    if not items:
        return [UnresolvedProfile(DEFAULT_SCHEDULER_NAME, default_plugins(options))]
    found = []
    for item in items:
        with item:
            name = item.optional_string("schedulerName")
            if name is None:
                name = DEFAULT_SCHEDULER_NAME if len(items) == 1 else ""
            plugins = _read_plugins(item.child("plugins"), default_plugins(options))
            config = []
            for entry in item.children("pluginConfig"):
                with entry:
                    config.append((entry.string("name"), entry.take("args")))
            found.append(UnresolvedProfile(name, plugins, config))
    return found


def _read_plugins(fields: Fields, defaults: EnabledPlugins) -> EnabledPlugins:
    """The default plugins that are not disabled, followed by those that are enabled."""
    merged: EnabledPlugins = {}
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


def _check_names(profiles: Sequence[UnresolvedProfile], problems: Problems) -> None:
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
    profiles: Sequence[UnresolvedProfile],
    extenders: tuple[ExtenderConfig, ...],
    behaviour: ReleaseBehaviour,
    options: Options,
    own: Registry,
    percentage: int = 0,
    *,
    warnings: Sequence[str] = (),
) -> Setup:
    """Set up a scheduler with these profiles; ConfigError for what prevents a plugin from being created."""
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
    return Setup(config=config, registry=registry, behaviour=behaviour, effective=effective, warnings=passed_over)


def _check_points(plugins: EnabledPlugins, own: Registry, problems: Problems) -> None:
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
    """The extension points of a plugin in this release; None if there is no plugin with this name."""
    if name in own:
        return points_of(own[name])
    extra = [point for point, names in (("preScore", PRE_SCORED), ("score", SCORED)) if name in names]
    return POINTS.get(name, frozenset()) | frozenset(extra) if name in POINTS or extra else None


def _arguments(
    profile: UnresolvedProfile, own: Registry, options: Options, problems: PolicyProblems
) -> dict[str, object]:
    needed = {ref.name for refs in profile.plugins.values() for ref in refs}
    given: dict[str, object] = {}
    for name, document in profile.plugin_config:
        if name in given:
            problems.add("", f"repeated config for plugin {name}")
        given[name] = document
    limits = volume_predicates.VolumeLimitArgs.from_environment(options.env)
    args: dict[str, object] = dict.fromkeys(LIMITED, limits)
    for name in sorted(needed):
        if name in own:
            args[name] = given.get(name)
        else:
            found = read_args(name, given.get(name), problems)
            args |= {} if found is None else {name: found}
    problems.unread += [f"the pluginConfig of {name}, which does not run" for name in sorted(given.keys() - needed)]
    return args


def _build(profile: UnresolvedProfile, args: dict[str, object]) -> Profile:
    """The extension points that the engine runs: our plugins may need PreFilter or PreScore where v1.18's do not, and
    vice versa.
    """
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


def _forbid_unprepared(plugins: EnabledPlugins, registry: Registry) -> None:
    """Make plugins fail, as in v1.18, that filter or score without their own PreFilter or PreScore."""
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
