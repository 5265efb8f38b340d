"""Sampling (how many nodes are evaluated) and tie-breaking (which of several best nodes is chosen)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from podium.cluster import Cluster
from podium.cluster.columns import Ints
from podium.config import KubeSchedulerConfiguration
from podium.engine._evaluation import Evaluation
from podium.errors import InputError
from podium.extenders import Extender
from podium.framework import Framework
from podium.model.objects import BETA_REGION, BETA_ZONE, REGION, ZONE

MIN_FEASIBLE_NODES_TO_FIND = 100
MIN_FEASIBLE_NODES_PERCENTAGE_TO_FIND = 5


class Sampling:
    """Stops after enough feasible nodes, and starts the next pod where this one stopped.

    All nodes are evaluated unless the configuration sets a percentage; with `adaptive`, 0 means kube-scheduler's own
    percentage, which shrinks as clusters grow.
    """

    def __init__(self, config: KubeSchedulerConfiguration, *, adaptive: bool) -> None:
        self._percentage = config.percentage_of_nodes_to_score
        self._adaptive = adaptive
        self.start = 0
        """The position in the node order where the next pod starts."""
        self._order: tuple[int, Ints] = (-1, np.zeros(0, dtype=np.int64))

    def save(self) -> int:
        """The position where the next pod starts; pass it to `restore`."""
        return self.start

    def restore(self, saved: int) -> None:
        self.start = saved

    def apply(self, evaluation: Evaluation, framework: Framework, extenders: Sequence[Extender]) -> None:
        """Limit the evaluation to the nodes that kube-scheduler would have checked."""
        wanted = self._wanted(evaluation, framework, extenders)
        if wanted is None or evaluation.pre_filter_status is not None:
            return
        cluster = evaluation.cluster
        order = self._node_order(cluster) if evaluation.looked_at is None else evaluation.looked_at
        if not len(order):
            return
        rotated = np.roll(order, -(self.start % len(order)))
        is_feasible = np.zeros(cluster.columns.size, dtype=np.bool_)
        is_feasible[evaluation.feasible.rows] = True
        found = np.cumsum(is_feasible[rotated])
        # The search ends at the first feasible node too many, so all nodes before that one were checked.
        seen = rotated[: int(np.searchsorted(found, wanted + 1))]
        self.start = (self.start + len(seen)) % cluster.node_count
        evaluation.sample(np.sort(seen))

    def _wanted(self, evaluation: Evaluation, framework: Framework, extenders: Sequence[Extender]) -> int | None:
        """How many feasible nodes are enough; None for all."""
        scores = framework.score or any(extender.is_prioritizer for extender in extenders)
        ends_early = not scores and evaluation.cluster.rules.stops_without_scoring
        if ends_early and not any(extender.is_filter for extender in extenders):
            return 1
        profile_percentage = framework.profile.percentage_of_nodes_to_score
        percentage = self._percentage if profile_percentage is None else profile_percentage
        if percentage == 0 and not self._adaptive:
            return None
        nodes = evaluation.cluster.node_count if evaluation.looked_at is None else len(evaluation.looked_at)
        if nodes < MIN_FEASIBLE_NODES_TO_FIND:
            return None
        if percentage == 0:
            percentage = max(50 - nodes // 125, MIN_FEASIBLE_NODES_PERCENTAGE_TO_FIND)
        return max(nodes * percentage // 100, MIN_FEASIBLE_NODES_TO_FIND)

    def _node_order(self, cluster: Cluster) -> Ints:
        """All rows, taking one node of each zone in turn."""
        version, order = self._order
        if version != cluster.node_set_version:
            zones: dict[tuple[str, str], list[int]] = {}
            for row, name in enumerate(cluster.names):
                if name:
                    zones.setdefault(_zone(cluster.node(name).metadata.labels), []).append(row)
            turns = max((len(rows) for rows in zones.values()), default=0)
            listed = [rows[turn] for turn in range(turns) for rows in zones.values() if turn < len(rows)]
            order = np.array(listed, dtype=np.int64)
            self._order = (cluster.node_set_version, order)
        return order


def _zone(labels: dict[str, str]) -> tuple[str, str]:
    """Region and zone, from the current or the old labels."""
    return labels.get(REGION, labels.get(BETA_REGION, "")), labels.get(ZONE, labels.get(BETA_ZONE, ""))


class TieBreak(Protocol):
    """Chooses one of several rows. Its state can be saved and restored."""

    def choose(self, rows: Ints, cluster: Cluster) -> int: ...

    def save(self) -> Any: ...

    def restore(self, saved: Any) -> None: ...


class Stateless:
    """The state of a tie-break whose choices do not depend on earlier ones: none."""

    def save(self) -> Any:
        return None

    def restore(self, saved: Any) -> None:
        """Nothing to restore."""


def smallest_name(rows: Ints, cluster: Cluster) -> int:
    """The row whose node has the smallest name."""
    return int(rows[cluster.name_order()[rows].argmin()])


class First(Stateless):
    """Chooses the smallest node name."""

    def choose(self, rows: Ints, cluster: Cluster) -> int:
        return smallest_name(rows, cluster)


class Preferred(Stateless):
    """Chooses the preferred node if it is among the best, else the smallest name."""

    def __init__(self, node: str = "") -> None:
        self.node = node

    def choose(self, rows: Ints, cluster: Cluster) -> int:
        row = cluster.rows.get(self.node, -1)
        return row if row in rows else smallest_name(rows, cluster)


class Random:
    """Chooses at random with equal chance, as kube-scheduler does up to v1.34; the same seed gives the same choices.

    From v1.35 on, the order in which kube-scheduler's workers find the nodes decides, which no input determines.
    """

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def choose(self, rows: Ints, cluster: Cluster) -> int:
        return int(rows[self._random.randrange(len(rows))])

    def save(self) -> Any:
        return self._random.getstate()

    def restore(self, saved: Any) -> None:
        self._random.setstate(saved)


class RoundRobin:
    """Chooses one after the other, in the order of the nodes."""

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
    """Chooses one after the other, from the largest name to the smallest, as v1.8 does, which sorts the nodes first."""

    def choose(self, rows: Ints, cluster: Cluster) -> int:
        return super().choose(rows[np.argsort(-cluster.name_order()[rows])], cluster)


def tie_break(name: str, seed: int = 0) -> TieBreak:
    """The tie-break with this name: random, first, round-robin or round-robin-descending."""
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
