"""Picks one of the nodes where evicting pods makes room, by kube-scheduler's criteria."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster
from podium.cluster.columns import Ints
from podium.engine._feasible_rows import NodeStatuses
from podium.engine.select import TieBreak
from podium.errors import ExtenderError
from podium.extenders import Extender, Victims
from podium.framework import Code, Status
from podium.model import Pod
from podium.plugins.queue_and_bind import DefaultPreemption, start_time

NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."

DISRUPTION_TARGET, PREEMPTED = "DisruptionTarget", "PreemptionByScheduler"


def why_not_eligible(
    pod: Pod, nominated_node: str, policy: DefaultPreemption, statuses: Mapping[str, Status], cluster: Cluster
) -> str:
    """Why the pod must not evict other pods now; empty if it may. `statuses` may lack nodes that no filter saw."""
    if pod.spec.preemption_policy == "Never":
        return NEVER
    row = cluster.rows.get(nominated_node)
    if row is None:
        return ""
    status = statuses.get(nominated_node)
    if status is not None and status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
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


def potential_rows(statuses: Mapping[str, Status], cluster: Cluster) -> Ints:
    """The rows where pods that go might help; not those rejected for what no eviction changes."""
    if isinstance(statuses, NodeStatuses):
        return statuses.rows_of(Code.UNSCHEDULABLE)
    rows = cluster.rows
    helped = [rows[name] for name, status in statuses.items() if status.code is Code.UNSCHEDULABLE]
    return np.array(sorted(helped), dtype=np.int64)


BELOW_ALL_PRIORITIES = 2**31
"""Added to every priority that is summed up, so that fewer victims of a negative priority are better than more."""


CRITERIA = (
    "fewest violations of PodDisruptionBudgets",
    "lowest priority of the most important victim",
    "lowest sum of the victims' priorities",
    "fewest victims",
    "latest start of the most important victims",
)
"""What makes a candidate better than others, in order."""

ONLY_ONE = "only candidate"
TIE = "tie among equals"


class Candidate(NamedTuple):
    """A node, and the pods that have to go there, the most important first."""

    node: str
    victims: tuple[Pod, ...]
    pdb_violations: int = 0

    @property
    def costs(self) -> tuple[float, ...]:
        """One number per criterion: the candidate with the smallest is the best."""
        priorities = [victim.priority for victim in self.victims]
        highest = max(priorities)
        started = [start_time(victim) for victim, own in zip(self.victims, priorities, strict=True) if own == highest]
        return (
            self.pdb_violations,
            priorities[0],
            sum(priorities) + len(priorities) * BELOW_ALL_PRIORITIES,
            len(priorities),
            -min(started),
        )


Costs = NDArray[np.float64]
"""[candidate, criterion]"""


class Candidates(NamedTuple):
    """The nodes to choose from, with their rows and costs as columns."""

    rows: Ints
    costs: Costs
    by_row: NDArray[np.object_] | Mapping[int, Candidate]

    @classmethod
    def of(cls, listed: list[Candidate], cluster: Cluster) -> Candidates:
        """Candidates as extenders want them; at least one."""
        by_row = {cluster.rows[candidate.node]: candidate for candidate in listed}
        return cls(np.array([*by_row], dtype=np.int64), np.array([one.costs for one in by_row.values()]), by_row)

    def listed(self) -> list[Candidate]:
        return [self.by_row[row] for row in self.rows.tolist()]


def pick(candidates: Candidates, tie_break: TieBreak, cluster: Cluster) -> tuple[Candidate, str]:
    """The best candidate, and what made it better than the others."""
    rows, costs, by_row = candidates
    if len(rows) == 1:
        return by_row[rows.item(0)], ONLY_ONE
    places = _cheapest(costs)
    if len(places) > 1:
        tied = rows[places]
        tied.sort()
        return by_row[tie_break.choose(tied, cluster)], TIE
    best, second = costs[np.lexsort(costs.T[::-1])[:2]].tolist()
    criterion = next(name for name, one, other in zip(CRITERIA, best, second, strict=True) if one != other)
    return by_row[rows.item(places.item(0))], criterion


def _cheapest(costs: Costs) -> Ints:
    """The places of the candidates that no other one is better than."""
    places = np.arange(len(costs))
    # Bytes are compared in less time than arrays take.
    if costs.tobytes() == costs[0].tobytes() * len(costs):
        return places
    for column in costs.T:
        values = column[places]
        least = values.item(values.argmin())
        if least != values.item(values.argmax()):
            places = places[values == least]
    return places


def ask_extenders(
    extenders: Sequence[Extender], pod: Pod, candidates: list[Candidate], cluster: Cluster
) -> list[Candidate]:
    """The candidates that the extenders agree to, with the victims they want; raises ExtenderError."""
    asked = [extender for extender in extenders if extender.supports_preemption and extender.is_interested(pod)]
    if not asked:
        return candidates
    pods_by_node = {name: cluster.pods_on(row) for name, row in cluster.rows.items()}
    victims = {one.node: Victims(list(one.victims), one.pdb_violations) for one in candidates}
    for extender in asked:
        try:
            answer = extender.preempt(pod, victims, pods_by_node)
        except ExtenderError:
            if extender.ignorable:
                continue
            raise
        empty = [node for node, found in answer.items() if not found.pods]
        if empty and not extender.ignorable:
            raise ExtenderError(extender.name, f'expected at least one victim pod on node "{empty[0]}"')
        victims = {node: found for node, found in answer.items() if found.pods}
        if not victims:
            break
    return [Candidate(node, tuple(found.pods), found.pdb_violations) for node, found in victims.items()]
