"""NodeUnschedulable: cordoned nodes take only pods that tolerate it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from podium.cluster import Aspect, Nodes
from podium.framework.events import Action, EventHint, WaitingPod
from podium.framework.plugin import CycleState, FilterPlugin, PodView, PreFilterPlugin, PreFilterResult
from podium.framework.status import Verdict
from podium.framework.suggested_change import Change, RejectedPod, tolerate, uncordon
from podium.model import Node, Pod
from podium.model.selectors import CORDONED, any_tolerates
from podium.rules import Rules

PASSED = PreFilterResult()


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

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return cordon_fixes(rejected)


def cordon_fixes(rejected: RejectedPod) -> Iterator[Change]:
    """Uncordon the node, or let the pod tolerate that it is cordoned."""
    yield uncordon(rejected.node)
    yield tolerate(rejected.pod, CORDONED)
