from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from builders import make_node, make_pod
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.engine._feasible_rows import Ranking
from podium.engine.select import tie_break
from podium.errors import InputError

CLUSTER = Cluster.from_objects(map(make_node, ("c", "a", "d", "b")))
ROWS = np.arange(4)


def choices(name: str, times: int, seed: int = 0) -> list[str]:
    chooser = tie_break(name, seed)
    return [CLUSTER.names[chooser.choose(ROWS, CLUSTER)] for _ in range(times)]


def test_first_is_the_smallest_name() -> None:
    assert choices("first", 3) == ["a", "a", "a"]


def test_round_robin_takes_them_in_turn() -> None:
    assert choices("round-robin", 5) == ["c", "a", "d", "b", "c"]


def test_random_is_uniform_and_the_same_for_a_seed() -> None:
    drawn = choices("random", 4000, seed=1)
    assert drawn == choices("random", 4000, seed=1)
    assert drawn != choices("random", 4000, seed=2)
    # 1000 each are expected with a standard deviation of 27.
    assert all(abs(count - 1000) < 110 for count in Counter(drawn).values())
    assert len(Counter(drawn)) == 4


@pytest.mark.parametrize("name", ["random", "round-robin", "first"])
def test_a_choice_can_be_taken_back(name: str) -> None:
    chooser = tie_break(name, 3)
    chooser.choose(ROWS, CLUSTER)
    saved = chooser.save()
    first = [chooser.choose(ROWS, CLUSTER) for _ in range(5)]
    chooser.restore(saved)
    assert [chooser.choose(ROWS, CLUSTER) for _ in range(5)] == first


def test_an_unknown_tie_break_is_an_error() -> None:
    with pytest.raises(InputError, match="tie-break 'last' is unknown; use random, first, round-robin"):
        tie_break("last")


def test_the_highest_rows() -> None:
    assert Ranking(None, [], np.array([5, 9, 9, 1])).best.tolist() == [1, 2]
    assert Ranking(np.array([4, 6, 8]), [], np.array([9, 5, 9])).best.tolist() == [4, 8]


@pytest.mark.parametrize("name", ["random", "round-robin", "first"])
def test_deciding_does_not_use_up_a_choice_and_placing_does(name: str) -> None:
    def placed(decide_first: bool) -> list[str | None]:
        cluster = Cluster.from_objects(make_node(f"n{number}", pods=1000) for number in range(5))
        scheduler = Scheduler(cluster, tie_break=name, seed=7)
        nodes = []
        for number in range(12):
            pod = make_pod(f"p{number}")
            if decide_first:
                expected = scheduler.decide(pod).node
                assert scheduler.decide(pod).node == expected
            nodes.append(scheduler.schedule(pod))
            if decide_first:
                assert nodes[-1] == expected
        return nodes

    assert placed(decide_first=True) == placed(decide_first=False)
