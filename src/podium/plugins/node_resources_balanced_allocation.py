"""NodeResourcesBalancedAllocation: prefer nodes whose resources would be used evenly."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Aspect, Nodes, PodInfo
from podium.cluster.columns import Ints, Mask
from podium.config.args import NodeResourcesBalancedAllocationArgs
from podium.framework.plugin import MAX_NODE_SCORE, CycleState, PreScorePlugin, ScorePlugin
from podium.framework.status import SKIP, SUCCESS, Status
from podium.objects import Pod
from podium.plugins.node_resources_fit import Asked, asked_resources
from podium.plugins.normalize import divide

Floats = NDArray[np.float64]


class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin):
    """Score by how much the pod evens out, or unbalances, the fractions of the resources in use."""

    name = "NodeResourcesBalancedAllocation"
    reads = Aspect.RESOURCES

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        if not isinstance(args, NodeResourcesBalancedAllocationArgs):
            args = NodeResourcesBalancedAllocationArgs()
        self._resources = args.resources

    def key(self, info: PodInfo) -> Hashable:
        return tuple(info.resources.balanced_requests.get(spec.name, 0) for spec in self._resources)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        asked = asked_resources(self._resources, state.info.resources.balanced_requests)
        state[f"{self.name}/score"] = asked
        return SUCCESS if asked.amounts.any() else SKIP

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        asked: Asked = state[f"{self.name}/score"]
        allocatable, used = nodes.amounts(asked.names)
        fractions = np.minimum(np.array([used + asked.amounts, used]) / np.maximum(allocatable, 1), 1.0)
        after, before = _evenness(fractions, allocatable != 0)
        half = MAX_NODE_SCORE // 2
        return half + divide(half + after - before, 2)


def _evenness(fractions: Floats, present: Mask) -> Ints:
    """100 for fractions that are all the same, less by their standard deviation over the resources a node has.

    Fractions have the shape [with and without the pod, resource, node].
    """
    if len(present) == 2:
        deviation = np.abs((fractions[:, 0] - fractions[:, 1]) / 2)
        if not present.all():
            deviation[:, ~(present[0] & present[1])] = 0.0
    else:
        deviation = np.array([_standard_deviation(list(some), list(present)) for some in fractions])
    return ((1 - deviation) * float(MAX_NODE_SCORE)).astype(np.int64)


def _standard_deviation(fractions: list[Floats], present: list[NDArray[np.bool_]]) -> Floats:
    """Over three or more resources, in the order and with the rounding of the sum that kube-scheduler makes."""
    counts = sum(mask.astype(np.int64) for mask in present)
    total = np.zeros(len(fractions[0]))
    for fraction, mask in zip(fractions, present, strict=True):
        total = total + np.where(mask, fraction, 0.0)
    mean = total / np.maximum(counts, 1)
    squares = np.zeros(len(total))
    for fraction, mask in zip(fractions, present, strict=True):
        squares = squares + np.where(mask, (fraction - mean) * (fraction - mean), 0.0)
    deviation = np.sqrt(squares / np.maximum(counts, 1))
    pair = _pair_difference(fractions, present)
    result: Floats = np.where(counts > 2, deviation, np.where(counts == 2, pair, 0.0))
    return result


def _pair_difference(fractions: list[Floats], present: list[NDArray[np.bool_]]) -> Floats:
    """Half the difference of the two fractions of a node that has two of the resources."""
    signed, sign = np.zeros(len(fractions[0])), np.ones(len(fractions[0]))
    for fraction, mask in zip(fractions, present, strict=True):
        signed = signed + np.where(mask, sign * fraction, 0.0)
        sign = np.where(mask, -sign, sign)
    return np.abs(signed / 2)
