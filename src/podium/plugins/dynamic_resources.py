"""DynamicResources: devices that pods claim. Pods without claims pass; claims are not modelled."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from podium.cluster import Aspect, Nodes
from podium.cluster.columns import Ints
from podium.framework.events import Action, EventHint
from podium.framework.plugin import (
    CycleState,
    FilterPlugin,
    PodView,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
    ScorePlugin,
)
from podium.framework.status import SKIP, SUCCESS, Status, Verdict
from podium.model import Pod


class DynamicResources(
    PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, PostFilterPlugin, ScorePlugin, ReservePlugin, PreBindPlugin
):
    """Let pods without resourceClaims through, and refuse to decide about pods with them."""

    name = "DynamicResources"
    title = "Devices"
    reads = Aspect(0)
    REASON_CLAIMS = "the pod has resourceClaims, which are not modelled: remove them, or disable DynamicResources"
    REASON_NO_CLAIMS = "no new claims to deallocate"
    REASON_NO_STATE = "not found"
    """kube-scheduler's words when an earlier PreFilter plugin rejected the pod, so that this one never saw it."""

    def sign(self, pod: PodView) -> Hashable:
        return bool(pod.spec.resource_claims)

    def pre_enqueue(self, pod: Pod) -> Status:
        return SUCCESS

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        if pod.spec.resource_claims:
            return PreFilterResult(Status.error(self.REASON_CLAIMS))
        state[self.name] = True
        return PreFilterResult(SKIP)

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        rejected = np.full(len(nodes), bool(pod.spec.resource_claims))
        return Verdict.choose(rejected, (Status.error(self.REASON_CLAIMS),))

    def post_filter(self, state: CycleState, pod: Pod, statuses: Mapping[str, Status]) -> PostFilterResult:
        if self.name not in state:
            return PostFilterResult(Status.error(self.REASON_NO_STATE))
        return PostFilterResult(Status.unschedulable(self.REASON_NO_CLAIMS))

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return np.zeros(len(nodes), dtype=np.int64)

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SUCCESS

    def events_to_register(self) -> Sequence[EventHint]:
        return (EventHint("Node", Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),)
