"""The rows a pod fits on: the plan's, less what filters for this pod alone reject."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from builders import ZONE, make_node, make_pod
from engine.planning import plan_of
from podium.cluster import Cluster
from podium.cluster.columns import Ints
from podium.engine._feasible_rows import FeasibleRows, NodeStatuses, Ranking, RowScores, check_scores, status_counts
from podium.engine.plan_outcomes import INFEASIBLE
from podium.errors import PluginError
from podium.framework import Code, Status

ZONES = {"a1": "a", "a2": "a", "b1": "b", "b2": "b", "c1": "c"}
TAINTED = "b2"
FULL = Status(Code.UNSCHEDULABLE, ("full",), "Fit")
TAINT = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("tainted",), "Taint")


@pytest.fixture
def cluster() -> Cluster:
    nodes = (
        make_node(name, labels={ZONE: zone}, taints=["k=v:NoSchedule"] if name == TAINTED else [])
        for name, zone in ZONES.items()
    )
    return Cluster.from_objects(nodes)


@pytest.fixture
def feasible(cluster: Cluster) -> FeasibleRows:
    """What the filters that keep results leave of five nodes: all but the tainted one."""
    return FeasibleRows(plan_of(cluster, make_pod()), cluster)


def names(feasible: FeasibleRows, cluster: Cluster) -> list[str]:
    return [cluster.names[row] for row in feasible.rows]


def drop_nodes(feasible: FeasibleRows, cluster: Cluster, *dropped: str) -> None:
    nodes = feasible.nodes
    feasible.drop(np.array([cluster.names[row] in dropped for row in feasible.rows]), nodes)


def drop_zones(feasible: FeasibleRows, cluster: Cluster, *dropped: str) -> None:
    groups = cluster.groups.by((ZONE,))
    feasible.drop_groups(np.array([ZONES[cluster.names[row]] in dropped for row in groups.first]), groups)


DROPS: dict[str, tuple[list[Callable[[FeasibleRows, Cluster], None]], list[str]]] = {
    "nothing": ([], ["a1", "a2", "b1", "c1"]),
    "a node": ([lambda rows, cluster: drop_nodes(rows, cluster, "a1")], ["a2", "b1", "c1"]),
    "a zone": ([lambda rows, cluster: drop_zones(rows, cluster, "a")], ["b1", "c1"]),
    "a node, then another": (
        [lambda rows, cluster: drop_nodes(rows, cluster, "a1"), lambda rows, cluster: drop_nodes(rows, cluster, "c1")],
        ["a2", "b1"],
    ),
    "a node, then a zone": (
        [lambda rows, cluster: drop_nodes(rows, cluster, "a1"), lambda rows, cluster: drop_zones(rows, cluster, "b")],
        ["a2", "c1"],
    ),
    "a zone, then a node": (
        [lambda rows, cluster: drop_zones(rows, cluster, "b"), lambda rows, cluster: drop_nodes(rows, cluster, "c1")],
        ["a1", "a2"],
    ),
    "all zones": ([lambda rows, cluster: drop_zones(rows, cluster, "a", "b", "c")], []),
}


@pytest.mark.parametrize("name", DROPS)
def test_rows_count_has_and_groups_agree(name: str, feasible: FeasibleRows, cluster: Cluster) -> None:
    drops, expected = DROPS[name]
    for drop in drops:
        drop(feasible, cluster)

    assert names(feasible, cluster) == expected
    assert feasible.count == len(expected)
    assert [node for node in cluster.names if feasible.has(cluster.rows[node])] == expected
    groups = cluster.groups.by((ZONE,))
    by_zone = dict(
        zip([ZONES[cluster.names[row]] for row in groups.first], feasible.represent(groups).counts, strict=True)
    )
    assert by_zone == {zone: sum(ZONES[node] == zone for node in expected) for zone in "abc"}


def test_rejecting_nothing_leaves_the_plans_rows(feasible: FeasibleRows, cluster: Cluster) -> None:
    drop_nodes(feasible, cluster)
    drop_zones(feasible, cluster)

    assert feasible.are_the_plans
    assert not feasible.are_listed


def test_all_rows_are_feasible_only_while_no_node_is_rejected(cluster: Cluster) -> None:
    tolerating = make_pod(tolerations=[{"operator": "Exists"}])
    feasible = FeasibleRows(plan_of(cluster, tolerating), cluster)

    assert feasible.are_everywhere
    drop_nodes(feasible, cluster, "a1")
    assert not feasible.are_everywhere


@pytest.mark.parametrize("dropped", [(), ("a1",)])
def test_ranking_adds_what_groups_score_and_puts_rejected_rows_last(
    dropped: tuple[str, ...], feasible: FeasibleRows, cluster: Cluster
) -> None:
    drop_nodes(feasible, cluster, *dropped)
    groups = cluster.groups.by((ZONE,))
    scores = np.array([{"a": 5, "b": 7, "c": 1}[ZONES[cluster.names[row]]] for row in groups.first])
    plain = feasible.rank([])

    ranked = feasible.rank([(groups, scores), (groups, scores)])

    fits = feasible.rows
    assert (ranked - plain)[fits].tolist() == [2 * {"a": 5, "b": 7, "c": 1}[ZONES[cluster.names[row]]] for row in fits]
    rejected = [row for row in range(len(ZONES)) if row not in fits]
    assert max(ranked[rejected]) < INFEASIBLE // 2 < min(ranked[fits])


@pytest.mark.parametrize(("rows", "best"), [(None, [1, 3]), (np.array([4, 6, 7, 9]), [6, 9])])
def test_the_best_rows_of_a_ranking_are_all_that_tie(rows: Ints | None, best: list[int]) -> None:
    assert Ranking(rows, [], np.array([3, 8, 1, 8])).best.tolist() == best


def test_scores_of_groups_are_spread_over_their_rows(cluster: Cluster) -> None:
    groups = cluster.groups.by((ZONE,))
    raw = np.arange(len(groups.first))
    scores = RowScores("Mine", 2, raw, raw * 10, groups)

    everywhere, some = scores.of(None), scores.of(np.array([0, 4]))

    assert everywhere.raw.tolist() == groups.of_row.tolist()
    assert some.normalized.tolist() == [groups.of_row[0] * 10, groups.of_row[4] * 10]


def test_a_score_outside_the_bounds_is_an_error_of_its_plugin() -> None:
    assert not check_scores("Mine", np.array([0, 100]), (0, 100))
    assert check_scores("Mine", np.array([7, 7]), (0, 100)), "they are all the same"
    with pytest.raises(PluginError, match=r"Mine.*invalid score 101.*\[0, 100\]"):
        check_scores("Mine", np.array([5, 101]), (0, 100))


def test_statuses_by_code_read_as_a_sorted_mapping() -> None:
    statuses = NodeStatuses(np.array([0, 2, 1, 1]), [Status(Code.SUCCESS), FULL, TAINT], ("d", "c", "b", "a"))

    assert list(statuses.items()) == [("a", FULL), ("b", FULL), ("c", TAINT)]
    assert len(statuses) == 3
    assert status_counts(statuses) == {FULL: 2, TAINT: 1} == status_counts(dict(statuses))
    assert statuses.rows_of(Code.UNSCHEDULABLE).tolist() == [2, 3]


def test_a_status_with_several_codes_is_counted_once_for_each_node() -> None:
    statuses = NodeStatuses(np.array([1, 2, 2, 3]), [Status(Code.SUCCESS), FULL, TAINT, FULL], ("a", "b", "c", "d"))

    assert status_counts(statuses) == {FULL: 2, TAINT: 2} == status_counts(dict(statuses))
