"""Runs a pod's filters again in trials: without preemption's victims, with nominated pods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes
from podium.cluster.cluster import Placed, PodTrial
from podium.cluster.columns import Ints
from podium.engine._evaluation import Evaluation
from podium.engine._nominations import Nominations
from podium.engine.plan import Plan
from podium.engine.plan_results import FilterResults
from podium.errors import PluginError
from podium.framework import SUCCESS, Code, CycleState, FilterPlugin, PreFilterPlugin, Status, Verdict
from podium.framework.status import checked_verdict
from podium.model import Pod

CHANGED_BY_PODS = Aspect.RESOURCES | Aspect.PORTS | Aspect.PODS


class _Step(NamedTuple):
    """A filter, with its results if no pod on the node can change them."""

    plugin: FilterPlugin
    results: FilterResults | None


class _Steps(NamedTuple):
    """The steps of a trial, for pods that share a plan and skip the same filters."""

    all: list[_Step]
    changing: list[_Step]
    """The filters whose result depends on pods on the node."""
    followers: list[PreFilterPlugin]
    """The plugins that are notified of every pod that comes or goes."""
    rows_are_independent: bool
    goes_by_resources: bool
    """Whether pods on the node affect the filters only through its resources."""

    @classmethod
    def of(cls, plan: Plan, skipped: frozenset[str]) -> _Steps:
        running = [plugin for plugin in plan.outline.filter if plugin.name not in skipped]
        steps = [_Step(each, plan.filter_results(each) if is_fixed(each) else None) for each in running]
        changing = [step for step in steps if step.results is None]
        followers = [p for p in plan.outline.pre_filter if p.name not in skipped and _follows_pods(p)]
        kept = all(plan.filter_results(plugin) is not None for plugin in running)
        are_independent = not followers and kept
        by_resources = are_independent and all(step.plugin.reads == Aspect.RESOURCES for step in changing)
        return cls(steps, changing, followers, are_independent, by_resources)


class Recheck:
    """Runs a pod's filters during trials.

    The outcome of PreFilter stays: a plugin that skipped keeps skipping, and a plugin that left something in the cycle
    state is notified of every pod that comes or goes.
    """

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
        self._plan = plan
        steps: _Steps | None = plan.memo.get(("steps", skipped))
        if steps is None:
            steps = plan.memo["steps", skipped] = _Steps.of(plan, skipped)
        self._steps = steps

    @property
    def rows_are_independent(self) -> bool:
        """Whether pods on one row cannot affect another row, so that many rows can be tried together."""
        return self._steps.rows_are_independent

    def reads_resources_only(self, row: int) -> bool:
        """Whether the filters' answer for a row depends only on its resources, whatever pods come or go."""
        return self._steps.goes_by_resources and self._plan.passes_by_row(row)

    def state(self) -> CycleState:
        """A copy of the cycle state for one trial, so that plugins' changes do not outlast it."""
        return CycleState(self._state.info, self._state)

    def put_back(self, trial: PodTrial, state: CycleState, placed: Placed) -> None:
        """Put a pod back on its node, and notify the plugins."""
        trial.put_back(placed)
        self.tell_added(state, placed)

    def take_off(self, trial: PodTrial, state: CycleState, placed: Placed) -> None:
        """Take a pod off its node, and notify the plugins."""
        trial.take_off(placed)
        self.tell_removed(state, placed)

    def check(self, trial: PodTrial, state: CycleState, rows: Sequence[int]) -> list[Status]:
        """The filters' status of each row, checked without and then with the nominated pods that the pod yields to."""
        first = self.check_besides_nominated(trial, state, rows)
        found = [SUCCESS if status is None else status for status in first]
        # Check both ways: the pod may need pods that are there already, and a nominated pod may end up elsewhere.
        passing = [place for place, status in enumerate(found) if status == SUCCESS]
        for place, status in zip(passing, self._filter(state, [rows[place] for place in passing]), strict=True):
            found[place] = status
        return found

    def has_nominated(self, row: int) -> bool:
        """Whether the pod yields to pods nominated to a row."""
        return bool(self._nominations.ahead_of(self._pod, self._cluster.names[row]))

    def check_besides_nominated(self, trial: PodTrial, state: CycleState, rows: Sequence[int]) -> list[Status | None]:
        """The filters' status of each row with its nominated pods added; None for rows without nominated pods."""
        guests: dict[int, list[Placed]] = {}
        crowded = CycleState(state.info, state)
        for place, row in enumerate(rows):
            for pod in self._nominations.ahead_of(self._pod, self._cluster.names[row]):
                placed = trial.place(pod, row, self._cluster.info_of(pod))
                self.tell_added(crowded, placed)
                guests.setdefault(place, []).append(placed)
        found: list[Status | None] = [None] * len(rows)
        if guests:
            statuses = self._filter(crowded, [rows[place] for place in guests])
            for place, status in zip(guests, statuses, strict=True):
                found[place] = status
            for placed in (placed for pods in guests.values() for placed in pods):
                trial.take_off(placed)
        return found

    def tell_removed(self, state: CycleState, placed: Placed) -> None:
        """Notify the plugins of a pod that was taken off its node."""
        if self._steps.followers:
            node = NodeInfo(self._cluster, placed.row)
            for plugin in self._steps.followers:
                _demand(plugin, "RemovePod", plugin.remove_pod(state, self._pod, placed.pod, node))

    def tell_added(self, state: CycleState, placed: Placed) -> None:
        """Notify the plugins of a pod that was put on a node."""
        if self._steps.followers:
            node = NodeInfo(self._cluster, placed.row)
            for plugin in self._steps.followers:
                _demand(plugin, "AddPod", plugin.add_pod(state, self._pod, placed.pod, node))

    def _filter(self, state: CycleState, listed: Sequence[int]) -> list[Status]:
        """The status of the first filter that rejects each row."""
        rows: Ints = np.array(listed, dtype=np.int64)
        found = [SUCCESS] * len(rows)
        undecided = np.arange(len(rows))
        for plugin, results in self._steps.changing if self._plan.pass_by_row(rows) else self._steps.all:
            if not len(undecided):
                break
            if results is None:
                try:
                    found_here = plugin.filter(state, self._pod, Nodes(self._cluster, rows[undecided]))
                except PluginError as error:
                    # An error here fails the search for victims, not the pod.
                    for place in undecided.tolist():
                        found[place] = Status.error(str(error))._replace(plugin=error.plugin)
                    break
                verdict = checked_verdict(plugin.name, found_here, len(undecided))
            else:
                results.catch_up()
                verdict = Verdict(results.values[rows[undecided]], results.describe)
            rejected = verdict.codes != 0
            if rejected.any():
                statuses = {code: _describe(plugin, verdict, code) for code in set(verdict.codes[rejected].tolist())}
                for place, code in zip(undecided[rejected].tolist(), verdict.codes[rejected].tolist(), strict=True):
                    found[place] = statuses[code]
                undecided = undecided[~rejected]
        return found


def is_fixed(plugin: FilterPlugin) -> bool:
    """Whether the filter's answer for a node cannot change when pods come to it or leave it."""
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
    """Prepare the evaluation's filters for trials."""
    return Recheck(
        evaluation.plan, evaluation.state, evaluation.pod, evaluation.skipped, evaluation.cluster, nominations
    )
