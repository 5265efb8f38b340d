"""Priorities of one's own, in the three forms the old releases knew.

A priority has a `name`, under which a Policy gives it a weight. It scores nodes one at a time (Map), brings the scores
of all feasible nodes to 0..10 once they are known (Map and Reduce), or scores them all at once (Function):

    class Quiet(MapReducePriority):
        name = "Quiet"

        def map(self, pod, node):
            return len(node.pods)

        def reduce(self, pod, scores):
            return normalize_reduce(scores, reverse=True)

Register the class and name it in a Policy: `Scheduler(cluster, policy, release="v1.14", registry=Registry([Quiet]))`.
Old releases hold no score to any range; 0..10 is what the built-in priorities keep to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from podium.cluster import NodeInfo, Nodes
from podium.cluster.columns import Ints
from podium.errors import PluginError
from podium.framework import CycleState, ScorePlugin
from podium.model import Pod

MAX_PRIORITY = 10


class HostPriority(NamedTuple):
    """A node's name and its score."""

    host: str
    score: int


class MapPriority(ScorePlugin):
    """Scores one node at a time. Define `map`; 0..10 is customary."""

    def map(self, pod: Pod, node: NodeInfo) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define map")

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return self.map(pod, node)


class MapReducePriority(MapPriority):
    """Scores one node at a time in any unit, and then brings the scores of all feasible nodes to 0..10.

    Define `map` and `reduce`; `reduce` returns the nodes it was given, in any order, with their new scores.
    """

    def reduce(self, pod: Pod, scores: Sequence[HostPriority]) -> Sequence[HostPriority]:
        raise NotImplementedError(f"{type(self).__name__} must define reduce")

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        names = nodes.names
        listed = [HostPriority(name, int(score)) for name, score in zip(names, scores, strict=True)]
        return _in_order(self.name, "reduce", dict(self.reduce(pod, listed)), names)


class FunctionPriority(ScorePlugin):
    """Scores all feasible nodes at once. Define `function`, which returns a score for each of them."""

    def function(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[HostPriority]:
        raise NotImplementedError(f"{type(self).__name__} must define function")

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return _in_order(self.name, "function", dict(self.function(pod, list(nodes))), nodes.names)


def normalize_reduce(
    scores: Sequence[HostPriority], *, max_priority: int = MAX_PRIORITY, reverse: bool = False
) -> list[HostPriority]:
    """Scale so that the highest score becomes `max_priority` or, with `reverse`, so that zero does."""
    highest = max((priority.score for priority in scores), default=0)
    if highest <= 0:
        return [each._replace(score=max_priority) if reverse else each for each in scores]

    def scaled(score: int) -> int:
        share = abs(max_priority * score) // highest * (1 if score >= 0 else -1)
        return max_priority - share if reverse else share

    return [HostPriority(host, scaled(score)) for host, score in scores]


def _in_order(plugin: str, method: str, scores: Mapping[str, int], names: Sequence[str]) -> Ints:
    """The scores as an array; PluginError unless there is exactly one for each node."""
    if scores.keys() != set(names):
        differing = ", ".join(sorted(scores.keys() ^ set(names)))
        raise PluginError(plugin, f"must return from {method} one score for each node it was given; check {differing}")
    return np.array([scores[name] for name in names], dtype=np.int64)
