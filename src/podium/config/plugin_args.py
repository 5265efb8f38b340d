"""Plugin arguments: from the document to their types, with the defaults of what is left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from podium.config.fields import SECOND, Fields
from podium.model import (
    LabelSelector,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    SelectorRequirement,
    TopologySpreadConstraint,
)
from podium.rules import Rules


class ResourceSpec(NamedTuple):
    """A resource that counts in a score, and how much it counts."""

    name: str
    weight: int = 1


class UtilizationShapePoint(NamedTuple):
    """A point of a scoring function: utilization 0 to 100 percent, score 0 to 10."""

    utilization: int
    score: int


CPU_AND_MEMORY = (ResourceSpec("cpu"), ResourceSpec("memory"))

LEAST_ALLOCATED, MOST_ALLOCATED = "LeastAllocated", "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"

SYSTEM_DEFAULTING, LIST_DEFAULTING = "System", "List"

EMPTIER_IS_BETTER = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
FULLER_IS_BETTER = (UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10))
"""How VolumeBinding scores unless it is told: by StorageCapacityScoring, and by VolumeCapacityPriority before it."""


@dataclass(frozen=True, kw_only=True)
class ScoringStrategy:
    """How NodeResourcesFit scores; `shape` is the one of RequestedToCapacityRatio, None for the other types."""

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
    """`added_affinity` holds for every pod of the profile, besides the pod's own."""

    added_affinity: NodeAffinity | None = None


@dataclass(frozen=True, kw_only=True)
class InterPodAffinityArgs:
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


@dataclass(frozen=True, kw_only=True)
class PodTopologySpreadArgs:
    """`default_constraints` holds for pods without constraints; with System defaulting the plugin has its own."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = SYSTEM_DEFAULTING


@dataclass(frozen=True, kw_only=True)
class VolumeBindingArgs:
    """`shape` is None where the release does not score volumes: the feature StorageCapacityScoring is off."""

    bind_timeout_seconds: int = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class DefaultPreemptionArgs:
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


@dataclass(frozen=True, kw_only=True)
class DynamicResourcesArgs:
    """Timeouts in seconds; a filter timeout of 0 means none. The binding timeout is None where a release has none."""

    filter_timeout: float = 10.0
    binding_timeout: float | None = 600.0


def _read_resources(fields: Fields) -> tuple[ResourceSpec, ...]:
    """The `resources`, cpu and memory when there are none; a weight of 0 is one not given, and becomes 1."""
    resources = []
    for item in fields.children("resources"):
        with item:
            resources.append(ResourceSpec(item.string("name"), item.integer("weight", bits=64) or 1))
    return tuple(resources) or CPU_AND_MEMORY


def _read_shape(fields: Fields) -> tuple[UtilizationShapePoint, ...] | None:
    """The `shape`; None when it is absent, which is not the same as empty."""
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
