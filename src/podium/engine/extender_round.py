"""The extenders' part in one decision: HTTP calls after the plugins' own filtering and scoring."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster.columns import Ints
from podium.engine.evaluation import Evaluation
from podium.engine.feasible_rows import Ranking
from podium.errors import ExtenderError
from podium.extenders import Extender
from podium.framework import Code, Status
from podium.model import Node, Pod

NOBODY = Pod()


class ExtenderRound:
    """Asks the extenders that are interested in one pod, and keeps what they answer."""

    __slots__ = ("_interested", "_pod", "_replaces", "rejections", "scores")

    def __init__(self, extenders: Sequence[Extender] = (), pod: Pod = NOBODY, replaces: bool = True) -> None:
        """With `replaces`, the reason of an extender is the only one of a node; else it joins earlier ones."""
        self._pod, self._replaces = pod, replaces
        self._interested = [extender for extender in extenders if extender.is_interested(pod)]
        self.rejections: list[tuple[int, Status]] = []
        """Why extenders rejected rows, in order."""
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
                self.rejections.append((cluster.rows[name], Status.unresolvable(reason)))
            for name, reason in result.failed.items():
                self.rejections.append((cluster.rows[name], Status.unschedulable(reason)))
            evaluation.feasible.keep(np.array(sorted(cluster.rows[name] for name in result.passed), dtype=np.int64))

    def over(self, statuses: dict[int, Status]) -> dict[int, Status]:
        """Why rows were rejected, by filters and then by extenders."""
        for row, status in self.rejections:
            before = None if self._replaces else statuses.get(row)
            if before is not None and status.code is Code.UNSCHEDULABLE:
                # The status of the filter stands, with one reason more.
                status = before._replace(reasons=before.reasons + status.reasons)
            elif before is not None:
                status = status._replace(reasons=before.reasons + status.reasons)
            statuses[row] = status
        return statuses

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
