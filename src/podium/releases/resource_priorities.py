"""LeastRequested, MostRequested, BalancedResourceAllocation, RequestedToCapacityRatio and ResourceLimits."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster import Aspect, Nodes
from podium.cluster.columns import Ints
from podium.config.plugin_args import CPU_AND_MEMORY, ResourceSpec, UtilizationShapePoint
from podium.framework import CycleState, ScorePlugin
from podium.framework.plugin import PodView
from podium.model import Pod, PodSpec
from podium.model.resources import CPU, MEMORY
from podium.plugins.normalize import round_half_away
from podium.releases.rules import OfRelease
from podium.releases.usage import amount_of, is_tracked, pod_usage, usage_of

LEAST_UTILIZED = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
"""The shape of RequestedToCapacityRatioPriority where the Policy gives none."""


class ResourcePriority(OfRelease, ScorePlugin):
    """A score made of what would be requested of some resources, and what there is."""

    reads = Aspect.RESOURCES | Aspect.PODS
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY

    def sign(self, pod: PodView) -> Hashable:
        usage = pod_usage(pod.info, self.rules)
        return tuple(usage.score(spec.name) for spec in self.resources)

    def _amounts(self, state: CycleState, nodes: Nodes, resource: str) -> tuple[Ints, Ints]:
        """Requested with the pod, and allocatable; a resource the release does not count has neither."""
        if not is_tracked(resource, self.rules):
            nothing = np.zeros(len(nodes), dtype=np.int64)
            return nothing, nothing
        usage = usage_of(nodes.cluster, self.rules)
        used = usage.non_zero(nodes, resource) if resource in (CPU, MEMORY) else usage.requested(nodes, resource)
        return used + pod_usage(state.info, self.rules).score(resource), nodes.allocatable(resource)


class LeastRequestedPriority(ResourcePriority):
    """Prefer nodes of which less is requested."""

    name = "LeastRequestedPriority"

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        total = np.zeros(len(nodes), dtype=np.int64)
        for spec in self.resources:
            requested, capacity = self._amounts(state, nodes, spec.name)
            part = self._part(requested, capacity) * self.rules.max_score // np.maximum(capacity, 1)
            total += np.where((capacity == 0) | (requested > capacity), 0, part)
        return total // len(self.resources)

    def _part(self, requested: Ints, capacity: Ints) -> Ints:
        return capacity - requested


class MostRequestedPriority(LeastRequestedPriority):
    """Prefer nodes of which more is requested, up to all of it."""

    name = "MostRequestedPriority"

    def _part(self, requested: Ints, capacity: Ints) -> Ints:
        return requested


class BalancedResourceAllocation(ResourcePriority):
    """Prefer nodes of which similar fractions of cpu and memory would be requested."""

    name = "BalancedResourceAllocation"
    title = "Balance"

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        fractions = []
        for spec in self.resources:
            requested, capacity = self._amounts(state, nodes, spec.name)
            fractions.append(np.where(capacity == 0, 1.0, requested / np.maximum(capacity, 1).astype(np.float64)))
        cpu, memory = fractions
        even = ((1 - np.abs(cpu - memory)) * float(self.rules.max_score)).astype(np.int64)
        return np.where((cpu >= 1) | (memory >= 1), 0, even)


@dataclass(frozen=True, kw_only=True)
class RatioArgs:
    """The score, 0 to 10, at some utilizations in percent, and the resources that count."""

    shape: tuple[UtilizationShapePoint, ...] = LEAST_UTILIZED
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


class RequestedToCapacityRatioPriority(ResourcePriority):
    """Score how much of a node would be requested on a curve of straight lines."""

    name = "RequestedToCapacityRatioPriority"

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        ratio = args if isinstance(args, RatioArgs) else RatioArgs()
        scale = self.rules.max_score // 10
        self._curve = np.array([_at(ratio.shape, scale, percent) for percent in range(101)], dtype=np.int64)
        self.resources = ratio.resources

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        total, weights = np.zeros(len(nodes), dtype=np.int64), np.zeros(len(nodes), dtype=np.int64)
        for spec in self.resources:
            requested, capacity = self._amounts(state, nodes, spec.name)
            free = (capacity - requested) * 100 // np.maximum(capacity, 1)
            full = (capacity == 0) | (requested > capacity)
            score = self._curve[np.where(full, 100, 100 - np.where(full, 0, free))]
            counted = score > 0 if self.rules.ratio_leaves_out_zeros else np.ones(len(nodes), dtype=np.bool_)
            total += np.where(counted, score * spec.weight, 0)
            weights += np.where(counted, spec.weight, 0)
        if not self.rules.ratio_leaves_out_zeros:
            return total // np.maximum(weights, 1)
        return np.where(weights == 0, 0, round_half_away(total / np.maximum(weights, 1)))


def _at(shape: Sequence[UtilizationShapePoint], scale: int, percent: int) -> int:
    """The curve's score at a utilization: the fraction is dropped, toward zero, from the way since the last point."""
    points = [(point.utilization, point.score * scale) for point in shape]
    for place, (x, y) in enumerate(points):
        if percent <= x:
            if place == 0:
                return y
            last_x, last_y = points[place - 1]
            return last_y + int((y - last_y) * (percent - last_x) / (x - last_x))
    return points[-1][1]


class ResourceLimitsPriority(OfRelease, ScorePlugin):
    """One point for nodes that have the cpu, or the memory, that the pod is limited to."""

    name = "ResourceLimitsPriority"
    reads = Aspect.RESOURCES

    def sign(self, pod: PodView) -> Hashable:
        return tuple(_limit(pod.spec, name) for name in (CPU, MEMORY))

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        satisfied = np.zeros(len(nodes), dtype=np.bool_)
        for name in (CPU, MEMORY):
            limit, allocatable = _limit(pod.spec, name), nodes.allocatable(name)
            satisfied |= (limit != 0) & (allocatable != 0) & (limit <= allocatable)
        return satisfied.astype(np.int64)


def _limit(spec: PodSpec, resource: str) -> int:
    """What the containers are limited to together, or the largest init container."""
    together = sum(amount_of(resource, container.resources.limits) for container in spec.containers)
    return max([together, *(amount_of(resource, each.resources.limits) for each in spec.init_containers)])
