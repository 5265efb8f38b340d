"""The scheduling algorithm of a PodGroup: tries its pods one after the other, in one placement or in several, and says
whether the group as a whole fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from podium.engine.decision import Attempt, Decision, Diagnosis
from podium.engine.scheduler import MemberSearch, Scheduler
from podium.errors import ExtenderError, InputError, PluginError
from podium.framework import SUCCESS, Code, Framework, Status
from podium.framework.pod_group_points import GROUP_CYCLE, Assignment, FailedGroup, Placement, PodGroupPostFilterResult
from podium.model import Pod, PodGroup

UNSCHEDULABLE = "pod group is unschedulable"
"""The error that begins the message of a group, and of its pods, that could not be placed."""
NO_PLACEMENTS = "no feasible placements found"
PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"


class GroupStatus(NamedTuple):
    """A status with the error behind it, which comes first in the message."""

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    error: str = ""

    @property
    def message(self) -> str:
        return ", ".join((self.error, *self.reasons) if self.error else self.reasons)

    @property
    def cause(self) -> str:
        """The error alone or, without one, the message."""
        return self.error or self.message

    @property
    def is_success(self) -> bool:
        return self.code is Code.SUCCESS

    @classmethod
    def of(cls, status: Status) -> GroupStatus:
        return cls(status.code, status.reasons)

    @classmethod
    def failed(cls, error: str) -> GroupStatus:
        """An error: neither placed nor rejected."""
        return cls(Code.ERROR, (), error)


FITS = GroupStatus()


class Progress(NamedTuple):
    """An answer of PlacementFeasible, with the numbers it was asked with."""

    status: Status
    scheduled: int
    remaining: int


@dataclass(slots=True)
class MemberResult:
    """How a pod of the group fared."""

    pod: Pod
    status: GroupStatus
    attempt: Attempt | None = None
    """The search for a node; None for a pod that was not reached."""
    decision: Decision | None = None
    """All reasons if the pod fits nowhere; also for a pod that fits if they were asked for."""
    nominated: str | None = None
    """The node it waits for, "" to remove a nomination, None to leave it as it is."""
    diagnosis: Diagnosis | None = None
    """The plugins that rejected it, if any did."""

    @property
    def node(self) -> str | None:
        """The node that was found."""
        return self.attempt.node if self.attempt is not None and self.status.is_success else None

    @property
    def was_reached(self) -> bool:
        return self.attempt is not None


@dataclass(slots=True)
class PlacementRun:
    """The group's pods tried on the nodes of one placement, or on all nodes."""

    status: GroupStatus
    members: list[MemberResult] = field(default_factory=list)
    feasibility: list[Progress] = field(default_factory=list)
    """Before the first pod, then after each pod."""
    placement: Placement | None = None
    scores: dict[str, int] = field(default_factory=dict)
    """Per plugin, weighted; empty unless several placements were feasible."""

    @property
    def places_any(self) -> bool:
        return self.status.is_success and any(member.status.is_success for member in self.members)

    @property
    def attempts(self) -> list[Attempt]:
        """The searches that found a node, in order."""
        return [each.attempt for each in self.members if each.status.is_success and each.attempt is not None]

    @property
    def assigned(self) -> list[Assignment]:
        """The pods that got a node, in order."""
        return [Assignment(attempt.pod, attempt.node or "") for attempt in self.attempts]


@dataclass(slots=True)
class GroupRun:
    """One run of the algorithm: the run that counts, and those of all placements, if there are any."""

    status: GroupStatus
    chosen: PlacementRun
    placements: list[PlacementRun] = field(default_factory=list)


class GroupAlgorithm:
    """Finds nodes for the queued pods of a group. It leaves the cluster as it was, but uses it for trials meanwhile."""

    def __init__(self, scheduler: Scheduler, group: PodGroup, pods: Sequence[Pod], *, explain: bool = False) -> None:
        """`pods` are in the order of the queue; with `explain`, every decision has all scores."""
        self._scheduler, self._group, self.pods, self._explain = scheduler, group, pods, explain
        self._framework: Framework = scheduler.framework_of(pods[0])
        self.state: dict[str, Any] = {}
        """What plugins keep for the length of the group's cycle."""

    def run(self, state: dict[str, Any] | None = None) -> GroupRun:
        """Try the group; a group without any pod placed in this run counts as rejected.

        `state` is where plugins keep what the pods share; by default, that of the cycle.
        """
        shared = {GROUP_CYCLE: self.state if state is None else state}
        if self._scheduler.setup.rules.pod_group_placements:
            run = self._run_placements(shared)
        else:
            chosen = self._run_placement(shared, None)
            run = GroupRun(chosen.status, chosen)
        if run.status.is_success and not run.chosen.places_any:
            run.status = run.chosen.status = GroupStatus(Code.UNSCHEDULABLE, (), UNSCHEDULABLE)
        return run

    def failed(self, run: GroupRun, preempt: Callable[[], PodGroupPostFilterResult]) -> FailedGroup:
        """The group as PodGroupPostFilter sees it after a run that rejected it."""
        tried = [member.attempt for one in (run.placements or [run.chosen]) for member in one.members]
        evaluations = [each.evaluation for each in tried if each is not None and each.evaluation is not None]
        order = [plugin.name for plugin in self._framework.pre_filter]

        def was_seen_by(plugin: str) -> bool:
            stops = [each.stopped_at for each in evaluations]
            return any(not stop or (plugin in order and order.index(stop) >= order.index(plugin)) for stop in stops)

        states = {each.pod.key: each.state for each in evaluations}
        cluster = self._scheduler.cluster
        return FailedGroup(self._group, self.pods, states, self.state, was_seen_by, preempt, cluster)

    # -- one placement ---------------------------------------------------------------------------------------------

    def _run_placement(self, shared: Mapping[str, Any], placement: Placement | None) -> PlacementRun:
        """Try the pods in order on the nodes of a placement; the trial is undone at the end."""
        scheduled = self._scheduler.cluster.members.scheduled_count(self._group.key)
        progress = self._check(scheduled, len(self.pods))
        run = PlacementRun(GroupStatus.of(progress.status), feasibility=[progress], placement=placement)
        if progress.status.code is Code.UNSCHEDULABLE:
            run.status = GroupStatus(Code.UNSCHEDULABLE, progress.status.reasons, UNSCHEDULABLE)
            return run
        is_everywhere = placement is None or len(placement.rows) == self._scheduler.cluster.node_count
        search = MemberSearch(shared, None if placement is None or is_everywhere else placement.rows)
        taken: list[Attempt] = []
        for remaining, pod in zip(range(len(self.pods) - 1, -1, -1), self.pods, strict=True):
            member = self._try(pod, search)
            run.members.append(member)
            if member.status.is_success and member.attempt is not None:
                taken.append(member.attempt)
            elif not member.status.code.rejects:
                run.status = GroupStatus.failed(f"failed to schedule other pod from a pod group: {member.status.cause}")
                break
            scheduled += member.status.is_success
            progress = self._check(scheduled, remaining)
            run.feasibility.append(progress)
            run.status = GroupStatus.of(progress.status)
            if progress.status.code is Code.UNSCHEDULABLE:
                break
        if run.status.code is Code.WAIT:
            run.status = GroupStatus(Code.UNSCHEDULABLE, run.status.reasons, UNSCHEDULABLE)
        for attempt in reversed(taken):
            self._scheduler.take_back(attempt)
        return run

    def _check(self, scheduled: int, remaining: int) -> Progress:
        """Ask PlacementFeasible: the first plugin that rejects decides, then one that waits."""
        found = SUCCESS
        for plugin in self._framework.placement_feasible:
            status = plugin.placement_feasible(self._group, scheduled, remaining)
            if status.code is Code.UNSCHEDULABLE:
                return Progress(status, scheduled, remaining)
            if status.code is Code.WAIT:
                found = status
        return Progress(found, scheduled, remaining)

    def _try(self, pod: Pod, search: MemberSearch) -> MemberResult:
        """Find a node for one pod and assume it there, so that the next pods see it."""
        try:
            attempt, decision = self._scheduler.attempt_member(pod, search, explain=self._explain)
            if decision is not None and decision.error:
                return MemberResult(pod, GroupStatus.failed(decision.error), attempt, decision, "")
            if attempt.node is None:
                return _rejected(pod, attempt, decision)
            status = self._scheduler.assume(attempt)
        except PluginError as error:
            return MemberResult(pod, GroupStatus.failed(str(error)), Attempt(pod, None), None, "")
        except (InputError, ExtenderError) as error:
            return MemberResult(pod, GroupStatus.failed(str(error)), Attempt(pod, None), None, "")
        if status == SUCCESS:
            return MemberResult(pod, FITS, attempt, decision)
        diagnosis = Diagnosis.of_status(status)
        code = Code.ERROR if diagnosis.is_error else status.code
        return MemberResult(pod, GroupStatus(code, (), diagnosis.message), attempt, decision, "", diagnosis)

    # -- several placements ----------------------------------------------------------------------------------------

    def _run_placements(self, shared: Mapping[str, Any]) -> GroupRun:
        """Try each placement, and take the best of those that are feasible."""
        placements = self._placements()
        if isinstance(placements, Status):
            failed = PlacementRun(GroupStatus.of(placements))
            return GroupRun(failed.status, failed)
        runs: list[PlacementRun] = []
        for placement in placements:
            run = self._run_placement(shared, placement)
            if run.status.code is Code.ERROR:
                return GroupRun(run.status, run, [*runs, run])
            runs.append(run)
        feasible = [run for run in runs if run.status.is_success]
        if not feasible:
            first = runs[0]
            said = f"0/{len(runs)} placements are available, first placement status: {first.status.cause}"
            return GroupRun(GroupStatus(Code.UNSCHEDULABLE, (said,), UNSCHEDULABLE), first, runs)
        chosen = feasible[0] if len(feasible) == 1 else self._best(feasible)
        return GroupRun(chosen.status, chosen, runs)

    def _placements(self) -> Sequence[Placement] | Status:
        cluster = self._scheduler.cluster
        for plugin in self._framework.placement_generate:
            return plugin.generate_placements(self._group, cluster) or Status.unschedulable(NO_PLACEMENTS)
        return [Placement("", np.array(sorted(cluster.rows.values()), dtype=np.int64))]

    def _best(self, runs: Sequence[PlacementRun]) -> PlacementRun:
        """The placement with the highest total of all plugins; of equal ones, the first by name."""
        cluster = self._scheduler.cluster
        for plugin, weight in self._framework.placement_score:
            raw = [
                plugin.score_placement(self._group, run.placement, run.assigned, cluster)
                for run in runs
                if run.placement is not None
            ]
            for run, score in zip(runs, plugin.normalize_placements(raw), strict=True):
                run.scores[plugin.name] = score * weight
        return max(runs, key=lambda run: sum(run.scores.values()))


def _rejected(pod: Pod, attempt: Attempt, decision: Decision | None) -> MemberResult:
    assert decision is not None, "a pod without a node has a decision"
    if not decision.node_count:
        status = GroupStatus(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (), decision.message)
        return MemberResult(pod, status, attempt, decision, "")
    status = GroupStatus(Code.UNSCHEDULABLE, (), decision.message)
    return MemberResult(pod, status, attempt, decision, None, Diagnosis.of(decision))


def failure_of(
    status: GroupStatus, result: MemberResult, *, is_waiting_for_victims: bool = False
) -> tuple[GroupStatus, str | None]:
    """Why a pod is not placed, and its nomination, given the status of the group."""
    if not status.is_success and not status.code.rejects:
        return (result.status if result.status.code is Code.ERROR else status), ""
    if not result.status.is_success:
        return result.status, result.nominated
    if is_waiting_for_victims:
        return status, result.nominated
    return GroupStatus(Code.UNSCHEDULABLE, (status.message,), UNSCHEDULABLE), ""


def group_problem(group: PodGroup, pods: Sequence[Pod], scheduler: Scheduler) -> str:
    """Why the pods, these queued ones and those that run, cannot be scheduled as one group; empty if they can."""
    name, rules = pods[0].spec.scheduler_name, scheduler.setup.rules
    policy = (group.spec.preemption_policy or PREEMPT_LOWER_PRIORITY) if rules.pod_group_preemption_policy else ""
    for pod in (*pods, *scheduler.cluster.members.scheduled(group.key)):
        should = "all pods in a single pod group should have the same"
        if pod.spec.scheduler_name != name:
            return f'{should} .spec.schedulerName set, got: "{pod.spec.scheduler_name}" and "{name}"'
        if pod.priority != group.priority:
            return f"{should} priority as the pod group's priority, got {pod.priority} and {group.priority}"
        own = pod.spec.preemption_policy or PREEMPT_LOWER_PRIORITY
        policy = policy or own
        if own != policy:
            as_group = " as the pod group's preemption policy" if rules.pod_group_preemption_policy else ""
            return f"{should} preemption policy{as_group}, got {own} and {policy}"
    return "" if name in scheduler.frameworks else f'profile not found for scheduler name "{name}"'


def run_pod_group_post_filter(framework: Framework, failed: FailedGroup) -> PodGroupPostFilterResult:
    """Run the plugins in order until one succeeds, fails, or reports that nothing can help; otherwise join their
    reasons.
    """
    reasons: list[str] = []
    changes: tuple[Any, ...] = ()
    for plugin in framework.pod_group_post_filter:
        result = plugin.pod_group_post_filter(failed)
        changes += result.changes
        code = result.status.code
        if code in (Code.SUCCESS, Code.UNSCHEDULABLE_AND_UNRESOLVABLE):
            return result._replace(changes=changes)
        if code is not Code.UNSCHEDULABLE:
            said = f'error in "{plugin.name}" PodGroupPostFilter plugins: {result.status.message}'
            return PodGroupPostFilterResult(Status.error(said), changes=changes)
        reasons += result.status.reasons
    return PodGroupPostFilterResult(Status.unschedulable(*reasons), changes=changes)
