"""The strategy of Karpenter: removes nodes, or replaces them by cheaper ones, as soon as their pods fit elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from podium.autoscaling._cloud_provider import CloudProvider
from podium.autoscaling._group_nodes import Member, may_be_removed, try_removal
from podium.autoscaling.strategy import Removals, Strategy
from podium.autoscaling.trial_cluster import TrialCluster
from podium.manifests.located import Section
from podium.model import Node, Pod
from podium.workloads.disruptions import Disruptions

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
WHEN_EMPTY = "WhenEmpty"
POLICIES = ("WhenEmptyOrUnderutilized", WHEN_EMPTY)
EMPTY, UNDERUTILIZED = "Empty", "Underutilized"
REASONS = (EMPTY, UNDERUTILIZED, "Drifted")
NEVER = "Never"


@dataclass(frozen=True)
class DisruptionBudget:
    """How many nodes Karpenter may remove at a time."""

    nodes: int
    is_percentage: bool
    reasons: tuple[str, ...]
    """The reasons for removing nodes to which the budget applies."""

    def allowed(self, nodes: int) -> int:
        """How many nodes may be removed if there are `nodes`; a percentage is rounded up."""
        return -(-self.nodes * nodes // 100) if self.is_percentage else self.nodes


TENTH = DisruptionBudget(10, is_percentage=True, reasons=REASONS)


@dataclass(frozen=True, kw_only=True)
class Karpenter(Strategy):
    """Karpenter's rules, and the settings of a NodePool's disruption."""

    name: ClassVar[str] = "karpenter"
    default_expander: ClassVar[str] = "price"
    fields: ClassVar[tuple[str, ...]] = ("consolidationPolicy", "consolidateAfter", "budgets")

    consolidation_policy: str
    consolidate_after: float | None
    """Seconds for which the pods of a node must have been the same; None if nodes are never removed."""
    budgets: tuple[DisruptionBudget, ...]

    @classmethod
    def read(cls, top: Section, scan_interval: float) -> Self:
        is_never = top.raw("consolidateAfter") == NEVER
        return cls(
            consolidation_policy=top.one_of("consolidationPolicy", POLICIES, POLICIES[0]),
            consolidate_after=None if is_never else top.duration("consolidateAfter", 0.0),
            budgets=tuple(map(_budget, top.items("budgets"))) if "budgets" in top else (TENTH,),
        )

    def allows_eviction(self, pod: Pod, disruptions: Disruptions) -> bool:
        return pod.metadata.annotations.get(DO_NOT_DISRUPT) != "true"

    def allows_removal(self, node: Node) -> bool:
        return node.metadata.annotations.get(DO_NOT_DISRUPT) != "true"

    def removals(self, cloud: CloudProvider) -> Removals:
        return Consolidation(cloud, self)


def _budget(given: Section) -> DisruptionBudget:
    given.allow("nodes", "reasons")
    nodes, reasons = given.raw("nodes"), given.texts("reasons")
    text = str(nodes).removesuffix("%")
    is_percentage = text != str(nodes)
    if nodes is None:
        given.refuse("nodes", "needs a number of nodes, or a percentage such as 10%")
    if isinstance(nodes, bool) or not text.isdecimal() or (is_percentage and int(text) > 100):
        given.refuse("nodes", f"is {nodes!r}; it needs a number of nodes, or a percentage such as 10%")
    for reason in reasons:
        if reason not in REASONS:
            given.refuse("reasons", f"has {reason!r}; use {', '.join(REASONS)}")
    given.done()
    return DisruptionBudget(int(text), is_percentage, reasons or REASONS)


class Consolidation(Removals):
    """Karpenter's consolidation: removes nodes or replaces them by cheaper ones, one command at a time."""

    def __init__(self, cloud: CloudProvider, strategy: Karpenter) -> None:
        self._cloud, self._strategy = cloud, strategy
        self._since: dict[str, tuple[frozenset[str], float]] = {}
        """By node, the keys of its pods, and the time since when these have been its pods."""
        self._tried = cloud.what_if()

    def timers(self) -> Iterator[float]:
        """The times at which the pods of a node have been the same for `consolidate_after` seconds."""
        after = self._strategy.consolidate_after
        if after is not None:
            yield from (since + after for _, since in self._since.values())

    def update(self, tried: TrialCluster) -> None:
        """Note which nodes have other pods than before. `tried` is the cluster with the waiting pods placed where they
        fit.
        """
        self._tried, found = tried, {}
        for one in self._cloud.members():
            pods = frozenset(pod.key for pod in one.pods)
            before, since = self._since.get(one.name, (None, 0.0))
            found[one.name] = pods, since if before == pods else self._cloud.now
        self._since = found

    def act(self) -> bool:
        """Remove or replace the nodes that may go now; returns whether there were any."""
        cloud, after = self._cloud, self._strategy.consolidate_after
        is_busy = bool(cloud.leaving) or any(boot.replaces for boot in cloud.booting)
        if not cloud.settings.scale_down_enabled or after is None or is_busy:
            return False
        oldest, spare, members = cloud.now - after, cloud.spare(), cloud.members()
        due = [m for m in members if self._since[m.name][1] <= oldest and m.name not in self._tried.placed]
        due = [one for one in due if may_be_removed(one, self._strategy, cloud.world.disruptions)]
        empty = []
        for one in due:
            if one.is_empty and spare[one.group.name] > 0:
                spare[one.group.name] -= 1
                empty.append(one)
        empty = empty[: self._allowed(EMPTY, len(members))]
        for one in empty:
            cloud.remove(one, "empty")
        if empty or self._strategy.consolidation_policy == WHEN_EMPTY or not self._allowed(UNDERUTILIZED, len(members)):
            return bool(empty)
        candidates = sorted((one for one in due if not one.is_empty), key=lambda one: len(one.pods))
        return any(self._consolidate(one, self._tried, spare[one.group.name]) for one in candidates)

    def _allowed(self, reason: str, nodes: int) -> int:
        """How many nodes may be removed at a time for a reason, if there are `nodes`: the strictest budget decides."""
        budgets = [budget for budget in self._strategy.budgets if reason in budget.reasons]
        return min((budget.allowed(nodes) for budget in budgets), default=nodes)

    def _consolidate(self, one: Member, tried: TrialCluster, spare: int) -> bool:
        """Remove a node if its pods fit elsewhere, or replace it by a cheaper one if they fit there; returns whether it
        did.
        """
        cloud = self._cloud
        if spare <= 0:
            return False
        if not cloud.only_nodes.keep(one.name, one.pods) and try_removal(tried, one, keep=False) is not None:
            cloud.remove(one, "underutilized")
            return True
        cheaper = [group for group in cloud.groups if group.price_per_hour < one.group.price_per_hour]
        room = cloud.room() if cheaper else {}
        for group in sorted(cheaper, key=lambda group: group.price_per_hour):
            if room[group.name] > 0 and try_removal(tried, one, [group.node("new_0")], keep=False):
                cloud.note("replace", node=one.name, group=group.name)
                cloud.boot(group, replaces=one.name)
                return True
        return False
