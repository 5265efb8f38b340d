"""How many nodes are looked at: all of them, or as many as kube-scheduler would find enough."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster import Cluster
from podium.cluster.columns import Ints
from podium.config import KubeSchedulerConfiguration
from podium.engine.evaluation import Evaluation
from podium.extenders import Extender
from podium.framework import Framework

FEWEST_NODES = 100
FEWEST_PERCENT = 5


class Sampling:
    """Stops after enough feasible nodes, and starts the next pod where this one stopped.

    All nodes are evaluated unless the configuration asks for a percentage; with `adaptive`, 0 means kube-scheduler's
    own percentage, which shrinks as clusters grow.
    """

    def __init__(self, config: KubeSchedulerConfiguration, *, adaptive: bool) -> None:
        self._percentage = config.percentage_of_nodes_to_score
        self._adaptive = adaptive
        self._start = 0
        self._order: tuple[int, Ints] = (-1, np.zeros(0, dtype=np.int64))

    def save(self) -> int:
        """Where the next pod starts, to be given to `restore`."""
        return self._start

    def restore(self, saved: int) -> None:
        self._start = saved

    def apply(self, evaluation: Evaluation, framework: Framework, extenders: Sequence[Extender]) -> None:
        """Leave of the evaluation what would have been looked at."""
        wanted = self._wanted(evaluation, framework, extenders)
        if wanted is None or evaluation.pre_filter_status is not None:
            return
        cluster = evaluation.cluster
        order = self._node_order(cluster) if evaluation.looked_at is None else evaluation.looked_at
        if not len(order):
            return
        rotated = np.roll(order, -(self._start % len(order)))
        is_feasible = np.zeros(cluster.columns.size, dtype=np.bool_)
        is_feasible[evaluation.feasible.rows] = True
        found = np.cumsum(is_feasible[rotated])
        # It is one feasible node too many that ends the search, so nodes before that one were still looked at.
        seen = rotated[: int(np.searchsorted(found, wanted + 1))]
        self._start = (self._start + len(seen)) % cluster.node_count
        evaluation.looked_at = np.sort(seen)
        evaluation.feasible.chosen = np.sort(seen[is_feasible[seen]])

    def _wanted(self, evaluation: Evaluation, framework: Framework, extenders: Sequence[Extender]) -> int | None:
        """How many feasible nodes are enough; None for all."""
        scores = framework.score or any(extender.is_prioritizer for extender in extenders)
        ends_early = evaluation.cluster.rules.stops_without_scoring
        if ends_early and not scores and not any(extender.is_filter for extender in extenders):
            return 1
        profile_percentage = framework.profile.percentage_of_nodes_to_score
        percentage = self._percentage if profile_percentage is None else profile_percentage
        if percentage == 0 and not self._adaptive:
            return None
        nodes = evaluation.cluster.node_count if evaluation.looked_at is None else len(evaluation.looked_at)
        if nodes < FEWEST_NODES:
            return None
        if percentage == 0:
            percentage = max(50 - nodes // 125, FEWEST_PERCENT)
        return max(nodes * percentage // 100, FEWEST_NODES)

    def _node_order(self, cluster: Cluster) -> Ints:
        """All rows, one node of each zone in turn."""
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
    """Region and zone, by their current or their old labels."""
    region = labels.get("topology.kubernetes.io/region", labels.get("failure-domain.beta.kubernetes.io/region", ""))
    zone = labels.get("topology.kubernetes.io/zone", labels.get("failure-domain.beta.kubernetes.io/zone", ""))
    return region, zone
