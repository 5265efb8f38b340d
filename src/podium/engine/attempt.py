"""One attempt to find a node for a pod, and the diagnosis of one that found none."""

from __future__ import annotations

from typing import NamedTuple

from podium.engine.decision import Decision
from podium.engine.evaluation import Evaluation
from podium.framework import Code, Status
from podium.model import Pod

EXTENDER = "Extender"
"""Stands for all extenders among the plugins that rejected a pod."""
NO_PLUGINS: frozenset[str] = frozenset()


class Attempt(NamedTuple):
    """What was found for a pod on the cluster as it is: a node that fits best, or none. Nothing is placed yet."""

    pod: Pod
    node: str | None
    evaluation: Evaluation | None = None
    """None where the pod is known to fit nowhere, or there are no nodes at all."""

    @property
    def feasible_count(self) -> int:
        """How many nodes fit the pod."""
        return 0 if self.evaluation is None else self.evaluation.feasible.count


class Diagnosis(NamedTuple):
    """Why a pod could not be placed, the plugins that rejected it, and what preemption does about it."""

    message: str
    unschedulable_plugins: frozenset[str] = NO_PLUGINS
    pending_plugins: frozenset[str] = NO_PLUGINS
    """Those that only asked the pod to wait."""
    nominated: str | None = None
    """The node where evicting the victims makes room."""
    clears_nomination: bool = False
    victims: tuple[str, ...] = ()
    """The pods to evict, as namespace/name."""
    is_error: bool = False
    """Whether something went wrong, rather than the pod fitting nowhere."""

    @classmethod
    def of(cls, decision: Decision) -> Diagnosis:
        """The diagnosis of a pod that was decided, PostFilter included, and got no node."""
        if decision.error or not decision.node_count:
            return cls.of_error(decision.error) if decision.error else cls(decision.message, clears_nomination=True)
        unschedulable, pending = _rejecting_plugins(decision)
        return cls(
            decision.message, unschedulable, pending, decision.nominated, decision.clears_nomination, decision.victims
        )

    @classmethod
    def of_error(cls, message: str) -> Diagnosis:
        """The diagnosis of a pod that could not be decided, because something went wrong."""
        return cls(message, clears_nomination=True, is_error=True)

    @classmethod
    def of_status(cls, status: Status) -> Diagnosis:
        """The diagnosis of a pod that a plugin turned down on the node that had been chosen."""
        if not status.code.rejects:
            return cls.of_error(status.message)
        plugins = frozenset((status.plugin,))
        is_pending = status.code is Code.PENDING
        return cls(
            f"0/1 nodes are available: 1 {status.message}.",
            NO_PLUGINS if is_pending else plugins,
            plugins if is_pending else NO_PLUGINS,
            clears_nomination=True,
        )


def _rejecting_plugins(decision: Decision) -> tuple[frozenset[str], frozenset[str]]:
    """The plugins that rejected the pod on some node, and those that only asked it to wait."""
    unschedulable, pending = set[str](), set[str]()
    for status in set(decision.rejected.values()):
        if status.code is Code.PENDING:
            pending.add(status.plugin)
        elif status.code.rejects:
            unschedulable.add(status.plugin or EXTENDER)
    if decision.absent is not None:
        unschedulable.update((decision.absent.plugin,) if decision.absent.plugin else decision.narrowed_by)
    return frozenset(unschedulable), frozenset(pending)
