"""check_plugin: what it lets pass, and what it says about plugins that break a rule."""

from __future__ import annotations

import pytest

from builders import make_node, make_pod
from podium.cluster import NodeInfo
from podium.errors import PluginError
from podium.framework import SUCCESS, CycleState, FilterPlugin, Plugin, ReservePlugin, ScorePlugin, Status
from podium.framework.plugin import points_of
from podium.model import Pod
from podium.plugins import IN_TREE
from podium.testing import check_plugin
from testing import broken_plugins as broken
from user_plugins import USER_PLUGINS


@pytest.mark.parametrize(
    "plugin", [*(each for each in IN_TREE.values() if points_of(each)), *USER_PLUGINS], ids=lambda plugin: plugin.name
)
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


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (broken.NoPoint, "is of no extension point: derive it from FilterPlugin, ScorePlugin or the like"),
        (broken.Nameless, "'Nameless' has no name: set its class attribute `name`"),
        (broken.Empty, "derives from FilterPlugin but does not define filter_node or filter"),
        (broken.EmptyScore, "derives from ScorePlugin but does not define score_node or score"),
        (broken.NeedsArgs, "fails in its constructor: KeyError: 'weight'"),
        (broken.NumbersForReads, "has 4 for `reads`: use None or Aspect flags"),
        (broken.Crashes, "fails in score_node: KeyError: 'price'"),
        (broken.ReturnsTrue, "returns True from filter_node: return a Status"),
        (broken.ReturnsMask, "returns ndarray from filter: return a Verdict"),
        (broken.TooFewCodes, "from filter: return an int64 array, one number for each node"),
        (broken.Indescribable, "fails in describing its code 2: IndexError"),
        (broken.WrongSign, "gives code 1 to Error: 0 is for nodes that pass, negative codes are for errors"),
        (broken.Reasonless, "returns Unschedulable from filter_node without a reason"),
        (
            broken.Waits,
            "returns Wait from filter_node: allowed are Success, Error, Unschedulable, UnschedulableAndUnres",
        ),
        (broken.OtherLines, "in score_lines '6 * 7 = 142': the last line must end in the score, 42"),
        (broken.OneLine, "returns '6 * 7 = 42' from score_lines: return a list of lines"),
        (broken.OtherNormalizeLines, "in normalize_lines '42': the last line must end in the score, 21"),
        (broken.FloatScore, "returns 0.5 from score_node: a score is an int"),
        (broken.FloatScores, "returns float64[7] from score: return an int64 array, one number for each node"),
        (broken.TooHigh, "after normalizing, scores are in 0..100"),
        (broken.NormalizesWrong, "returns an invalid score -1: after normalizing, scores are in 0..100"),
        (broken.NormalizesBySum, "is a NormalizesByMax plugin, but 2000 becomes 100 on one node and 14 on many"),
        (broken.PreFiltersStatus, "from pre_filter: return a PreFilterResult"),
        (broken.PreFiltersWaiting, "returns Wait from pre_filter: allowed are Success, Error, Skip, Unschedulable"),
        (broken.PreFiltersList, "returns node_names from pre_filter that are no frozenset of names"),
        (broken.PreScoreRejects, "returns Unschedulable from pre_score: allowed are Success, Error, Skip"),
        (broken.EnqueuesWrong, "from pre_enqueue: use SUCCESS or a rejection"),
        (broken.Unsortable, "fails in comparing what sort_key returns: TypeError"),
        (
            broken.ChangesColumn,
            "changes an array of nodes (allocatable) in filter: what it is given is to be read only",
        ),
        (broken.ChangesPod, "changes the pod in score: what it is given is to be read only"),
        (broken.ChangesNode, "changes a node in score: what it is given is to be read only"),
        (broken.Rolls, "is not deterministic: asked again, score gives node node-0"),
        (broken.Counts, "is not deterministic: asked again, score gives node node-0"),
        (
            broken.ByPlace,
            "must not depend on which nodes it is given: for another order, score gives node node-6 0 instead",
        ),
        (broken.FirstOnly, "must not depend on which nodes it is given: for fewer nodes, filter gives node"),
        (broken.TwoForms, "says different things in its two forms: one node at a time, filter gives node"),
        (broken.TwoScores, "in its two forms: one node at a time, score gives node node-0 7 instead of 0"),
        (broken.ByMoreLabels, "says in score_labels that only topology.kubernetes.io/zone counts, but nodes"),
        (broken.ReadsTaints, "says it reads LABELS, but after the taints of node"),
        (broken.ReadsResources, "says it reads LABELS, but after the allocatable of node"),
        (broken.ReadsPods, "says it reads RESOURCES, but after the labels of the pods on node"),
        (broken.ReadsImages, "add what it reads (IMAGES) to `reads`"),
        (
            broken.ReadsNamespaces,
            "says it reads LABELS, but after a namespace changed, score gives node node-0 0 instead of 1",
        ),
        (broken.ReadsOtherNodes, "the answers for other nodes are not asked for again, but after"),
        (
            broken.ReadsInPreFilter,
            "PreFilter, PreScore and the answers for other nodes are not asked for again, but after",
        ),
        (
            broken.SignsTooLittle,
            "must return from `sign` all it reads of a pod: pods asked-0 and asked-1 have the signature 'default', but",
        ),
        (broken.Unconcerned, "nothing to do with pod asked-0, but its filter rejects nodes"),
        (broken.UnconcernedPreFilter, "nothing to do with pod asked-0, but its pre_filter does not return SKIP"),
        (broken.UnconcernedPreScore, "nothing to do with pod asked-0, but its pre_score does not return SKIP"),
        (broken.RegistersKinds, "returns ['Node'] from events_to_register: return EventHints, or None"),
        (broken.FixesInWords, "returns 'turn it off and on again' from fixes: return Change values"),
        (broken.ScoreFixesInWords, "returns 'a faster node' from score_fixes: return Change values"),
        (broken.Unhashable, "fails in hashing what sign returns: TypeError"),
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
