"""The typed arguments of the in-tree plugins, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from podium.objects import NodeAffinity, TopologySpreadConstraint


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
