"""Yielding to nominated pods: a node is taken only if the pods nominated to it would still fit."""

from __future__ import annotations

from podium.engine.evaluation import Evaluation
from podium.engine.nominations import Nominations
from podium.engine.plans import RecentlyUsed
from podium.engine.rechecking import Recheck
from podium.engine.remembering import RowChanges, RowMemory
from podium.errors import PluginError
from podium.framework import SUCCESS, Code, Status


def recheck_of(evaluation: Evaluation, nominations: Nominations) -> Recheck:
    """The evaluation's filters, to be run in trials."""
    return Recheck(
        evaluation.plan, evaluation.state, evaluation.pod, evaluation.skipped, evaluation.cluster, nominations
    )


class _Known:
    """Which rows reject one kind of pod because of pods nominated to them, and which rows are to be checked again."""

    __slots__ = ("memory", "unchecked")

    def __init__(self, changes: RowChanges) -> None:
        self.memory: RowMemory[Status] = RowMemory(changes)
        self.unchecked: set[int] = set()


class Yielding:
    """Makes evaluations reject the nodes where the pod fits only as long as nominated pods have not come."""

    MOST_KINDS = 256

    def __init__(self, nominations: Nominations, changes: RowChanges) -> None:
        self._nominations, self._changes = nominations, changes
        self._known: RecentlyUsed[_Known] = RecentlyUsed(self.MOST_KINDS)

    def apply(self, evaluation: Evaluation, *, everywhere: bool) -> None:
        """Check the feasible rows; with `everywhere`, also those rejected anyway, where the reason may be another."""
        if not self._nominations or evaluation.pre_filter_status is not None:
            return
        recheck = recheck_of(evaluation, self._nominations)
        if recheck.rows_are_independent:
            rejected = self._remembered(evaluation, recheck)
        else:
            rejected = {}
            for row in self._rows(evaluation, everywhere):
                rejected |= self._rejected(recheck, [row])
        if rejected:
            evaluation.overrule(rejected)

    def _rows(self, evaluation: Evaluation, everywhere: bool) -> list[int]:
        """The rows to check one by one."""
        shown = evaluation.looked_at if everywhere else evaluation.feasible.rows
        among = None if shown is None else set(shown.tolist())
        return [row for row in self._nominated_rows(evaluation) if among is None or row in among]

    def _nominated_rows(self, evaluation: Evaluation) -> list[int]:
        rows = map(evaluation.cluster.rows.get, self._nominations.nodes())
        return [row for row in rows if row is not None]

    def _remembered(self, evaluation: Evaluation, recheck: Recheck) -> dict[int, Status]:
        """The rows that reject the pod, with what is known from other pods of its kind."""
        known = self._known.get_or_make((evaluation.plan, evaluation.pod.priority), lambda: _Known(self._changes))
        changed = known.memory.forget_changed()
        known.unchecked.update(self._nominated_rows(evaluation) if changed is None else changed)
        # Where the pod is nominated itself it does not meet itself, but others of its kind do.
        own_row = evaluation.cluster.rows.get(self._nominations.node_of(evaluation.pod), -1)
        own = {own_row} & known.unchecked
        known.memory.found.update(self._rejected(recheck, list(known.unchecked - own)))
        known.unchecked = own
        if own_row < 0:
            return known.memory.found
        rejected = self._rejected(recheck, [own_row])
        return {row: status for row, status in known.memory.found.items() if row != own_row} | rejected

    def _rejected(self, recheck: Recheck, rows: list[int]) -> dict[int, Status]:
        """Those of the rows that reject the pod besides the pods nominated to them."""
        if not rows:
            return {}
        with self._changes.trial() as trial:
            statuses = recheck.check_besides_nominated(trial, recheck.state(), rows)
        found = {row: s for row, s in zip(rows, statuses, strict=True) if s is not None and s != SUCCESS}
        for status in found.values():
            if status.code is Code.ERROR:
                raise PluginError(status.plugin, f"failed: {status.message}")
        return found
