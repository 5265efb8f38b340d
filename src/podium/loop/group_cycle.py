"""The cycle of a whole PodGroup: checks the group, places its pods or none, and hands each to binding or back to the
queue.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from podium.engine.decision import NO_PLUGINS, Diagnosis
from podium.engine.group_cycle import (
    FITS,
    GroupAlgorithm,
    GroupRun,
    GroupStatus,
    MemberResult,
    failure_of,
    group_problem,
    run_pod_group_post_filter,
)
from podium.engine.group_preemption import GroupPreemption
from podium.framework import SUCCESS, Code, Status
from podium.framework.pod_group_points import GROUP_CYCLE, PodGroupPostFilterResult
from podium.loop.events import ChangeObject, Evict, Instruction, Nominate, SetCondition, Unschedulable, Wait
from podium.loop.pod_groups import QueuedGroup
from podium.loop.queued_pod import Assumed, PodAtPermit, QueuedPod
from podium.model import Pod, PodGroup
from podium.model.pod_groups import INITIALLY_SCHEDULED, Condition
from podium.plugins.default_preemption import DefaultPreemption
from podium.plugins.gang_scheduling import MEMBERS_AT_PERMIT

if TYPE_CHECKING:
    from podium.loop.cycle import SchedulerLoop


@dataclass(slots=True)
class Outcome:
    """What became of a pod in the group's cycle."""

    queued: QueuedPod
    status: GroupStatus = FITS
    """Why the pod was not placed, as its condition says; success for a pod that goes on to binding."""
    nominated: str | None = None
    """The node it waits for, "" if its nomination is removed, None if it is left as it is."""
    permit: Code | None = None
    """The answer of Permit, for a pod that got so far."""


@dataclass(slots=True)
class GroupCycle:
    """One cycle of a group, for whoever wants to know what happened in it."""

    group: PodGroup
    attempt: int
    pods: list[Pod]
    """The pods in the order of the queue."""
    skipped: list[str] = field(default_factory=list)
    """The pods that were left out: terminating, or on a node already."""
    run: GroupRun | None = None
    """The algorithm's result; None if the group did not get so far."""
    post_filter: PodGroupPostFilterResult | None = None
    rerun: GroupRun | None = None
    """The algorithm's result without the potential victims, if preemption tried that."""
    status: GroupStatus = FITS
    """The status with which the group goes back to the queue."""
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    """By namespace/name."""
    condition: Condition | None = None
    """The condition that was written; None if it was not."""


class MembersAtPermit:
    """The pods of a group that wait at Permit, for the plugin that lets them go together."""

    def __init__(self, loop: SchedulerLoop, group: PodGroup) -> None:
        self._loop, self.group = loop, group

    @property
    def scheduled_count(self) -> int:
        """How many pods of the group are on nodes, assumed ones included."""
        return self._loop.cluster.members.scheduled_count(self.group.key)

    def allow(self, plugin: str) -> None:
        """Allow all pods of the group that wait for this plugin."""
        for pod in self._loop.cluster.members.scheduled(self.group.key):
            self._loop.waiting.allow(pod.key, plugin)


class GroupCycles:
    """Runs the cycles of groups for a loop."""

    def __init__(self, loop: SchedulerLoop) -> None:
        self._loop = loop
        self.explains = False
        """Whether the decisions of the pods have all scores."""
        self.last: GroupCycle | None = None
        """The last cycle."""

    def run(self, queued: QueuedGroup, now: float) -> list[Instruction]:
        """Try a group that was popped from the queue, then bind the pods that got a node."""
        loop, members = self._loop, list(queued.members)
        group = loop.queue.find_group(queued.key) or queued.group
        cycle = self.last = GroupCycle(group, queued.attempts, [member.pod for member in members])
        cycle.outcomes = {member.key: Outcome(member) for member in members}
        placed: list[PodAtPermit] = []
        problem = group_problem(group, cycle.pods, loop.scheduler)
        if problem:
            cycle.status = GroupStatus.failed(problem)
            instructions = [each for one in members for each in self._fail(cycle, one, cycle.status, "", now)]
            instructions += self._set_condition(cycle, cycle.status)
        else:
            instructions = self._try(cycle, self._left_to_try(cycle, members), placed, now)
        code = cycle.status.code
        loop.queue.groups.put_back(queued, is_success=code is Code.SUCCESS, is_error=code is Code.ERROR, now=now)
        for waiting in placed:
            instructions += self._bind(cycle, waiting, now)
        return instructions

    # -- before the algorithm ----------------------------------------------------------------------------------------

    def _left_to_try(self, cycle: GroupCycle, members: list[QueuedPod]) -> list[QueuedPod]:
        """The pods without those that are terminating, or are on a node already."""
        cycle.skipped = [one.key for one in members if one.pod.terminating or self._loop.is_assumed(one.key)]
        for key in cycle.skipped:
            self._loop.queue.done(key)
        return [member for member in members if member.key not in cycle.skipped]

    # -- the algorithm -----------------------------------------------------------------------------------------------

    def _try(
        self, cycle: GroupCycle, members: list[QueuedPod], placed: list[PodAtPermit], now: float
    ) -> list[Instruction]:
        """Run the algorithm and, if the group is rejected, PodGroupPostFilter; then hand over each pod."""
        if not members:
            return []
        scheduler = self._loop.scheduler
        algorithm = GroupAlgorithm(scheduler, cycle.group, [one.pod for one in members], explain=self.explains)
        with scheduler.nominations.trying(algorithm.pods):
            run = cycle.run = algorithm.run()
            found = self._post_filter(cycle, algorithm, run) if run.status.code is Code.UNSCHEDULABLE else None
        results = {result.pod.key: result for result in run.chosen.members}
        for pod in algorithm.pods:
            # Pods that were not reached share the status that the group has before PostFilter.
            results.setdefault(pod.key, MemberResult(pod, run.status))
        status = cycle.status = run.status
        instructions: list[Instruction] = []
        is_waiting_for_victims = False
        if found is not None:
            is_waiting_for_victims = found.status.code is Code.SUCCESS
            if found.status.code is Code.ERROR:
                status = GroupStatus.failed(found.status.message)
            else:
                status = cycle.status = run.status._replace(reasons=(*run.status.reasons, found.status.message))
            instructions += self._make_room(cycle.group, members[0].pod, found)
            for key, node in found.nominated.items():
                if key in results:
                    results[key].nominated = node
        for member in members:
            result = results[member.key]
            if status.is_success and result.status.is_success:
                instructions += self._place(cycle, member, result, placed, now)
            else:
                why, nominated = failure_of(status, result, is_waiting_for_victims=is_waiting_for_victims)
                instructions += self._fail(cycle, member, why, nominated, now, result.diagnosis)
        return instructions + self._set_condition(cycle, status)

    def _post_filter(self, cycle: GroupCycle, algorithm: GroupAlgorithm, run: GroupRun) -> PodGroupPostFilterResult:
        loop, group = self._loop, cycle.group
        scheduler = loop.scheduler

        def attempt() -> GroupRun:
            cycle.rerun = algorithm.run({})
            return cycle.rerun

        search = GroupPreemption(group, algorithm.pods, loop.cluster, scheduler.nominations, attempt)
        failed = algorithm.failed(run, search.attempt)
        cycle.post_filter = run_pod_group_post_filter(scheduler.framework_of(algorithm.pods[0]), failed)
        return cycle.post_filter

    def _make_room(self, group: PodGroup, pod: Pod, found: PodGroupPostFilterResult) -> list[Instruction]:
        """Evict the victims, and make the changes that PodGroupPostFilter asks for."""
        instructions: list[Instruction] = [ChangeObject(pod, *change) for change in found.changes]
        for victim in found.victims:
            if victim.key in self._loop.waiting:
                self._loop.waiting.reject(victim.key, DefaultPreemption.name, "preempted")
            else:
                instructions.append(Evict(self._loop.pods[victim.key], pod, "", group))
        return instructions

    # -- what becomes of each pod ------------------------------------------------------------------------------------

    def _fail(
        self,
        cycle: GroupCycle,
        member: QueuedPod,
        status: GroupStatus,
        nominated: str | None,
        now: float,
        diagnosis: Diagnosis | None = None,
    ) -> list[Instruction]:
        """Put a pod back into the queue, and report why; its nomination changes as `nominated` says."""
        outcome = cycle.outcomes[member.key]
        outcome.status, outcome.nominated = status, nominated
        failed = Diagnosis(
            status.message,
            NO_PLUGINS if diagnosis is None else diagnosis.unschedulable_plugins,
            NO_PLUGINS if diagnosis is None else diagnosis.pending_plugins,
            is_error=not status.code.rejects,
        )
        instructions = self._loop.fail(member, failed, now)
        nominations = self._loop.scheduler.nominations
        pod = self._loop.pods.get(member.key)
        if pod is None or nominated is None or nominations.node_of(pod) == nominated:
            return instructions
        # Other than for a pod that preempts alone, the nominations of less important pods stay.
        nominations.nominate(pod, nominated)
        return [*instructions, Nominate(pod, nominated)]

    def _place(
        self, cycle: GroupCycle, member: QueuedPod, result: MemberResult, placed: list[PodAtPermit], now: float
    ) -> list[Instruction]:
        """Assume a pod on its node for good, and ask Permit; a pod that fails here fails alone."""
        loop, attempt = self._loop, result.attempt
        assert attempt is not None, "it fits"
        assert attempt.evaluation is not None, "it fits"
        assert attempt.node is not None, "it fits"
        status = loop.scheduler.assume(attempt)
        if status != SUCCESS:
            return self._fail_alone(cycle, member, status, now)
        state = attempt.evaluation.state
        state.pop(GROUP_CYCLE, None)
        state[MEMBERS_AT_PERMIT] = MembersAtPermit(loop, cycle.group)
        assumed = Assumed(attempt.pod, attempt.node, state)
        deadlines = loop.ask_permit(assumed, now)
        outcome = cycle.outcomes[member.key]
        if isinstance(deadlines, Status):
            outcome.permit = deadlines.code
            loop.scheduler.take_back(attempt)
            return self._fail_alone(cycle, member, deadlines, now)
        outcome.permit = Code.WAIT if deadlines else Code.SUCCESS
        waiting = PodAtPermit(member, assumed, deadlines)
        loop.waiting.add(waiting)
        placed.append(waiting)
        return []

    def _fail_alone(self, cycle: GroupCycle, member: QueuedPod, status: Status, now: float) -> list[Instruction]:
        diagnosis = Diagnosis.of_status(status)
        why = GroupStatus(Code.ERROR if diagnosis.is_error else status.code, (), diagnosis.message)
        return self._fail(cycle, member, why, "", now, diagnosis)

    def _bind(self, cycle: GroupCycle, waiting: PodAtPermit, now: float) -> list[Instruction]:
        """Bind a pod that need not wait at Permit, or no more; the others wait."""
        if waiting.deadlines:
            return [Wait(waiting.assumed.pod, waiting.assumed.node, tuple(sorted(waiting.deadlines)), waiting.until)]
        outcome = cycle.outcomes[waiting.assumed.pod.key]
        instructions = self._loop.stop_waiting(self._loop.waiting.take(waiting.assumed.pod.key), now)
        for failed in (each for each in instructions if isinstance(each, Unschedulable)):
            code = Code.ERROR if failed.is_error else Code.UNSCHEDULABLE
            outcome.status, outcome.nominated = GroupStatus(code, (), failed.message), ""
        return instructions

    def _set_condition(self, cycle: GroupCycle, status: GroupStatus) -> list[Instruction]:
        """Write whether the group got onto nodes; once it did, that never changes."""
        group = cycle.group
        condition = Condition(
            type=INITIALLY_SCHEDULED,
            status="True" if status.is_success else "False",
            reason="Scheduled" if status.is_success else "Unschedulable" if status.code.rejects else "SchedulerError",
            message=status.message if status.is_success or status.code.rejects else status.cause,
            observed_generation=group.metadata.generation,
        )
        before = next((each for each in group.status.conditions if each.type == condition.type), None)
        if before == condition or (before is not None and before.status == "True" and condition.status != "True"):
            return []
        cycle.condition = condition
        return [SetCondition(cycle.pods[0], group, condition)]
