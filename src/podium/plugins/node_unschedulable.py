"""NodeUnschedulable: cordoned nodes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from podium.cluster import Aspect, Nodes
from podium.framework import Action, Change, EventHint, Obstacle, RejectedNodes, RejectedPod, WaitingPod
from podium.framework.events import node_update
from podium.framework.plugin import CycleState, FilterPlugin, PodView
from podium.framework.status import Verdict
from podium.framework.suggested_change import tolerate, uncordon
from podium.model import Node, Pod
from podium.model.selectors import CORDONED, any_tolerates
from podium.plugins.passes_pre_filter import PassesPreFilter


class NodeUnschedulable(PassesPreFilter, FilterPlugin):
    """Reject nodes with spec.unschedulable, unless the pod tolerates the taint that goes with it."""

    name = "NodeUnschedulable"
    reads = Aspect.TAINTS
    REASON = "node(s) were unschedulable"

    def sign(self, pod: PodView) -> Hashable:
        tolerations = pod.spec.tolerations
        return bool(tolerations) and any_tolerates(tolerations, CORDONED)

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        cordoned = nodes.unschedulable & (not any_tolerates(pod.spec.tolerations, CORDONED))
        return Verdict.unresolvable(cordoned, self.REASON)

    def events_to_register(self) -> Sequence[EventHint]:
        rules, changes = self.release_rules, Action.UPDATE_NODE_TAINT
        if rules.cordons_wait_for_any_update:
            changes = node_update(changes, rules)
        of_nodes = EventHint("Node", Action.ADD | changes, self.is_uncordoned)
        of_pods = EventHint("Pod", Action.UPDATE_POD_TOLERATION, self.tolerates_cordon)
        return (of_nodes, of_pods) if rules.own_changes_help_spreading else (of_nodes,)

    def is_uncordoned(self, waiting: WaitingPod, old: Node | None, new: Node) -> bool:
        """Whether the node is schedulable, and was new or cordoned before."""
        before = old if self.release_rules.hints_compare_nodes else None
        return not new.spec.unschedulable and (before is None or before.spec.unschedulable)

    def tolerates_cordon(self, waiting: WaitingPod, old: Pod, new: Pod) -> bool:
        """Whether the waiting pod itself tolerates cordoned nodes now."""
        return waiting.is_same(new) and any_tolerates(new.spec.tolerations, CORDONED)

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        return cordon_obstacles(rejected)

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return cordon_fixes(rejected)


def cordon_obstacles(rejected: RejectedNodes) -> dict[str, list[Obstacle]]:
    """For each node, that it is cordoned."""
    cordoned = Obstacle("cordon", "the node is cordoned (spec.unschedulable)", {"field": "spec.unschedulable"})
    return {node: [cordoned] for node in rejected.statuses if rejected.cluster.node(node).spec.unschedulable}


def cordon_fixes(rejected: RejectedPod) -> Iterator[Change]:
    """Uncordon the node, or let the pod tolerate that it is cordoned."""
    yield uncordon(rejected.node)
    yield tolerate(rejected.pod, CORDONED)
