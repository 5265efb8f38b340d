"""What made a pod go to one node one way, and to another node the other way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from podium.engine import Decision
from podium.framework import Status


def points_of(decision: Decision, node: str) -> dict[str, int]:
    """What each plugin and extender adds to a node's total."""
    points = {one.plugin: one.normalized[node] * one.weight for one in decision.scores}
    return points | {name: scores[node] for name, scores in decision.extender_scores.items()}


@dataclass(frozen=True, slots=True)
class Standing:
    """How two nodes stood in a decision."""

    scores: Mapping[str, Mapping[str, int]]
    """Per node that was scored, what each plugin gave it, times its weight."""
    rejected: Mapping[str, Status]
    """Why nodes were rejected; those no filter looked at among them."""
    feasible: frozenset[str]
    message: str = ""
    """Why the pod fits nowhere, if so."""

    @classmethod
    def of(cls, decision: Decision, nodes: Iterable[str | None]) -> Standing:
        """What a decision says of these nodes, and no more than that."""
        named = [node for node in nodes if node is not None]
        absent = decision.absent or Status.unresolvable("not in the cluster")
        feasible = frozenset(node for node in named if node in decision.feasible)
        return cls(
            {node: points_of(decision, node) for node in named if node in decision.totals},
            {node: decision.rejected.get(node, absent) for node in named if node not in feasible},
            feasible,
            decision.error or decision.message,
        )


@dataclass(frozen=True, slots=True)
class Cause:
    """What a pod's move comes from."""

    plugin: str
    """The filter that rejects one of the nodes, or the plugin whose scores account for most of the change."""
    reason: str
    """In words."""
    points: Mapping[str, int] = field(default_factory=dict)
    """By how many points each plugin's opinion shifted from the first node to the second, largest first."""
    knock_on: bool = False
    """Whether it is the doing of pods that went elsewhere before: in the same situation both ways decide alike."""

    def to_dict(self) -> dict[str, Any]:
        why = {"plugin": self.plugin or None, "reason": self.reason}
        return {**why, "points": dict(self.points), "knockOn": self.knock_on}


TIE = "both nodes are as good both ways"


def cause_of(one: str | None, other: str | None, before: Standing, after: Standing, *, knock_on: bool = False) -> Cause:
    """Why a pod goes to `one` when decided `before`, and to `other` when decided `after`; None for nowhere."""
    for node, standing, when in ((one, after, "after"), (other, before, "before")):
        if node is not None and node in standing.rejected:
            status = standing.rejected[node]
            why = ", ".join(status.reasons) or status.code.value
            return Cause(status.plugin, f"{node} is rejected {when}: {why}", knock_on=knock_on)
    if one is None or other is None:
        return Cause("", (before if one is None else after).message, knock_on=knock_on)
    points = _shift(one, other, before, after)
    if not points:
        return Cause("", TIE, knock_on=knock_on)
    plugin = next(iter(points))
    if points[plugin] <= 0:
        return Cause("", TIE, points, knock_on)
    was, now = (_lead(standing, plugin, one, other) for standing in (before, after))
    return Cause(plugin, f"{one} over {other}: {was:+,} before, {now:+,} after", points, knock_on)


def _shift(one: str, other: str, before: Standing, after: Standing) -> dict[str, int]:
    """What each plugin gives `other` over `one` after, less what it did before; without those that did not change."""
    names = dict.fromkeys(
        name for standing in (before, after) for scores in standing.scores.values() for name in scores
    )
    points = {name: _lead(after, name, other, one) - _lead(before, name, other, one) for name in names}
    return {name: points[name] for name in sorted(points, key=lambda name: -points[name]) if points[name]}


def _lead(standing: Standing, plugin: str, node: str, over: str) -> int:
    one, other = (standing.scores.get(name, {}).get(plugin, 0) for name in (node, over))
    return one - other
