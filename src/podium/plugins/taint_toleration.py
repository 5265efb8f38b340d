"""TaintToleration: taints keep pods away, or make nodes less liked."""

from __future__ import annotations

from collections.abc import Hashable

from podium.cluster import Aspect, Nodes, PodInfo
from podium.cluster.columns import Ints
from podium.framework.plugin import CycleState, FilterPlugin, PreScorePlugin, ScorePlugin, of_spec
from podium.framework.status import SUCCESS, Status, Verdict
from podium.model import Pod, Taint
from podium.model.selectors import PREFER_NO_SCHEDULE, any_tolerates, untolerated
from podium.plugins.normalize import normalize_by_max


class TaintToleration(FilterPlugin, PreScorePlugin, ScorePlugin):
    """Reject nodes with an untolerated NoSchedule or NoExecute taint; prefer those with fewer PreferNoSchedule ones."""

    name = "TaintToleration"
    reads = Aspect.TAINTS
    normalizes_by_max = True
    REASON = "node(s) had untolerated taint(s)"

    @of_spec
    def key(self, info: PodInfo) -> Hashable:
        return tuple(info.pod.spec.tolerations)

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        def is_repelled(taints: tuple[Taint, ...]) -> int:
            return untolerated(taints, pod.spec.tolerations) is not None

        return Verdict.unresolvable(nodes.by_taints(is_repelled) != 0, self.REASON)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        """How many PreferNoSchedule taints the pod does not tolerate."""
        tolerations = [t for t in pod.spec.tolerations if t.effect in ("", PREFER_NO_SCHEDULE)]

        def intolerable(taints: tuple[Taint, ...]) -> int:
            return sum(t.effect == PREFER_NO_SCHEDULE and not any_tolerates(tolerations, t) for t in taints)

        return nodes.by_taints(intolerable)

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        return normalize_by_max(scores, reverse=True)
