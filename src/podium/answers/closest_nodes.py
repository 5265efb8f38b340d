"""The nodes that a pod comes closest to fitting on: every filter that rejects them, not only the first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from dataclasses import replace as replace_data

from podium.answers.trial_state import TrialState
from podium.config import KubeSchedulerConfiguration, Profile
from podium.engine import Decision
from podium.framework import Status
from podium.framework.obstacle import Obstacle, RejectedNodes
from podium.framework.suggested_change import Change


@dataclass(frozen=True, slots=True)
class ClosestNode:
    """A node that rejects a pod, and everything on it that does."""

    node: str
    blockers: tuple[Status, ...]
    """Every filter that rejects the node, in the order of the profile."""
    obstacles: Mapping[str, tuple[Obstacle, ...]]
    """By filter, the things in the way that can be named."""

    @property
    def distance(self) -> tuple[int, int, int, str]:
        """How far the pod is from fitting: by the filters that reject, the things in the way, the amounts missing."""
        things = [each for found in self.obstacles.values() for each in found]
        return len(self.blockers), len(things), sum(each.missing for each in things), self.node


def closest_nodes(trial: TrialState) -> list[ClosestNode]:
    """The nodes that reject the trial's pod, the closest first.

    Each filter of the profile is asked by itself, so that one that rejects early hides no other.
    """
    framework, profile = trial.framework, trial.pod.spec.scheduler_name
    own = next(each for each in trial.config.profiles if each.scheduler_name == profile)
    filters = [ref.name for ref in own.points.get("filter", ())]
    blockers: dict[str, dict[str, Status]] = {}
    obstacles: dict[str, dict[str, tuple[Obstacle, ...]]] = {}
    for name in filters:
        with trial.with_changes([_only_filter(profile, name)]):
            statuses = rejections(trial.decide(), trial.cluster.rows)
        named = framework.obstacles(RejectedNodes(trial.pod, statuses, trial.cluster))
        for node, status in statuses.items():
            # PreFilter of another plugin may reject a node as well: it counts once, for that plugin.
            blockers.setdefault(node, {}).setdefault(status.plugin, status)
            if node in named:
                obstacles.setdefault(node, {}).setdefault(status.plugin, named[node])
    found = [ClosestNode(node, tuple(by.values()), obstacles.get(node, {})) for node, by in blockers.items()]
    return sorted(found, key=lambda each: each.distance)


def rejections(decision: Decision, nodes: Iterable[str]) -> dict[str, Status]:
    """Why each of the nodes is rejected, including those that PreFilter leaves out."""
    found = dict(decision.rejected)
    if decision.absent is not None and decision.absent.reasons:
        feasible = frozenset(decision.feasible)
        found |= {node: decision.absent for node in nodes if node not in feasible and node not in found}
    return found


def _only_filter(profile: str, plugin: str) -> Change:
    """Let one plugin filter and no other. PreFilter stays: its state is needed to score."""

    def edit(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
        def only(each: Profile) -> Profile:
            kept = tuple(ref for ref in each.points.get("filter", ()) if ref.name == plugin)
            return replace_data(each, points={**each.points, "filter": kept})

        profiles = [only(each) if each.scheduler_name == profile else each for each in config.profiles]
        return replace_data(config, profiles=tuple(profiles))

    return Change("only-filter", plugin, (f"profile/{profile}",), 0, lambda to: to.edit_config(edit))
