"""Running a pod's filters again during a trial: with preemption's victims gone, or with nominated pods there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes
from podium.cluster.cluster import Placed
from podium.cluster.columns import Ints
from podium.cluster.recently_used import RecentlyUsed
from podium.cluster.trial import Trial
from podium.engine.evaluation import Evaluation
from podium.engine.nominations import Nominations
from podium.engine.plan.plan import Plan
from podium.engine.plan.results import FilterResults
from podium.engine.row_changes import RowCache, RowChangeLog
from podium.errors import PluginError
from podium.framework import SUCCESS, Code, CycleState, FilterPlugin, PreFilterPlugin, Status, Verdict
from podium.framework import return_values as returned
from podium.model import Pod

CHANGED_BY_PODS = Aspect.RESOURCES | Aspect.PORTS | Aspect.PODS


class _Step(NamedTuple):
    """A filter, with its results where no pod on the node can change them."""

    plugin: FilterPlugin
    results: FilterResults | None


class Recheck:
    """A pod's filters during trials. What PreFilter decided stands: a plugin that skips goes on skipping, and one that
    left something in the cycle state is told about every pod that comes or goes."""

    def __init__(
        self,
        plan: Plan,
        state: CycleState,
        pod: Pod,
        skipped: frozenset[str],
        cluster: Cluster,
        nominations: Nominations,
    ) -> None:
        self._state, self._pod, self._cluster, self._nominations = state, pod, cluster, nominations
        running = [plugin for plugin in plan.outline.filter if plugin.name not in skipped]
        self._steps = [_Step(each, plan.filter_results(each) if is_fixed(each) else None) for each in running]
        self._changing = [step for step in self._steps if step.results is None]
        self._passes_fixed = np.ones(cluster.columns.size, dtype=np.bool_)
        for _, results in self._steps:
            if results is not None:
                results.catch_up()
                self._passes_fixed &= results.values == 0
        followers = [plugin for plugin in plan.outline.pre_filter if plugin.name not in skipped]
        self._followers = [plugin for plugin in followers if _follows_pods(plugin)]
        kept = all(plan.filter_results(plugin) is not None for plugin in running)
        self.rows_are_independent = not self._followers and kept
        """Whether pods on one row cannot matter to another one, so that many rows may be tried together."""

    def state(self) -> CycleState:
        """A cycle state for one trial: what plugins change in it does not outlast the trial."""
        return CycleState(self._state.info, self._state)

    def put_back(self, trial: Trial, state: CycleState, placed: Placed) -> None:
        """Put a pod on its node, and tell the plugins."""
        trial.put_back(placed)
        self._tell_added(state, placed)

    def take_off(self, trial: Trial, state: CycleState, placed: Placed) -> None:
        """Take a pod off its node, and tell the plugins."""
        trial.take_off(placed)
        node = NodeInfo(self._cluster, placed.row)
        for plugin in self._followers:
            _demand(plugin, "RemovePod", plugin.remove_pod(state, self._pod, placed.pod, node))

    def check(self, trial: Trial, state: CycleState, rows: Sequence[int]) -> list[Status]:
        """What the filters say of each row: also with the pods nominated to it that come first, if there are any."""
        first = self.check_besides_nominated(trial, state, rows)
        found = [SUCCESS if status is None else status for status in first]
        # Not only besides them: a pod may need what is there already, and a nominated pod may end up elsewhere.
        passing = [place for place, status in enumerate(found) if status == SUCCESS]
        for place, status in zip(passing, self._filter(state, [rows[place] for place in passing]), strict=True):
            found[place] = status
        return found

    def check_besides_nominated(self, trial: Trial, state: CycleState, rows: Sequence[int]) -> list[Status | None]:
        """What the filters say of each row with the nominated pods on it; None where there are none."""
        guests: dict[int, list[Placed]] = {}
        crowded = CycleState(state.info, state)
        for place, row in enumerate(rows):
            for pod in self._nominations.ahead_of(self._pod, self._cluster.names[row]):
                placed = trial.place(pod, row, self._cluster.info_of(pod))
                self._tell_added(crowded, placed)
                guests.setdefault(place, []).append(placed)
        found: list[Status | None] = [None] * len(rows)
        if guests:
            statuses = self._filter(crowded, [rows[place] for place in guests])
            for place, status in zip(guests, statuses, strict=True):
                found[place] = status
            for placed in (placed for pods in guests.values() for placed in pods):
                trial.take_off(placed)
        return found

    def _tell_added(self, state: CycleState, placed: Placed) -> None:
        if self._followers:
            node = NodeInfo(self._cluster, placed.row)
            for plugin in self._followers:
                _demand(plugin, "AddPod", plugin.add_pod(state, self._pod, placed.pod, node))

    def _filter(self, state: CycleState, listed: Sequence[int]) -> list[Status]:
        """What the first filter that objects says of each row."""
        rows: Ints = np.array(listed, dtype=np.int64)
        found = [SUCCESS] * len(rows)
        undecided = np.arange(len(rows))
        for plugin, results in self._changing if self._passes_fixed[rows].all() else self._steps:
            if not len(undecided):
                break
            if results is None:
                found_here = plugin.filter(state, self._pod, Nodes(self._cluster, rows[undecided]))
                verdict = returned.verdict(plugin.name, found_here, len(undecided))
            else:
                verdict = Verdict(results.values[rows[undecided]], results.describe)
            rejected = verdict.codes != 0
            if rejected.any():
                statuses = {code: _describe(plugin, verdict, code) for code in set(verdict.codes[rejected].tolist())}
                for place, code in zip(undecided[rejected].tolist(), verdict.codes[rejected].tolist(), strict=True):
                    found[place] = statuses[code]
                undecided = undecided[~rejected]
        return found


def is_fixed(plugin: FilterPlugin) -> bool:
    """Whether no pod that comes to a node or leaves it changes what the filter says of the node."""
    return plugin.reads is not None and not plugin.reads & CHANGED_BY_PODS


def _follows_pods(plugin: PreFilterPlugin) -> bool:
    kind = type(plugin)
    return kind.add_pod is not PreFilterPlugin.add_pod or kind.remove_pod is not PreFilterPlugin.remove_pod


def _demand(plugin: PreFilterPlugin, point: str, status: Status) -> None:
    if status != SUCCESS:
        raise PluginError(plugin.name, f"failed in {point}: {status.message}")


def _describe(plugin: FilterPlugin, verdict: Verdict, code: int) -> Status:
    status = verdict.describe(code)
    if status.code is Code.ERROR:
        status = Status.error(f'running "{plugin.name}" filter plugin: {status.message}')
    return status._replace(plugin=plugin.name)


def recheck_of(evaluation: Evaluation, nominations: Nominations) -> Recheck:
    """The evaluation's filters, to be run in trials."""
    return Recheck(
        evaluation.plan, evaluation.state, evaluation.pod, evaluation.skipped, evaluation.cluster, nominations
    )


class _Known:
    """Which rows reject one kind of pod because of pods nominated to them, and which rows are to be checked again."""

    __slots__ = ("memory", "unchecked")

    def __init__(self, changes: RowChangeLog) -> None:
        self.memory: RowCache[Status] = RowCache(changes)
        self.unchecked: set[int] = set()


class NominatedPodsCheck:
    """Rejects the nodes that a pod fits now but would not fit besides the pods nominated to them."""

    MOST_KINDS = 256

    def __init__(self, nominations: Nominations, changes: RowChangeLog) -> None:
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
