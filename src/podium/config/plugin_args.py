"""Plugin arguments: parsed into their types, with defaults, and validated as kube-scheduler does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from podium.config.fields import SECOND, Fields, Problems
from podium.config.types import MAX_NODE_SCORE
from podium.model import (
    LabelSelector,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    SelectorRequirement,
    TopologySpreadConstraint,
)
from podium.model.meta import integer, label_value_errors, qualified_name_errors
from podium.model.quantity import INT64
from podium.rules import Rules


class ResourceSpec(NamedTuple):
    """A resource that counts in a score, and its weight."""

    name: str
    weight: int = 1


class UtilizationShapePoint(NamedTuple):
    """A point of a scoring function: utilization 0 to 100 percent, score 0 to 10."""

    utilization: int
    score: int


def value_on_shape(shape: Sequence[UtilizationShapePoint], utilization: int, highest: int = MAX_NODE_SCORE) -> int:
    """The score on the straight lines between the points of a shape, whose 10 counts as `highest`.

    It is constant outside the points; what a line adds to the score of the point before is truncated toward zero.
    """
    scale, before = highest // 10, shape[0]
    for point in shape:
        if utilization <= point.utilization:
            wide, high = point.utilization - before.utilization, (point.score - before.score) * scale
            return before.score * scale + (int(high * (utilization - before.utilization) / wide) if wide else high)
        before = point
    return before.score * scale


CPU_AND_MEMORY = (ResourceSpec("cpu"), ResourceSpec("memory"))

LEAST_ALLOCATED, MOST_ALLOCATED = "LeastAllocated", "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"

SYSTEM_DEFAULTING, LIST_DEFAULTING = "System", "List"

EMPTIER_IS_BETTER = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
FULLER_IS_BETTER = (UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10))
"""VolumeBinding's default shape for StorageCapacityScoring, and for VolumeCapacityPriority before it."""


@dataclass(frozen=True, kw_only=True)
class ScoringStrategy:
    """How NodeResourcesFit scores; `shape` is that of RequestedToCapacityRatio, None for the other types."""

    type: str = LEAST_ALLOCATED
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    shape: tuple[UtilizationShapePoint, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class NodeResourcesFitArgs:
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


@dataclass(frozen=True, kw_only=True)
class NodeResourcesBalancedAllocationArgs:
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


@dataclass(frozen=True, kw_only=True)
class NodeAffinityArgs:
    """`added_affinity` applies to every pod of the profile, in addition to the pod's own."""

    added_affinity: NodeAffinity | None = None


@dataclass(frozen=True, kw_only=True)
class InterPodAffinityArgs:
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


@dataclass(frozen=True, kw_only=True)
class PodTopologySpreadArgs:
    """`default_constraints` apply to pods without constraints; with System defaulting the plugin uses its own."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = SYSTEM_DEFAULTING


@dataclass(frozen=True, kw_only=True)
class VolumeBindingArgs:
    """`shape` is None if the release does not score volumes: the feature StorageCapacityScoring is off."""

    bind_timeout_seconds: int = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class DefaultPreemptionArgs:
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


@dataclass(frozen=True, kw_only=True)
class DynamicResourcesArgs:
    """Timeouts in seconds; a filter timeout of 0 means none. The binding timeout is None if a release has none."""

    filter_timeout: float = 10.0
    binding_timeout: float | None = 600.0


def _read_resources(fields: Fields) -> tuple[ResourceSpec, ...]:
    """The `resources`; cpu and memory if there are none; a weight of 0 means not set, and becomes 1."""
    resources = []
    for item in fields.children("resources"):
        with item:
            resources.append(ResourceSpec(item.string("name"), item.integer("weight", bits=64) or 1))
    return tuple(resources) or CPU_AND_MEMORY


def _read_shape(fields: Fields) -> tuple[UtilizationShapePoint, ...] | None:
    """The `shape`; None if it is absent, which is not the same as empty."""
    given = fields.present("shape")
    points = []
    for item in fields.children("shape"):
        with item:
            points.append(UtilizationShapePoint(item.integer("utilization"), item.integer("score")))
    return tuple(points) if given else None


def _read_scoring_strategy(fields: Fields | None) -> ScoringStrategy:
    if fields is None:
        return ScoringStrategy()
    with fields:
        strategy = ScoringStrategy(type=fields.string("type"), resources=_read_resources(fields))
        parameters = fields.optional_child("requestedToCapacityRatio")
        if parameters is None:
            return strategy
        with parameters:
            return ScoringStrategy(
                type=strategy.type, resources=strategy.resources, shape=_read_shape(parameters) or ()
            )


def _read_requirements(fields: Fields, name: str) -> list[SelectorRequirement]:
    requirements = []
    for item in fields.children(name):
        with item:
            requirements.append(
                SelectorRequirement(
                    key=item.string("key"), operator=item.string("operator"), values=item.strings("values")
                )
            )
    return requirements


def _read_node_selector_term(fields: Fields) -> NodeSelectorTerm:
    with fields:
        return NodeSelectorTerm(
            match_expressions=_read_requirements(fields, "matchExpressions"),
            match_fields=_read_requirements(fields, "matchFields"),
        )


def _read_node_affinity(fields: Fields) -> NodeAffinity:
    required, preferred = None, []
    with fields:
        selector = fields.optional_child("requiredDuringSchedulingIgnoredDuringExecution")
        if selector is not None:
            with selector:
                terms = [_read_node_selector_term(term) for term in selector.children("nodeSelectorTerms")]
                required = NodeSelector(node_selector_terms=terms)
        for item in fields.children("preferredDuringSchedulingIgnoredDuringExecution"):
            with item:
                preference = _read_node_selector_term(item.child("preference"))
                preferred.append(PreferredSchedulingTerm(weight=item.integer("weight"), preference=preference))
    return NodeAffinity(required=required, preferred=preferred)


def _read_label_selector(fields: Fields) -> LabelSelector:
    with fields:
        return LabelSelector(
            match_labels=fields.string_map("matchLabels"),
            match_expressions=_read_requirements(fields, "matchExpressions"),
        )


def _read_constraint(fields: Fields) -> TopologySpreadConstraint:
    with fields:
        selector = fields.optional_child("labelSelector")
        return TopologySpreadConstraint(
            max_skew=fields.integer("maxSkew"),
            topology_key=fields.string("topologyKey"),
            when_unsatisfiable=fields.string("whenUnsatisfiable"),
            label_selector=None if selector is None else _read_label_selector(selector),
            min_domains=fields.optional_integer("minDomains"),
            node_affinity_policy=fields.optional_string("nodeAffinityPolicy"),
            node_taints_policy=fields.optional_string("nodeTaintsPolicy"),
            match_label_keys=fields.strings("matchLabelKeys"),
        )


def _default_preemption(fields: Fields, rules: Rules) -> DefaultPreemptionArgs:
    return DefaultPreemptionArgs(
        min_candidate_nodes_percentage=fields.integer("minCandidateNodesPercentage", 10),
        min_candidate_nodes_absolute=fields.integer("minCandidateNodesAbsolute", 100),
    )


def _dynamic_resources(fields: Fields, rules: Rules) -> DynamicResourcesArgs:
    filter_timeout, binding_timeout = (fields.optional_duration(name) for name in ("filterTimeout", "bindingTimeout"))
    default = 600.0 if rules.reads_binding_timeout else None
    return DynamicResourcesArgs(
        filter_timeout=10.0 if filter_timeout is None else filter_timeout / SECOND,
        binding_timeout=default if binding_timeout is None else binding_timeout / SECOND,
    )


def _inter_pod_affinity(fields: Fields, rules: Rules) -> InterPodAffinityArgs:
    return InterPodAffinityArgs(
        hard_pod_affinity_weight=fields.integer("hardPodAffinityWeight", 1),
        ignore_preferred_terms_of_existing_pods=fields.boolean("ignorePreferredTermsOfExistingPods"),
    )


def _node_affinity(fields: Fields, rules: Rules) -> NodeAffinityArgs:
    added = fields.optional_child("addedAffinity")
    return NodeAffinityArgs(added_affinity=None if added is None else _read_node_affinity(added))


def _balanced_allocation(fields: Fields, rules: Rules) -> NodeResourcesBalancedAllocationArgs:
    return NodeResourcesBalancedAllocationArgs(resources=_read_resources(fields))


def _fit(fields: Fields, rules: Rules) -> NodeResourcesFitArgs:
    return NodeResourcesFitArgs(
        ignored_resources=tuple(fields.strings("ignoredResources")),
        ignored_resource_groups=tuple(fields.strings("ignoredResourceGroups")),
        scoring_strategy=_read_scoring_strategy(fields.optional_child("scoringStrategy")),
    )


def _pod_topology_spread(fields: Fields, rules: Rules) -> PodTopologySpreadArgs:
    return PodTopologySpreadArgs(
        default_constraints=tuple(_read_constraint(item) for item in fields.children("defaultConstraints")),
        defaulting_type=fields.string("defaultingType") or SYSTEM_DEFAULTING,
    )


def _volume_binding(fields: Fields, rules: Rules) -> VolumeBindingArgs:
    timeout, shape = fields.integer("bindTimeoutSeconds", 600, bits=64), _read_shape(fields)
    if rules.scores_storage_capacity:
        shape = shape or EMPTIER_IS_BETTER
    elif rules.scores_volume_capacity:
        shape = shape or FULLER_IS_BETTER
    return VolumeBindingArgs(bind_timeout_seconds=timeout, shape=shape)


Reader = Callable[[Fields, Rules], object]

_READERS: dict[str, Reader] = {
    "DefaultPreemption": _default_preemption,
    "DynamicResources": _dynamic_resources,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _node_affinity,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "NodeResourcesFit": _fit,
    "PodTopologySpread": _pod_topology_spread,
    "VolumeBinding": _volume_binding,
}
"""The in-tree plugins that take arguments in the newest release."""
_OTHER_READERS = {name: reader for name, reader in _READERS.items() if name != "DynamicResources"}


def readers(rules: Rules) -> Mapping[str, Reader]:
    """The in-tree plugins that take arguments in a release."""
    return _READERS if rules.reads_dynamic_resources_args else _OTHER_READERS


def read_args(plugin: str, fields: Fields, api_versions: tuple[str, ...], rules: Rules) -> object:
    """The arguments of an in-tree plugin; they may repeat their own apiVersion (one of `api_versions`) and kind."""
    with fields:
        api_version, kind = fields.string("apiVersion"), fields.string("kind")
        if api_version and api_version not in api_versions:
            fields.problems.unsupported(f"{fields.path}.apiVersion", api_version, api_versions)
        if kind and kind != f"{plugin}Args":
            fields.problems.unsupported(f"{fields.path}.kind", kind, (f"{plugin}Args",))
        return _READERS[plugin](fields, rules)


LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
FIELD_OPERATORS = ("In", "NotIn")


def check_args(args: object, path: str, problems: Problems, rules: Rules) -> None:
    """Report problems in the typed arguments of an in-tree plugin, except those of NodeResourcesFit."""
    match args:
        case DefaultPreemptionArgs():
            _check_default_preemption(args, path, problems)
        case DynamicResourcesArgs():
            if args.filter_timeout < 0:
                problems.invalid(f"{path}.filterTimeout", args.filter_timeout, "must be zero or positive")
            _check_binding_timeout(args.binding_timeout, f"{path}.bindingTimeout", problems, rules)
        case InterPodAffinityArgs():
            weight = args.hard_pod_affinity_weight
            _check_range(weight, 0, 100, f"{path}.hardPodAffinityWeight", problems)
        case NodeAffinityArgs():
            _check_added_affinity(args, f"{path}.addedAffinity", problems)
        case NodeResourcesBalancedAllocationArgs():
            _check_balanced_allocation(args, f"{path}.resources", problems)
        case PodTopologySpreadArgs():
            _check_pod_topology_spread(args, path, problems)
        case VolumeBindingArgs():
            if args.bind_timeout_seconds < 0:
                problems.invalid(f"{path}.bindTimeoutSeconds", args.bind_timeout_seconds, "must not be negative")
            _check_capacity_shape(args.shape, f"{path}.shape", problems, rules)


def _check_binding_timeout(timeout: float | None, path: str, problems: Problems, rules: Rules) -> None:
    if timeout is None:
        return
    if not rules.reads_binding_timeout:
        problems.invalid(path, timeout, "the feature DRADeviceBindingConditions is off: remove it")
    elif timeout < 1:
        problems.invalid(path, timeout, "must be at least 1 second")


def _check_capacity_shape(
    shape: Sequence[UtilizationShapePoint] | None, path: str, problems: Problems, rules: Rules
) -> None:
    if shape is None:
        return
    if rules.scores_storage_capacity or rules.scores_volume_capacity:
        _check_shape(shape, path, problems)
    else:
        problems.invalid(path, shape, "the feature StorageCapacityScoring is off: remove it")


def _check_range(value: int, low: int, high: int, path: str, problems: Problems) -> None:
    if not low <= value <= high:
        problems.invalid(path, value, f"not in valid range [{low}, {high}]")


def _check_default_preemption(args: DefaultPreemptionArgs, path: str, problems: Problems) -> None:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    _check_range(percentage, 0, 100, f"{path}.minCandidateNodesPercentage", problems)
    if absolute < 0:
        problems.invalid(f"{path}.minCandidateNodesAbsolute", absolute, "not in valid range [0, inf)")
    if percentage == absolute == 0:
        problems.invalid(f"{path}.minCandidateNodesPercentage", 0, "minCandidateNodesAbsolute is zero as well")
        problems.invalid(f"{path}.minCandidateNodesAbsolute", 0, "minCandidateNodesPercentage is zero as well")


def _check_added_affinity(args: NodeAffinityArgs, path: str, problems: Problems) -> None:
    affinity = args.added_affinity
    if affinity is None:
        return
    if affinity.required is not None:
        terms_path = f"{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        for index, term in enumerate(affinity.required.node_selector_terms):
            _check_node_selector_term(term, f"{terms_path}[{index}]", problems)
    for index, preferred in enumerate(affinity.preferred):
        # A term without weight is ignored, so nothing in it can be wrong.
        if preferred.weight:
            term_path = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
            _check_node_selector_term(preferred.preference, term_path, problems)


def _check_node_selector_term(term: NodeSelectorTerm, path: str, problems: Problems) -> None:
    for index, requirement in enumerate(term.match_expressions):
        _check_label_requirement(requirement, f"{path}.matchExpressions[{index}]", problems)
    for index, requirement in enumerate(term.match_fields):
        requirement_path = f"{path}.matchFields[{index}]"
        if requirement.operator not in FIELD_OPERATORS:
            problems.unsupported(f"{requirement_path}.operator", requirement.operator, FIELD_OPERATORS)
        elif len(requirement.values) != 1:
            problems.invalid(f"{requirement_path}.values", requirement.values, "must have one element")


def _check_label_requirement(requirement: SelectorRequirement, path: str, problems: Problems) -> None:
    operator, values = requirement.operator, requirement.values
    if operator not in LABEL_OPERATORS:
        problems.unsupported(f"{path}.operator", operator, LABEL_OPERATORS)
        return
    for error in qualified_name_errors(requirement.key):
        problems.invalid(f"{path}.key", requirement.key, error)
    if operator in ("In", "NotIn") and not values:
        problems.invalid(f"{path}.values", values, f"the operator {operator} needs at least one value")
    if operator in ("Exists", "DoesNotExist") and values:
        problems.invalid(f"{path}.values", values, f"must be empty for the operator {operator}")
    if operator in ("Gt", "Lt"):
        if len(values) != 1:
            problems.invalid(f"{path}.values", values, f"the operator {operator} needs exactly one value")
        for index, value in enumerate(values):
            if not _is_integer(value):
                problems.invalid(f"{path}.values[{index}]", value, f"must be an integer for the operator {operator}")
    for index, value in enumerate(values):
        for error in label_value_errors(value):
            problems.invalid(f"{path}.values[{index}]", value, error)


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    return digits.isascii() and digits.isdigit() and integer(text) in INT64


def _check_balanced_allocation(args: NodeResourcesBalancedAllocationArgs, path: str, problems: Problems) -> None:
    seen = set()
    for index, resource in enumerate(args.resources):
        if resource.name in seen:
            problems.duplicate(f"{path}[{index}].name", resource.name)
        seen.add(resource.name)
        if resource.weight != 1:
            problems.invalid(f"{path}[{index}].weight", resource.weight, "must be 1")


def _check_pod_topology_spread(args: PodTopologySpreadArgs, path: str, problems: Problems) -> None:
    if args.defaulting_type not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
        supported = (SYSTEM_DEFAULTING, LIST_DEFAULTING)
        problems.unsupported(f"{path}.defaultingType", args.defaulting_type, supported)
    elif args.defaulting_type == SYSTEM_DEFAULTING and args.default_constraints:
        problems.invalid(f"{path}.defaultingType", SYSTEM_DEFAULTING, "must be List when there are defaultConstraints")
    seen = set()
    for index, constraint in enumerate(args.default_constraints):
        constraint_path = f"{path}.defaultConstraints[{index}]"
        _check_constraint(constraint, constraint_path, problems)
        key = f"{{{constraint.topology_key}, {constraint.when_unsatisfiable}}}"
        if key in seen:
            problems.duplicate(constraint_path, key)
        seen.add(key)


def _check_constraint(constraint: TopologySpreadConstraint, path: str, problems: Problems) -> None:
    if constraint.max_skew <= 0:
        problems.invalid(f"{path}.maxSkew", constraint.max_skew, "not in valid range (0, inf)")
    if not constraint.topology_key:
        problems.required(f"{path}.topologyKey")
    else:
        for error in qualified_name_errors(constraint.topology_key):
            problems.invalid(f"{path}.topologyKey", constraint.topology_key, error)
    if not constraint.when_unsatisfiable:
        problems.required(f"{path}.whenUnsatisfiable")
    elif constraint.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
        supported = ("DoNotSchedule", "ScheduleAnyway")
        problems.unsupported(f"{path}.whenUnsatisfiable", constraint.when_unsatisfiable, supported)
    if constraint.label_selector is not None:
        problems.forbidden(f"{path}.labelSelector", "a default constraint takes its selector from each pod's owner")


def check_fit_args(args: NodeResourcesFitArgs, path: str, problems: Problems, rules: Rules) -> None:
    """Report the arguments with which NodeResourcesFit refuses to start; called only if the plugin is enabled."""
    for index, name in enumerate(args.ignored_resources):
        for error in qualified_name_errors(name):
            problems.invalid(f"{path}.ignoredResources[{index}]", name, error)
    for index, group in enumerate(args.ignored_resource_groups):
        group_path = f"{path}.ignoredResourceGroups[{index}]"
        if "/" in group:
            problems.invalid(group_path, group, "resource group name can't contain '/'")
        for error in qualified_name_errors(group):
            problems.invalid(group_path, group, error)
    strategy, path = args.scoring_strategy, f"{path}.scoringStrategy"
    types = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
    if strategy.type not in types:
        problems.unsupported(f"{path}.type", strategy.type, types)
    for index, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= 100:
            problems.invalid(f"{path}.resources[{index}].weight", resource.weight, "not in valid range (0, 100]")
    path = f"{path}.requestedToCapacityRatio"
    if strategy.type != REQUESTED_TO_CAPACITY_RATIO and (strategy.shape is None or rules.checks_fit_strategy):
        if strategy.shape is not None:
            problems.forbidden(path, f"only the type {REQUESTED_TO_CAPACITY_RATIO} has it")
    elif strategy.shape is None:
        problems.required(path, f"the type {REQUESTED_TO_CAPACITY_RATIO} needs it")
    else:
        _check_shape(strategy.shape, f"{path}.shape", problems)


def _check_shape(shape: Sequence[UtilizationShapePoint], path: str, problems: Problems) -> None:
    if not shape:
        problems.required(path, "at least one point must be specified")
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            utilization = shape[index].utilization
            problems.invalid(f"{path}[{index}].utilization", utilization, "values must be sorted in increasing order")
            break
    for index, point in enumerate(shape):
        _check_range(point.utilization, 0, 100, f"{path}[{index}].utilization", problems)
        _check_range(point.score, 0, 10, f"{path}[{index}].score", problems)
