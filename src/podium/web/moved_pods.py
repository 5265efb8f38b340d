"""How many pods of a cluster another node would win with other weights.

A plugin's normalised score does not depend on weights. So each pod is decided once, its scores are kept, and what other
weights make of them is a sum. Large clusters are looked at little by little, and in a sample of their pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from time import monotonic
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from podium.cluster.columns import Ints
from podium.engine import Scheduler
from podium.engine.decision import Decision
from podium.model import Pod
from podium.model.pod_kinds import belongs_to_node
from podium.present.text import API_VERSION

MOST_CELLS = 40_000_000
"""How many scores are kept, of a byte each: a pod has as many as nodes times plugins."""
MOST_NAMED = 100


@dataclass(slots=True)
class _Scores:
    """One pod's scores on the nodes that fit it."""

    nodes: tuple[str, ...]
    plugins: tuple[str, ...]
    weights: Ints
    normalised: NDArray[np.int8]
    """[plugin, node]"""
    totals: NDArray[np.int64]

    @classmethod
    def of(cls, decision: Decision) -> _Scores:
        nodes = decision.feasible
        weights = np.array([scores.weight for scores in decision.scores], dtype=np.int64)
        table = [[scores.normalized[node] for node in nodes] for scores in decision.scores]
        kept = np.array(table, dtype=np.int8).reshape(len(table), len(nodes) if table else 0)
        totals = np.array([decision.totals.get(node, 0) for node in nodes], dtype=np.int64)
        return cls(nodes, tuple(scores.plugin for scores in decision.scores), weights, kept, totals)

    def best(self, weights: Mapping[str, int]) -> frozenset[str]:
        """The nodes that share the highest total with these weights, or with today's where none is given."""
        if not self.nodes:
            return frozenset()
        totals = self.totals
        for plugin, today, scores in zip(self.plugins, self.weights.tolist(), self.normalised, strict=True):
            more = weights.get(plugin, today) - today
            if more:
                totals = totals + scores.astype(np.int64) * more
        return frozenset(self.nodes[place] for place in np.flatnonzero(totals == totals.max()))


@dataclass(slots=True)
class ScoredPods:
    """The pods of a cluster in an order of chance, each decided by one scheduler when it is first needed."""

    scheduler: Scheduler
    pods: Sequence[Pod]
    scores: list[_Scores] = field(default_factory=list)

    def decide_more(self, until: float, most: int) -> None:
        """Decide pods until a time, or until there are `most`."""
        while len(self.scores) < min(most, len(self.pods)) and (monotonic() < until or not self.scores):
            self.scores.append(_Scores.of(self._decide(self.pods[len(self.scores)])))

    def _decide(self, pod: Pod) -> Decision:
        """The decision about a pod as if it did not run yet."""
        cluster = self.scheduler.cluster
        held = cluster.end(pod)
        try:
            return self.scheduler.decide(replace(pod, spec=replace(pod.spec, node_name="")))
        finally:
            cluster.add(pod)
            for claim in held:
                cluster.update(claim)


def pods_by_chance(scheduler: Scheduler) -> list[Pod]:
    """The pods that the scheduler decides, as many as there is room to keep scores of; those of one seed."""
    cluster = scheduler.cluster
    running = (pod for pod, _ in cluster.placed() if not belongs_to_node(pod) and not pod.finished)
    pods = [pod for pod in (*cluster.pending.values(), *running) if pod.spec.scheduler_name in scheduler.frameworks]
    Random(0).shuffle(pods)
    plugins = max((len(framework.score) for framework in scheduler.frameworks.values()), default=1)
    return pods[: max(MOST_CELLS // max(cluster.node_count * plugins, 1), 20)]


def moved_pods(
    today: ScoredPods, other: ScoredPods, weights: Mapping[str, int], *, of: int, seconds: float = 0.05
) -> dict[str, Any]:
    """How many of the pods looked at so far would lose today's node, of kind MovedPods.

    A pod moves when none of the nodes that are best today is among the best with the other weights. `of` is how many
    pods there are; more of them are decided for `seconds`, so asking again looks at more.
    """
    start = monotonic()
    today.decide_more(start + seconds / 2, len(today.pods))
    other.decide_more(start + seconds, len(today.scores))
    count = min(len(today.scores), len(other.scores))
    moves = []
    for place in range(count):
        before, after = today.scores[place].best({}), other.scores[place].best(weights)
        if before != after and not before & after:
            moves.append(
                {"pod": today.pods[place].key, "before": min(before, default=None), "after": min(after, default=None)}
            )
    return {
        "apiVersion": API_VERSION,
        "kind": "MovedPods",
        "pods": of,
        "sample": len(today.pods),
        "lookedAt": count,
        "moved": len(moves),
        "moves": sorted(moves, key=lambda move: str(move["pod"]))[:MOST_NAMED],
    }
