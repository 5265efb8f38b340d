"""Decides the pods of a PodGroup together, without a queue and without preemption."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from podium.engine.group_cycle import GroupAlgorithm, GroupRun, MemberResult, failure_of, group_problem
from podium.engine.scheduler import Scheduler
from podium.errors import PluginError
from podium.framework import SUCCESS
from podium.model import Pod, PodGroup


class QueuedMembers(NamedTuple):
    """The pods of a group that leave the queue together, in the order in which they are tried."""

    group: PodGroup
    pods: list[Pod]


class MemberPlacement(NamedTuple):
    """Where a pod of a group went; if it has no node, `message` says why."""

    pod: Pod
    node: str | None
    message: str = ""
    failed_plugin: str = ""


def decide_group(group: PodGroup, pods: Sequence[Pod], scheduler: Scheduler) -> list[MemberPlacement]:
    """Place the pods of a group that fit, if the group as a whole does; pods that it may leave out say why they do not
    fit.
    """
    problem = why_held(group, pods, scheduler)
    if problem:
        return [MemberPlacement(pod, None, problem) for pod in pods]
    run = GroupAlgorithm(scheduler, group, pods).run()
    results = {result.pod.key: result for result in run.chosen.members}
    placed = []
    for pod in pods:
        result = results.get(pod.key, MemberResult(pod, run.status))
        if run.status.is_success and result.status.is_success and result.attempt is not None:
            placed.append(_place(result, scheduler))
        else:
            placed.append(MemberPlacement(pod, None, failure_of(run.status, result)[0].message))
    return placed


def explain_group(group: PodGroup, pods: Sequence[Pod], scheduler: Scheduler) -> GroupRun | str:
    """How far the group gets now, with all scores and reasons; why it is not tried at all, if it is not."""
    return why_held(group, pods, scheduler) or GroupAlgorithm(scheduler, group, pods, explain=True).run()


def why_held(group: PodGroup, pods: Sequence[Pod], scheduler: Scheduler) -> str:
    """Why the group is not tried: a plugin holds back one of its pods, or the pods do not go together; empty if it
    is.
    """
    for pod in pods:
        if pod.key not in scheduler.cluster.pending:
            scheduler.cluster.add(pod)
    for pod in pods:
        try:
            scheduler.check_queue(pod)
        except PluginError as error:
            return str(error)
    return group_problem(group, pods, scheduler)


def _place(result: MemberResult, scheduler: Scheduler) -> MemberPlacement:
    assert result.attempt is not None, "only pods that fit are placed"
    status = scheduler.assume(result.attempt)
    if status != SUCCESS:
        return MemberPlacement(result.pod, None, status.message, status.plugin)
    scheduler.settle(result.attempt)
    return MemberPlacement(result.pod, result.attempt.node)
