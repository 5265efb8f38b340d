"""Plugins behind feature gates that are off: a profile may name them, and they do nothing."""

from __future__ import annotations

from collections.abc import Sequence

from podium.cluster import NodeInfo, Nodes
from podium.framework.events import EventHint
from podium.framework.plugin import (
    CycleState,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
)
from podium.framework.status import SKIP, SUCCESS, Status
from podium.model import Pod
from podium.rules import Rules

NOWHERE: frozenset[str] = frozenset()


class GangScheduling(PreEnqueuePlugin, PermitPlugin):
    """Holds back the pods of a group until there are enough of them, where pods have groups."""

    name = "GangScheduling"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return super().points(rules) if rules.has_gang_scheduling else NOWHERE

    def pre_enqueue(self, pod: Pod) -> Status:
        return SUCCESS

    def events_to_register(self) -> Sequence[EventHint]:
        return ()

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        return SUCCESS, 0.0


class TopologyPlacementGenerator(Plugin):
    """Proposes sets of nodes for a group of pods."""

    name = "TopologyPlacementGenerator"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return frozenset(("placementGenerate",)) if rules.has_placement_points else NOWHERE


class PodGroupPodsCount(Plugin):
    """Prefers sets of nodes that take more pods of a group."""

    name = "PodGroupPodsCount"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return frozenset(("placementScore",)) if rules.has_placement_points else NOWHERE


class DeferredPodScheduling(PreFilterPlugin, FilterPlugin, PermitPlugin):
    """Makes room for running pods whose resize waits."""

    name = "DeferredPodScheduling"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return super().points(rules) if rules.more_plugins_pre_filter else NOWHERE

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PreFilterResult(SKIP)

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS

    def events_to_register(self) -> Sequence[EventHint]:
        return ()

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        return SUCCESS, 0.0
