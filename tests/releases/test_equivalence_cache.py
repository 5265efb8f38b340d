"""Pods with equal specs share what plugins said of every node; without that, the decisions are the same."""

from __future__ import annotations

import pytest

from builders import make_node, make_pod
from podium.cluster import Cluster
from podium.engine import Scheduler
from releases.recordings import pods_of, recordings, scheduler_for

FAMILIES = ("v1.8-default", "v1.8-policy", "v1.8-volumes", "v1.14-policy", "v1.18-volumes")


@pytest.mark.parametrize("family", FAMILIES)
def test_decisions_are_the_same_without_it(family: str) -> None:
    release = family.split("-")[0]
    for recorded in list(recordings(family))[:30]:
        case = recorded["case"]
        if "error" in recorded["expect"]:
            continue
        with_cache = scheduler_for(case, release)
        without = scheduler_for(case, release, equivalence_cache=False)
        for pod in pods_of(case):
            assert with_cache.place(pod) == without.place(pod), case["name"]


def test_a_decision_names_the_plugins_whose_results_were_kept() -> None:
    scheduler = Scheduler(Cluster.from_objects([make_node("a"), make_node("b")]), release="v1.8")
    first = scheduler.place(make_pod("first", requests={"cpu": "1"}))
    second = scheduler.place(make_pod("second", requests={"cpu": "1"}))
    other = scheduler.place(make_pod("third", requests={"cpu": "2"}))

    assert first.kept == ()
    assert {"GeneralPredicates", "PodToleratesNodeTaints", "LeastRequestedPriority"} <= set(second.kept)
    # Another request is nothing to taints, but everything to resources.
    assert "PodToleratesNodeTaints" in other.kept
    assert "GeneralPredicates" not in other.kept


def test_nothing_is_kept_when_it_is_off() -> None:
    cluster = Cluster.from_objects([make_node("a")])
    scheduler = Scheduler(cluster, release="v1.8", equivalence_cache=False)
    scheduler.place(make_pod("first"))

    assert scheduler.place(make_pod("second")).kept == ()


def test_results_kept_follow_the_pods_placed_since() -> None:
    scheduler = Scheduler(Cluster.from_objects([make_node("a", cpu="2"), make_node("b", cpu="3")]), release="v1.8")

    nodes = [scheduler.place(make_pod(f"p{number}", requests={"cpu": "1"})).node for number in range(6)]

    assert sorted(filter(None, nodes)) == ["a", "a", "b", "b", "b"]
    assert nodes[-1] is None
