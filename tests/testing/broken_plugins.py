"""Plugins that each break one rule of the contract, in the simplest way one might."""

from __future__ import annotations

import itertools
import random
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes
from podium.cluster.columns import Ints
from podium.framework import (
    SKIP,
    SUCCESS,
    WAIT,
    CycleState,
    EventHint,
    FilterPlugin,
    Plugin,
    PodView,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    ScorePlugin,
    Status,
    Verdict,
)
from podium.framework.fast_paths import ByNodeLabels, ForSomePods, NormalizesByMax
from podium.framework.plugin import QueuedPod
from podium.framework.suggested_change import Change, RejectedPod
from podium.model import Pod

ZONE = "topology.kubernetes.io/zone"


class NoPoint(Plugin):
    name = "NoPoint"


class Nameless(ScorePlugin):
    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return 0


class Empty(FilterPlugin):
    name = "Empty"


class OtherLines(ScorePlugin):
    name = "OtherLines"

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return 42

    def score_lines(self, state: CycleState, pod: Pod, node: NodeInfo) -> Sequence[str]:
        return ["6 * 7 = 142"]


class OneLine(ScorePlugin):
    name = "OneLine"

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return 42

    def score_lines(self, state: CycleState, pod: Pod, node: NodeInfo) -> Sequence[str]:
        return "6 * 7 = 42"


class OtherNormalizeLines(ScorePlugin):
    name = "OtherNormalizeLines"

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return 42

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        return scores // 2

    def normalize_lines(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes, place: int) -> Sequence[str]:
        return ["half of it", f"{scores[place]}"]


class EmptyScore(FilterPlugin, ScorePlugin):
    name = "EmptyScore"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS


class Scores(ScorePlugin):
    """Something to derive from: scores are all zero."""

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return np.zeros(len(nodes), dtype=np.int64)


class NeedsArgs(Scores):
    name = "NeedsArgs"

    def __init__(self, args: Any = None) -> None:
        super().__init__(args)
        self.weight = args["weight"]


class NumbersForReads(Scores):
    name = "NumbersForReads"
    reads = 4  # type: ignore[assignment]


class Crashes(ScorePlugin):
    name = "Crashes"

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return int(node.labels["price"])


class ReturnsTrue(FilterPlugin):
    name = "ReturnsTrue"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return True  # type: ignore[return-value]


class ReturnsMask(FilterPlugin):
    name = "ReturnsMask"

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        return nodes.unschedulable  # type: ignore[return-value]


class TooFewCodes(FilterPlugin):
    name = "TooFewCodes"

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        return Verdict.reject(nodes.unschedulable[1:], "node(s) were cordoned")


class Indescribable(FilterPlugin):
    name = "Indescribable"

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        return Verdict.choose(np.full(len(nodes), 2), (Status.unschedulable("one"),))


class WrongSign(FilterPlugin):
    name = "WrongSign"

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        return Verdict(np.ones(len(nodes), dtype=np.int64), lambda _: Status.error("broken"))


class Reasonless(FilterPlugin):
    name = "Reasonless"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return Status.unschedulable()


class Waits(FilterPlugin):
    name = "Waits"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return WAIT


class FloatScore(ScorePlugin):
    name = "FloatScore"

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return 0.5  # type: ignore[return-value]


class FloatScores(ScorePlugin):
    name = "FloatScores"

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return nodes.requested("cpu") / 1000  # type: ignore[return-value]


class TooHigh(ScorePlugin):
    name = "TooHigh"

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return nodes.allocatable("cpu") // 10


class NormalizesWrong(Scores):
    name = "NormalizesWrong"

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        return scores - 1


class NormalizesBySum(NormalizesByMax):
    name = "NormalizesBySum"

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return nodes.allocatable("cpu")

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        return 100 * scores // max(int(scores.sum()), 1)


class PreFiltersStatus(PreFilterPlugin):
    name = "PreFiltersStatus"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return SKIP  # type: ignore[return-value]


class PreFiltersWaiting(PreFilterPlugin):
    name = "PreFiltersWaiting"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PreFilterResult(WAIT)


class PreFiltersList(PreFilterPlugin):
    name = "PreFiltersList"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PreFilterResult(node_names=nodes.names)  # type: ignore[arg-type]


class PreScoreRejects(PreScorePlugin, Scores):
    name = "PreScoreRejects"

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        return Status.unschedulable("no")


class EnqueuesWrong(PreEnqueuePlugin):
    name = "EnqueuesWrong"

    def pre_enqueue(self, pod: Pod) -> Status:
        return WAIT


class Unsortable(QueueSortPlugin):
    name = "Unsortable"

    def sort_key(self, queued: QueuedPod) -> Any:
        return queued.pod.metadata.labels


class ChangesColumn(FilterPlugin):
    name = "ChangesColumn"

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        free = nodes.cluster.columns.allocatable[0]
        free -= 1
        return Verdict.reject(nodes.unschedulable, "node(s) were cordoned")


class ChangesPod(Scores):
    name = "ChangesPod"

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        pod.metadata.labels["seen"] = "yes"
        return super().score(state, pod, nodes)


class ChangesNode(ScorePlugin):
    name = "ChangesNode"

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        node.node.metadata.annotations["seen"] = "yes"
        return 0


class Rolls(ScorePlugin):
    name = "Rolls"
    dice = random.Random(1)  # without a seed, one run in a hundred rolls the same twice

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return self.dice.randrange(100)


class Counts(ScorePlugin):
    name = "Counts"
    counter = itertools.count()

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return next(self.counter) % 100


class ByPlace(ScorePlugin):
    name = "ByPlace"

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return np.arange(len(nodes))


class FirstOnly(FilterPlugin):
    name = "FirstOnly"

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        return Verdict.reject(nodes.allocatable("cpu") < nodes.allocatable("cpu").max(), "node(s) were small")


class TwoForms(FilterPlugin):
    name = "TwoForms"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return Status.unschedulable("node(s) were cordoned") if node.node.spec.unschedulable else SUCCESS

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        return Verdict.unresolvable(nodes.unschedulable, "node(s) were cordoned")


class TwoScores(Scores):
    name = "TwoScores"

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return 7


class ByMoreLabels(ByNodeLabels, ScorePlugin):
    name = "ByMoreLabels"

    def score_labels(self, state: CycleState) -> tuple[str, ...]:
        return (ZONE,)

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return len(node.labels.get("disk", "")) + len(node.name)


class Reads(ScorePlugin):
    """Something to derive from: says it reads labels."""

    reads = Aspect.LABELS


class ReadsTaints(Reads):
    name = "ReadsTaints"

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return len(node.node.spec.taints)


class ReadsResources(Reads):
    name = "ReadsResources"

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return nodes.allocatable("cpu") // 1000


class ReadsPods(Reads):
    name = "ReadsPods"
    reads = Aspect.RESOURCES

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return sum("app" in other.metadata.labels for other in node.pods)


class ReadsImages(Reads):
    name = "ReadsImages"
    reads = Aspect.RESOURCES | Aspect.PODS

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return len(node.node.status.images)


class ReadsNamespaces(Reads):
    name = "ReadsNamespaces"

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return np.full(len(nodes), len(nodes.cluster.namespace_labels(pod.namespace)))


class ReadsOtherNodes(Reads):
    name = "ReadsOtherNodes"

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return np.full(len(nodes), len(set(nodes.cluster.nodes.codes("disk").tolist())))


class ReadsInPreFilter(PreFilterPlugin, Reads):
    name = "ReadsInPreFilter"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        state[self.name] = int((nodes.codes("disk") == 0).sum())
        return PreFilterResult()

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return np.full(len(nodes), state[self.name])


class SignsTooLittle(Reads):
    name = "SignsTooLittle"

    def sign(self, pod: PodView) -> Hashable:
        return pod.namespace

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return len(pod.metadata.labels)


class RegistersKinds(FilterPlugin):
    name = "RegistersKinds"

    def events_to_register(self) -> Sequence[EventHint]:
        return ["Node"]  # type: ignore[list-item]

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS


class FixesInWords(FilterPlugin):
    name = "FixesInWords"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return Status.unschedulable("node(s) were there")

    def fixes(self, rejected: RejectedPod) -> Iterable[Change]:
        return ["turn it off and on again"]  # type: ignore[list-item]


class ScoreFixesInWords(Scores):
    name = "ScoreFixesInWords"

    def score_fixes(self, pod: Pod, node: str, cluster: Cluster) -> Iterable[Change]:
        return ["a faster node"]  # type: ignore[list-item]


class Unhashable(Reads):
    name = "Unhashable"

    def sign(self, pod: PodView) -> Hashable:
        return pod.labels

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return 0


class Unconcerned(ForSomePods, FilterPlugin):
    name = "Unconcerned"

    def concerns(self, pod: PodView, cluster: Cluster) -> bool:
        return False

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return Status.unschedulable("node(s) were there")


class UnconcernedPreFilter(ForSomePods, PreFilterPlugin):
    name = "UnconcernedPreFilter"

    def concerns(self, pod: PodView, cluster: Cluster) -> bool:
        return False

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PreFilterResult()


class UnconcernedPreScore(ForSomePods, PreScorePlugin):
    name = "UnconcernedPreScore"

    def concerns(self, pod: PodView, cluster: Cluster) -> bool:
        return False

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        return SUCCESS
