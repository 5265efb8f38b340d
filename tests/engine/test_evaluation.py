"""One pod on its way through the extension points: what runs, what it leaves, and what that comes to."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from builders import ZONE, make_config, make_node, make_pod
from engine.planning import evaluation_of
from podium.cluster import Cluster, Nodes
from podium.cluster.columns import Ints
from podium.engine._evaluation import joined
from podium.framework import Registry
from podium.framework.plugin import CycleState, FilterPlugin, PreFilterPlugin, PreScorePlugin, ScorePlugin
from podium.framework.status import SKIP, Code, PreFilterResult, Status, Verdict
from podium.model import Pod
from podium.plugins import IN_TREE

CALLS: list[str] = []


class OnlyA(PreFilterPlugin, FilterPlugin):
    """Narrows the nodes to `a`; its filter passes all it is asked about, and notes which."""

    name = "OnlyA"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        CALLS.append("OnlyA.pre_filter")
        return PreFilterResult(node_names=frozenset(("a",)))

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        CALLS.append(f"OnlyA.filter {len(nodes)}")
        return Verdict.reject(np.zeros(len(nodes), dtype=np.bool_), "")


class Skipping(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Skips at PreFilter and at PreScore, so neither its filter nor its score may run."""

    name = "Skipping"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PreFilterResult(SKIP)

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        CALLS.append("Skipping.filter")
        return Verdict.reject(np.ones(len(nodes), dtype=np.bool_), "never asked")

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        return SKIP

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        CALLS.append("Skipping.score")
        return np.zeros(len(nodes), dtype=np.int64)


class ByName(ScorePlugin):
    """Scores a node 10 for each letter that its name comes after `a`, and notes how many nodes it is asked about."""

    name = "ByName"

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        CALLS.append(f"ByName.score {len(nodes)}")
        return np.array([10 * (ord(name[0]) - ord("a")) for name in nodes.names], dtype=np.int64)


REGISTRY = Registry((*IN_TREE.values(), OnlyA, Skipping, ByName))


def with_plugins(*names: str, only: bool = False) -> dict[str, object]:
    plugins = {"enabled": [{"name": name} for name in names], "disabled": [{"name": "*"}] if only else []}
    return make_config({"plugins": {"multiPoint": plugins}})


def cluster_of(*nodes: str, tainted: Iterable[str] = ()) -> Cluster:
    CALLS.clear()
    return Cluster.from_objects(
        make_node(name, labels={ZONE: "z"}, taints=["k=v:NoSchedule"] if name in tainted else []) for name in nodes
    )


def test_filters_leave_the_feasible_rows_and_say_why_not_the_others() -> None:
    cluster = cluster_of("a", "b", "c", tainted="b")

    evaluation = evaluation_of(cluster, make_pod())

    assert [cluster.names[row] for row in evaluation.feasible.rows] == ["a", "c"]
    statuses = evaluation.statuses()
    assert {cluster.names[row]: status.plugin for row, status in statuses.items()} == {"b": "TaintToleration"}
    by_name = evaluation.node_statuses()
    assert by_name is not None
    assert dict(by_name) == {"b": statuses[cluster.rows["b"]]}


def test_a_node_that_pre_filter_leaves_out_is_not_filtered() -> None:
    cluster = cluster_of("a", "b", "c")

    evaluation = evaluation_of(cluster, make_pod(), with_plugins("OnlyA"), REGISTRY)

    assert [cluster.names[row] for row in evaluation.feasible.rows] == ["a"]
    assert [call for call in CALLS if call.startswith("OnlyA.filter")] == ["OnlyA.filter 1"]
    assert evaluation.statuses() == {}


def test_a_plugin_that_skips_is_not_asked_again() -> None:
    cluster = cluster_of("a", "b")

    evaluation = evaluation_of(cluster, make_pod(), with_plugins("Skipping"), REGISTRY)
    ranking = evaluation.rank()
    scores = {scores.plugin for scores in evaluation.scores(ranking)}

    assert evaluation.feasible.count == 2
    assert CALLS == []
    assert "Skipping" not in scores


def test_the_ranking_is_the_weighted_sum_of_the_scores() -> None:
    cluster = cluster_of("a", "b", "c", tainted="c")
    evaluation = evaluation_of(cluster, make_pod(), with_plugins("ByName"), REGISTRY)

    ranking = evaluation.rank()
    scores = list(evaluation.scores(ranking))

    rows = evaluation.feasible.rows
    totals = sum((each.weight * each.of(rows).normalized for each in scores), np.zeros(len(rows), dtype=np.int64))
    values = ranking.values if ranking.rows is not None else ranking.values[rows]
    assert (values - values[0]).tolist() == (totals - totals[0]).tolist()
    assert [cluster.names[row] for row in ranking.best] == ["b"]
    assert "ByName.score 2" in CALLS


def test_a_pod_bound_for_one_node_is_evaluated_there_alone() -> None:
    cluster = cluster_of("a", "b", "c", tainted="c")
    evaluation = evaluation_of(cluster, make_pod())

    assert evaluation.only_on(cluster.rows["b"]).feasible.rows.tolist() == [cluster.rows["b"]]


def test_a_sample_is_what_is_kept_of_the_feasible_rows() -> None:
    cluster = cluster_of("a", "b", "c")
    evaluation = evaluation_of(cluster, make_pod())

    evaluation.sample(np.array([cluster.rows["c"]]))

    assert evaluation.feasible.rows.tolist() == [cluster.rows["c"]]
    assert evaluation.rank().best.tolist() == [cluster.rows["c"]]


@pytest.mark.parametrize(
    ("one", "other", "code"),
    [
        (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE),
        (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
        (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
    ],
)
def test_reasons_of_two_filters_are_joined(one: Code, other: Code, code: Code) -> None:
    found = joined(Status(one, ("full",), "Fit"), Status(other, ("tainted",), "Taint"))

    assert found == Status(code, ("full", "tainted"), "Fit, Taint", ("Fit", "Taint"))
