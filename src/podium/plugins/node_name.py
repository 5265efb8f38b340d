"""NodeName: only the node the pod names."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from podium.cluster import Aspect, Nodes
from podium.framework.events import Action, EventHint
from podium.framework.plugin import CycleState, FilterPlugin, PodView, PreFilterPlugin, PreFilterResult
from podium.framework.status import Verdict
from podium.framework.suggested_change import Change, RejectedPod, edit_pod
from podium.model import Pod
from podium.rules import Rules

PASSED = PreFilterResult()


class NodeName(PreFilterPlugin, FilterPlugin):
    """Pass only the node the pod names; pass all when it names none."""

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
        wanted = pod.spec.node_name
        if not wanted:
            return Verdict.reject(np.zeros(len(nodes), dtype=np.bool_), self.REASON)
        row = nodes.cluster.rows.get(wanted)
        # Unresolvable: evicting pods cannot rename a node.
        return Verdict.unresolvable(~nodes.among([] if row is None else [row]), self.REASON)

    def events_to_register(self) -> Sequence[EventHint]:
        return (EventHint("Node", Action.ADD),)

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return node_name_fixes(rejected)


def node_name_fixes(rejected: RejectedPod) -> Iterator[Change]:
    """Clear the pod's nodeName."""

    def edit(before: Pod) -> Pod:
        return replace(before, spec=replace(before.spec, node_name=""))

    yield edit_pod("clear-node-name", "clear the pod's nodeName", rejected.pod, 2, edit)
