"""The search for the smallest changes that make a pod go to a node: cheapest first, each tried on the decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Any

from podium.answers.why_not.candidate_changes import candidate_changes, wins
from podium.answers.why_not.situation import Situation
from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration
from podium.engine import Decision
from podium.engine.release import CURRENT, AnyRelease, release_of
from podium.framework import Registry
from podium.framework.suggested_change import Change
from podium.model import Pod
from podium.plugins import IN_TREE

MOST_CHANGES = 4
"""How many changes a suggestion has at most."""
MOST_MORE = 1
"""How many changes more than the smallest suggestion another one may have, to be worth showing."""
MOST_DECISIONS = 150
"""How many decisions the search makes at most."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Changes that, made together, send the pod to the node; the decision with them was made, and says so."""

    changes: tuple[Change, ...]
    decision: Decision

    @property
    def cost(self) -> int:
        return sum(change.cost for change in self.changes)

    @property
    def text(self) -> str:
        return ", and ".join(change.text for change in self.changes)

    def apply(
        self,
        cluster: Cluster,
        pod: Pod,
        config: KubeSchedulerConfiguration | Mapping[str, Any] | None = None,
        registry: Registry = IN_TREE,
        release: AnyRelease = CURRENT,
    ) -> tuple[Cluster, Pod, KubeSchedulerConfiguration]:
        """The cluster, the pod and the configuration with the changes made; those given stay as they are.

        The pod is not on a node of that cluster, whether or not it was before.
        """
        settings = release_of(release).set_up(config, registry=registry).config
        situation = Situation(cluster, pod, settings, registry, release)
        for change in self.changes:
            change.apply(situation)
        return situation.cluster, situation.pod, situation.config

    def to_dict(self) -> dict[str, Any]:
        decision = self.decision
        return {
            "text": self.text,
            "changes": [change.to_dict() for change in self.changes],
            "total": decision.totals.get(decision.node or ""),
        }


def suggestions(
    situation: Situation, node: str, *, most: int = 5, most_decisions: int = MOST_DECISIONS
) -> Iterator[Suggestion]:
    """The smallest changes that send the pod to the node, smallest first; none of them contains another."""
    waiting: list[tuple[int, int, tuple[Change, ...]]] = [(0, 0, ())]
    order = count(1)
    seen: set[frozenset[Change]] = {frozenset()}
    found: list[frozenset[Change]] = []
    last = situation.decisions + most_decisions
    while waiting and len(found) < most and situation.decisions < last:
        _, _, changes = heappop(waiting)
        if any(smaller <= set(changes) or len(changes) > len(smaller) + MOST_MORE for smaller in found):
            continue
        decision, more = _look(situation, node, changes)
        if wins(decision, node):
            suggestion = _checked(situation, node, changes)
            if suggestion is not None and frozenset(suggestion.changes) not in found:
                found.append(frozenset(suggestion.changes))
                yield suggestion
            continue
        for change in more:
            together = frozenset((*changes, change))
            if change not in changes and together not in seen and len(together) <= MOST_CHANGES:
                seen.add(together)
                heappush(waiting, (sum(each.cost for each in together), next(order), (*changes, change)))


def _look(situation: Situation, node: str, changes: tuple[Change, ...]) -> tuple[Decision, list[Change]]:
    """What is decided with some changes, and which one more might help."""
    with situation.with_changes(changes):
        decision = situation.decide()
        if wins(decision, node) or len(changes) >= MOST_CHANGES:
            return decision, []
        return decision, candidate_changes(situation, decision, node)


def _checked(situation: Situation, node: str, changes: tuple[Change, ...]) -> Suggestion | None:
    """The changes without those that turn out not to be needed, tried once more from scratch."""
    for change in changes if len(changes) > 1 else ():
        rest = tuple(each for each in changes if each is not change)
        with situation.with_changes(rest):
            suffices = wins(situation.decide(), node)
        if suffices:
            return _checked(situation, node, rest)
    fresh = Situation(situation.cluster, situation.pod, situation.config, situation.registry, situation.release)
    with fresh.with_changes(changes):
        decision = fresh.decide()
    fresh.close()
    return Suggestion(changes, decision) if wins(decision, node) else None
