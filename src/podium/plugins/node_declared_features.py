"""NodeDeclaredFeatures: pods that need a feature of the node go only where the node declares it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from podium.cluster import Aspect, Nodes
from podium.framework.events import Action, EventHint, WaitingPod
from podium.framework.plugin import CycleState, FilterPlugin, PodView, PreFilterPlugin, PreFilterResult
from podium.framework.status import SKIP, Verdict
from podium.model import Node, Pod, PodSpec
from podium.rules import Rules

NOTHING: frozenset[str] = frozenset()


def required_features(spec: PodSpec) -> frozenset[str]:
    """The features a node must declare to run a pod with this spec."""
    needed = NOTHING
    rules = [rule for each in (*spec.containers, *spec.init_containers) for rule in each.restart_policy_rules]
    if rules and any(rule.action == "RestartAllContainers" for rule in rules):
        needed |= {"RestartAllContainersOnContainerExits"}
    if spec.host_network and spec.host_users is False:
        needed |= {"UserNamespacesHostNetworkSupport"}
    return needed


class NodeDeclaredFeatures(PreFilterPlugin, FilterPlugin):
    """Reject nodes that do not declare every feature the pod needs."""

    name = "NodeDeclaredFeatures"
    reads = Aspect.LABELS
    REASON = "node(s) didn't match Pod's required features"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return super().points(rules) if rules.has_node_declared_features else frozenset()

    def sign(self, pod: PodView) -> Hashable:
        return required_features(pod.spec)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PreFilterResult() if required_features(pod.spec) else PreFilterResult(SKIP)

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        needed = required_features(pod.spec)
        lacking = (not needed.issubset(node.node.status.declared_features) for node in nodes)
        return Verdict.unresolvable(np.fromiter(lacking, np.bool_, len(nodes)), self.REASON)

    def events_to_register(self) -> Sequence[EventHint]:
        return (
            EventHint("Node", Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, self.declares_other_features),
            EventHint("Pod", Action.UPDATE, self.needs_other_features),
        )

    def declares_other_features(self, waiting: WaitingPod, old: Node | None, new: Node) -> bool:
        """Whether the node is new or declares other features than before."""
        return old is None or old.status.declared_features != new.status.declared_features

    def needs_other_features(self, waiting: WaitingPod, old: Pod, new: Pod) -> bool:
        """Whether the waiting pod itself needs other features than before."""
        return waiting.is_same(new) and required_features(old.spec) != required_features(new.spec)
