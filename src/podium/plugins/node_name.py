"""NodeName: only the node the pod names."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from podium.cluster import Aspect, Nodes, PodInfo
from podium.framework.plugin import CycleState, FilterPlugin, of_spec
from podium.framework.status import Verdict
from podium.model import Pod


class NodeName(FilterPlugin):
    """Pass only the node the pod names; pass all when it names none."""

    name = "NodeName"
    reads = Aspect.LABELS
    REASON = "node(s) didn't match the requested node name"

    @of_spec
    def key(self, info: PodInfo) -> Hashable:
        return info.pod.spec.node_name

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        wanted = pod.spec.node_name
        if not wanted:
            return Verdict.reject(np.zeros(len(nodes), dtype=np.bool_), self.REASON)
        row = nodes.cluster.rows.get(wanted)
        # Unresolvable: evicting pods cannot rename a node.
        return Verdict.unresolvable(~nodes.among([] if row is None else [row]), self.REASON)
