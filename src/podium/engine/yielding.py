"""Yielding to nominated pods: a node is taken only if the pods nominated to it would still fit."""

from __future__ import annotations

from podium.engine.evaluation import Evaluation
from podium.engine.nominations import Nominations
from podium.engine.rechecking import Recheck
from podium.engine.remembering import RowMemory, RowStamps
from podium.errors import PluginError
from podium.framework import SUCCESS, Code, Status


def recheck_of(evaluation: Evaluation, nominations: Nominations) -> Recheck:
    """The evaluation's filters, to be run in trials."""
    return Recheck(
        evaluation.plan, evaluation.state, evaluation.pod, evaluation.skipped, evaluation.cluster, nominations
    )


class Yielding:
    """Makes evaluations reject the nodes where the pod fits only as long as nominated pods have not come."""

    def __init__(self, nominations: Nominations, stamps: RowStamps) -> None:
        self._nominations, self._stamps = nominations, stamps
        self._memory: RowMemory[Status] = RowMemory(stamps)

    def apply(self, evaluation: Evaluation, *, everywhere: bool) -> None:
        """Check the feasible rows; with `everywhere`, also those rejected anyway, where the reason may be another."""
        if not self._nominations or evaluation.pre_filter_status is not None:
            return
        rows = self._rows(evaluation, everywhere)
        if not rows:
            return
        statuses = self._check(evaluation, rows)
        failed = next((status for status in statuses.values() if status.code is Code.ERROR), None)
        if failed is not None:
            raise PluginError(failed.plugin, f"failed: {failed.message}")
        rejected = {row: status for row, status in statuses.items() if status != SUCCESS}
        if rejected:
            evaluation.overrule(rejected)

    def _rows(self, evaluation: Evaluation, everywhere: bool) -> list[int]:
        """The rows to check: those with nominated pods that come first."""
        pod, cluster = evaluation.pod, evaluation.cluster
        found = [cluster.rows[name] for name in self._nominations.nodes_ahead_of(pod) if name in cluster.rows]
        shown = evaluation.looked_at if everywhere else evaluation.feasible_rows
        if shown is None:
            return found
        among = set(shown.tolist())
        return [row for row in found if row in among]

    def _check(self, evaluation: Evaluation, rows: list[int]) -> dict[int, Status]:
        recheck = recheck_of(evaluation, self._nominations)
        if not recheck.rows_are_independent:
            return {row: self._try(recheck, [row])[row] for row in rows}
        # Where the pod is nominated itself it does not meet itself, but others of its kind do.
        own_row = evaluation.cluster.rows.get(self._nominations.node_of(evaluation.pod))
        kind = (evaluation.plan, evaluation.pod.priority)
        self._stamps.catch_up()
        known = {row: self._memory.get(kind, row) for row in rows if row != own_row}
        found = self._try(recheck, [row for row in rows if known.get(row) is None])
        for row, status in found.items():
            if row != own_row:
                self._memory.put(kind, row, status)
        return found | {row: status for row, status in known.items() if status is not None}

    def _try(self, recheck: Recheck, rows: list[int]) -> dict[int, Status]:
        if not rows:
            return {}
        with self._stamps.trial() as trial:
            statuses = recheck.check_besides_nominated(trial, recheck.state(), rows)
        return {row: status for row, status in zip(rows, statuses, strict=True) if status is not None}
