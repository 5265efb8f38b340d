"""DeferredPodScheduling: running pods with a deferred resize."""

from __future__ import annotations

from collections.abc import Sequence

from podium.cluster import NodeInfo, Nodes
from podium.framework.events import EventHint
from podium.framework.plugin import NO_POINTS, CycleState, FilterPlugin, PermitPlugin, PreFilterPlugin
from podium.framework.status import SKIPPED, SUCCESS, PreFilterResult, Status
from podium.model import Pod
from podium.rules import Rules


class DeferredPodScheduling(PreFilterPlugin, FilterPlugin, PermitPlugin):
    """Makes room for running pods with a deferred resize."""

    name = "DeferredPodScheduling"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return super().points(rules) if rules.more_plugins_pre_filter else NO_POINTS

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return SKIPPED

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS

    def events_to_register(self) -> Sequence[EventHint]:
        return ()

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        return SUCCESS, 0.0
