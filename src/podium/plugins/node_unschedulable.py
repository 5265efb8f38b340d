"""NodeUnschedulable: cordoned nodes take only pods that tolerate it."""

from __future__ import annotations

from collections.abc import Hashable

from podium.cluster import Aspect, Nodes, PodInfo
from podium.framework.plugin import CycleState, FilterPlugin, of_spec
from podium.framework.status import Verdict
from podium.model import Pod, Taint
from podium.model.selectors import NO_SCHEDULE, any_tolerates

CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


class NodeUnschedulable(FilterPlugin):
    """Reject nodes with spec.unschedulable, unless the pod tolerates the taint that goes with it."""

    name = "NodeUnschedulable"
    reads = Aspect.TAINTS
    REASON = "node(s) were unschedulable"

    @of_spec
    def key(self, info: PodInfo) -> Hashable:
        tolerations = info.pod.spec.tolerations
        return bool(tolerations) and any_tolerates(tolerations, CORDONED)

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        cordoned = nodes.unschedulable & (not any_tolerates(pod.spec.tolerations, CORDONED))
        return Verdict.unresolvable(cordoned, self.REASON)
