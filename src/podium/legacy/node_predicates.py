"""Predicates about the node itself: its conditions, taints and labels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster import Aspect, Nodes, PodInfo
from podium.cluster.columns import Interned, Mask
from podium.framework import CycleState, Status, Verdict
from podium.legacy.reasons import (
    DISK_PRESSURE,
    LABEL_PRESENCE,
    MEMORY_PRESSURE,
    NETWORK,
    NOT_READY,
    OUT_OF_DISK,
    PID_PRESSURE,
    TAINTS,
    UNSCHEDULABLE,
    Failure,
    Predicate,
    Reason,
)
from podium.objects import Node, Pod, Taint
from podium.plugins.node_unschedulable import CORDONED
from podium.quantity import parse_quantity
from podium.resources import CPU, MEMORY
from podium.selectors import NO_EXECUTE, any_tolerates, repels, untolerated


def _each(nodes: Nodes, judge: Callable[[Node], bool]) -> Mask:
    """What `judge` says of each node object."""
    return np.fromiter((judge(node.node) for node in nodes), np.bool_, len(nodes))


def _has_other(node: Node, condition: str, good: str) -> bool:
    """Whether the node has a condition with a status other than the good one."""
    return any(found.type == condition and found.status != good for found in node.status.conditions)


def _status_of(node: Node, condition: str) -> str:
    """The status of a condition; the last one where the node has it twice."""
    return next((found.status for found in reversed(node.status.conditions) if found.type == condition), "")


class _SameForAllPods(Predicate):
    reads = Aspect.LABELS | Aspect.TAINTS

    def key(self, info: PodInfo) -> Hashable:
        return None


class CheckNodeCondition(_SameForAllPods):
    """Reject nodes that are not ready, have no network, or are cordoned, whatever the pod tolerates."""

    name = "CheckNodeCondition"

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        unless = [("Ready", "True", NOT_READY), ("NetworkUnavailable", "False", NETWORK)]
        if self.rules.out_of_disk:
            unless.append(("OutOfDisk", "False", OUT_OF_DISK))

        def fails(condition: str, good: str) -> Mask:
            return _each(nodes, lambda node: _has_other(node, condition, good))

        found = [Failure(fails(condition, good), reason) for condition, good, reason in unless]
        return [*found, Failure(nodes.unschedulable, UNSCHEDULABLE)]


class _Pressure(_SameForAllPods):
    CONDITION: str
    REASON: Reason

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        return [Failure(_each(nodes, lambda node: _status_of(node, self.CONDITION) == "True"), self.REASON)]


class CheckNodeDiskPressure(_Pressure):
    """Reject nodes under disk pressure."""

    name = "CheckNodeDiskPressure"
    CONDITION, REASON = "DiskPressure", DISK_PRESSURE


class CheckNodePIDPressure(_Pressure):
    """Reject nodes that run out of process ids."""

    name = "CheckNodePIDPressure"
    CONDITION, REASON = "PIDPressure", PID_PRESSURE


class CheckNodeMemoryPressure(_Pressure):
    """Reject nodes under memory pressure for pods that request and limit nothing."""

    name = "CheckNodeMemoryPressure"
    CONDITION, REASON = "MemoryPressure", MEMORY_PRESSURE

    def key(self, info: PodInfo) -> Hashable:
        return is_best_effort(info.pod)

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        if not is_best_effort(pod):
            return [Failure(np.zeros(len(nodes), dtype=np.bool_), self.REASON)]
        return super().failures(state, pod, nodes)


def is_best_effort(pod: Pod) -> bool:
    """Whether no container asks for, or is limited in, cpu or memory."""
    return not any(
        parse_quantity(amounts.get(name, 0)) > 0
        for container in pod.spec.containers
        for amounts in (container.resources.requests, container.resources.limits)
        for name in (CPU, MEMORY)
    )


class CheckNodeUnschedulable(Predicate):
    """Reject cordoned nodes, unless the pod tolerates the taint that goes with it."""

    name = "CheckNodeUnschedulable"
    reads = Aspect.TAINTS

    def key(self, info: PodInfo) -> Hashable:
        return any_tolerates(info.pod.spec.tolerations, CORDONED)

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        return [Failure(nodes.unschedulable & (not any_tolerates(pod.spec.tolerations, CORDONED)), UNSCHEDULABLE)]


class PodToleratesNodeTaints(Predicate):
    """Reject nodes with a NoSchedule or NoExecute taint that the pod does not tolerate."""

    name = "PodToleratesNodeTaints"
    reads = Aspect.TAINTS

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._named: Interned[tuple[str, str]] = Interned()

    def key(self, info: PodInfo) -> Hashable:
        return tuple(info.pod.spec.tolerations)

    def repels(self, taint: Taint) -> bool:
        return repels(taint)

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        if not self.rules.names_the_taint:
            return super().filter(state, pod, nodes)

        def judge(taints: tuple[Taint, ...]) -> int:
            taint = untolerated(taints, pod.spec.tolerations, self.repels)
            return 0 if taint is None else 1 + self._named.code((taint.key, taint.value))

        return Verdict(nodes.by_taints(judge), self._describe)

    def _describe(self, code: int) -> Status:
        key, value = self._named.values[code - 1]
        return Status.unresolvable(f"node(s) had taint {{{key}: {value}}}, that the pod didn't tolerate")

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        def judge(taints: tuple[Taint, ...]) -> int:
            return untolerated(taints, pod.spec.tolerations, self.repels) is not None

        return [Failure(nodes.by_taints(judge) != 0, TAINTS)]


class PodToleratesNodeNoExecuteTaints(PodToleratesNodeTaints):
    """Reject nodes with a NoExecute taint that the pod does not tolerate."""

    name = "PodToleratesNodeNoExecuteTaints"

    def repels(self, taint: Taint) -> bool:
        return taint.effect == NO_EXECUTE


@dataclass(frozen=True, kw_only=True)
class NodeLabelArgs:
    """Labels a node must have or lack, and labels it had better have or lack."""

    present_labels: tuple[str, ...] = ()
    absent_labels: tuple[str, ...] = ()
    present_labels_preference: tuple[str, ...] = ()
    absent_labels_preference: tuple[str, ...] = ()


class CheckNodeLabelPresence(_SameForAllPods):
    """Reject nodes that lack a label they must have, or have one they must lack, whatever its value."""

    name = "CheckNodeLabelPresence"

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._labels = args if isinstance(args, NodeLabelArgs) else NodeLabelArgs()

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        fails = np.zeros(len(nodes), dtype=np.bool_)
        for wanted, labels in ((True, self._labels.present_labels), (False, self._labels.absent_labels)):
            for label in labels:
                fails |= (nodes.codes(label) >= 0) != wanted
        return [Failure(fails, LABEL_PRESENCE)]


def has_labels(nodes: Nodes, labels: Sequence[str]) -> list[Mask]:
    """Per label, whether each node has it."""
    return [nodes.codes(label) >= 0 for label in labels]
