"""TaintToleration: taints keep pods away, or make nodes less liked."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from podium.cluster import Aspect, Cluster, Nodes
from podium.cluster.columns import Ints
from podium.framework.events import Action, EventHint, WaitingPod, is_about_itself
from podium.framework.fast_paths import NormalizesByMax
from podium.framework.plugin import CycleState, FilterPlugin, PodView, PreFilterPlugin, PreFilterResult, PreScorePlugin
from podium.framework.status import SUCCESS, Status, Verdict
from podium.framework.suggested_change import Change, RejectedPod, remove_taint, tolerate, uncordon
from podium.model import Node, Pod, Taint
from podium.model.selectors import CORDONED, PREFER_NO_SCHEDULE, any_tolerates, untolerated
from podium.rules import Rules

PASSED = PreFilterResult()


class TaintToleration(PreFilterPlugin, FilterPlugin, PreScorePlugin, NormalizesByMax):
    """Reject nodes with an untolerated NoSchedule or NoExecute taint; prefer those with fewer PreferNoSchedule ones."""

    name = "TaintToleration"
    title = "Taint"
    reads = Aspect.TAINTS
    reverse = True
    REASON = "node(s) had untolerated taint(s)"
    REASON_NAMING = "node(s) had untolerated taint {{{key}: {value}}}"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        points = super().points(rules)
        return points if rules.more_plugins_pre_filter else points - {"preFilter"}

    def sign(self, pod: PodView) -> Hashable:
        return tuple(pod.spec.tolerations)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PASSED

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        reasons: dict[str, int] = {}

        def reason(taints: tuple[Taint, ...]) -> int:
            """0 if the pod tolerates the taints, else the place of the reason why not, counted from 1."""
            taint = untolerated(taints, pod.spec.tolerations)
            return 0 if taint is None else reasons.setdefault(self._reason(taint), len(reasons) + 1)

        codes = nodes.by_taints(reason)
        return Verdict.choose(codes, tuple([Status.unresolvable(text) for text in reasons]))

    def _reason(self, taint: Taint) -> str:
        if self.release_rules.taints_are_not_named:
            return self.REASON
        return self.REASON_NAMING.format(key=taint.key, value=taint.value)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        """How many PreferNoSchedule taints the pod does not tolerate."""
        tolerations = [t for t in pod.spec.tolerations if t.effect in ("", PREFER_NO_SCHEDULE)]

        def intolerable(taints: tuple[Taint, ...]) -> int:
            return sum(t.effect == PREFER_NO_SCHEDULE and not any_tolerates(tolerations, t) for t in taints)

        return nodes.by_taints(intolerable)

    def events_to_register(self) -> Sequence[EventHint]:
        return (
            EventHint("Node", Action.ADD | Action.UPDATE_NODE_TAINT, self.is_tolerated_now),
            EventHint("Pod", Action.UPDATE_POD_TOLERATION, is_about_itself),
        )

    def is_tolerated_now(self, waiting: WaitingPod, old: Node | None, new: Node) -> bool:
        """Whether the waiting pod tolerates the node's taints, and did not before."""
        tolerations = waiting.pod.spec.tolerations
        was_repelled = old is None or untolerated(old.spec.taints, tolerations) is not None
        return was_repelled and untolerated(new.spec.taints, tolerations) is None

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return taint_fixes(rejected)

    def score_fixes(self, pod: Pod, node: str, cluster: Cluster) -> Iterator[Change]:
        return preferred_taint_fixes(pod, node, cluster)


def taint_fixes(rejected: RejectedPod) -> Iterator[Change]:
    """Remove the taint that the pod does not tolerate from the node, or let the pod tolerate it."""
    node = rejected.node_object
    taint = untolerated(node.spec.taints, rejected.pod.spec.tolerations)
    if taint is not None:
        is_cordon = taint.key == CORDONED.key and node.spec.unschedulable
        yield uncordon(rejected.node) if is_cordon else remove_taint(rejected.node, taint)
        yield tolerate(rejected.pod, taint)


def preferred_taint_fixes(pod: Pod, node: str, cluster: Cluster) -> Iterator[Change]:
    """Remove a PreferNoSchedule taint that the pod does not tolerate, or let the pod tolerate it."""
    for taint in cluster.node(node).spec.taints:
        if taint.effect == PREFER_NO_SCHEDULE and not any_tolerates(pod.spec.tolerations, taint):
            yield remove_taint(node, taint)
            yield tolerate(pod, taint)
