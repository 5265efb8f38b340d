"""GangScheduling: groups of pods that start together."""

from __future__ import annotations

from collections.abc import Sequence

from podium.cluster import Cluster
from podium.framework.events import Action, EventHint, WaitingPod
from podium.framework.plugin import NO_POINTS, CycleState, PermitPlugin, PreEnqueuePlugin
from podium.framework.pod_group_points import PlacementFeasiblePlugin
from podium.framework.status import SUCCESS, Code, Status
from podium.model import Pod, PodGroup
from podium.rules import Rules

PERMIT_TIMEOUT = 300.0
"""Seconds a pod waits at Permit for the rest of its gang."""
MEMBERS_AT_PERMIT = "MembersAtPermit"
"""The cycle state's key for the function that allows the pods of the group that wait at Permit."""
TOO_FEW_PODS = "waiting for minCount pods from a gang to appear in scheduling queue"
TOO_FEW_SCHEDULED = "waiting for minCount pods from a gang to be scheduled"


class GangScheduling(PreEnqueuePlugin, PermitPlugin, PlacementFeasiblePlugin):
    """Holds back the pods of a gang until there are minCount of them, and places none unless minCount can be placed."""

    name = "GangScheduling"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return frozenset({"preEnqueue", "permit"}) if rules.has_gang_scheduling else NO_POINTS

    def pre_enqueue_in(self, pod: Pod, cluster: Cluster) -> Status:
        named = pod.spec.scheduling_group
        if named is None or not self.release_rules.gang_plugin_reads_groups:
            return SUCCESS
        shelf = cluster.store.of(PodGroup)
        group = shelf.get(named.pod_group_name, pod.namespace) if self.release_rules.pod_groups else None
        if group is None:
            # With the feature off no group can be read, so the pod waits for ever.
            missing = f'waiting for pods\'s pod group "{named.pod_group_name}" to appear in scheduling queue'
            return Status.unresolvable(missing)
        if not group.is_gang or cluster.members.count(pod.group_key) >= group.min_count:
            return SUCCESS
        return Status.unresolvable(TOO_FEW_PODS)

    def events_to_register(self) -> Sequence[EventHint]:
        if not self.release_rules.gang_plugin_reads_groups:
            return ()
        return (
            EventHint("UnscheduledPod", Action.ADD, _is_of_same_group),
            EventHint("Pod", Action.ADD, _is_of_same_group),
            EventHint("PodGroup", Action.ADD, _is_own_group),
            EventHint("PodGroup", Action.UPDATE, _needs_fewer_pods),
        )

    def placement_feasible(self, group: PodGroup, scheduled: int, remaining: int) -> Status:
        least, counts = group.min_count, f"{scheduled} scheduled, {remaining} remaining"
        if remaining + scheduled < least:
            return Status.unschedulable(f"minCount ({least}) cannot be satisfied: {counts}")
        if scheduled < least:
            return Status(Code.WAIT, (f"minCount ({least}) is not yet satisfied: {counts}",))
        return SUCCESS

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        members = state.get(MEMBERS_AT_PERMIT)
        if members is None:
            return SUCCESS, 0.0
        group, scheduled = members.group, members.scheduled_count
        if not group.is_gang:
            return SUCCESS, 0.0
        if scheduled < group.min_count:
            return Status(Code.WAIT, (TOO_FEW_SCHEDULED,)), PERMIT_TIMEOUT
        members.allow(self.name)
        return SUCCESS, 0.0


def _is_of_same_group(waiting: WaitingPod, old: Pod | None, new: Pod) -> bool:
    return bool(waiting.pod.group_key) and waiting.pod.group_key == new.group_key


def _is_own_group(waiting: WaitingPod, old: PodGroup | None, new: PodGroup) -> bool:
    return waiting.pod.group_key == new.key


def _needs_fewer_pods(waiting: WaitingPod, old: PodGroup, new: PodGroup) -> bool:
    both_gangs = old.is_gang and new.is_gang
    return _is_own_group(waiting, old, new) and both_gangs and new.min_count < old.min_count
