"""v1.18: translates a Policy to the plugins that replace its predicates and priorities."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from podium.config.fields import Problems
from podium.config.parse import PluginRef, check_extenders
from podium.engine.release import Options, ReleaseBehaviour, Setup
from podium.errors import ConfigError
from podium.framework import FilterPlugin, Registry, ScorePlugin
from podium.model.pod import DEFAULT_SCHEDULER_NAME
from podium.releases._framework_v118 import POINTS, PRE_SCORED, READ_POINTS, EnabledPlugins, UnresolvedProfile, set_up
from podium.releases.policy import Policy, PredicatePolicy, PriorityPolicy, check_arguments, fatal, serving
from podium.releases.rules import FIRST_DEFAULT_PRIORITIES

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
