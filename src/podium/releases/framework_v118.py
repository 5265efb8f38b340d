"""v1.18: its plugins and their arguments, their setup per extension point, the configuration v1alpha2, and a Policy
translated to the plugins that replace its predicates and priorities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from podium.framework import (
    CycleState,
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    Registry,
    ScorePlugin,
    Status,
    Verdict,
)
from podium.framework.plugin import QueuedPod, QueueSortPlugin, points_of
from podium.model import Pod, TopologySpreadConstraint
from podium.model.meta import qualified_name_errors
from podium.model.pod import DEFAULT_SCHEDULER_NAME
from podium.plugins.default_binder import DefaultBinder
from podium.plugins.priority_sort import PrioritySort
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
from podium.releases.policy import (
    Policy,
    PolicyProblems,
    PredicatePolicy,
    PriorityPolicy,
    check_arguments,
    fatal,
    read_policy_extenders,
    read_ratio,
    serving,
    shape_problem,
)
from podium.releases.rules import FIRST_DEFAULT_PRIORITIES, OLDEST_RULES, V1_18, of_release


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


def _node_label(fields: Fields, problems: PolicyProblems) -> priorities.NodeLabelArgs:
    args = priorities.NodeLabelArgs(
        present_labels=tuple(fields.strings("presentLabels")),
        absent_labels=tuple(fields.strings("absentLabels")),
        present_labels_preference=tuple(fields.strings("presentLabelsPreference")),
        absent_labels_preference=tuple(fields.strings("absentLabelsPreference")),
    )
    check_labels(args, problems)
    return args


def check_labels(args: priorities.NodeLabelArgs, problems: Problems) -> None:
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
    return Setup(
        config=config,
        registry=registry,
        rules=OLDEST_RULES,
        behaviour=behaviour,
        effective=effective,
        warnings=passed_over,
    )


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


# -- a Policy as plugins -----------------------------------------------------------------------------------------------


PREDICATES: dict[str, tuple[str, ...]] = {
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "GeneralPredicates": ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"),
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "MatchNodeSelector": ("NodeAffinity",),
    "PodFitsResources": ("NodeResourcesFit",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    "CheckNodeLabelPresence": ("NodeLabel",),
    "CheckServiceAffinity": ("ServiceAffinity",),
    "MaxEBSVolumeCount": ("EBSLimits",),
    "MaxGCEPDVolumeCount": ("GCEPDLimits",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "MaxAzureDiskVolumeCount": ("AzureDiskLimits",),
    "MaxCinderVolumeCount": ("CinderLimits",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "EvenPodsSpread": ("PodTopologySpread",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
}
"""The plugins that replace each predicate, in the order in which predicates run."""

PRIORITIES = {
    "SelectorSpreadPriority": "DefaultPodTopologySpread",
    "TaintTolerationPriority": "TaintToleration",
    "NodeAffinityPriority": "NodeAffinity",
    "ImageLocalityPriority": "ImageLocality",
    "InterPodAffinityPriority": "InterPodAffinity",
    "NodePreferAvoidPodsPriority": "NodePreferAvoidPods",
    "MostRequestedPriority": "NodeResourcesMostAllocated",
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "LeastRequestedPriority": "NodeResourcesLeastAllocated",
    "RequestedToCapacityRatio": "RequestedToCapacityRatio",
    "NodeLabel": "NodeLabel",
    "ServiceAffinity": "ServiceAffinity",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "ResourceLimitsPriority": "NodeResourceLimits",
}

MANDATORY = ("PodToleratesNodeTaints", "CheckNodeUnschedulable")
DEFAULT_PREDICATES = frozenset(PREDICATES) - {
    *("HostName", "PodFitsHostPorts", "MatchNodeSelector", "PodFitsResources", "CheckNodeLabelPresence"),
    *("CheckServiceAffinity", "MaxCinderVolumeCount"),
}
DEFAULT_PRIORITIES = {**FIRST_DEFAULT_PRIORITIES, "ImageLocalityPriority": 1, "EvenPodsSpreadPriority": 1}


def provider_priorities(options: Options) -> dict[str, int]:
    """The priorities of a provider; a Policy without a list always gets those of the default provider."""
    weights = dict(DEFAULT_PRIORITIES)
    if options.packs:
        weights["MostRequestedPriority"] = weights.pop("LeastRequestedPriority")
    return weights


@dataclass(slots=True)
class _Arguments:
    """The arguments of all predicates and priorities together, by plugin."""

    present_labels: list[str] = field(default_factory=list)
    absent_labels: list[str] = field(default_factory=list)
    present_preferences: list[str] = field(default_factory=list)
    absent_preferences: list[str] = field(default_factory=list)
    has_node_label: bool = False
    affinity_labels: list[str] = field(default_factory=list)
    anti_affinity_labels: list[str] = field(default_factory=list)
    has_service_affinity: bool = False
    ratio: dict[str, object] | None = None


def configure_policy(policy: Policy, behaviour: ReleaseBehaviour, options: Options, own: Registry) -> Setup:
    """Set up a scheduler of v1.18 that is given a Policy."""
    _check(policy)
    arguments = _Arguments()
    gates = options.feature_gates
    known = dict(PRIORITIES)
    if not gates.get("ResourceLimitsPriorityFunction", False):
        del known["ResourceLimitsPriority"]
    predicates = _predicates(policy, arguments, own)
    weights = _weights(policy, arguments, known, own)
    if policy.priorities is None and "ResourceLimitsPriority" in known:
        weights["ResourceLimitsPriority"] = 1
    plugins: EnabledPlugins = {point: [] for point in READ_POINTS}
    plugins |= {"queueSort": [PluginRef("PrioritySort")], "bind": [PluginRef("DefaultBinder")]}
    for name in (*PREDICATES, *sorted(predicates - PREDICATES.keys())):
        if name in predicates:
            _enable_filters(PREDICATES.get(name, (name,)), plugins)
    for name, weight in sorted(weights.items()):
        _enable_score(known.get(name, name), weight, arguments, plugins)
    if policy.always_check_all_predicates:
        behaviour = replace(behaviour, collects_all_reasons=True)
    config = _plugin_config(policy, arguments, plugins)
    profile = UnresolvedProfile(DEFAULT_SCHEDULER_NAME, plugins, config)
    return set_up([profile], policy.extenders, behaviour, options, own, warnings=policy.warnings)


def _check(policy: Policy) -> None:
    problems = Problems()
    problems.errors += policy.weight_problems
    seen: dict[str, PriorityPolicy] = {}
    for priority in policy.priorities or ():
        problems.errors += _redeclared(priority, seen)
    check_extenders(policy.extenders, problems)
    weight = policy.hard_pod_affinity_symmetric_weight
    if not 0 <= weight <= 100:
        problems.invalid("hardPodAffinitySymmetricWeight", weight, "not in valid range [0-100]")
    if problems.errors:
        raise ConfigError(problems.errors)


def _redeclared(priority: PriorityPolicy, seen: dict[str, PriorityPolicy]) -> Iterable[str]:
    """Priorities of one kind share a plugin: they must have the same weight, and there can be only one ratio."""
    kinds = {
        "LabelPreference": priority.label_preference,
        "ServiceAntiAffinity": priority.service_anti_affinity,
        "RequestedToCapacityRatio": priority.ratio,
    }
    kind = next((kind for kind, argument in kinds.items() if argument is not None), "")
    if not priority.has_argument:
        return
    if not kind:
        yield f"No priority arguments set for priority {priority.name}"
        return
    other = seen.setdefault(kind, priority)
    if other is not priority and kind == "RequestedToCapacityRatio":
        yield f'Priority "{priority.name}" redeclares custom priority "{kind}", from:"{other.name}"'
    elif other.weight != priority.weight:
        yield f'{kind}  priority "{priority.name}" has a different weight with "{other.name}"'
    else:
        seen[kind] = priority


def _predicates(policy: Policy, arguments: _Arguments, own: Registry) -> set[str]:
    if policy.predicates is None:
        return {*DEFAULT_PREDICATES}
    return {_predicate(predicate, arguments, own) for predicate in policy.predicates} | {*MANDATORY}


def _predicate(predicate: PredicatePolicy, arguments: _Arguments, own: Registry) -> str:
    """The predicate's name in this release; the argument of a known name is ignored."""
    check_arguments(predicate, "predicate")
    name = "PodFitsHostPorts" if predicate.name == "PodFitsPorts" else predicate.name
    if name in PREDICATES or name in serving(FilterPlugin, own):
        return name
    if predicate.service_affinity is not None:
        arguments.has_service_affinity = True
        arguments.affinity_labels += predicate.service_affinity
        return "CheckServiceAffinity"
    if predicate.labels_presence is not None:
        arguments.has_node_label = True
        presence = predicate.labels_presence
        (arguments.present_labels if presence.presence else arguments.absent_labels).extend(presence.labels)
        return "CheckNodeLabelPresence"
    raise fatal(f'Invalid configuration: Predicate type not found for "{predicate.name}"')


def _weights(policy: Policy, arguments: _Arguments, known: dict[str, str], own: Registry) -> dict[str, int]:
    if policy.priorities is None:
        return dict(DEFAULT_PRIORITIES)
    weights = {}
    for priority in policy.priorities:
        if priority.name != "EqualPriority":
            weights[_priority(priority, arguments, known, own)] = priority.weight
    return weights


def _priority(priority: PriorityPolicy, arguments: _Arguments, known: dict[str, str], own: Registry) -> str:
    check_arguments(priority, "priority")
    name = "SelectorSpreadPriority" if priority.name == "ServiceSpreadingPriority" else priority.name
    if name in known or name in serving(ScorePlugin, own):
        return name
    if priority.service_anti_affinity is not None:
        arguments.has_service_affinity = True
        arguments.anti_affinity_labels.append(priority.service_anti_affinity)
        return "ServiceAffinity"
    if priority.label_preference is not None:
        arguments.has_node_label = True
        preference = priority.label_preference
        liked = arguments.present_preferences if preference.presence else arguments.absent_preferences
        liked.append(preference.label)
        return "NodeLabel"
    if priority.ratio is not None:
        arguments.ratio = {
            "shape": [{"utilization": x, "score": y} for x, y in priority.ratio.shape],
            "resources": [{"name": spec.name, "weight": spec.weight} for spec in priority.ratio.resources],
        }
        return "RequestedToCapacityRatio"
    raise fatal(f'Invalid configuration: Priority type not found for "{name}"')


def _enable_filters(names: Iterable[str], plugins: EnabledPlugins) -> None:
    for name in names:
        plugins["filter"].append(PluginRef(name))
        if "preFilter" in POINTS.get(name, ()):
            plugins["preFilter"].append(PluginRef(name))


def _enable_score(name: str, weight: int, arguments: _Arguments, plugins: EnabledPlugins) -> None:
    if name == "NodeLabel":
        weight *= len(arguments.present_preferences) + len(arguments.absent_preferences)
    elif name == "ServiceAffinity":
        weight *= len(arguments.anti_affinity_labels)
    if weight == 0:
        raise fatal(f'Priority "{name}" has no argument that says what it scores')
    # Weights are truncated to 32 bits, and 0 counts as 1.
    weight = (weight + 2**31) % 2**32 - 2**31
    plugins["score"].append(PluginRef(name, weight or 1))
    if name in PRE_SCORED:
        plugins["preScore"].append(PluginRef(name))


def _plugin_config(policy: Policy, arguments: _Arguments, plugins: EnabledPlugins) -> list[tuple[str, object]]:
    scored = {ref.name for ref in plugins["score"]}
    config: list[tuple[str, object]] = []
    if arguments.has_node_label:
        labels = {
            "presentLabels": arguments.present_labels,
            "absentLabels": arguments.absent_labels,
            "presentLabelsPreference": arguments.present_preferences,
            "absentLabelsPreference": arguments.absent_preferences,
        }
        config.append(("NodeLabel", labels))
    if arguments.has_service_affinity:
        services = {
            "affinityLabels": arguments.affinity_labels,
            "antiAffinityLabelsPreference": arguments.anti_affinity_labels,
        }
        config.append(("ServiceAffinity", services))
    if arguments.ratio is not None:
        config.append(("RequestedToCapacityRatio", arguments.ratio))
    weight = policy.hard_pod_affinity_symmetric_weight
    # The plugin gets the weight as an argument of the priority: without the priority, the default applies.
    if weight and "InterPodAffinity" in scored:
        config.append(("InterPodAffinity", {"hardPodAffinityWeight": weight}))
    return config
