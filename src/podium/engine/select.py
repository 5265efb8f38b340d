"""Which of the nodes with the highest score is taken."""

from __future__ import annotations

import random
from typing import Any, Protocol

import numpy as np

from podium.cluster import Cluster
from podium.cluster.columns import Ints
from podium.cluster.extremes import highest
from podium.errors import InputError


class TieBreak(Protocol):
    """Chooses one of several rows. What the next choice depends on can be saved and restored."""

    def choose(self, rows: Ints, cluster: Cluster) -> int: ...

    def save(self) -> Any: ...

    def restore(self, saved: Any) -> None: ...


class First:
    """The smallest node name."""

    def choose(self, rows: Ints, cluster: Cluster) -> int:
        return int(rows[cluster.name_order()[rows].argmin()])

    def save(self) -> Any:
        return None

    def restore(self, saved: Any) -> None:
        """Nothing to restore: the choice depends on names only."""


class Random:
    """Any of them with equal chance, as kube-scheduler; the same seed gives the same choices."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def choose(self, rows: Ints, cluster: Cluster) -> int:
        return int(rows[self._random.randrange(len(rows))])

    def save(self) -> Any:
        return self._random.getstate()

    def restore(self, saved: Any) -> None:
        self._random.setstate(saved)


class RoundRobin:
    """One after the other, in the order of the nodes."""

    def __init__(self) -> None:
        self._next = 0

    def choose(self, rows: Ints, cluster: Cluster) -> int:
        place = self._next % len(rows)
        self._next += 1
        return int(rows[place])

    def save(self) -> Any:
        return self._next

    def restore(self, saved: Any) -> None:
        self._next = saved


class RoundRobinDescending(RoundRobin):
    """One after the other, from the largest name to the smallest: what v1.8 does, which sorts the nodes first."""

    def choose(self, rows: Ints, cluster: Cluster) -> int:
        return super().choose(rows[np.argsort(-cluster.name_order()[rows])], cluster)


def tie_break(name: str, seed: int = 0) -> TieBreak:
    """The tie-break of that name: random, first, round-robin or round-robin-descending."""
    match name:
        case "random":
            return Random(seed)
        case "first":
            return First()
        case "round-robin":
            return RoundRobin()
        case "round-robin-descending":
            return RoundRobinDescending()
    known = "random, first, round-robin or round-robin-descending"
    raise InputError(f"tie-break {name!r} is unknown; use {known}")


def best(ranking: Ints, rows: Ints | None) -> Ints:
    """The rows with the highest rank."""
    ties: Ints = (ranking == highest(ranking)).nonzero()[0]
    return ties if rows is None else rows[ties]
