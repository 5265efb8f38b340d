"""PodGroup: pods that are scheduled together."""

from __future__ import annotations

from msgspec.structs import replace

from podium.model.meta import Int32, Object, Struct
from podium.model.pod import PodResourceClaim, PodResourceClaimStatus

INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
"""The condition that says whether a group got its first pods onto nodes."""


class GangSchedulingPolicy(Struct, frozen=True):
    """All or nothing: no pod is placed unless `min_count` pods are."""

    min_count: Int32 = 0


class BasicSchedulingPolicy(Struct, frozen=True):
    """Pods are tried together, but each may be placed without the others."""


class PodGroupSchedulingPolicy(Struct, frozen=True):
    """Exactly one of the two is set."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(Struct, frozen=True):
    """All pods go to nodes with the same value of this label."""

    key: str = ""


class PodGroupSchedulingConstraints(Struct, frozen=True):
    topology: list[TopologyConstraint] = []


class SingleDisruptionMode(Struct, frozen=True):
    """Pods are preempted one by one."""


class AllDisruptionMode(Struct, frozen=True):
    """The pods of the group are preempted together or not at all."""


class DisruptionMode(Struct, frozen=True):
    """At most one of the two is set; neither means `single`."""

    single: SingleDisruptionMode | None = None
    all: AllDisruptionMode | None = None


class PodGroupSpec(Struct, frozen=True):
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: list[PodResourceClaim] = []
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None
    parent_composite_pod_group_name: str | None = None


class Condition(Struct, frozen=True):
    """A condition of an object; the time of its last change is left out."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0


class PodGroupStatus(Struct, frozen=True):
    conditions: list[Condition] = []
    resource_claim_statuses: list[PodResourceClaimStatus] = []


class PodGroup(Object, frozen=True):
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def min_count(self) -> int:
        """How many pods must be placed for any to be; 1 for the basic policy."""
        gang = self.spec.scheduling_policy.gang
        return 1 if gang is None else gang.min_count

    @property
    def is_gang(self) -> bool:
        return self.spec.scheduling_policy.gang is not None

    @property
    def is_disrupted_together(self) -> bool:
        """Whether preemption takes all pods of the group or none."""
        mode = self.spec.disruption_mode
        return mode is not None and mode.all is not None

    @property
    def topology_key(self) -> str:
        """The node label of which all pods must have one value; empty without such a constraint."""
        constraints = self.spec.scheduling_constraints
        return constraints.topology[0].key if constraints is not None and constraints.topology else ""


def with_condition(group: PodGroup, condition: Condition) -> PodGroup:
    """The group with a condition, which replaces one of the same type."""
    others = [each for each in group.status.conditions if each.type != condition.type]
    return replace(group, status=replace(group.status, conditions=[*others, condition]))
