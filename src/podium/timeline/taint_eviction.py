"""The taints of a failed node, and how long pods tolerate taints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podium.model import (
    Taint,
    Toleration,
)
from podium.model.selectors import NO_EXECUTE, NO_SCHEDULE, NOT_READY, UNREACHABLE, tolerates

UNREACHABLE_TAINTS = (Taint(key=UNREACHABLE, effect=NO_SCHEDULE), Taint(key=UNREACHABLE, effect=NO_EXECUTE))
"""The taints of a node that failed."""


def without_unreachable(taints: Iterable[Taint]) -> list[Taint]:
    return [taint for taint in taints if taint.key != UNREACHABLE]


def seconds_tolerated(tolerations: Sequence[Toleration], taints: Iterable[Taint], when_failed: float) -> float | None:
    """How many seconds a pod may stay on a node with these taints; None for no limit.

    `when_failed` applies to a pod without a toleration of its own for unreachable or not-ready nodes: the API server
    adds one with this time to every pod.
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
