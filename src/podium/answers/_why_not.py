"""Why a pod does not go to a node, and the smallest changes that send it there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as replace_data
from typing import Any, Unpack

from podium.answers.candidate_changes import OnNode, rejection
from podium.answers.change_search import MOST_SUGGESTIONS, Suggestion, suggestions
from podium.answers.trial_state import TrialState, trial_of
from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration, Profile
from podium.engine import Decision
from podium.engine.decision import scored
from podium.engine.scheduler import Config, SchedulerKeywords, SchedulerOptions
from podium.framework import Status
from podium.framework.obstacle import Obstacle, RejectedNodes
from podium.framework.suggested_change import Change
from podium.lookup import find_node
from podium.model import Pod


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why a pod does not go to a node, and what would send it there."""

    pod: str
    node: str
    decision: Decision
    """Where the pod goes instead, or that it already goes to the node."""
    blockers: tuple[Status, ...]
    """Every filter that rejects the node, in the order of the profile; empty if the pod fits there."""
    suggestions: tuple[Suggestion, ...]
    """The smallest changes that send the pod to the node, smallest first; each was tried."""
    obstacles: Mapping[str, tuple[Obstacle, ...]] = field(default_factory=dict)
    """Per filter that rejects the node, the things in the way that can be named."""

    @property
    def goes_there(self) -> bool:
        return self.decision.node == self.node

    @property
    def behind(self) -> int | None:
        """By how many points the node loses to the chosen one; None unless both were scored."""
        totals, chosen = self.decision.totals, self.decision.node or ""
        return totals[chosen] - totals[self.node] if {self.node, chosen} <= totals.keys() else None

    @property
    def behind_by_plugin(self) -> dict[str, int]:
        """The same per plugin, the largest difference first; negative where the node is ahead."""
        if self.behind is None:
            return {}
        chosen = self.decision.node or ""
        points = {one.plugin: one.weighted[chosen] - one.weighted[self.node] for one in scored(self.decision)}
        order = sorted(points, key=lambda plugin: (-abs(points[plugin]), plugin))
        return {plugin: points[plugin] for plugin in order if points[plugin]}

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {
            "pod": self.pod,
            "node": self.node,
            "goesThere": self.goes_there,
            "goesTo": self.decision.node,
            "blockers": blocker_documents(self.blockers, self.obstacles),
            "behind": self.behind,
            "behindByPlugin": self.behind_by_plugin,
            "suggestions": [suggestion.to_dict() for suggestion in self.suggestions],
        }


def blocker_documents(
    blockers: Iterable[Status], obstacles: Mapping[str, tuple[Obstacle, ...]]
) -> list[dict[str, Any]]:
    return [
        {
            "plugin": status.plugin,
            "code": status.code.value,
            "reasons": list(status.reasons),
            "inTheWay": [obstacle.to_dict() for obstacle in obstacles.get(status.plugin, ())],
        }
        for status in blockers
    ]


def why_not(
    cluster: Cluster,
    pod: Pod,
    node: str,
    config: Config | SchedulerOptions = None,
    *,
    profile: str | None = None,
    most: int = MOST_SUGGESTIONS,
    **keywords: Unpack[SchedulerKeywords],
) -> WhyNot:
    """Why the pod does not go to the node, and up to `most` suggestions; the cluster stays as it is.

    A running pod is decided again as if it were not running yet. A suggestion makes the node win outright, so it holds
    whatever breaks ties. The default for `tie_break` is `first`; None breaks ties as the release does.
    """
    node = find_node(cluster, node)
    made = SchedulerOptions.of if "tie_break" in keywords else SchedulerOptions.steady
    with trial_of(cluster, pod, made(config, **keywords), profile) as (trial, decision):
        if decision.node == node:
            return WhyNot(trial.pod.key, node, decision, (), ())
        blockers = _blockers(trial, node)
        rejected = {status.plugin: RejectedNodes(trial.pod, {node: status}, trial.cluster) for status in blockers}
        obstacles = {plugin: trial.framework.obstacles(each).get(node, ()) for plugin, each in rejected.items()}
        found = tuple(suggestions(trial, OnNode(node), most=most))
        return WhyNot(trial.pod.key, node, decision, tuple(blockers), found, obstacles)


def _blockers(trial: TrialState, node: str) -> list[Status]:
    """The statuses that reject the node: of the first filter, then of the first filter without that one, and so on."""
    found: list[Status] = []
    changes: list[Change] = []
    while True:
        with trial.with_changes(changes):
            status = rejection(trial.decide(), node)
        if status is None or any(status.plugin == known.plugin for known in found):
            return found
        found.append(status)
        if not status.plugin:
            return found
        changes.append(_disabled(trial.pod.spec.scheduler_name, status.plugin))


def _disabled(profile: str, plugin: str) -> Change:
    """Disable a plugin's Filter; it keeps PreFilter, whose state its Score may need."""

    def edit(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
        def without(each: Profile) -> Profile:
            points = {
                point: tuple(ref for ref in each.points.get(point, ()) if ref.name != plugin)
                for point in ("preFilter", "filter", "preScore", "score")
            }
            return replace_data(each, points={**each.points, **points})

        profiles = [without(each) if each.scheduler_name == profile else each for each in config.profiles]
        return replace_data(config, profiles=tuple(profiles))

    return Change("without-filter", plugin, (f"profile/{profile}",), 0, lambda to: to.edit_config(edit))
