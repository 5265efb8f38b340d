"""Rejects nodes that a pod would not fit next to the pods nominated to them."""

from __future__ import annotations

from podium.engine._evaluation import Evaluation
from podium.engine._nominations import Nominations
from podium.engine._recheck import Recheck, recheck_of
from podium.engine._row_changes import RowCache, RowChangeLog
from podium.errors import PluginError
from podium.framework import SUCCESS, Code, Status
from podium.memory import RecentlyUsed


class _NominatedRejections:
    """The rows that reject one kind of pod because of nominated pods, and the rows to check again."""

    __slots__ = ("memory", "unchecked")

    def __init__(self, changes: RowChangeLog) -> None:
        self.memory: RowCache[Status] = RowCache(changes)
        self.unchecked: set[int] = set()


class NominatedPodsCheck:
    """Rejects nodes that a pod fits now, but would not fit next to the pods nominated to them."""

    MOST_KINDS = 256

    def __init__(self, nominations: Nominations, changes: RowChangeLog) -> None:
        self._nominations, self._changes = nominations, changes
        self._known: RecentlyUsed[_NominatedRejections] = RecentlyUsed(self.MOST_KINDS)

    def apply(self, evaluation: Evaluation, *, everywhere: bool) -> None:
        """Check the feasible rows; with `everywhere`, also the rejected rows, for which the reason may change."""
        if not self._nominations.has_others(evaluation.pod) or evaluation.pre_filter_status is not None:
            return
        recheck = recheck_of(evaluation, self._nominations)
        if recheck.rows_are_independent:
            rejected = self._remembered(evaluation, recheck)
        else:
            rejected = {}
            for row in self._rows(evaluation, everywhere):
                rejected |= self._rejected(recheck, [row])
        if rejected:
            evaluation.reject_by_nominated(rejected)

    def _rows(self, evaluation: Evaluation, everywhere: bool) -> list[int]:
        """The rows to check one by one."""
        shown = evaluation.looked_at if everywhere else evaluation.feasible.rows
        among = None if shown is None else set(shown.tolist())
        return [row for row in self._nominated_rows(evaluation) if among is None or row in among]

    def _nominated_rows(self, evaluation: Evaluation) -> list[int]:
        rows = map(evaluation.cluster.rows.get, self._nominations.nodes())
        return [row for row in rows if row is not None]

    def _remembered(self, evaluation: Evaluation, recheck: Recheck) -> dict[int, Status]:
        """The rows that reject the pod, reusing what was found for other pods of its kind."""
        known = self._known.get_or_make(
            (evaluation.plan, evaluation.pod.priority), lambda: _NominatedRejections(self._changes)
        )
        changed = known.memory.forget_changed()
        known.unchecked.update(self._nominated_rows(evaluation) if changed is None else changed)
        # On its own nominated node, the pod does not yield to itself, but other pods of its kind yield to it.
        own_row = evaluation.cluster.rows.get(self._nominations.node_of(evaluation.pod), -1)
        own = {own_row} & known.unchecked
        known.memory.found.update(self._rejected(recheck, list(known.unchecked - own)))
        known.unchecked = own
        if own_row < 0:
            return known.memory.found
        rejected = self._rejected(recheck, [own_row])
        return {row: status for row, status in known.memory.found.items() if row != own_row} | rejected

    def _rejected(self, recheck: Recheck, rows: list[int]) -> dict[int, Status]:
        """The rows that reject the pod once the pods nominated to them are added."""
        rows = [row for row in rows if recheck.has_nominated(row)]
        if not rows:
            return {}
        with self._changes.trial() as trial:
            statuses = recheck.check_besides_nominated(trial, recheck.state(), rows)
        found = {row: s for row, s in zip(rows, statuses, strict=True) if s is not None and s != SUCCESS}
        for status in found.values():
            if status.code is Code.ERROR:
                raise PluginError(status.plugin, f"failed: {status.message}")
        return found
