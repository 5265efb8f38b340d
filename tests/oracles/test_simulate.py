"""simulate is the loop run to rest."""

from __future__ import annotations

from collections import Counter

from hypothesis import assume, given

from oracles.random_clusters import random_cluster, seeds
from oracles.timelines import comes_to_rest, run_timeline, whereabouts
from podium.answers.simulation import simulate
from podium.cluster import Cluster


@given(seeds)
def test_simulate_is_the_loop_run_to_rest(seed: int) -> None:
    objects = random_cluster(seed).with_new
    timeline = run_timeline(objects)
    assume(comes_to_rest(timeline))

    found = simulate(Cluster.from_objects(objects), tie_break="first")

    assert found.is_settled
    assert whereabouts(found.cluster) == whereabouts(timeline.loop.cluster)
    waiting = timeline.history.result(0.0).unplaced
    assert len([each for each in found.pending if not each.is_lost]) == len(waiting)


@given(seeds)
def test_placements_say_what_the_cluster_says(seed: int) -> None:
    objects = random_cluster(seed).with_new
    before = Cluster.from_objects(objects)

    found = simulate(before, tie_break="first")

    for each in found.placements:
        now = found.cluster.find_pod(each.pod.key)
        assert (None if now is None else now[1]) == each.node
        assert each.is_lost == (now is None)
    moved = {each.pod.key for each in found.placements}
    unmoved = {pod.key: node for pod, node in before.placed() if pod.key not in moved}
    assert unmoved == {pod.key: node for pod, node in found.cluster.placed() if pod.key in unmoved}
    assert Counter(each.pod.key for each in found.placements).most_common(1)[0][1] == 1
