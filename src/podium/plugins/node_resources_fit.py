"""NodeResourcesFit: does the pod fit, and how well does it use the node."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

import numpy as np

from podium.cluster import Aspect, Nodes, PodInfo
from podium.cluster.columns import Ints
from podium.config.args import LEAST_ALLOCATED, NodeResourcesFitArgs, ScoringStrategy
from podium.framework.plugin import (
    MAX_NODE_SCORE,
    CycleState,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
)
from podium.framework.status import SUCCESS, Status, Verdict
from podium.objects import Pod
from podium.plugins.normalize import round_half_away
from podium.resources import is_extended_resource, is_scalar_resource

TOO_MANY_PODS = 1
UNRESOLVABLE = 1 << 62

ALWAYS_FIRST = ("cpu", "memory", "ephemeral-storage")


def scored_resources(nodes: Nodes, resource: str, *, non_zero: bool) -> tuple[Ints, Ints]:
    """Allocatable and already requested, as scoring counts them; untracked resources count as zero."""
    if resource not in ALWAYS_FIRST and not is_scalar_resource(resource):
        nothing = np.zeros(len(nodes), dtype=np.int64)
        return nothing, nothing
    if non_zero and resource in ("cpu", "memory"):
        return nodes.allocatable(resource), nodes.non_zero[0 if resource == "cpu" else 1]
    return nodes.allocatable(resource), nodes.requested(resource)


def counts_in_score(resource: str, request: int) -> bool:
    """A scalar resource the pod does not ask for says nothing about the node."""
    return request != 0 or not is_scalar_resource(resource)


class NodeResourcesFit(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Reject nodes without room for the pod's requests; score by how much of a node is, or would be, in use."""

    name = "NodeResourcesFit"
    reads = Aspect.RESOURCES

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        fit = args if isinstance(args, NodeResourcesFitArgs) else NodeResourcesFitArgs()
        self._ignored = frozenset(fit.ignored_resources)
        self._ignored_groups = frozenset(fit.ignored_resource_groups)
        self._strategy = fit.scoring_strategy
        self._curve = _broken_linear(fit.scoring_strategy) if fit.scoring_strategy.shape else None

    def key(self, info: PodInfo) -> Hashable:
        scored = info.resources.score_requests
        return (
            tuple(info.resources.requests.items()),
            tuple(scored.get(spec.name, 0) for spec in self._strategy.resources),
        )

    def _is_ignored(self, resource: str) -> bool:
        if not is_extended_resource(resource):
            return False
        return resource in self._ignored or resource.split("/")[0] in self._ignored_groups

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        requests = state.info.resources.requests
        names = [*(name for name in ALWAYS_FIRST if name in requests), *(n for n in requests if n not in ALWAYS_FIRST)]
        state[self.name] = [
            (name, requests[name]) for name in names if requests[name] > 0 and not self._is_ignored(name)
        ]
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        needs: list[tuple[str, int]] = state[self.name]
        codes = (nodes.requested("pods") >= nodes.allocatable("pods")).astype(np.int64)
        for place, (name, amount) in enumerate(needs, 1):
            allocatable = nodes.allocatable(name)
            short = amount > allocatable - nodes.requested(name)
            if short.any():
                codes |= short.astype(np.int64) << place
                codes[short & (amount > allocatable)] |= UNRESOLVABLE
        return Verdict(codes, partial(_insufficient, [name for name, _ in needs]))

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        """The weighted mean of the resources' scores, over the resources a node has."""
        requests = state.info.resources.score_requests
        total: Ints | int = np.zeros(len(nodes), dtype=np.int64)
        weights: Ints | int = 0
        for spec in self._strategy.resources:
            request = requests.get(spec.name, 0)
            if not counts_in_score(spec.name, request):
                continue
            allocatable, used = scored_resources(nodes, spec.name, non_zero=True)
            if self._curve is None and allocatable.all():
                total = total + self._resource_score(used + request, allocatable) * spec.weight
                weights = weights + spec.weight
                continue
            score = self._resource_score(used + request, np.maximum(allocatable, 1))
            # RequestedToCapacityRatio leaves a resource that scores nothing out of the mean.
            counted = (allocatable != 0) & (score > 0) if self._curve is not None else allocatable != 0
            total = total + score * counted * spec.weight
            weights = weights + counted * spec.weight
        if self._curve is not None:
            return round_half_away(total / np.maximum(weights, 1))
        return total // np.maximum(weights, 1)

    def _resource_score(self, requested: Ints, capacity: Ints) -> Ints:
        if self._strategy.type == LEAST_ALLOCATED:
            part = np.maximum(capacity - requested, 0)
        else:
            part = np.minimum(requested, capacity)
        part *= MAX_NODE_SCORE
        score: Ints = part // capacity
        return score if self._curve is None else np.take(self._curve, score)


def _insufficient(needs: list[str], code: int) -> Status:
    """The status a filter code stands for: one bit per reason, and one for whether eviction is hopeless."""
    reasons = [f"Insufficient {name}" for place, name in enumerate(needs, 1) if code & (1 << place)]
    if code & TOO_MANY_PODS:
        reasons.insert(0, "Too many pods")
    return Status.unresolvable(*reasons) if code & UNRESOLVABLE else Status.unschedulable(*reasons)


def _broken_linear(strategy: ScoringStrategy) -> Ints:
    """The score at each utilization of 0..100 percent, on straight lines between the shape's points."""
    points = [(point.utilization, point.score * (MAX_NODE_SCORE // 10)) for point in strategy.shape or ()]

    def at(utilization: int) -> int:
        for (x0, y0), (x1, y1) in zip([points[0], *points], points, strict=False):
            if utilization <= x1:
                return y1 if x0 == x1 else y0 + int((y1 - y0) * (utilization - x0) / (x1 - x0))
        return points[-1][1]

    return np.array([at(utilization) for utilization in range(101)], dtype=np.int64)
