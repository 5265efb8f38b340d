"""Why a pod does not go to a node, and the search for the smallest changes that send it there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from dataclasses import replace as replace_data
from heapq import heappop, heappush
from itertools import count
from typing import Any, Unpack

from msgspec.structs import replace

from podium.answers._candidate_changes import TrialState, candidate_changes, rejection, wins
from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration, Profile
from podium.config.profiles import check_profile
from podium.engine import Decision, Scheduler
from podium.engine.decision import scored, why_finished
from podium.engine.scheduler import Config, SchedulerKeywords, SchedulerOptions
from podium.errors import InputError
from podium.framework import Status
from podium.framework.suggested_change import Change, Obstacle, RejectedNodes
from podium.lookup import find_node
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
    trial: TrialState, node: str, *, most: int = MOST_SUGGESTIONS, most_decisions: int = MOST_SEARCH_DECISIONS
) -> Iterator[Suggestion]:
    """The smallest sets of changes that send the pod to the node, smallest first; no set contains another."""
    waiting: list[tuple[int, int, tuple[Change, ...]]] = [(0, 0, ())]
    order = count(1)
    seen: set[frozenset[Change]] = {frozenset()}
    found: list[frozenset[Change]] = []
    last = trial.decisions + most_decisions
    while waiting and len(found) < most and trial.decisions < last:
        _, _, changes = heappop(waiting)
        if any(smaller <= set(changes) or len(changes) > len(smaller) + MOST_MORE for smaller in found):
            continue
        decision, more = _look(trial, node, changes)
        if wins(decision, node):
            suggestion = _checked(trial, node, changes)
            if suggestion is not None and frozenset(suggestion.changes) not in found:
                found.append(frozenset(suggestion.changes))
                yield suggestion
            continue
        for change in more:
            together = frozenset((*changes, change))
            if change not in changes and together not in seen and len(together) <= MOST_CHANGES_TOGETHER:
                seen.add(together)
                heappush(waiting, (sum(each.cost for each in together), next(order), (*changes, change)))


def _look(trial: TrialState, node: str, changes: tuple[Change, ...]) -> tuple[Decision, list[Change]]:
    """The decision with some changes, and the further changes that might help."""
    with trial.with_changes(changes):
        decision = trial.decide()
        if wins(decision, node) or len(changes) >= MOST_CHANGES_TOGETHER:
            return decision, []
        return decision, candidate_changes(trial, decision, node)


def _checked(trial: TrialState, node: str, changes: tuple[Change, ...]) -> Suggestion | None:
    """The changes without those that are not needed, tried once more from scratch."""
    for change in changes if len(changes) > 1 else ():
        rest = tuple(each for each in changes if each is not change)
        with trial.with_changes(rest):
            suffices = wins(trial.decide(), node)
        if suffices:
            return _checked(trial, node, rest)
    fresh = TrialState(trial.cluster, trial.pod, trial.config, trial.options)
    with fresh.with_changes(changes):
        decision = fresh.decide()
    fresh.close()
    return Suggestion(changes, decision) if wins(decision, node) else None


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
            "blockers": [
                {
                    "plugin": status.plugin,
                    "code": status.code.value,
                    "reasons": list(status.reasons),
                    "inTheWay": [obstacle.to_dict() for obstacle in self.obstacles.get(status.plugin, ())],
                }
                for status in self.blockers
            ],
            "behind": self.behind,
            "behindByPlugin": self.behind_by_plugin,
            "suggestions": [suggestion.to_dict() for suggestion in self.suggestions],
        }


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
    pod = undecided(pod, profile)
    made = SchedulerOptions.of if "tie_break" in keywords else SchedulerOptions.steady
    options = made(config, **keywords)
    with closing(Scheduler(cluster, options)) as scheduler:
        if profile is not None:
            check_profile(profile, scheduler.frameworks)
        scheduler.framework_of(pod)
        settings = scheduler.config
    with closing(TrialState(cluster, pod, _until_one_rejects(settings), options)) as trial:
        with closing(Scheduler(trial.cluster, replace_data(options, config=settings))) as scheduler:
            decision = scheduler.decide(pod)
        if decision.node == node:
            return WhyNot(pod.key, node, decision, (), ())
        blockers = _blockers(trial, node)
        rejected = {status.plugin: RejectedNodes(pod, {node: status}, trial.cluster) for status in blockers}
        obstacles = {plugin: trial.framework.obstacles(each).get(node, ()) for plugin, each in rejected.items()}
        found = tuple(suggestions(trial, node, most=most))
        return WhyNot(pod.key, node, decision, tuple(blockers), found, obstacles)


def undecided(pod: Pod, profile: str | None = None) -> Pod:
    """The pod as if it had no node yet, to be decided by its own profile or another."""
    if pod.finished:
        raise InputError(f"pod {pod.key} {why_finished(pod)}")
    return replace(pod, spec=replace(pod.spec, node_name="", scheduler_name=profile or pod.spec.scheduler_name))


def _until_one_rejects(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """The same decisions, but a release in which every filter checks every node stops at the first filter that
    rejects.
    """
    if not config.old_release:
        return config
    from podium.releases import LegacyConfiguration  # loaded where an old release decides

    assert isinstance(config, LegacyConfiguration)
    return replace_data(config, behaviour=replace_data(config.behaviour, collects_all_reasons=False))


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
        changes.append(_without(trial.pod.spec.scheduler_name, status.plugin))


def _without(profile: str, plugin: str) -> Change:
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
