"""TaintToleration: taints of nodes and tolerations of pods."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes
from podium.cluster.columns import Ints
from podium.framework import Action, Change, EventHint, Obstacle, RejectedNodes, RejectedPod, WaitingPod
from podium.framework.events import is_about_itself, node_update
from podium.framework.fast_paths import NormalizesByMax
from podium.framework.plugin import CycleState, FilterPlugin, PodView, PreScorePlugin
from podium.framework.status import SUCCESS, Status, Verdict
from podium.framework.suggested_change import remove_taint, taint_text, tolerate, uncordon
from podium.model import Node, Pod, Taint
from podium.model.selectors import CORDONED, PREFER_NO_SCHEDULE, any_tolerates, repels, untolerated
from podium.plugins.passes_pre_filter import PassesPreFilter


class TaintToleration(PassesPreFilter, FilterPlugin, PreScorePlugin, NormalizesByMax):
    """Reject nodes with an untolerated NoSchedule or NoExecute taint; prefer those with fewer PreferNoSchedule ones."""

    name = "TaintToleration"
    needs = frozenset((("score", "preScore"),))
    title = "Taint"
    reads = Aspect.TAINTS
    reverse = True
    REASON = "node(s) had untolerated taint(s)"
    REASON_NAMING = "node(s) had untolerated taint {{{key}: {value}}}"

    def sign(self, pod: PodView) -> Hashable:
        return tuple(pod.spec.tolerations)

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        reasons: dict[str, int] = {}

        def reason(taints: tuple[Taint, ...]) -> int:
            """0 if the pod tolerates the taints, else the position of the reason, counted from 1."""
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
        return nodes.by_taints(lambda taints: len(_unwanted(taints, pod)))

    def score_lines(self, state: CycleState, pod: Pod, node: NodeInfo) -> Sequence[str]:
        unwanted = _unwanted(node.node.spec.taints, pod)
        named = f"{', '.join(map(taint_text, unwanted))}: " if unwanted else ""
        return [f"PreferNoSchedule taints that the pod does not tolerate: {named}{len(unwanted)}"]

    def events_to_register(self) -> Sequence[EventHint]:
        rules = self.release_rules
        of_nodes = EventHint("Node", Action.ADD | node_update(Action.UPDATE_NODE_TAINT, rules), self.is_tolerated_now)
        of_pods = EventHint("Pod", Action.UPDATE_POD_TOLERATION, is_about_itself)
        return (of_nodes, of_pods) if rules.own_updates_ask_hints else (of_nodes,)

    def is_tolerated_now(self, waiting: WaitingPod, old: Node | None, new: Node) -> bool:
        """Whether the waiting pod tolerates the node's taints, and did not before."""
        tolerations = waiting.pod.spec.tolerations
        was_repelled = old is None or untolerated(old.spec.taints, tolerations) is not None
        return was_repelled and untolerated(new.spec.taints, tolerations) is None

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        return taint_obstacles(rejected)

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return taint_fixes(rejected)

    def score_fixes(self, pod: Pod, node: str, cluster: Cluster) -> Iterator[Change]:
        return preferred_taint_fixes(pod, node, cluster)


def _unwanted(taints: Iterable[Taint], pod: Pod) -> list[Taint]:
    """The PreferNoSchedule taints that the pod does not tolerate."""
    tolerations = [each for each in pod.spec.tolerations if each.effect in ("", PREFER_NO_SCHEDULE)]
    return [each for each in taints if each.effect == PREFER_NO_SCHEDULE and not any_tolerates(tolerations, each)]


def taint_obstacles(
    rejected: RejectedNodes, is_repelling: Callable[[Taint], bool] = repels
) -> dict[str, list[Obstacle]]:
    """The first taint of each node that the pod does not tolerate, which is the one that kube-scheduler reports."""
    found = {}
    for node in rejected.statuses:
        taint = untolerated(rejected.cluster.node(node).spec.taints, rejected.pod.spec.tolerations, is_repelling)
        if taint is not None:
            text = taint_text(taint)
            found[node] = [Obstacle("taint", f"untolerated taint {text}", {"taint": text})]
    return found


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
