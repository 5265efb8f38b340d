"""Old releases on a cluster that went through events answer as on one built from what is left after them."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings

from pod_kinds import POD_KINDS, pod_of
from podium.cluster import Cluster
from podium.engine import Scheduler
from world import History, RemoveNode, Shape, World, histories

RELEASES = ("v1.8", "v1.14", "v1.18")
QUESTIONS = [pod_of(kind, "asked") for kind in POD_KINDS]
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


def scheduler_of(cluster: Cluster, release: str) -> Scheduler:
    return Scheduler(cluster, release=release, tie_break="first")


@pytest.mark.parametrize("release", RELEASES)
@settings(max_examples=8, phases=PHASES)
@given(history=histories)
def test_decisions_after_events_equal_decisions_from_scratch(release: str, history: History) -> None:
    world = World(history.shapes, history.alike)
    scheduler = scheduler_of(world.cluster, release)
    for turn, event in enumerate(history.events, 1):
        world.apply(event, scheduler)
        if scheduler.cluster is not world.cluster:
            scheduler = scheduler_of(world.cluster, release)
        fresh = scheduler_of(world.rebuilt(), release)
        step = 1 if turn == len(history.events) else 9
        for pod in QUESTIONS[turn % step :: step]:
            assert scheduler.decide(pod) == fresh.decide(pod)


@pytest.mark.parametrize("release", RELEASES)
def test_a_removed_node_is_nobodys(release: str) -> None:
    """Every kind of pod, decided before a node goes and after, with its row left behind."""
    world = World([Shape(zone=0), Shape(zone=1), Shape(zone=2, taints=2)])
    scheduler = scheduler_of(world.cluster, release)
    for pod in QUESTIONS:
        scheduler.decide(pod)

    world.apply(RemoveNode("n1"), scheduler)

    fresh = scheduler_of(world.rebuilt(), release)
    assert [scheduler.decide(pod) for pod in QUESTIONS] == [fresh.decide(pod) for pod in QUESTIONS]
