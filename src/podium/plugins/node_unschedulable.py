"""NodeUnschedulable: cordoned nodes take only pods that tolerate it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from podium.cluster import Aspect, Nodes
from podium.framework.events import Action, EventHint, WaitingPod
from podium.framework.plugin import CycleState, FilterPlugin, PodView, PreFilterPlugin, PreFilterResult
from podium.framework.status import Verdict
from podium.model import Node, Pod, Taint
from podium.model.selectors import NO_SCHEDULE, any_tolerates
from podium.rules import Rules

PASSED = PreFilterResult()
CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


class NodeUnschedulable(PreFilterPlugin, FilterPlugin):
    """Reject nodes with spec.unschedulable, unless the pod tolerates the taint that goes with it."""

    name = "NodeUnschedulable"
    reads = Aspect.TAINTS
    REASON = "node(s) were unschedulable"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        points = super().points(rules)
        return points if rules.more_plugins_pre_filter else points - {"preFilter"}

    def sign(self, pod: PodView) -> Hashable:
        tolerations = pod.spec.tolerations
        return bool(tolerations) and any_tolerates(tolerations, CORDONED)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PASSED

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        cordoned = nodes.unschedulable & (not any_tolerates(pod.spec.tolerations, CORDONED))
        return Verdict.unresolvable(cordoned, self.REASON)

    def events_to_register(self) -> Sequence[EventHint]:
        return (
            EventHint("Node", Action.ADD | Action.UPDATE_NODE_TAINT, self.is_uncordoned),
            EventHint("Pod", Action.UPDATE_POD_TOLERATION, self.tolerates_cordon),
        )

    def is_uncordoned(self, waiting: WaitingPod, old: Node | None, new: Node) -> bool:
        """Whether the node can be scheduled on, and was new or cordoned."""
        return not new.spec.unschedulable and (old is None or old.spec.unschedulable)

    def tolerates_cordon(self, waiting: WaitingPod, old: Pod, new: Pod) -> bool:
        """Whether the waiting pod itself tolerates cordoned nodes now."""
        return waiting.is_same(new) and any_tolerates(new.spec.tolerations, CORDONED)
