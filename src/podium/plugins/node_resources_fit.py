"""NodeResourcesFit: does the pod fit, and how well does it use the node."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from podium.cluster import Aspect, Nodes, PodInfo
from podium.cluster.columns import Ints
from podium.config.args import LEAST_ALLOCATED, NodeResourcesFitArgs, ResourceSpec, ScoringStrategy
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
NON_ZERO = {"cpu": 0, "memory": 1}
"""The resources that containers which request none count for something in the score, and their place there."""


class Asked(NamedTuple):
    """What a pod asks of the resources that count in a score; arrays have the shape [resource, 1]."""

    names: list[str]
    """Empty for a resource the scheduler does not track: no node has any."""
    amounts: Ints
    weights: Ints


def asked_resources(resources: Iterable[ResourceSpec], requests: Mapping[str, int]) -> Asked:
    """The resources that count; a scalar resource the pod does not ask for says nothing about the node."""
    counted = [r for r in resources if requests.get(r.name, 0) != 0 or not is_scalar_resource(r.name)]
    return Asked(
        [r.name if r.name in ALWAYS_FIRST or is_scalar_resource(r.name) else "" for r in counted],
        np.array([[requests.get(r.name, 0)] for r in counted], dtype=np.int64).reshape(-1, 1),
        np.array([r.weight for r in counted], dtype=np.int64),
    )


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
            amounts = np.array([[amount] for _, amount in needs])
            short = amounts > allocatable - used
            if short.any():
                for place, is_short in enumerate(short, 1):
                    codes |= is_short.astype(np.int64) << place
                codes[(short & (amounts > allocatable)).any(axis=0)] |= UNRESOLVABLE
        return Verdict(codes, partial(_insufficient, names))

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        requests = state.info.resources.score_requests
        state[f"{self.name}/score"] = asked_resources(self._strategy.resources, requests)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        """The weighted mean of the resources' scores, over the resources a node has."""
        asked: Asked = state[f"{self.name}/score"]
        if not asked.names:
            return np.zeros(len(nodes), dtype=np.int64)
        allocatable, used = nodes.amounts(asked.names)
        for place, name in enumerate(asked.names):
            if name in NON_ZERO:
                used[place] = nodes.non_zero[NON_ZERO[name]]
        used += asked.amounts
        if self._curve is None and allocatable.all():
            mean: Ints = asked.weights @ self._resource_scores(used, allocatable) // asked.weights.sum()
            return mean
        scores = self._resource_scores(used, np.maximum(allocatable, 1))
        # RequestedToCapacityRatio leaves a resource that scores nothing out of the mean.
        counted = allocatable != 0 if self._curve is None else (allocatable != 0) & (scores > 0)
        total, weight = asked.weights @ (scores * counted), np.maximum(asked.weights @ counted, 1)
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
