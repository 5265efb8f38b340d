from __future__ import annotations

import pickle
from dataclasses import dataclass

from podium.cluster.pods import hashed_once


@hashed_once
@dataclass(frozen=True)
class Point:
    name: str
    place: tuple[int, ...] = ()


class Counting:
    """Counts how often its hash is worked out."""

    def __init__(self) -> None:
        self.times = 0

    def __hash__(self) -> int:
        self.times += 1
        return 7


@hashed_once
@dataclass(frozen=True)
class Holder:
    held: Counting


def test_the_hash_is_worked_out_once() -> None:
    holder = Holder(Counting())
    assert hash(holder) == hash(holder)
    assert holder.held.times == 1


def test_equal_values_have_equal_hashes() -> None:
    assert hash(Point("a", (1,))) == hash(Point("a", (1,)))
    assert {Point("a"): 1}[Point("a")] == 1


def test_the_hash_does_not_go_to_another_process() -> None:
    point = Point("a")
    hash(point)
    copied = pickle.loads(pickle.dumps(point))
    assert copied == point
    assert "_hash" not in vars(copied)
