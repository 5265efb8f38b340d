"""check_plugin: what it lets pass, and what it says about plugins that break a rule."""

from __future__ import annotations

import itertools
import random
from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest

from builders import make_node, make_pod
from podium.cluster import Aspect, NodeInfo, Nodes, PodInfo
from podium.cluster.columns import Ints
from podium.errors import PluginError
from podium.framework import (
    SKIP,
    SUCCESS,
    WAIT,
    CycleState,
    FilterPlugin,
    Plugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    Status,
    Verdict,
)
from podium.framework.check import check_plugin
from podium.framework.plugin import QueuedPod
from podium.objects import Pod
from podium.plugins import IN_TREE
from user_plugins import USER_PLUGINS

ZONE = "topology.kubernetes.io/zone"


@pytest.mark.parametrize("plugin", [*IN_TREE.values(), *USER_PLUGINS], ids=lambda plugin: plugin.name)
def test_good_plugins_pass(plugin: type[Plugin]) -> None:
    check_plugin(plugin)


def test_arguments_are_handed_to_the_plugin() -> None:
    class Limited(ScorePlugin):
        name = "Limited"

        def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
            return self.args["score"] if isinstance(self.args, dict) else 0

    check_plugin(Limited, {"score": 100})
    with pytest.raises(PluginError, match="invalid score 101"):
        check_plugin(Limited, {"score": 101})


def test_objects_are_added_to_those_the_plugin_is_tried_on() -> None:
    class Named(FilterPlugin):
        name = "Named"

        def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
            if pod.name == "special" and node.name == "special":
                raise KeyError("special")
            return SUCCESS

    check_plugin(Named)
    with pytest.raises(PluginError, match="fails in filter_node: KeyError: 'special'"):
        check_plugin(Named, objects=[make_node("special"), make_pod("special")])


def test_labels_named_in_the_code_are_on_some_nodes() -> None:
    seen: set[str | None] = set()

    class Priced(ScorePlugin):
        name = "Priced"
        LABEL = "example.com/price"

        def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
            seen.add(node.labels.get(self.LABEL))
            return 0

    check_plugin(Priced)
    assert None in seen
    assert len(seen) > 2


# -- plugins that break a rule -------------------------------------------------------------------------------------


class NoPoint(Plugin):
    name = "NoPoint"


class Nameless(ScorePlugin):
    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return 0


class Empty(FilterPlugin):
    name = "Empty"


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


class NormalizesBySum(ScorePlugin):
    name = "NormalizesBySum"
    normalizes_by_max = True

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

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return random.randrange(100)


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


class ByMoreLabels(ScorePlugin):
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


class KeyTooSmall(Reads):
    name = "KeyTooSmall"

    def key(self, info: PodInfo) -> Hashable:
        return info.namespace

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return len(pod.metadata.labels)


class Unhashable(Reads):
    name = "Unhashable"

    def key(self, info: PodInfo) -> Hashable:
        return info.labels  # type: ignore[return-value]

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return 0


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (NoPoint, "is of no extension point: derive it from FilterPlugin, ScorePlugin or the like"),
        (Nameless, "'Nameless' has no name: set its class attribute `name`"),
        (Empty, "derives from FilterPlugin but does not define filter_node or filter"),
        (EmptyScore, "derives from ScorePlugin but does not define score_node or score"),
        (NeedsArgs, "fails in its constructor: KeyError: 'weight'"),
        (NumbersForReads, "has 4 for `reads`: use None or Aspect flags"),
        (Crashes, "fails in score_node: KeyError: 'price'"),
        (ReturnsTrue, "returns True from filter_node: return a Status"),
        (ReturnsMask, "returns ndarray from filter: return a Verdict"),
        (TooFewCodes, "from filter: return an int64 array, one number for each node"),
        (Indescribable, "fails in describing its code 2: IndexError"),
        (WrongSign, "gives code 1 to Error: 0 is for nodes that pass, negative codes are for errors"),
        (Reasonless, "returns Unschedulable from filter_node without a reason"),
        (Waits, "returns Wait from filter_node: allowed are Success, Error, Unschedulable, UnschedulableAndUnres"),
        (FloatScore, "returns 0.5 from score_node: a score is an int"),
        (FloatScores, "returns float64[7] from score: return an int64 array, one number for each node"),
        (TooHigh, "after normalizing, scores are in 0..100"),
        (NormalizesWrong, "returns an invalid score -1: after normalizing, scores are in 0..100"),
        (NormalizesBySum, "has normalizes_by_max, but 2000 becomes 100 on one node and 14 on many"),
        (PreFiltersStatus, "from pre_filter: return a PreFilterResult"),
        (PreFiltersWaiting, "returns Wait from pre_filter: allowed are Success, Error, Skip, Unschedulable"),
        (PreFiltersList, "returns node_names from pre_filter that are no frozenset of names"),
        (PreScoreRejects, "returns Unschedulable from pre_score: allowed are Success, Error, Skip"),
        (EnqueuesWrong, "from pre_enqueue: use SUCCESS or a rejection"),
        (Unsortable, "fails in comparing what sort_key returns: TypeError"),
        (ChangesColumn, "changes an array of nodes (allocatable) in filter: what it is given is to be read only"),
        (ChangesPod, "changes the pod in score: what it is given is to be read only"),
        (ChangesNode, "changes a node in score: what it is given is to be read only"),
        (Rolls, "is not deterministic: asked again, score gives node node-0"),
        (Counts, "is not deterministic: asked again, score gives node node-0"),
        (ByPlace, "must not depend on which nodes it is given: for another order, score gives node node-6 0 instead"),
        (FirstOnly, "must not depend on which nodes it is given: for fewer nodes, filter gives node"),
        (TwoForms, "says different things in its two forms: one node at a time, filter gives node"),
        (TwoScores, "in its two forms: one node at a time, score gives node node-0 7 instead of 0"),
        (ByMoreLabels, "says in score_labels that only topology.kubernetes.io/zone counts, but nodes"),
        (ReadsTaints, "says it reads LABELS, but after the taints of node"),
        (ReadsResources, "says it reads LABELS, but after the allocatable of node"),
        (ReadsPods, "says it reads RESOURCES, but after the labels of the pods on node"),
        (ReadsImages, "add what it reads (IMAGES) to `reads`"),
        (
            ReadsNamespaces,
            "says it reads LABELS, but after a namespace changed, score gives node node-0 0 instead of 1",
        ),
        (ReadsOtherNodes, "the answers for other nodes are not asked for again, but after"),
        (ReadsInPreFilter, "PreFilter, PreScore and the answers for other nodes are not asked for again, but after"),
        (KeyTooSmall, "must say in `key` all it reads of a pod: pods asked-0 and asked-1 have the key 'default', but"),
        (Unhashable, "fails in hashing what key returns: TypeError"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_broken_plugins_are_told_which_rule_they_break(plugin: type[Plugin], message: str) -> None:
    with pytest.raises(PluginError) as error:
        check_plugin(plugin)
    assert message in str(error.value)
    assert repr(plugin.name or plugin.__name__) in str(error.value)


def test_points_that_reach_outside_are_not_called() -> None:
    class Reaches(ReservePlugin):
        name = "Reaches"

        def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
            raise AssertionError("called")

    check_plugin(Reaches)
