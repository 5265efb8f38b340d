"""After any events a cluster says the same as one built from what is left, and forks leave each other alone."""

from __future__ import annotations

from hypothesis import given, settings

from cluster.facts import facts, resources_by_state
from podium.engine import Scheduler
from world import Fork, History, World, histories


@settings(max_examples=settings().max_examples // 4)
@given(histories)
def test_facts_after_events_equal_facts_from_scratch(history: History) -> None:
    world = World(history.shapes, history.alike)
    for event in history.events:
        world.apply(event, Scheduler(world.cluster, tie_break="first"))
        # Reading in between is what keeps tallies alive, so that the next event has to update them.
        assert facts(world.cluster) == facts(world.rebuilt())
        assert all(len(kinds) == 1 for kinds in resources_by_state(world.cluster).values())


@settings(max_examples=settings().max_examples // 4)
@given(histories, histories)
def test_forks_do_not_see_each_other(before: History, after: History) -> None:
    world = World(before.shapes, before.alike)
    for event in before.events:
        world.apply(event, Scheduler(world.cluster, tie_break="first"))
    left = world.apply(Fork(keep_original=len(after.events) % 2 == 0), Scheduler(world.cluster))
    assert left is not None
    expected = facts(left)
    assert facts(world.cluster) == expected
    for event in after.events:
        world.apply(event, Scheduler(world.cluster, tie_break="first"))
        assert facts(left) == expected
