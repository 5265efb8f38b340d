"""What plugins say merged into one number per row, and how that follows the cluster."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from builders import make_config, make_node, make_pod
from engine.planning import plans_on
from podium.cluster import Aspect, Cluster, Nodes
from podium.cluster.columns import Ints
from podium.engine.plan_outcomes import INFEASIBLE, total
from podium.framework import CycleState, FilterPlugin, Registry, ScorePlugin, Verdict
from podium.model import Pod
from podium.plugins import IN_TREE

ASKED: list[tuple[str, int]] = []
"""The plugins that were asked, and about how many nodes."""


class Labelled(FilterPlugin, ScorePlugin):
    """Rejects nodes with the label `off` and scores the others by the label `points`."""

    name = "Labelled"
    reads = Aspect.LABELS

    def sign(self, pod: object) -> tuple[()]:
        return ()

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        ASKED.append(("filter", len(nodes)))
        return Verdict.reject(np.array(["off" in node.labels for node in nodes], dtype=np.bool_), "off")

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        ASKED.append(("score", len(nodes)))
        return np.array([int(node.labels.get("points", "0")) for node in nodes], dtype=np.int64)


REGISTRY = Registry((*IN_TREE.values(), Labelled))
CONFIG = make_config({"plugins": {"multiPoint": {"enabled": [{"name": "Labelled", "weight": 3}]}}})


def test_a_total_is_the_weighted_sum_where_no_filter_rejects() -> None:
    rejected = [np.array([False, False, True]), None]
    scores = [(2, np.array([1, 2, 3])), (1, np.array([10, 20, 30]))]

    assert total(rejected, scores, 3).tolist() == [12, 24, INFEASIBLE]
    assert total([], [], 2).tolist() == [0, 0]


def cluster_of(number: int = 40) -> Cluster:
    """Enough nodes that a plugin is asked about all of them with arrays."""
    return Cluster.from_objects(make_node(f"n{place}", labels={"points": str(place)}) for place in range(number))


CHANGES: dict[str, Callable[[Cluster], object]] = {
    "a label": lambda cluster: cluster.update(make_node("n3", labels={"points": "90"})),
    "a node that is rejected now": lambda cluster: cluster.update(make_node("n3", labels={"off": ""})),
    "a node that is gone": lambda cluster: cluster.remove(cluster.node("n3")),
    "a new node": lambda cluster: cluster.update(make_node("new", labels={"points": "77"})),
    "a pod that takes room": lambda cluster: cluster.update(make_pod("big", node="n3", requests={"cpu": "4"})),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_plan_follows_a_change_as_if_made_anew(name: str) -> None:
    cluster, pod = cluster_of(), make_pod(requests={"cpu": "1"})
    plan = plans_on(cluster, CONFIG, REGISTRY).of(cluster.info_of(pod))
    plan.catch_up()
    before = plan.total.copy()
    ASKED.clear()

    CHANGES[name](cluster)
    plan.catch_up()
    asked = sum(nodes for _, nodes in ASKED)
    fresh = plans_on(cluster, CONFIG, REGISTRY).of(cluster.info_of(pod))
    fresh.catch_up()

    assert plan.total.tolist() == fresh.total.tolist()
    assert plan.feasible_rows.tolist() == fresh.feasible_rows.tolist()
    assert len(before) != len(plan.total) or before.tolist() != plan.total.tolist()
    assert asked < 10  # not all 40 nodes again


def test_a_change_that_a_plugin_does_not_read_does_not_ask_it() -> None:
    cluster, pod = cluster_of(), make_pod(requests={"cpu": "1"})
    plan = plans_on(cluster, CONFIG, REGISTRY).of(cluster.info_of(pod))
    plan.catch_up()
    ASKED.clear()

    cluster.update(make_pod("big", node="n3", requests={"cpu": "4"}))
    plan.catch_up()

    assert ASKED == []
    assert cluster.rows["n3"] not in plan.feasible_rows
