"""A cluster that went through events answers exactly as one built from what is left after them."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings

from pod_kinds import POD_KINDS, pod_of
from podium.cluster import Cluster
from podium.cluster.census import Census
from podium.cluster.columns import ChangeLog
from podium.cluster.nodes import ResourceStates
from podium.cluster.pods import PodInfos
from podium.config import parse_config
from podium.engine import Scheduler
from podium.engine.plan import Plans
from podium.rules import NEWEST_RULES
from profiles import CONFIG, REGISTRY, SCHEDULERS
from world import History, World, histories

PARSED = parse_config(CONFIG, REGISTRY.points_in(NEWEST_RULES), rules=NEWEST_RULES)
QUESTIONS = [pod_of(kind, f"asked-{name}", scheduler=name) for kind in POD_KINDS for name in SCHEDULERS]
# Shrinking takes minutes: the history of a failure is short enough to read as it is.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


def scheduler_of(cluster: Cluster) -> Scheduler:
    return Scheduler(cluster, PARSED, registry=REGISTRY, tie_break="first")


def check(history: History) -> None:
    world = World(history.shapes, history.alike)
    scheduler = scheduler_of(world.cluster)
    for turn, event in enumerate(history.events, 1):
        world.apply(event, scheduler)
        if scheduler.cluster is not world.cluster:
            scheduler = scheduler_of(world.cluster)
        fresh = scheduler_of(world.rebuilt())
        # Another part of the questions each time, so that what is kept is of every age when it is asked for.
        step = 1 if turn == len(history.events) else 9
        for pod in QUESTIONS[turn % step :: step]:
            assert scheduler.decide(pod) == fresh.decide(pod)


@settings(max_examples=settings().max_examples // 7, phases=PHASES)
@given(histories)
def test_decisions_after_events_equal_decisions_from_scratch(history: History) -> None:
    check(history)


@settings(max_examples=settings().max_examples // 11, phases=PHASES)
@given(histories)
def test_the_same_when_everything_kept_is_forgotten_early(history: History) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChangeLog, "LIMIT", 4)
        patch.setattr(Census, "MOST_TALLIES", 3)
        patch.setattr(Cluster, "MOST_ROW_MASKS", 2)
        patch.setattr(PodInfos, "LIMIT", 5)
        patch.setattr(ResourceStates, "FEWEST", 2)
        patch.setattr(Plans, "MOST_CELLS", 0)
        check(history)
