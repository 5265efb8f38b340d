"""What keeps a pod off a node or makes another node win, and the smallest changes that would turn it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from dataclasses import replace as replace_data
from typing import Any

from msgspec.structs import replace

from podium.answers.node_lookup import find_node
from podium.answers.why_not import Change, Situation, Suggestion, suggestions
from podium.answers.why_not.candidate_changes import rejection
from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration, Profile
from podium.engine import Decision, Scheduler
from podium.engine.decision import scored
from podium.engine.release import CURRENT, AnyRelease
from podium.errors import InputError
from podium.framework import Registry, Status
from podium.model import Pod
from podium.plugins import IN_TREE

MOST = 5
"""How many suggestions are looked for unless told otherwise."""


@dataclass(frozen=True, slots=True)
class WhyNot:
    """What stands between a pod and a node."""

    pod: str
    node: str
    decision: Decision
    """Where the pod goes instead, or that it goes to the node already."""
    blockers: tuple[Status, ...]
    """Every filter that rejects the node, in the order of the profile; empty if the pod fits there."""
    suggestions: tuple[Suggestion, ...]
    """The smallest changes that send the pod to the node, smallest first; each was tried."""

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
        """The same plugin by plugin, the largest difference first; negative where the node is ahead."""
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
                {"plugin": status.plugin, "code": status.code.value, "reasons": list(status.reasons)}
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
    config: KubeSchedulerConfiguration | Mapping[str, Any] | None = None,
    *,
    registry: Registry = IN_TREE,
    release: AnyRelease = CURRENT,
    profile: str | None = None,
    tie_break: str | None = "first",
    seed: int = 0,
    most: int = MOST,
) -> WhyNot:
    """Why the pod does not go to the node, and up to `most` suggestions; the cluster stays as it is.

    A pod that runs already is decided again as if it did not run yet. A suggestion makes the node win outright, so it
    holds whatever breaks ties; None for `tie_break` breaks them as the release does.
    """
    node = find_node(cluster, node)
    pod = undecided(pod, profile)
    with closing(Scheduler(cluster, config, registry=registry, release=release)) as scheduler:
        scheduler.framework_of(pod)
        settings = scheduler.config
    ways: dict[str, Any] = {"registry": registry, "release": release}
    with closing(Situation(cluster, pod, _until_one_rejects(settings), **ways)) as situation:
        with closing(Scheduler(situation.cluster, settings, tie_break=tie_break, seed=seed, **ways)) as scheduler:
            decision = scheduler.decide(pod)
        if decision.node == node:
            return WhyNot(pod.key, node, decision, (), ())
        blockers = tuple(_blockers(situation, node))
        return WhyNot(pod.key, node, decision, blockers, tuple(suggestions(situation, node, most=most)))


def undecided(pod: Pod, profile: str | None = None) -> Pod:
    """The pod as if it had no node yet, to be decided by its own profile or another."""
    if pod.finished:
        raise InputError(f"pod {pod.key} has finished ({pod.status.phase}) and needs no node")
    return replace(pod, spec=replace(pod.spec, node_name="", scheduler_name=profile or pod.spec.scheduler_name))


def _until_one_rejects(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """The same decisions, but for a release that has every filter look at every node: one rejection is one filter's."""
    if not config.old_release:
        return config
    from podium.releases import LegacyConfiguration  # loaded where an old release decides

    assert isinstance(config, LegacyConfiguration)
    return replace_data(config, conduct=replace_data(config.conduct, collects_all_reasons=False))


def _blockers(situation: Situation, node: str) -> list[Status]:
    """What rejects the node: the first filter that does, then the first without that one, and so on."""
    found: list[Status] = []
    changes: list[Change] = []
    while True:
        with situation.with_changes(changes):
            status = rejection(situation.decide(), node)
        if status is None or any(status.plugin == known.plugin for known in found):
            return found
        found.append(status)
        if not status.plugin:
            return found
        changes.append(_without(situation.pod.spec.scheduler_name, status.plugin))


def _without(profile: str, plugin: str) -> Change:
    """Take a plugin out where it looks at nodes; what it leaves at PreFilter it may want at Score."""

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
