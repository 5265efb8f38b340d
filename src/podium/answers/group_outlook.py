"""How far a PodGroup gets now: how many of its pods find a node, and what keeps the next one from any."""

from __future__ import annotations

from typing import NamedTuple

from podium.engine import Decision, Scheduler
from podium.engine.group_cycle import GroupRun
from podium.engine.group_decision import explain_group
from podium.model import Pod, PodGroup
from podium.wording import counted


class GroupOutlook(NamedTuple):
    """The outcome for a group, and the decision of one of its pods."""

    group: str
    """Namespace and name."""
    fits: bool
    placed: int
    """How many pods are on nodes, or would be."""
    needed: int
    """How many must be, for any to be placed."""
    sentence: str
    decision: Decision


def group_outlook(group: PodGroup, pod: Pod, scheduler: Scheduler) -> GroupOutlook:
    """Try the pods of the group that wait, this one among them, as the scheduler would; changes nothing."""
    waiting = {each.key: each for each in scheduler.cluster.pending.values() if each.group_key == group.key}
    pods = [*(waiting | {pod.key: pod}).values()]
    pods.sort(key=lambda each: (-each.priority, each.metadata.creation_timestamp or "~", each.name))
    run = explain_group(group, pods, scheduler)
    running = scheduler.cluster.members.scheduled_count(group.key)
    if isinstance(run, str):
        held = Decision(pod.key, None, error=run, node_count=scheduler.cluster.node_count)
        return GroupOutlook(
            group.key, False, running, group.min_count, f"PodGroup {group.key} is not tried: {run}", held
        )
    results = {result.pod.key: result for result in run.chosen.members}
    found = results[pod.key].decision if pod.key in results else None
    why = f"it is not tried: {run.status.message}"
    decision = found or Decision(pod.key, None, error=why, node_count=scheduler.cluster.node_count)
    placed = running + sum(result.status.is_success for result in run.chosen.members)
    return GroupOutlook(
        group.key, run.status.is_success, placed, group.min_count, _sentence(group, run, placed, len(pods)), decision
    )


def _sentence(group: PodGroup, run: GroupRun, placed: int, tried: int) -> str:
    where = ""
    if group.topology_key and run.chosen.placement is not None:
        count = len(run.placements)
        best = (
            f"the best of {count:,}" if run.status.is_success and count > 1 else f"{counted(count, 'placement')} tried"
        )
        where = f" on {group.topology_key}={run.chosen.placement.name}, {best}"
    if run.status.is_success:
        return f"PodGroup {group.key} fits{where}: {placed:,} pods placed, {group.min_count:,} needed"
    failed = next((result for result in run.chosen.members if not result.status.is_success), None)
    lacks = f"; {failed.pod.name}: {failed.status.message}" if failed is not None else f"; {run.status.message}"
    few = f"{placed:,} of {group.min_count:,} needed pods find a node"
    return f"PodGroup {group.key} does not fit{where}, so none of its pods is placed: {few}{lacks}"
