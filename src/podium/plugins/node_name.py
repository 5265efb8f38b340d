"""NodeName: a pod that names its node."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from podium.cluster import Aspect, Nodes
from podium.cluster.columns import Mask
from podium.framework import Action, Change, EventHint, Obstacle, RejectedNodes, RejectedPod
from podium.framework.events import node_update
from podium.framework.plugin import CycleState, FilterPlugin, PodView, PreFilterPlugin
from podium.framework.status import PASSED, PreFilterResult, Verdict
from podium.framework.suggested_change import edit_pod
from podium.model import Pod
from podium.rules import Rules


class NodeName(PreFilterPlugin, FilterPlugin):
    """Pass only the node that the pod names; pass all nodes if it names none."""

    name = "NodeName"
    reads = Aspect.LABELS
    REASON = "node(s) didn't match the requested node name"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return super().points(rules) if rules.node_name_narrows else frozenset(("filter",))

    def sign(self, pod: PodView) -> Hashable:
        return pod.spec.node_name

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        wanted = pod.spec.node_name
        return PreFilterResult(node_names=frozenset((wanted,))) if wanted else PASSED

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        # Unresolvable: evicting pods cannot rename a node.
        return Verdict.unresolvable(not_named_by(pod, nodes), self.REASON)

    def events_to_register(self) -> Sequence[EventHint]:
        return (EventHint("Node", Action.ADD | node_update(Action(0), self.release_rules)),)

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        return node_name_obstacles(rejected)

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return node_name_fixes(rejected)


def not_named_by(pod: Pod, nodes: Nodes) -> Mask:
    """Whether each node is another than the one that the pod names; false everywhere if it names none."""
    if not pod.spec.node_name:
        return np.zeros(len(nodes), dtype=np.bool_)
    row = nodes.cluster.rows.get(pod.spec.node_name)
    return ~nodes.among([] if row is None else [row])


def node_name_obstacles(rejected: RejectedNodes) -> dict[str, list[Obstacle]]:
    """The node that the pod names."""
    named = rejected.pod.spec.node_name
    text = f"the pod wants node {named} and no other (spec.nodeName)"
    return {
        node: [Obstacle("name", text, {"nodeName": named})] for node in rejected.statuses if named not in ("", node)
    }


def node_name_fixes(rejected: RejectedPod) -> Iterator[Change]:
    """Clear the pod's nodeName."""

    def edit(before: Pod) -> Pod:
        return replace(before, spec=replace(before.spec, node_name=""))

    yield edit_pod("clear-node-name", "clear the pod's nodeName", rejected.pod, 2, edit)
