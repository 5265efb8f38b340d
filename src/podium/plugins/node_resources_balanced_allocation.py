"""NodeResourcesBalancedAllocation: prefer nodes whose resources would be used evenly."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes, PodInfo
from podium.cluster.cluster import ChangedRows, PerCluster
from podium.cluster.columns import Floats, Ints, Mask, divisors, highest, lowest
from podium.config.plugin_args import NodeResourcesBalancedAllocationArgs
from podium.framework.plugin import MAX_NODE_SCORE, CycleState, PodView, PreScorePlugin, ScorePlugin
from podium.framework.status import SKIP, SUCCESS, Status
from podium.model import DeviceClass, Pod
from podium.plugins.dynamic_resources.extended_resources import asks_for_backed, backed_resources, extended_requests
from podium.plugins.node_resources_fit import asked_resources, counted_resources, with_devices

HALF = MAX_NODE_SCORE // 2
EVEN = MAX_NODE_SCORE + HALF
"""Twice 75, the score of a node that the pod leaves as balanced as it was."""

More = tuple[tuple[str, int], ...]
"""The resources that count, and the amount to add to what is in use."""


Backed = Mapping[str, DeviceClass]
"""The device classes of extended resources that the pod requests and that count."""
NONE_BACKED: Backed = {}


InUse = Callable[[Nodes, str], tuple[Ints | int, Ints, int]]
"""The nodes' allocatable amount of a resource, the amount in use, and an upper bound of it."""


def _as_counted(nodes: Nodes, name: str) -> tuple[Ints | int, Ints, int]:
    return nodes.usage(name)[:3]


class _Scored(NamedTuple):
    before: More
    after: More
    backed: Backed


class _BalanceWithoutPod:
    """How balanced every node is without the pod, as `_handicap`; it does not depend on the pod.

    Only changed nodes are recomputed.
    """

    FEW_ROWS = 8

    def __init__(self) -> None:
        self._changed = ChangedRows(Aspect.RESOURCES)
        self._values: Ints = np.zeros(0, dtype=np.int64)

    def handicap(self, before: More, nodes: Nodes) -> Ints:
        cluster, columns = nodes.cluster, nodes.cluster.columns
        changed = self._changed.take(cluster)
        if len(changed) > self.FEW_ROWS or len(self._values) != columns.size:
            self._values = _handicap(before, Nodes(cluster), _as_counted)
        else:
            for row in changed:
                # Building the node's amounts by name would take longer than it saves.
                now = _evenness_of(before, *columns.amounts([name for name, _ in before], row))
                self._values[row] = EVEN - now
        return nodes.take(self._values)


class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin):
    """Score by how much the pod balances, or unbalances, the used fractions of the resources.

    Before v1.36, score by how balanced they are with the pod on the node.
    """

    name = "NodeResourcesBalancedAllocation"
    title = "Balance"
    reads = Aspect.RESOURCES
    MANY_NODES = 512
    """From this number of nodes on, it pays to keep results that do not depend on the pod."""
    MOST_KEPT = 32

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        if not isinstance(args, NodeResourcesBalancedAllocationArgs):
            args = NodeResourcesBalancedAllocationArgs()
        self._score_key = f"{self.name}/score"
        self._counted = counted_resources(args.resources)
        self._without_pod: PerCluster[dict[More, _BalanceWithoutPod]] = PerCluster(dict)

    def sign(self, pod: PodView) -> Hashable:
        return pod.resources

    def varies(self, info: PodInfo, cluster: Cluster) -> bool:
        return bool(self._backed(info, cluster))

    def _backed(self, info: PodInfo, cluster: Cluster) -> Backed:
        if not self.release_rules.device_extended_resources or not asks_for_backed(info.resources, cluster):
            return NONE_BACKED
        classes, asked = backed_resources(cluster), extended_requests(info.resources)
        return {each.name: classes[each.name] for each in self._counted if each.name in classes and each.name in asked}

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        asked = asked_resources(self._counted, state.info.resources.balanced_requests)
        before, after = tuple([(name, 0) for name, _, _ in asked]), tuple([(name, more) for name, more, _ in asked])
        state[self._score_key] = _Scored(before, after, self._backed(state.info, nodes.cluster))
        return SUCCESS if before != after or not self.release_rules.balanced_allocation_skips_best_effort else SKIP

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        before, after, backed = self._scored(state, pod, nodes.cluster)
        if before == after and self.release_rules.balanced_allocation_skips_best_effort:
            # If PreScore runs, a pod of this kind is not scored at all.
            return np.zeros(len(nodes), dtype=np.int64)
        if not after:
            return np.full(len(nodes), MAX_NODE_SCORE)
        doubled = _evenness(*_fractions(after, nodes, self._amounts(backed)))
        if not self.release_rules.balanced_allocation_compares_before_and_after:
            return doubled
        doubled += self._handicap(before, nodes, backed)
        return halved_around_50(doubled)

    def _scored(self, state: CycleState, pod: Pod, cluster: Cluster) -> _Scored:
        """The result of PreScore; computed now if the profile leaves out PreScore."""
        if self._score_key not in state:
            self.pre_score(state, pod, cluster.nodes)
        scored: _Scored = state[self._score_key]
        return scored

    def _amounts(self, backed: Backed) -> InUse:
        """The nodes' allocatable and used amounts, counted in devices for resources with a device class."""
        if not backed:
            return _as_counted

        def counted(nodes: Nodes, name: str) -> tuple[Ints | int, Ints, int]:
            offered, used, most = _as_counted(nodes, name)
            if name in backed:
                offered, used = with_devices(backed[name], offered, used, nodes, self.release_rules)
                most = highest(used)
            return offered, used, most

        return counted

    def _handicap(self, before: More, nodes: Nodes, backed: Backed) -> Ints:
        if len(nodes) < self.MANY_NODES or backed:
            return _handicap(before, nodes, self._amounts(backed))
        kept = self._without_pod.of(nodes.cluster)
        balance = kept.get(before)
        if balance is None:
            if len(kept) >= self.MOST_KEPT:
                kept.clear()
            balance = kept[before] = _BalanceWithoutPod()
        return balance.handicap(before, nodes)

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        before, after, backed = self._scored(state, pod, node.cluster)
        if before == after and self.release_rules.balanced_allocation_skips_best_effort:
            return 0
        if backed:
            return int(self.score(state, pod, Nodes(node.cluster, np.array([node.row])))[0])
        amounts = node.amounts
        used, offered = amounts.requested, amounts.allocatable
        then = _evenness_of(after, used, offered)
        if not self.release_rules.balanced_allocation_compares_before_and_after:
            return then
        now: int | None = amounts.memo.get(before)
        if now is None:
            now = amounts.memo[before] = _evenness_of(before, used, offered)
        # The fraction is truncated, for negative numbers as well.
        return HALF + int((HALF + then - now) / 2)

    def score_lines(self, state: CycleState, pod: Pod, node: NodeInfo) -> Sequence[str]:
        before, after, backed = self._scored(state, pod, node.cluster)
        if before == after and self.release_rules.balanced_allocation_skips_best_effort:
            return ["the pod asks for none of the resources: 0"]
        lines, used, offered = [], {}, {}
        one, amounts = Nodes(node.cluster, np.array([node.row])), self._amounts(backed)
        for name, more in after:
            there, taken, _ = amounts(one, name)
            offered[name], used[name] = int(np.max(there)), int(taken[0])
            if offered[name]:
                shares = [min(each / offered[name], 1.0) for each in (used[name], used[name] + more)]
                lines.append(f"{name}: {shares[0]:.1%} in use now, {shares[1]:.1%} with the pod")
        now, then = _evenness_of(before, used, offered), _evenness_of(after, used, offered)
        balance = "100 * (1 - the standard deviation of the shares), rounded down"
        if not self.release_rules.balanced_allocation_compares_before_and_after:
            return [*lines, f"{balance}: {then}"]
        score = HALF + int((HALF + then - now) / 2)
        return [*lines, f"{balance}: {now} now, {then} with the pod", f"50 + (50 + {then} - {now}) / 2 = {score}"]


def _fractions(more: More, nodes: Nodes, amounts: InUse) -> tuple[list[Floats], list[Mask | bool]]:
    """The used fraction of each resource with `more` added, at most 1; and which nodes have the resource."""
    fractions, present = [], []
    for name, amount in more:
        offered, used, most = amounts(nodes, name)
        capacity, mask = divisors(offered)
        used = used + amount if amount else used
        if not isinstance(capacity, int) or most + amount > capacity:
            used = np.minimum(used, capacity)
        # Converting first is faster than dividing integers, and gives the same result.
        fraction = used.astype(np.float64)
        fraction /= capacity
        fractions.append(fraction)
        present.append(mask)
    return fractions, present


def halved_around_50(doubled: Ints) -> Ints:
    """50 + (doubled - 100) / 2, where the fraction is truncated as Go does it: toward 50."""
    score: Ints = doubled >> 1
    if lowest(score) < HALF:
        # Shifting rounds down, so an odd number below 100 comes out one too small.
        score += (doubled < MAX_NODE_SCORE) & (doubled & 1 != 0)
    return score


def _handicap(before: More, nodes: Nodes, amounts: InUse) -> Ints:
    """The addend that turns the balance with the pod into twice the score: less on nodes that are balanced now."""
    return EVEN - _evenness(*_fractions(before, nodes, amounts))


def _evenness(fractions: list[Floats], present: list[Mask | bool]) -> Ints:
    """100 if all fractions are equal, less by their standard deviation over the resources that a node has.

    `present` tells which nodes have each resource. The fractions are overwritten.
    """
    if len(present) == 2:
        doubled, other = fractions
        doubled -= other
        np.abs(doubled, out=doubled)
        for mask in present:
            if mask is not True:
                doubled *= mask
    else:
        masks = [np.full(len(some), mask) for some, mask in zip(fractions, present, strict=True)]
        doubled = 2 * _standard_deviation(fractions, masks)
    # (1 - deviation) * 100 in one operation less: doubling and halving change no digit.
    np.subtract(2, doubled, out=doubled)
    doubled *= float(HALF)
    return doubled.astype(np.int64)


def _evenness_of(more: More, used: Mapping[str, int], offered: Mapping[str, int]) -> int:
    """The same as `_evenness` for one node, given the amounts in use and offered there, with `more` added."""
    fractions = []
    for name, amount in more:
        capacity = float(offered.get(name, 0))
        if capacity:
            taken = used.get(name, 0) + amount
            fractions.append(taken / capacity if taken < capacity else 1.0)
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        # Added one by one: Python's sum() compensates for rounding errors, which kube-scheduler does not.
        mean = reduce(add, fractions) / len(fractions)
        squares = reduce(add, [(each - mean) * (each - mean) for each in fractions])
        deviation = math.sqrt(squares / len(fractions))
    return int((1 - deviation) * float(MAX_NODE_SCORE))


def _standard_deviation(fractions: list[Floats], present: list[NDArray[np.bool_]]) -> Floats:
    """The standard deviation over three or more resources, with kube-scheduler's order of operations and rounding."""
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
    """Half the difference between the two fractions of a node that has two of the resources."""
    signed, sign = np.zeros(len(fractions[0])), np.ones(len(fractions[0]))
    for fraction, mask in zip(fractions, present, strict=True):
        signed = signed + np.where(mask, sign * fraction, 0.0)
        sign = np.where(mask, -sign, sign)
    return np.abs(signed / 2)
