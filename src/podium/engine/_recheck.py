"""Keeps track of nominated pods, and runs filters again in trials: without preemption's victims, with nominated
pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes
from podium.cluster.cluster import Placed, PodTrial
from podium.cluster.columns import ROW_ASPECTS, ChangeLog, Ints, LogReader
from podium.engine._evaluation import Evaluation
from podium.engine.plan import Plan
from podium.engine.plan_results import FilterResults
from podium.errors import PluginError
from podium.framework import SUCCESS, Code, CycleState, FilterPlugin, PreFilterPlugin, Status, Verdict
from podium.framework.status import checked_verdict
from podium.memory import RecentlyUsed
from podium.model import Pod


class Nominations:
    """Which pod is nominated to which node. A pod is identified by namespace and name; it has at most one nomination.

    A pod yields to nominated pods of the same or a higher priority: it fits a node only if it also fits next to them.
    """

    def __init__(self, pods: Iterable[Pod] = ()) -> None:
        """Start with the nominations in the pods' status."""
        self._node_of: dict[str, str] = {}
        self._on: dict[str, dict[str, Pod]] = {}
        self._changed: set[str] = set()
        self.version = 0
        """Increases whenever a nomination comes or goes."""
        for pod in pods:
            if pod.status.nominated_node_name:
                self.nominate(pod, pod.status.nominated_node_name)

    def __bool__(self) -> bool:
        """Whether any pod is nominated."""
        return bool(self._on)

    def node_of(self, pod: Pod) -> str:
        """The node a pod is nominated to, here or in its status; empty for none."""
        known = self._node_of.get(pod.key) if self._node_of else None
        return pod.status.nominated_node_name if known is None else known

    def on(self, node_name: str) -> list[Pod]:
        """The pods nominated to a node, in order of nomination."""
        return list(self._on.get(node_name, {}).values())

    def ahead_of(self, pod: Pod, node_name: str) -> list[Pod]:
        """The other pods nominated to a node that the pod yields to."""
        nominated = self._on.get(node_name)
        if nominated is None:
            return []
        return [other for other in nominated.values() if other.priority >= pod.priority and other.key != pod.key]

    def has_others(self, pod: Pod) -> bool:
        """Whether any pod but this one is nominated."""
        if len(self._on) != 1:
            return bool(self._on)
        (only,) = self._on.values()
        return len(only) > 1 or pod.key not in only

    def nodes(self) -> list[str]:
        """The nodes with nominated pods."""
        return list(self._on)

    @property
    def have_changed(self) -> bool:
        """Whether nominations came or went since `take_changed`."""
        return bool(self._changed)

    def take_changed(self) -> set[str]:
        """The nodes whose nominations changed since the last call."""
        changed, self._changed = self._changed, set()
        return changed

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Nominate a pod to a node, replacing any other nomination; an empty name removes its nomination, whatever its
        status says.
        """
        self._take(pod)
        if node_name or pod.status.nominated_node_name:
            self._node_of[pod.key] = node_name
            self.version += 1
        if node_name:
            self._on.setdefault(node_name, {})[pod.key] = pod
            self._changed.add(node_name)

    def forget(self, pod: Pod) -> None:
        """Forget the nomination of a pod that is placed or gone."""
        if self._node_of:
            self._take(pod)

    def clear_lower(self, node_name: str, priority: int) -> list[Pod]:
        """Remove the nominations to a node of pods below a priority, as the node may have no room for them any more."""
        lower = [pod for pod in self.on(node_name) if pod.priority < priority]
        for pod in lower:
            self.nominate(pod, "")
        return lower

    def _take(self, pod: Pod) -> None:
        node_name = self._node_of.pop(pod.key, None)
        if node_name is not None:
            self.version += 1
        if node_name:
            pods = self._on[node_name]
            del pods[pod.key]
            if not pods:
                del self._on[node_name]
            self._changed.add(node_name)


T = TypeVar("T")


class RowChangeLog:
    """A change log of rows whose node, pods or nominated pods changed; a change of any other object touches all rows.

    Trials are not logged: they leave the cluster as it was.
    """

    def __init__(self, cluster: Cluster, nominations: Nominations) -> None:
        self._cluster, self._nominations = cluster, nominations
        self._reader = LogReader(cluster.logs_of(ROW_ASPECTS))
        self._reader.catch_up()
        self._shared = self._shared_versions()
        self.epoch = 0
        """Changes whenever any row may have changed."""
        self.log = ChangeLog()

    def catch_up(self) -> None:
        """Bring the log up to date; call it before reading it."""
        rows, shared = self._reader.read(), self._shared_versions()
        if shared != self._shared:
            rows, self._shared = None, shared
        nodes = self._nominations.take_changed() if self._nominations.have_changed else ()
        if rows is None:
            self.epoch += 1
            return
        changed = set(rows.tolist())
        if nodes:
            changed.update(row for row in map(self._cluster.rows.get, nodes) if row is not None)
        for row in changed:
            self.log.append(row)

    def _shared_versions(self) -> tuple[int, int]:
        return self._cluster.store.version, self._cluster.node_set_version

    @contextmanager
    def trial(self) -> Iterator[PodTrial]:
        """A trial on the cluster."""
        self.catch_up()
        with PodTrial(self._cluster) as trial:
            yield trial
        self._reader.catch_up()


class RowChangeReader:
    """Reads which rows changed since the last read; the first read returns all rows."""

    __slots__ = ("_changes", "_cursor", "_epoch")

    def __init__(self, changes: RowChangeLog) -> None:
        self._changes, self._cursor, self._epoch = changes, -1, -1

    def read(self) -> set[int] | None:
        """The rows that changed since the last read; None for all."""
        changes = self._changes
        changes.catch_up()
        rows = changes.log.since(self._cursor) if self._epoch == changes.epoch else None
        self._cursor, self._epoch = changes.log.head, changes.epoch
        return None if rows is None else set(rows.tolist())


class RowCache(Generic[T]):
    """One value per row, dropped when the row changes."""

    __slots__ = ("_changed", "found")

    def __init__(self, changes: RowChangeLog) -> None:
        self._changed = RowChangeReader(changes)
        self.found: dict[int, T] = {}

    def forget_changed(self) -> set[int] | None:
        """Drop the values of rows that changed since the last call, and return those rows; None for all."""
        changed = self._changed.read()
        if changed is None:
            self.found.clear()
        else:
            for row in changed:
                self.found.pop(row, None)
        return changed


class LowestPriorities:
    """The lowest priority of the pods on each row, shared by all searches."""

    def __init__(self, cluster: Cluster, changes: RowChangeLog) -> None:
        self._cluster, self._known = cluster, RowCache[float](changes)

    def catch_up(self) -> None:
        """Drop the values of changed rows; call it before reading."""
        self._known.forget_changed()

    def of(self, row: int) -> float:
        """Infinity for a row without pods."""
        found: float | None = self._known.found.get(row)
        if found is None:
            found = min([pod.priority for pod in self._cluster.pods_on(row)], default=float("inf"))
            self._known.found[row] = found
        return found


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
        self._tell_added(state, placed)

    def take_off(self, trial: PodTrial, state: CycleState, placed: Placed) -> None:
        """Take a pod off its node, and notify the plugins."""
        trial.take_off(placed)
        node = NodeInfo(self._cluster, placed.row)
        for plugin in self._steps.followers:
            _demand(plugin, "RemovePod", plugin.remove_pod(state, self._pod, placed.pod, node))

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
