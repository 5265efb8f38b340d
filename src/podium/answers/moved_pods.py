"""Which pods would go elsewhere with other weights, each decided on its own in the cluster as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.answers.score_settings import ScoreSettings
from podium.cluster import Cluster
from podium.cluster.columns import NO_ROWS, Ints
from podium.engine import Scheduler
from podium.errors import PodiumError
from podium.model import Pod
from podium.model.pod import belongs_to_node

MOST_KEPT_SCORES = 40_000_000
"""The maximum number of scores kept, one byte each: a pod has one per node and plugin."""
MOST_LISTED_MOVES = 100


class _Scores(NamedTuple):
    """One pod's scores on the rows that fit it, with today's weights."""

    rows: Ints
    plugins: Sequence[tuple[str, int]]
    """Each plugin with its weight."""
    normalised: NDArray[np.int8]
    """[plugin, row]"""
    totals: Ints
    best: Ints
    """The rows that share the highest total."""

    def best_with(self, weights: Mapping[str, int]) -> Ints:
        """The rows that share the highest total with these weights, and today's for the others."""
        totals = self.totals
        for (plugin, today), scores in zip(self.plugins, self.normalised, strict=True):
            more = weights.get(plugin, today) - today
            if more:
                totals = totals + np.multiply(scores, more, dtype=np.int64)
        return self.best if totals is self.totals else self.rows[totals == totals.max()]


NO_SCORES = _Scores(NO_ROWS, (), np.zeros((0, 0), dtype=np.int8), NO_ROWS, NO_ROWS)


@dataclass(slots=True)
class ScoredPods:
    """The pods of a cluster in random order, each decided by one scheduler when it is first needed."""

    scheduler: Scheduler
    pods: Sequence[Pod]
    of: int
    """How many pods the scheduler decides in all."""
    scores: list[_Scores] = field(default_factory=list)

    def decide_more(self, until: float, most: int) -> None:
        """Decide pods until a time, or until there are `most`."""
        while len(self.scores) < min(most, len(self.pods)) and (monotonic() < until or not self.scores):
            self.scores.append(self._decide(self.pods[len(self.scores)]))

    def _decide(self, pod: Pod) -> _Scores:
        """The scores of a pod as if it were not running yet."""
        try:
            with self.scheduler.cluster.without(pod) as unbound:
                found = self.scheduler.score(unbound)
        except PodiumError:
            # A pod that cannot be decided has no node, whatever the weights.
            return NO_SCORES
        plugins = [(scores.plugin, scores.weight) for scores in found.scores]
        kept = np.array([scores.normalized for scores in found.scores], dtype=np.int8)
        return _Scores(found.rows, plugins, kept, found.totals, found.best)


def sample_of_pods(scheduler: Scheduler) -> tuple[list[Pod], int]:
    """A random sample of the pods that the scheduler decides, as large as scores can be kept, and their total
    number.
    """
    cluster = scheduler.cluster
    running = (pod for pod, _ in cluster.placed() if not belongs_to_node(pod) and not pod.finished)
    pods = [pod for pod in (*cluster.pending.values(), *running) if pod.spec.scheduler_name in scheduler.frameworks]
    Random(0).shuffle(pods)
    plugins = max((len(framework.score) for framework in scheduler.frameworks.values()), default=1)
    return pods[: max(MOST_KEPT_SCORES // max(cluster.node_count * plugins, 1), 20)], len(pods)


@dataclass(frozen=True, slots=True)
class MovedPod:
    """A pod that none of today's best nodes would get."""

    pod: str
    before: str | None
    """The first of its best nodes today, by name; None if it fits nowhere."""
    after: str | None

    def to_dict(self) -> dict[str, Any]:
        return {"pod": self.pod, "before": self.before, "after": self.after}


@dataclass(frozen=True, slots=True)
class MovedPods:
    """How many of the examined pods would go elsewhere."""

    pods: int
    """How many pods there are in all."""
    sample: int
    """How many of them are examined in the end."""
    looked_at: int
    """How many of them are examined so far."""
    moves: tuple[MovedPod, ...]
    """Ordered by name."""

    def to_dict(self) -> dict[str, Any]:
        """The first moves, and how many there are."""
        return {
            "pods": self.pods,
            "sample": self.sample,
            "lookedAt": self.looked_at,
            "moved": len(self.moves),
            "moves": [move.to_dict() for move in self.moves[:MOST_LISTED_MOVES]],
        }


def moved_pods(today: ScoredPods, other: ScoredPods, settings: ScoreSettings, *, seconds: float = 0.04) -> MovedPods:
    """Which of the examined pods would lose today's node.

    A pod moves if none of the nodes that are best today is among the best with the other settings; `other` has scored
    the pods with all of them but the weights. Pods of other profiles do not move. More pods are decided for `seconds`,
    so each call examines more.
    """
    start, cluster = monotonic(), today.scheduler.cluster
    today.decide_more(start + (seconds if other is today else seconds / 2), len(today.pods))
    other.decide_more(start + seconds, len(today.scores))
    count, moves, profile = 0, list[MovedPod](), settings.profile or next(iter(today.scheduler.frameworks))
    is_best = np.zeros(len(cluster.names), dtype=np.bool_)
    for pod, before, scores in zip(today.pods, today.scores, other.scores, strict=False):
        after = scores.best_with(settings.weights if pod.spec.scheduler_name == profile else {})
        is_best[before.best] = True
        if (len(before.best) or len(after)) and not is_best[after].any():
            moves.append(MovedPod(pod.key, _first_name(cluster, before.best), _first_name(cluster, after)))
        is_best[before.best] = False
        count += 1
    return MovedPods(today.of, len(today.pods), count, tuple(sorted(moves, key=lambda move: move.pod)))


def _first_name(cluster: Cluster, rows: Ints) -> str | None:
    return min((cluster.names[row] for row in rows.tolist()), default=None)
