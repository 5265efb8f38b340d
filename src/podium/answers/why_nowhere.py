"""Why a pod fits on no node, which nodes it comes closest to, and the smallest changes that let it run anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

from podium.answers._why_not import blocker_documents
from podium.answers.candidate_changes import AnyNode
from podium.answers.change_search import MOST_SUGGESTIONS, Suggestion, suggestions
from podium.answers.closest_nodes import ClosestNode, closest_nodes
from podium.answers.trial_state import trial_of
from podium.cluster import Cluster
from podium.engine import Decision
from podium.engine.scheduler import Config, SchedulerKeywords, SchedulerOptions
from podium.model import Pod

MOST_CLOSEST = 3
"""How many of the closest nodes an answer names."""


@dataclass(frozen=True, slots=True)
class WhyNowhere:
    """Why a pod fits on no node, and what would let it run."""

    pod: str
    decision: Decision
    closest: tuple[ClosestNode, ...]
    """The nodes it comes closest to fitting on, the closest first; empty if it fits somewhere."""
    suggestions: tuple[Suggestion, ...]
    """The smallest changes that let the pod run on some node, smallest first; each was tried."""

    @property
    def runs(self) -> bool:
        """Whether the pod fits on a node as things are."""
        return self.decision.node is not None

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data, with the fields of WhyNot."""
        return {
            "pod": self.pod,
            "node": None,
            "goesThere": self.runs,
            "goesTo": self.decision.node,
            "blockers": [],
            "closest": [
                {"node": each.node, "blockers": blocker_documents(each.blockers, each.obstacles)}
                for each in self.closest
            ],
            "behind": None,
            "behindByPlugin": {},
            "suggestions": [{**each.to_dict(), "goesTo": each.decision.node} for each in self.suggestions],
        }


def why_nowhere(
    cluster: Cluster,
    pod: Pod,
    config: Config | SchedulerOptions = None,
    *,
    profile: str | None = None,
    most: int = MOST_SUGGESTIONS,
    **keywords: Unpack[SchedulerKeywords],
) -> WhyNowhere:
    """Why the pod fits nowhere, and up to `most` suggestions that let it run; the cluster stays as it is.

    A running pod is decided again as if it were not running yet. Changes are looked for on the closest nodes.
    """
    made = SchedulerOptions.of if "tie_break" in keywords else SchedulerOptions.steady
    with trial_of(cluster, pod, made(config, **keywords), profile) as (trial, decision):
        if decision.node is not None:
            return WhyNowhere(pod.key, decision, (), ())
        closest = [] if decision.error else closest_nodes(trial)
        found = suggestions(trial, AnyNode([each.node for each in closest]), most=most)
        return WhyNowhere(pod.key, decision, tuple(closest[:MOST_CLOSEST]), tuple(found))
