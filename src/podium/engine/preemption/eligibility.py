"""May the pod preempt at all, and on which nodes would it help."""

from __future__ import annotations

from collections.abc import Mapping

from podium.cluster import Cluster
from podium.framework import Code, Status
from podium.objects import Pod
from podium.plugins.default_preemption import DefaultPreemption

NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."

DISRUPTION_TARGET, PREEMPTED = "DisruptionTarget", "PreemptionByScheduler"


def why_not_eligible(
    pod: Pod, nominated_node: str, policy: DefaultPreemption, statuses: Mapping[str, Status], cluster: Cluster
) -> str:
    """Why the pod must not evict other pods now; empty if it may. `statuses` may lack nodes that no filter saw."""
    if pod.spec.preemption_policy == "Never":
        return NEVER
    row, status = cluster.rows.get(nominated_node), statuses.get(nominated_node)
    if row is None or (status is not None and status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE):
        return ""
    # Room is being made for the pod already: it should wait for that, and not make more of it elsewhere.
    is_going = is_being_preempted if cluster.rules.reads_disruption_conditions else is_terminating
    if any(policy.may_evict(other, pod) and is_going(other) for other in cluster.pods_on(row)):
        return TERMINATING
    return ""


def is_terminating(pod: Pod) -> bool:
    """Whether the pod is going, for whatever reason."""
    return pod.terminating


def is_being_preempted(pod: Pod) -> bool:
    """Whether the pod is going because the scheduler preempted it."""
    if not pod.terminating:
        return False
    condition = next((c for c in pod.status.conditions if c.type == DISRUPTION_TARGET), None)
    return condition is not None and condition.status == "True" and condition.reason == PREEMPTED


def potential_rows(statuses: Mapping[str, Status], cluster: Cluster) -> list[int]:
    """The rows where pods that go might help; not those rejected for what no eviction changes."""
    # Thousands of nodes share a handful of statuses: each of those is looked at once.
    known = {id(status): status for status in statuses.values()}
    helped = {key for key, status in known.items() if status.code is Code.UNSCHEDULABLE}
    rows = cluster.rows
    if len(helped) == len(known):
        return sorted([rows[name] for name in statuses])
    return sorted([rows[name] for name, status in statuses.items() if id(status) in helped])
