"""Explain: the decision of one pod, the things in the way on other nodes, and how its scores come about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from msgspec.structs import replace

from podium.answers.group_outlook import GroupOutlook, group_outlook
from podium.answers.score_formulas import ScoreFormula, score_formulas
from podium.config.profiles import check_profile
from podium.engine import Decision, Scheduler
from podium.engine.decision import ranking, why_finished
from podium.framework.obstacle import NO_OBSTACLES, Obstacles, RejectedNodes
from podium.model import Pod
from podium.plugins.storage.storage_detail import claims_detail

Formulas = Mapping[str, tuple[ScoreFormula, ...]]
"""Per node, how its scores come about."""
NO_FORMULAS: Formulas = MappingProxyType({})
WhichNodes = Callable[[Decision], Sequence[str]]
"""The nodes of a decision whose scores are to be explained."""


class Explained(NamedTuple):
    """A decision and, for a running pod, its node: the decision is then the one it would get now."""

    decision: Decision
    runs_on: str = ""
    obstacles: Obstacles = NO_OBSTACLES
    """Per rejected node, the things in the way that can be named."""
    about_claims: str = ""
    """A sentence about the claim that keeps the pod from every node; empty if there is none."""
    formulas: Formulas = NO_FORMULAS
    """Per node that was asked for and scored, how its scores come about."""
    group: GroupOutlook | None = None
    """How far the pod's PodGroup gets, if it is scheduled with one."""

    @property
    def is_placed(self) -> bool:
        """Whether the pod gets a node: it fits, and so does its group."""
        return self.decision.node is not None and (self.group is None or self.group.fits)


def no_nodes(decision: Decision) -> Sequence[str]:
    """No formulas."""
    return ()


def best_nodes(count: int | None) -> WhichNodes:
    """The nodes with the highest totals, the chosen node first; None for all."""
    return lambda decision: ranking(decision)[:count]


def explain_pod(
    scheduler: Scheduler,
    pod: Pod,
    profile: str | None = None,
    *,
    preempt: bool = False,
    formulas_on: WhichNodes = no_nodes,
) -> Explained:
    """Decide a pod as if it were not running yet, by its own profile or another, and explain the decision.

    `formulas_on` names the nodes whose scores are worked out, for example `best_nodes(2)`.
    """
    if profile is not None:
        check_profile(profile, scheduler.frameworks)
    if pod.finished:
        return Explained(Decision(pod.key, None, error=f"it {why_finished(pod)}"))
    with scheduler.cluster.without(pod) as unbound:
        if profile is not None:
            unbound = replace(unbound, spec=replace(unbound.spec, scheduler_name=profile))
        group = scheduler.group_of(unbound)
        outlook = None if group is None else group_outlook(group, unbound, scheduler)
        decision = scheduler.decide(unbound, preempt=preempt) if outlook is None else outlook.decision
        if decision.error:
            return Explained(decision, pod.spec.node_name, group=outlook)
        if outlook is not None:
            obstacles = scheduler.framework_of(unbound).obstacles(
                RejectedNodes(unbound, decision.rejected, scheduler.cluster)
            )
            return Explained(decision, pod.spec.node_name, obstacles, group=outlook)
        return Explained(
            decision,
            pod.spec.node_name,
            scheduler.framework_of(unbound).obstacles(RejectedNodes(unbound, decision.rejected, scheduler.cluster)),
            claims_detail(scheduler.cluster, unbound, decision.pre_filter_status),
            score_formulas(scheduler, unbound, decision, formulas_on(decision)),
        )
