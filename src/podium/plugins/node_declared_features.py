"""NodeDeclaredFeatures: features that a node must declare to run a pod."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set

import numpy as np

from podium.cluster import Aspect, Nodes
from podium.framework import Action, EventHint, Obstacle, RejectedNodes, WaitingPod
from podium.framework.plugin import CycleState, FilterPlugin, PodView, PreFilterPlugin
from podium.framework.status import PASSED, SKIPPED, PreFilterResult, Verdict
from podium.model import Node, Pod, PodSpec
from podium.rules import Rules

NO_FEATURES: frozenset[str] = frozenset()


def required_features(spec: PodSpec) -> frozenset[str]:
    """The features a node must declare to run a pod with this spec."""
    needed = NO_FEATURES
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

    @property
    def needs(self) -> Set[tuple[str, str]]:
        return frozenset((("filter", "preFilter"),)) if self.release_rules.node_declared_features else frozenset()

    def sign(self, pod: PodView) -> Hashable:
        return required_features(pod.spec)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PASSED if required_features(pod.spec) else SKIPPED

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        needed = required_features(pod.spec)
        lacking = (not needed.issubset(node.node.status.declared_features) for node in nodes)
        return Verdict.unresolvable(np.fromiter(lacking, np.bool_, len(nodes)), self.REASON)

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        needed, cluster = required_features(rejected.pod.spec), rejected.cluster
        lacking = {node: needed.difference(cluster.node(node).status.declared_features) for node in rejected.statuses}
        return {
            node: [
                Obstacle("feature", f"the node does not declare {name}", {"feature": name}) for name in sorted(names)
            ]
            for node, names in lacking.items()
        }

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
