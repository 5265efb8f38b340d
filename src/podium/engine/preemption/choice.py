"""Which of the nodes where evicting pods helps is taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster import Cluster
from podium.engine.select import TieBreak
from podium.errors import ExtenderError
from podium.extenders import Extender, Victims
from podium.objects import Pod
from podium.plugins.default_preemption import start_time

BELOW_ALL_PRIORITIES = 2**31
"""Added to every priority that is summed up, so that fewer victims of a negative priority are better than more."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, and the pods that have to go there, the most important first."""

    node: str
    victims: tuple[Pod, ...]
    pdb_violations: int = 0

    @property
    def highest_priority(self) -> int:
        return self.victims[0].priority

    @property
    def priority_sum(self) -> int:
        return sum(victim.priority + BELOW_ALL_PRIORITIES for victim in self.victims)

    @property
    def earliest_start(self) -> float:
        """When the first of the victims with the highest priority started."""
        highest = max(victim.priority for victim in self.victims)
        return min(start_time(victim) for victim in self.victims if victim.priority == highest)


CRITERIA: tuple[tuple[str, Callable[[Candidate], float]], ...] = (
    ("fewest violations of PodDisruptionBudgets", lambda candidate: candidate.pdb_violations),
    ("lowest priority of the most important victim", lambda candidate: candidate.highest_priority),
    ("lowest sum of the victims' priorities", lambda candidate: candidate.priority_sum),
    ("fewest victims", lambda candidate: len(candidate.victims)),
    ("latest start of the most important victims", lambda candidate: -candidate.earliest_start),
)
"""What makes a candidate better than others, in order; the smallest number is the best."""

ONLY_ONE = "only candidate"
TIE = "tie among equals"


def pick(candidates: Sequence[Candidate], tie_break: TieBreak, cluster: Cluster) -> tuple[Candidate, str]:
    """The best candidate, and which criterion decided."""
    if len(candidates) == 1:
        return candidates[0], ONLY_ONE
    left = list(candidates)
    for name, criterion in CRITERIA:
        values = [criterion(candidate) for candidate in left]
        best = min(values)
        left = [candidate for candidate, value in zip(left, values, strict=True) if value == best]
        if len(left) == 1:
            return left[0], name
    by_row = {cluster.rows[candidate.node]: candidate for candidate in left}
    rows = np.array(sorted(by_row), dtype=np.int64)
    return by_row[tie_break.choose(rows, cluster)], TIE


def ask_extenders(
    extenders: Sequence[Extender], pod: Pod, candidates: list[Candidate], cluster: Cluster
) -> list[Candidate]:
    """The candidates that the extenders agree to, with the victims they want; raises ExtenderError."""
    asked = [extender for extender in extenders if extender.supports_preemption and extender.is_interested(pod)]
    if not asked or not candidates:
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
