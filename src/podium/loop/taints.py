"""Taints that drive pods away: how long a pod stays on a node that does not want it any more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podium.objects import Node, Taint, Toleration
from podium.selectors import NO_EXECUTE, NO_SCHEDULE, tolerates

UNREACHABLE, NOT_READY = "node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"
UNREACHABLE_TAINTS = (Taint(key=UNREACHABLE, effect=NO_SCHEDULE), Taint(key=UNREACHABLE, effect=NO_EXECUTE))
"""What a node gets that fails."""


def is_unreachable(node: Node) -> bool:
    return any(taint.key == UNREACHABLE and taint.effect == NO_EXECUTE for taint in node.spec.taints)


def without_unreachable(taints: Iterable[Taint]) -> list[Taint]:
    return [taint for taint in taints if taint.key != UNREACHABLE]


def patience(tolerations: Sequence[Toleration], taints: Iterable[Taint], when_failed: float) -> float | None:
    """How many seconds a pod may stay on a node with these taints; None for as long as it likes.

    `when_failed` is what a pod gets that does not say how long it tolerates its node being out of reach or not ready:
    the API server gives every pod such a toleration.
    """
    shortest: float | None = None
    for taint in taints:
        if taint.effect != NO_EXECUTE:
            continue
        matching = [toleration for toleration in tolerations if tolerates(toleration, taint)]
        if matching:
            limits = [max(t.toleration_seconds, 0) for t in matching if t.toleration_seconds is not None]
            seconds: float | None = min(limits, default=None)
        else:
            seconds = when_failed if taint.key in (UNREACHABLE, NOT_READY) else 0.0
        if seconds is not None:
            shortest = seconds if shortest is None else min(shortest, seconds)
    return shortest
