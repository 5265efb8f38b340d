"""Preemption for a PodGroup: the whole cluster is searched for pods whose eviction makes room for the group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from podium.cluster import Cluster
from podium.cluster.cluster import Placed, PodTrial
from podium.engine._nominations import Nominations
from podium.engine._recheck import Recheck, recheck_of
from podium.engine.decision import Attempt
from podium.engine.dry_runs import Budgets
from podium.engine.group_cycle import GroupRun
from podium.engine.preemption import POLICY_NEVER, is_being_preempted
from podium.engine.victim_units import ReprieveOrder, VictimUnit, VictimUnits
from podium.framework import SUCCESS, Code, CycleState, ReservePlugin, Status
from podium.framework.pod_group_points import PodGroupPostFilterResult
from podium.model import Pod, PodGroup

NO_VICTIMS = "No preemption victims found for incoming preemptor"
ONGOING = "ongoing preemption on nominated nodes"
NEVER = "Never"


class _Assigned(NamedTuple):
    """A pod of the group on the node that was found for it while the victims were away."""

    pod: Pod
    row: int
    node: str
    recheck: Recheck
    state: CycleState
    reserving: Sequence[ReservePlugin]


class GroupPreemption:
    """The search for one group. It changes nothing: the caller carries out the result."""

    def __init__(
        self,
        group: PodGroup,
        pods: Sequence[Pod],
        cluster: Cluster,
        nominations: Nominations,
        attempt: Callable[[], GroupRun],
    ) -> None:
        """`pods` are the queued ones in order; `attempt` tries the group on the cluster as it is then."""
        self._group, self._pods, self._attempt = group, pods, attempt
        self._cluster, self._nominations = cluster, nominations
        self._units = VictimUnits(cluster)

    def attempt(self) -> PodGroupPostFilterResult:
        """Find the victims, and a node for each pod of the group that gets one."""
        group = self._group
        if self._policy(group) == NEVER:
            return PodGroupPostFilterResult(Status.unschedulable(POLICY_NEVER))
        if self._is_ongoing(group):
            nominated = {pod.key: pod.status.nominated_node_name for pod in self._pods}
            return PodGroupPostFilterResult(Status(Code.SUCCESS, (ONGOING,)), nominated)
        rows = self._cluster.rows.values()
        potential = [unit for unit in self._units.on(rows) if unit.priority < group.priority]
        if not potential:
            return PodGroupPostFilterResult(Status.unresolvable(NO_VICTIMS))
        with PodTrial(self._cluster, is_logged=True) as trial:
            return self._search(trial, potential)

    def _policy(self, group: PodGroup) -> str:
        if self._cluster.rules.pod_group_preemption_policy:
            return group.spec.preemption_policy or ""
        never = any(pod.spec.preemption_policy == NEVER for pod in self._pods)
        return NEVER if never else ""

    def _is_ongoing(self, group: PodGroup) -> bool:
        """Whether pods that make room for this group are still terminating."""
        nodes = {pod.status.nominated_node_name for pod in self._pods} - {""}
        rows = [self._cluster.rows[node] for node in nodes if node in self._cluster.rows]
        return any(
            is_being_preempted(pod) and self._cluster.as_victim(pod).priority < group.priority
            for row in rows
            for pod in self._cluster.pods_on(row)
        )

    def _search(self, trial: PodTrial, potential: list[VictimUnit]) -> PodGroupPostFilterResult:
        for unit in potential:
            for placed in unit.pods:
                trial.take_off(placed)
        run = self._attempt()
        if not run.status.is_success:
            return PodGroupPostFilterResult(Status(run.status.code, (run.status.message,)))
        assigned = [self._assigned(attempt) for attempt in run.chosen.attempts]
        order = ReprieveOrder.of(potential, Budgets(self._cluster).violating)
        evicted = [unit for unit in order.units if not self._is_reprieved(trial, unit, assigned)]
        evicted.sort(key=lambda unit: unit.importance)
        victims = [placed.pod for unit in evicted for placed in unit.pods]
        said = f"found a placement for podgroup, preempting {len(victims)} victims"
        return PodGroupPostFilterResult(
            Status(Code.SUCCESS, (said,)),
            {each.pod.key: each.node for each in assigned},
            tuple(victim for victim in victims if not victim.terminating),
        )

    def _assigned(self, attempt: Attempt) -> _Assigned:
        evaluation, node = attempt.evaluation, attempt.node
        assert evaluation is not None, "only pods with a node are assigned"
        assert node is not None, "only pods with a node are assigned"
        recheck = recheck_of(evaluation, self._nominations)
        reserving = evaluation.plan.outline.reserve
        return _Assigned(attempt.pod, self._cluster.rows[node], node, recheck, recheck.state(), reserving)

    def _is_reprieved(self, trial: PodTrial, unit: VictimUnit, assigned: Sequence[_Assigned]) -> bool:
        """Whether a unit can stay: every pod of the group still fits the node that was found for it.

        If it can, its pods are back on their nodes.
        """
        for placed in unit.pods:
            trial.put_back(placed)
            for each in assigned:
                each.recheck.tell_added(each.state, placed)
        added: list[tuple[_Assigned, Placed]] = []
        fits = True
        for each in assigned:
            (status,) = each.recheck.check(trial, each.state, [each.row])
            fits = status == SUCCESS
            if not fits:
                break
            added.append((each, trial.place(each.pod, each.row, each.state.info)))
            for plugin in each.reserving:
                plugin.reserve(each.state, each.pod, each.node)
        if not fits:
            self._take_off(trial, unit, assigned)
        for each, placed in reversed(added):
            for plugin in reversed(each.reserving):
                plugin.unreserve(each.state, each.pod, each.node)
            trial.take_off(placed)
        return fits

    def _take_off(self, trial: PodTrial, unit: VictimUnit, assigned: Sequence[_Assigned]) -> None:
        for placed in unit.pods:
            trial.take_off(placed)
            for each in assigned:
                each.recheck.tell_removed(each.state, placed)
