"""The search for the smallest changes that send a pod to a node, or to any node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Any, Unpack

from podium.answers.candidate_changes import Goal
from podium.answers.trial_state import TrialState
from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration
from podium.engine import Decision
from podium.engine.scheduler import Config, SchedulerKeywords, SchedulerOptions
from podium.framework.suggested_change import Change
from podium.model import Pod

MOST_SUGGESTIONS = 5
"""The default number of suggestions."""
MOST_CHANGES_TOGETHER = 4
"""The maximum number of changes in a suggestion."""
MOST_MORE = 1
"""How many changes more than the smallest suggestion another suggestion may have."""
MOST_SEARCH_DECISIONS = 150
"""The maximum number of decisions of one search."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Changes that together send the pod to the node, confirmed by a decision with them."""

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
        config: Config | SchedulerOptions = None,
        **keywords: Unpack[SchedulerKeywords],
    ) -> tuple[Cluster, Pod, KubeSchedulerConfiguration]:
        """The cluster, the pod and the configuration with the changes applied; the given ones stay as they are.

        The pod is not on a node of that cluster, whether or not it was before.
        """
        options = SchedulerOptions.of(config, **keywords)
        trial = TrialState(cluster, pod, options.set_up().config, options)
        for change in self.changes:
            change.apply(trial)
        return trial.cluster, trial.pod, trial.config

    def to_dict(self) -> dict[str, Any]:
        decision = self.decision
        return {
            "text": self.text,
            "changes": [change.to_dict() for change in self.changes],
            "total": decision.totals.get(decision.node or ""),
        }


def suggestions(
    trial: TrialState, goal: Goal, *, most: int = MOST_SUGGESTIONS, most_decisions: int = MOST_SEARCH_DECISIONS
) -> Iterator[Suggestion]:
    """The smallest sets of changes that reach the goal, smallest first; no set contains another."""
    waiting: list[tuple[int, int, tuple[Change, ...]]] = [(0, 0, ())]
    order = count(1)
    seen: set[frozenset[Change]] = {frozenset()}
    found: list[frozenset[Change]] = []
    last = trial.decisions + most_decisions
    while waiting and len(found) < most and trial.decisions < last:
        _, _, changes = heappop(waiting)
        if any(smaller <= set(changes) or len(changes) > len(smaller) + MOST_MORE for smaller in found):
            continue
        decision, more = _look(trial, goal, changes)
        if goal.is_met(decision):
            suggestion = _checked(trial, goal, changes)
            if suggestion is not None and frozenset(suggestion.changes) not in found:
                found.append(frozenset(suggestion.changes))
                yield suggestion
            continue
        for change in more:
            together = frozenset((*changes, change))
            if change not in changes and together not in seen and len(together) <= MOST_CHANGES_TOGETHER:
                seen.add(together)
                heappush(waiting, (sum(each.cost for each in together), next(order), (*changes, change)))


def _look(trial: TrialState, goal: Goal, changes: tuple[Change, ...]) -> tuple[Decision, list[Change]]:
    """The decision with some changes, and the further changes that might help."""
    with trial.with_changes(changes):
        decision = trial.decide()
        if goal.is_met(decision) or len(changes) >= MOST_CHANGES_TOGETHER:
            return decision, []
        return decision, goal.changes(trial, decision)


def _checked(trial: TrialState, goal: Goal, changes: tuple[Change, ...]) -> Suggestion | None:
    """The changes without those that are not needed, tried once more from scratch."""
    for change in changes if len(changes) > 1 else ():
        rest = tuple(each for each in changes if each is not change)
        with trial.with_changes(rest):
            suffices = goal.is_met(trial.decide())
        if suffices:
            return _checked(trial, goal, rest)
    fresh = TrialState(trial.cluster, trial.pod, trial.config, trial.options)
    with fresh.with_changes(changes):
        decision = fresh.decide()
    fresh.close()
    return Suggestion(changes, decision) if goal.is_met(decision) else None
