"""PodGroups in the input: what the API server refuses, the shape of v1.36, and objects of other schedulers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from podium.errors import InputError
from podium.model import Object, Pod, PodGroup
from podium.model.meta import qualified_name_errors
from podium.model.pod import PodSchedulingGroup
from podium.model.pod_groups import (
    DisruptionMode,
    GangSchedulingPolicy,
    PodGroupSchedulingConstraints,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
)
from podium.wording import counted, listed

V1_36 = "scheduling.k8s.io/v1alpha2"
"""The version of PodGroup that v1.36 has."""
HIGHEST_PRIORITY = 1_000_000_000
MOST_CLAIMS = 4
_MOST_NAMED = 3

OTHER_SCHEDULERS = {
    "kueue.x-k8s.io": "Kueue admits workloads by quota before the scheduler sees them",
    "scheduling.volcano.sh": "Volcano schedules its PodGroups itself",
    "batch.volcano.sh": "Volcano creates and schedules the pods of its jobs itself",
    "scheduling.x-k8s.io": "the Coscheduling plugin holds pods back until minMember of them fit",
    "yunikorn.apache.org": "YuniKorn places pods by its own queues",
}
"""By API group, what another scheduler or plugin does that Podium does not model."""


def check_gang(gang: GangSchedulingPolicy) -> None:
    if gang.min_count < 1:
        raise InputError(f"must be 1 or more, got {gang.min_count}", "minCount")


def check_policy(policy: PodGroupSchedulingPolicy) -> None:
    """Check that exactly one policy is set."""
    if (policy.basic is None) == (policy.gang is None):
        raise InputError("exactly one of basic and gang must be set")


def check_constraints(constraints: PodGroupSchedulingConstraints) -> None:
    """Check that there is at most one topology constraint, on a label key."""
    if len(constraints.topology) > 1:
        raise InputError("must have at most 1 entry", "topology")
    for constraint in constraints.topology:
        for error in qualified_name_errors(constraint.key):
            raise InputError(error, "topology[0].key")


def check_disruption_mode(mode: DisruptionMode) -> None:
    if (mode.single is None) == (mode.all is None):
        raise InputError("exactly one of single and all must be set")


def check_pod_group(spec: PodGroupSpec) -> None:
    """Check the priority, the preemption policy and the number of claims."""
    if spec.priority is not None and spec.priority > HIGHEST_PRIORITY:
        raise InputError(f"must be {HIGHEST_PRIORITY} or less, got {spec.priority}", "priority")
    if spec.preemption_policy not in (None, "PreemptLowerPriority", "Never"):
        raise InputError(f"must be PreemptLowerPriority or Never, got {spec.preemption_policy!r}", "preemptionPolicy")
    if len(spec.resource_claims) > MOST_CLAIMS:
        raise InputError(f"must have at most {MOST_CLAIMS} entries", "resourceClaims")


def check_scheduling_group(group: PodSchedulingGroup) -> None:
    if not group.pod_group_name:
        raise InputError("is required", "podGroupName")


def from_v1_36(value: Any) -> Any:
    """A PodGroup of v1.36 in the shape of v1.37: disruptionMode is not a word but an object."""
    spec = value.get("spec") if isinstance(value, dict) else None
    mode = spec.get("disruptionMode") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or mode not in ("Pod", "PodGroup"):
        return value
    return {**value, "spec": {**spec, "disruptionMode": {"single" if mode == "Pod" else "all": {}}}}


def missing_groups(objects: Iterable[Object], pods: Iterable[Pod]) -> Iterator[str]:
    """One line if pods name PodGroups that are not in the input."""
    known = {obj.key for obj in objects if type(obj) is PodGroup}
    lost = [pod for pod in pods if pod.spec.scheduling_group is not None and pod.group_key not in known]
    if lost:
        names = list(dict.fromkeys(pod.group_key for pod in lost))
        yield (
            f"PodGroup {listed(names, _MOST_NAMED)} not in the input: with GenericWorkload on, "
            f"{counted(len(lost), 'pod')}, such as {lost[0].key}, would wait for it"
        )


def other_schedulers(groups: Iterable[str]) -> list[str]:
    """One line for each scheduler, besides kube-scheduler, whose objects are in the input."""
    found = sorted({group for group in groups if group in OTHER_SCHEDULERS})
    return [f"objects of {group} are not read: {OTHER_SCHEDULERS[group]}, which is not modelled" for group in found]
