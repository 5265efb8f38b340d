"""The extenders' part in one decision: HTTP calls after the plugins' own filtering and scoring."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster.columns import Ints
from podium.engine.evaluation import Evaluation
from podium.engine.feasible_rows import Ranking
from podium.errors import ExtenderError
from podium.extenders import Extender
from podium.framework import Status
from podium.model import Node, Pod

NOBODY = Pod()


class ExtenderRound:
    """Asks the extenders that are interested in one pod, and keeps what they answer."""

    __slots__ = ("_interested", "_pod", "scores", "statuses")

    def __init__(self, extenders: Sequence[Extender] = (), pod: Pod = NOBODY) -> None:
        self._pod = pod
        self._interested = [extender for extender in extenders if extender.is_interested(pod)]
        self.statuses: dict[int, Status] = {}
        """Why extenders rejected rows."""
        self.scores: dict[str, Ints] = {}
        """Per extender that scores, by its name, the weighted score of each feasible row."""

    def filter(self, evaluation: Evaluation) -> None:
        """Let each extender narrow the feasible rows; one that fails is passed over if it may be ignored."""
        cluster = evaluation.cluster
        for extender in self._interested:
            if not extender.is_filter:
                continue
            nodes = self._nodes(evaluation)
            if not nodes:
                return
            try:
                result = extender.filter(self._pod, nodes)
            except ExtenderError:
                if extender.ignorable:
                    continue
                raise
            for name, reason in result.unresolvable.items():
                self.statuses[cluster.rows[name]] = Status.unresolvable(reason)
            for name, reason in result.failed.items():
                self.statuses[cluster.rows[name]] = Status.unschedulable(reason)
            evaluation.feasible.keep(np.array(sorted(cluster.rows[name] for name in result.passed), dtype=np.int64))

    def prioritize(self, evaluation: Evaluation) -> None:
        """Let each extender score the feasible rows; one that fails counts nothing."""
        cluster, nodes = evaluation.cluster, self._nodes(evaluation)
        rows = evaluation.feasible.rows
        for extender in self._interested:
            if not extender.is_prioritizer:
                continue
            try:
                raw = extender.prioritize(self._pod, nodes)
            except ExtenderError:
                continue
            scores = [extender.weighted(raw.get(cluster.names[row], 0)) for row in rows]
            self.scores[extender.name] = self.scores.get(extender.name, 0) + np.array(scores, dtype=np.int64)

    def add_scores(self, ranking: Ranking, evaluation: Evaluation) -> Ranking:
        """The ranking with the extenders' scores added, over the feasible rows."""
        values, rows = ranking.values, ranking.rows
        if rows is None:
            rows = evaluation.feasible.rows
            values = values[rows]
        for scores in self.scores.values():
            values = values + scores
        return Ranking(values, rows, ranking.scores)

    def _nodes(self, evaluation: Evaluation) -> list[Node]:
        cluster = evaluation.cluster
        return [cluster.node(cluster.names[row]) for row in evaluation.feasible.rows]


NO_EXTENDERS = ExtenderRound()
"""Used when no extenders are configured."""
