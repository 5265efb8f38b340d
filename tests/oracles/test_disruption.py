"""drain and fail are timelines in which that happens to the nodes, run to rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import assume, given

from oracles.random_clusters import random_cluster, seeds
from oracles.timelines import comes_to_rest, run_timeline, whereabouts
from podium.answers import drain, fail
from podium.answers.disruption import Disruption, Fate
from podium.cluster import Cluster
from podium.timeline import TimedEvent, Verb


@pytest.mark.parametrize(("answer", "verb"), [(drain, Verb.DRAIN), (fail, Verb.DELETE)], ids=["drain", "fail"])
@given(seed=seeds)
def test_an_answer_is_the_timeline_of_its_events(
    answer: Callable[[Cluster, Sequence[str]], Disruption], verb: Verb, seed: int
) -> None:
    objects = random_cluster(seed).running
    cluster = Cluster.from_objects(objects)
    nodes = sorted(cluster.rows)
    lost = sorted(Random(seed).sample(nodes, min(Random(seed).randint(1, 2), len(nodes) - 1)))
    timeline = run_timeline(objects, [TimedEvent(0.0, verb, cluster.node(name)) for name in lost])
    assume(comes_to_rest(timeline))

    found = answer(cluster, lost)

    assert whereabouts(found.cluster) == whereabouts(timeline.loop.cluster)
    assert len(found.of(Fate.PENDING)) == len(timeline.history.result(0.0).unplaced)
    blocked = {pod for pods in timeline.world.unfinished_drains().values() for pod in pods}
    assert {each.pod for each in found.of(Fate.BLOCKED)} == blocked
