"""What kube-scheduler refuses in plugin arguments."""

from __future__ import annotations

from collections.abc import Sequence

from podium.config.fields import Problems
from podium.config.plugin_args import (
    LEAST_ALLOCATED,
    LIST_DEFAULTING,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    SYSTEM_DEFAULTING,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from podium.model import NodeSelectorTerm, SelectorRequirement, TopologySpreadConstraint
from podium.model.names import label_value_errors, qualified_name_errors
from podium.model.quantity import INT64
from podium.rules import Rules

LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
FIELD_OPERATORS = ("In", "NotIn")


def check_args(args: object, path: str, problems: Problems, rules: Rules) -> None:
    """Report what is wrong with the typed arguments of an in-tree plugin, other than NodeResourcesFit's."""
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
        # A term without weight is never looked at, so nothing in it can be wrong.
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
    return digits.isascii() and digits.isdigit() and int(text) in INT64


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
    """Report what NodeResourcesFit refuses to start with; it is asked only where the plugin is enabled."""
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
