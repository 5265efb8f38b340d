"""v1.8 and v1.14: their predicates and priorities, and how a Policy or a provider selects them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from podium.cluster import NodeInfo, Nodes
from podium.cluster.columns import Ints
from podium.config.fields import Problems
from podium.config.parse import check_extenders, ignored_resources
from podium.config.plugin_args import InterPodAffinityArgs
from podium.config.types import ExtenderConfig, KubeSchedulerConfiguration, PluginRef, Profile
from podium.engine.release import Options, ReleaseBehaviour, Setup
from podium.errors import ConfigError, PluginError
from podium.framework import CycleState, Plugin, Registry
from podium.framework.plugin import FilterPlugin, PreFilterPlugin, PreScorePlugin, ReservePlugin, ScorePlugin
from podium.model import Pod
from podium.model.pod import DEFAULT_SCHEDULER_NAME
from podium.plugins.default_binder import DefaultBinder
from podium.plugins.priority_sort import PrioritySort
from podium.releases._predicates import (
    CheckNodeCondition,
    CheckNodeDiskPressure,
    CheckNodeLabelPresence,
    CheckNodeMemoryPressure,
    CheckNodePIDPressure,
    CheckNodeUnschedulable,
    FitArgs,
    GeneralPredicates,
    HostName,
    MatchNodeSelector,
    PodFitsHostPorts,
    PodFitsResources,
    PodToleratesNodeTaints,
)
from podium.releases._topology import (
    CheckServiceAffinity,
    InterPodAffinityPriority,
    MatchInterPodAffinity,
    SelectorSpreadPriority,
    ServiceAffinityArgs,
    ServiceAntiAffinity,
    ServiceSpreadingPriority,
)
from podium.releases._volume_predicates import (
    CheckVolumeBinding,
    LocalVolumeArgs,
    MaxAzureDiskVolumeCount,
    MaxCinderVolumeCount,
    MaxCSIVolumeCount,
    MaxEBSVolumeCount,
    MaxGCEPDVolumeCount,
    NoDiskConflict,
    NoVolumeNodeConflict,
    NoVolumeZoneConflict,
    PodPassesBasicChecks,
    VolumeLimitArgs,
)
from podium.releases.framework_v118 import FirstInFirstOut
from podium.releases.policy import (
    Policy,
    PredicatePolicy,
    PriorityPolicy,
    check_arguments,
    fatal,
    serving,
    shape_problem,
)
from podium.releases.priorities import (
    BalancedResourceAllocation,
    EqualPriority,
    ImageLocalityPriority,
    LeastRequestedPriority,
    MostRequestedPriority,
    NodeAffinityPriority,
    NodeLabelArgs,
    NodeLabelPriority,
    NodePreferAvoidPodsPriority,
    RatioArgs,
    RequestedToCapacityRatioPriority,
    ResourceLimitsPriority,
    TaintTolerationPriority,
)
from podium.releases.rules import FIRST_DEFAULT_PRIORITIES, OLDEST_RULES, V1_8, V1_14, OldReleaseRules, of_release

PREDICATE_ORDER = (
    *("CheckNodeCondition", "CheckNodeUnschedulable", "GeneralPredicates", "HostName", "PodFitsHostPorts"),
    *("MatchNodeSelector", "PodFitsResources", "NoDiskConflict", "PodToleratesNodeTaints"),
    *("PodToleratesNodeNoExecuteTaints", "CheckNodeLabelPresence", "CheckServiceAffinity", "MaxEBSVolumeCount"),
    *("MaxGCEPDVolumeCount", "MaxCSIVolumeCountPred", "MaxAzureDiskVolumeCount", "MaxCinderVolumeCount"),
    *("CheckVolumeBinding", "NoVolumeZoneConflict", "CheckNodeMemoryPressure", "CheckNodePIDPressure"),
    *("CheckNodeDiskPressure", "MatchInterPodAffinity"),
)

_PREDICATES: tuple[type[Plugin], ...] = (
    *(GeneralPredicates, HostName, MatchNodeSelector, PodFitsHostPorts, PodFitsResources),
    *(MatchInterPodAffinity, NoDiskConflict, NoVolumeZoneConflict, PodToleratesNodeTaints),
    *(MaxAzureDiskVolumeCount, MaxEBSVolumeCount, MaxGCEPDVolumeCount),
    *(CheckNodeCondition, CheckNodeDiskPressure, CheckNodeMemoryPressure),
)
_PRIORITIES: tuple[type[Plugin], ...] = (
    *(BalancedResourceAllocation, EqualPriority, ImageLocalityPriority, InterPodAffinityPriority),
    *(LeastRequestedPriority, MostRequestedPriority, NodeAffinityPriority, NodePreferAvoidPodsPriority),
    *(SelectorSpreadPriority, ServiceSpreadingPriority, TaintTolerationPriority),
)
_DEFAULT_PREDICATES = frozenset(
    (
        *("NoVolumeZoneConflict", "MaxEBSVolumeCount", "MaxGCEPDVolumeCount", "MaxAzureDiskVolumeCount"),
        *("MatchInterPodAffinity", "NoDiskConflict", "GeneralPredicates", "PodToleratesNodeTaints"),
    )
)
_CONDITIONS = frozenset(("CheckNodeCondition", "CheckNodeMemoryPressure", "CheckNodeDiskPressure"))


def _named(plugins: Iterable[type[Plugin]], rules: OldReleaseRules) -> dict[str, type[Plugin]]:
    found = {plugin.name: of_release(plugin, rules) for plugin in plugins}
    if PodFitsHostPorts.name in found:
        found["PodFitsPorts"] = of_release(PodFitsHostPorts, rules, "PodFitsPorts")
    return found


def v1_8_catalog(gates: Mapping[str, bool]) -> Catalog:
    """The catalog of v1.8; its feature gates are read too late to change what is registered."""
    return Catalog(
        rules=V1_8,
        predicates=_named((*_PREDICATES, NoVolumeNodeConflict), V1_8),
        priorities=_named(_PRIORITIES, V1_8),
        mandatory=frozenset(("CheckNodeCondition",)),
        default_predicates=_DEFAULT_PREDICATES | _CONDITIONS | {"NoVolumeNodeConflict"},
        default_priorities=FIRST_DEFAULT_PRIORITIES,
        lists_default_to_provider=False,
        checks_claims_first=False,
        every_extender_has_weight=True,
    )


def v1_14_catalog(gates: Mapping[str, bool]) -> Catalog:
    """The catalog of v1.14; with TaintNodesByCondition, on by default, taints replace the conditions of nodes."""
    added = (MaxCSIVolumeCount, MaxCinderVolumeCount, CheckVolumeBinding, CheckNodePIDPressure, CheckNodeUnschedulable)
    predicates = _named((*_PREDICATES, *added), V1_14)
    priorities = _named((*_PRIORITIES, RequestedToCapacityRatioPriority), V1_14)
    weights = {**FIRST_DEFAULT_PRIORITIES, "ImageLocalityPriority": 1}
    defaults = _DEFAULT_PREDICATES | {"MaxCSIVolumeCountPred", "CheckVolumeBinding"}
    conditions = _CONDITIONS | {"CheckNodePIDPressure"}
    if gates.get("TaintNodesByCondition", True):
        mandatory = frozenset(("PodToleratesNodeTaints", "CheckNodeUnschedulable"))
        predicates = {name: plugin for name, plugin in predicates.items() if name not in conditions}
        defaults |= mandatory
    else:
        mandatory = frozenset(("CheckNodeCondition",))
        del predicates["CheckNodeUnschedulable"]
        defaults |= conditions
    if gates.get("ResourceLimitsPriorityFunction", False):
        priorities[ResourceLimitsPriority.name] = of_release(ResourceLimitsPriority, V1_14)
        weights[ResourceLimitsPriority.name] = 1
    return Catalog(
        rules=V1_14,
        predicates=predicates,
        priorities=priorities,
        mandatory=mandatory,
        default_predicates=defaults,
        default_priorities=weights,
        order=PREDICATE_ORDER,
    )


MAX_TOTAL = 2**63 - 1
_VALID_NAME = re.compile(r"[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])")


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """The predicates and priorities of a release with some feature gates."""

    rules: OldReleaseRules
    predicates: Mapping[str, type[Plugin]]
    priorities: Mapping[str, type[Plugin]]
    mandatory: frozenset[str]
    """Predicates that always run, whatever the configuration says."""
    default_predicates: frozenset[str]
    default_priorities: Mapping[str, int]
    order: tuple[str, ...] | None = None
    """The order in which predicates run; predicates that are not in it do not run at all. None for the order of
    names.
    """
    lists_default_to_provider: bool = True
    """Whether a Policy that lists no predicates, or no priorities, means those of the default provider."""
    checks_claims_first: bool = True
    """Whether pods with missing claims fail before any predicate runs."""
    every_extender_has_weight: bool = False
    """Whether even an extender that does not prioritize needs a positive weight."""


@dataclass(slots=True)
class _Choice:
    """The predicates and priorities to run, by name, with their plugins, arguments and weights."""

    plugins: dict[str, type[Plugin]]
    args: dict[str, object]
    predicates: set[str]
    priorities: dict[str, int]


def configure(
    catalog: Catalog, behaviour: ReleaseBehaviour, policy: Policy | None, options: Options, own: Registry
) -> Setup:
    """Set up a scheduler that is given a Policy, or only the name of a provider."""
    if policy is not None and (problems := _policy_problems(catalog, policy)):
        raise ConfigError(problems)
    choice = _choose(catalog, policy, options, own)
    hard_weight = (policy.hard_pod_affinity_symmetric_weight if policy else 0) or 1
    if not 1 <= hard_weight <= 100:
        raise ConfigError([f"invalid hardPodAffinitySymmetricWeight: {hard_weight}, must be in the range 1-100"])
    _check_total(choice.priorities)
    extenders = policy.extenders if policy else ()
    _add_arguments(choice, catalog, options, hard_weight, extenders)
    if policy is not None and policy.always_check_all_predicates:
        behaviour = replace(behaviour, collects_all_reasons=True)
    effective: dict[str, Any] = {
        "predicates": sorted(choice.predicates),
        "priorities": dict(sorted(choice.priorities.items())),
        "hardPodAffinitySymmetricWeight": hard_weight,
    }
    if catalog.order is not None:
        effective["alwaysCheckAllPredicates"] = behaviour.collects_all_reasons
    profile, registry = _profile(choice, catalog, own, bool(extenders))
    config = KubeSchedulerConfiguration(profiles=(profile,), extenders=extenders)
    warnings = policy.warnings if policy else ()
    return Setup(
        config=config,
        registry=registry,
        rules=OLDEST_RULES,
        behaviour=behaviour,
        effective=effective,
        warnings=warnings,
    )


def _policy_problems(catalog: Catalog, policy: Policy) -> list[str]:
    problems, checked = Problems(), []
    for extender in policy.extenders:
        if extender.weight <= 0 and (extender.prioritize_verb or catalog.every_extender_has_weight):
            problems.add("", f"Priority for extender {extender.url_prefix} should have a positive weight applied to it")
            extender = replace(extender, weight=1)
        checked.append(extender)
    check_extenders(checked, problems)
    return policy.weight_problems + problems.errors


# -- choosing ------------------------------------------------------------------------------------------------------


def _choose(catalog: Catalog, policy: Policy | None, options: Options, own: Registry) -> _Choice:
    plugins = {**catalog.predicates, **catalog.priorities, **own}
    choice = _Choice(plugins, {}, set(), {})
    if policy is None:
        choice.predicates = set(catalog.default_predicates)
        choice.priorities = dict(catalog.default_priorities)
        if options.packs:
            choice.priorities["MostRequestedPriority"] = choice.priorities.pop("LeastRequestedPriority")
    else:
        _choose_listed(choice, catalog, policy, own)
    choice.predicates |= catalog.mandatory
    for name in sorted(choice.predicates & choice.priorities.keys()):
        raise ConfigError([f"{name} is both a predicate and a priority; give one of them another name"])
    return choice


def _choose_listed(choice: _Choice, catalog: Catalog, policy: Policy, own: Registry) -> None:
    """Choose the predicates and priorities that a Policy lists; for a missing list, the default provider's."""
    of_provider = catalog.lists_default_to_provider
    predicates, priorities = policy.predicates or (), policy.priorities or ()
    known = {*catalog.predicates, *serving(FilterPlugin, own)}
    for predicate in predicates:
        _choose_one(choice, predicate, known, catalog.rules)
    known = {*catalog.priorities, *serving(ScorePlugin, own)}
    for priority in priorities:
        _choose_one(choice, priority, known, catalog.rules)
    choice.predicates = {predicate.name for predicate in predicates}
    if policy.predicates is None and of_provider:
        choice.predicates = set(catalog.default_predicates)
    choice.priorities = {priority.name: priority.weight for priority in priorities}
    if policy.priorities is None and of_provider:
        choice.priorities = dict(catalog.default_priorities)


def _choose_one(
    choice: _Choice, one: PredicatePolicy | PriorityPolicy, known: set[str], rules: OldReleaseRules
) -> None:
    """Create the plugin of a predicate or priority with an argument; refuse an unknown one without an argument."""
    is_predicate = isinstance(one, PredicatePolicy)
    check_arguments(one, "predicate" if is_predicate else "priority")
    if one.has_argument:
        _check_name(one.name)
        made = _predicate_of(one, rules) if isinstance(one, PredicatePolicy) else _priority_of(one, rules)
        choice.plugins[one.name], choice.args[one.name] = made
        known.add(one.name)
    elif one.name not in known:
        raise fatal(
            f"Invalid configuration: {'Predicate' if is_predicate else 'Priority'} type not found for {one.name}"
        )


def _predicate_of(predicate: PredicatePolicy, rules: OldReleaseRules) -> tuple[type[Plugin], object]:
    """The predicate for an argument, under the user's name for it."""
    if predicate.service_affinity is not None:
        affinity = ServiceAffinityArgs(affinity_labels=predicate.service_affinity)
        return of_release(CheckServiceAffinity, rules, predicate.name), affinity
    presence = predicate.labels_presence
    assert presence is not None
    side = "present_labels" if presence.presence else "absent_labels"
    return of_release(CheckNodeLabelPresence, rules, predicate.name), NodeLabelArgs(**{side: presence.labels})


def _priority_of(priority: PriorityPolicy, rules: OldReleaseRules) -> tuple[type[Plugin], object]:
    """The priority for an argument, under the user's name for it."""
    if priority.service_anti_affinity is not None:
        spread = ServiceAffinityArgs(anti_affinity_labels_preference=(priority.service_anti_affinity,))
        return of_release(ServiceAntiAffinity, rules, priority.name), spread
    if priority.label_preference is not None:
        preference = priority.label_preference
        side = "present_labels_preference" if preference.presence else "absent_labels_preference"
        return of_release(NodeLabelPriority, rules, priority.name), NodeLabelArgs(**{side: (preference.label,)})
    assert priority.ratio is not None
    problem = shape_problem(priority.ratio.shape)
    if problem:
        raise fatal(f"invalid RequestedToCapacityRatioPriority arguments: {problem}")
    return of_release(RequestedToCapacityRatioPriority, rules, priority.name), RatioArgs(shape=priority.ratio.shape)


def _check_name(name: str) -> None:
    if not _VALID_NAME.fullmatch(name):
        pattern = "^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])$"
        raise fatal(f'Algorithm name {name} does not match the name validation regexp "{pattern}".')


def _check_total(priorities: Mapping[str, int]) -> None:
    total = 0
    for _, weight in sorted(priorities.items()):
        if weight * 10 > MAX_TOTAL - total:
            raise ConfigError(["total priority of priority functions has overflown"])
        total += weight * 10


# -- building ------------------------------------------------------------------------------------------------------


def _add_arguments(
    choice: _Choice, catalog: Catalog, options: Options, hard_weight: int, extenders: tuple[ExtenderConfig, ...]
) -> None:
    """Add the arguments that do not come from the predicate or priority itself."""
    limits = VolumeLimitArgs.from_environment(options.env)
    fit = FitArgs(ignored_resources=frozenset(ignored_resources(extenders)))
    local = LocalVolumeArgs(enabled=options.feature_gates.get("PersistentLocalVolumes", False))
    standard: dict[str, object] = {
        "GeneralPredicates": fit,
        "PodFitsResources": fit,
        "NoVolumeNodeConflict": local,
        "InterPodAffinityPriority": InterPodAffinityArgs(hard_pod_affinity_weight=hard_weight),
        **{name: limits for name in catalog.predicates if name.startswith("Max")},
    }
    choice.args = standard | choice.args


def _profile(choice: _Choice, catalog: Catalog, own: Registry, has_extenders: bool) -> tuple[Profile, Registry]:
    filters = _in_order(choice, catalog, own)
    weights = dict(sorted(choice.priorities.items()))
    if not weights and not has_extenders:
        choice.plugins[EqualPriority.name] = of_release(EqualPriority, catalog.rules)
        weights = {EqualPriority.name: 1}
    first: list[type[Plugin]] = [PodPassesBasicChecks] if catalog.checks_claims_first else []
    sort = PrioritySort if catalog.checks_claims_first else FirstInFirstOut
    registry = Registry([*first, sort, DefaultBinder])
    registry |= {name: choice.plugins[name] for name in (*filters, *weights)}

    def refs(kind: type[Plugin], names: list[str]) -> tuple[PluginRef, ...]:
        return tuple(PluginRef(name) for name in names if issubclass(registry[name], kind))

    points = {
        "queueSort": (PluginRef(sort.name),),
        "preFilter": (*(PluginRef(plugin.name) for plugin in first), *refs(PreFilterPlugin, filters)),
        "filter": tuple(PluginRef(name) for name in filters),
        "preScore": refs(PreScorePlugin, list(weights)),
        "score": tuple(PluginRef(name, weight) for name, weight in weights.items()),
        "reserve": refs(ReservePlugin, filters),
        "bind": (PluginRef(DefaultBinder.name),),
    }
    args = {name: choice.args[name] for name in registry if name in choice.args}
    return Profile(
        scheduler_name=DEFAULT_SCHEDULER_NAME, percentage_of_nodes_to_score=None, points=points, args=args
    ), registry


def _in_order(choice: _Choice, catalog: Catalog, own: Registry) -> list[str]:
    """The predicates that run, in order; the user's own come last."""
    if catalog.order is None:
        return sorted(choice.predicates)
    ours = [name for name in catalog.order if name in choice.predicates]
    return ours + sorted(name for name in choice.predicates if name in own and name not in catalog.order)


MAX_PRIORITY = 10


class HostPriority(NamedTuple):
    """A node's name and its score."""

    host: str
    score: int


class MapPriority(ScorePlugin):
    """Scores one node at a time. Define `map`; 0..10 is customary."""

    def map(self, pod: Pod, node: NodeInfo) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define map")

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return self.map(pod, node)


class MapReducePriority(MapPriority):
    """Scores one node at a time in any unit, and then scales the scores of all feasible nodes to 0..10.

    Define `map` and `reduce`; `reduce` returns the nodes it was given, in any order, with their new scores.
    """

    def reduce(self, pod: Pod, scores: Sequence[HostPriority]) -> Sequence[HostPriority]:
        raise NotImplementedError(f"{type(self).__name__} must define reduce")

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        names = nodes.names
        listed = [HostPriority(name, int(score)) for name, score in zip(names, scores, strict=True)]
        return _scores_in_order(self.name, "reduce", dict(self.reduce(pod, listed)), names)


class FunctionPriority(ScorePlugin):
    """Scores all feasible nodes at once. Define `function`, which returns one score per node."""

    def function(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[HostPriority]:
        raise NotImplementedError(f"{type(self).__name__} must define function")

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return _scores_in_order(self.name, "function", dict(self.function(pod, list(nodes))), nodes.names)


def normalize_reduce(
    scores: Sequence[HostPriority], *, max_priority: int = MAX_PRIORITY, reverse: bool = False
) -> list[HostPriority]:
    """Scale so that the highest score becomes `max_priority` or, with `reverse`, so that zero does."""
    highest = max((priority.score for priority in scores), default=0)
    if highest <= 0:
        return [each._replace(score=max_priority) if reverse else each for each in scores]

    def scaled(score: int) -> int:
        share = abs(max_priority * score) // highest * (1 if score >= 0 else -1)
        return max_priority - share if reverse else share

    return [HostPriority(host, scaled(score)) for host, score in scores]


def _scores_in_order(plugin: str, method: str, scores: Mapping[str, int], names: Sequence[str]) -> Ints:
    """The scores as an array; PluginError unless there is exactly one for each node."""
    if scores.keys() != set(names):
        differing = ", ".join(sorted(scores.keys() ^ set(names)))
        raise PluginError(plugin, f"must return from {method} one score for each node it was given; check {differing}")
    return np.array([scores[name] for name in names], dtype=np.int64)
