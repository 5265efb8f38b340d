"""A cluster that went through events answers exactly as one built from what is left after them."""

from __future__ import annotations

from hypothesis import given, settings

from pod_kinds import POD_KINDS, pod_of
from podium.config import parse_config
from podium.engine import Decision, Scheduler
from podium.cluster import Cluster
from profiles import CONFIG, REGISTRY, SCHEDULERS
from world import Event, Shape, World, histories

PARSED = parse_config(CONFIG, REGISTRY.points)
QUESTIONS = [
    pod_of(kind, f"asked-{scheduler}", scheduler=scheduler) for kind in POD_KINDS for scheduler in SCHEDULERS
]


def scheduler_of(cluster: Cluster) -> Scheduler:
    return Scheduler(cluster, PARSED, registry=REGISTRY, tie_break="first")


@settings(max_examples=25)
@given(histories)
def test_decisions_after_events_equal_decisions_from_scratch(history: tuple[list[Shape], list[Event]]) -> None:
    shapes, events = history
    world = World(shapes)
    scheduler = scheduler_of(world.cluster)
    for turn, event in enumerate(events):
        world.apply(event, scheduler)
        if scheduler.cluster is not world.cluster:
            scheduler = scheduler_of(world.cluster)
        fresh = scheduler_of(world.rebuilt())
        # A different part of the questions each time: plans are of all ages when they are asked.
        for pod in QUESTIONS[turn % 7 :: 7] if event is not events[-1] else QUESTIONS:
            assert scheduler.decide(pod) == fresh.decide(pod)
