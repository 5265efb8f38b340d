"""NodePorts: a host port can be taken once per node."""

from __future__ import annotations

from collections.abc import Hashable

from podium.cluster import Aspect, Nodes, PodInfo
from podium.framework.plugin import CycleState, FilterPlugin, PreFilterPlugin, PreFilterResult, of_spec
from podium.framework.status import SKIP, Verdict
from podium.model import Pod


class NodePorts(PreFilterPlugin, FilterPlugin):
    """Reject nodes where a host port of the pod is in use."""

    name = "NodePorts"
    reads = Aspect.PORTS
    REASON = "node(s) didn't have free ports for the requested pod ports"

    @of_spec
    def key(self, info: PodInfo) -> Hashable:
        return info.ports

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PreFilterResult() if state.info.ports else PreFilterResult(SKIP)

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        return Verdict.reject(nodes.among(nodes.cluster.ports.conflicts(state.info.ports)), self.REASON)
