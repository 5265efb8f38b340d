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


def scored_resources(nodes: Nodes, resources: list[str], *, non_zero: bool) -> tuple[Ints, Ints]:
    """Allocatable and already requested, shape [resource, node], as scoring counts them; untracked ones are zero."""
    tracked = [name if name in ALWAYS_FIRST or is_scalar_resource(name) else "" for name in resources]
    allocatable, used = nodes.amounts(tracked)
    if non_zero:
        for place, name in enumerate(tracked):
            if name in ("cpu", "memory"):
                used[place] = nodes.non_zero[0 if name == "cpu" else 1]
    return allocatable, used


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
        names = [name for name, _ in needs]
        if needs:
            allocatable, used = nodes.amounts(names)
            amounts = np.array([amount for _, amount in needs])[:, np.newaxis]
            short = amounts > allocatable - used
            if short.any():
                for place, is_short in enumerate(short, 1):
                    codes |= is_short.astype(np.int64) << place
                codes[(short & (amounts > allocatable)).any(axis=0)] |= UNRESOLVABLE
        return Verdict(codes, partial(_insufficient, names))

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        """The weighted mean of the resources' scores, over the resources a node has."""
        requests = state.info.resources.score_requests
        specs = [s for s in self._strategy.resources if counts_in_score(s.name, requests.get(s.name, 0))]
        if not specs:
            return np.zeros(len(nodes), dtype=np.int64)
        allocatable, used = scored_resources(nodes, [spec.name for spec in specs], non_zero=True)
        used += np.array([requests.get(spec.name, 0) for spec in specs])[:, np.newaxis]
        weights = np.array([spec.weight for spec in specs])
        if self._curve is None and allocatable.all():
            mean: Ints = weights @ self._resource_scores(used, allocatable) // weights.sum()
            return mean
        scores = self._resource_scores(used, np.maximum(allocatable, 1))
        # RequestedToCapacityRatio leaves a resource that scores nothing out of the mean.
        counted = allocatable != 0 if self._curve is None else (allocatable != 0) & (scores > 0)
        total, weight = weights @ (scores * counted), np.maximum(weights @ counted, 1)
        return round_half_away(total / weight) if self._curve is not None else total // weight

    def _resource_scores(self, requested: Ints, capacity: Ints) -> Ints:
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
