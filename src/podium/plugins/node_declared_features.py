"""NodeDeclaredFeatures: pods that need a feature of the node go only where the node declares it."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from podium.cluster import Aspect, Nodes, PodInfo
from podium.framework.plugin import CycleState, FilterPlugin, PreFilterPlugin, PreFilterResult, of_spec
from podium.framework.status import SKIP, Verdict
from podium.model import Pod

NOTHING: frozenset[str] = frozenset()


def required_features(pod: Pod) -> frozenset[str]:
    """The features a node must declare to run the pod."""
    spec, needed = pod.spec, NOTHING
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

    @of_spec
    def key(self, info: PodInfo) -> Hashable:
        return required_features(info.pod)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PreFilterResult() if required_features(pod) else PreFilterResult(SKIP)

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        needed = required_features(pod)
        lacking = (not needed.issubset(node.node.status.declared_features) for node in nodes)
        return Verdict.unresolvable(np.fromiter(lacking, np.bool_, len(nodes)), self.REASON)
