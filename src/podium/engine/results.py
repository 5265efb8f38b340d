"""What a plugin said of every node, kept and brought up to date by re-evaluating only the nodes that changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

import numpy as np

from podium.cluster import Aspect, Cluster, Nodes
from podium.cluster.changes import ROW_ASPECTS
from podium.cluster.columns import Ints
from podium.framework import CycleState, FilterPlugin, ScorePlugin, Status
from podium.objects import Pod


class Results:
    """One integer per row from one plugin for one kind of pod."""

    __slots__ = ("_cluster", "_cursors", "_logs", "_memo", "_reads", "_uniform", "_versions", "generation", "values")

    FEW: ClassVar[int] = 8
    """Up to this many changed rows are looked up one by one; more are evaluated together."""
    MOST_MEMOS: ClassVar[int] = 4096

    def __init__(self, cluster: Cluster, reads: Aspect) -> None:
        self._cluster = cluster
        self._logs = [log for aspect, log in cluster.logs.items() if aspect & reads & ROW_ASPECTS]
        self._cursors = [log.head for log in self._logs]
        self._reads = reads
        self._versions = (-1, -1)
        # Rows with equal resources get equal results from a plugin that reads nothing else.
        self._memo: dict[bytes, int] | None = {} if reads == Aspect.RESOURCES else None
        self.generation = 0
        """Counts the evaluations of all rows, after which no row may be assumed unchanged."""
        self.values: Ints = np.zeros(0, dtype=np.int64)
        self._uniform: int | Literal["unknown"] | None = "unknown"

    @property
    def uniform(self) -> int | None:
        """The value all rows have, if they all have the same one."""
        if self._uniform == "unknown":
            lowest = int(self.values.min(initial=0))
            self._uniform = lowest if lowest == int(self.values.max(initial=0)) else None
        return self._uniform

    def evaluate(self, nodes: Nodes) -> Ints:
        """Ask the plugin."""
        raise NotImplementedError

    def catch_up(self) -> None:
        """Bring `values` up to date with the cluster."""
        cluster = self._cluster
        if self._versions != self._current_versions():
            self._evaluate_all()
            return
        rows: set[int] = set()
        for place, log in enumerate(self._logs):
            if log.head != self._cursors[place]:
                changed = log.since(self._cursors[place])
                if changed is None:
                    self._evaluate_all()
                    return
                rows.update(changed)
                self._cursors[place] = log.head
        if not rows:
            return
        self._grow()
        self._uniform = "unknown"
        if self._memo is not None and len(rows) <= self.FEW:
            for row in rows:
                self.values[row] = self._remembered(row, self._memo)
        else:
            changed_rows = np.fromiter(rows, np.int64, len(rows))
            self.values[changed_rows] = self.evaluate(Nodes(cluster, changed_rows))

    def _remembered(self, row: int, memo: dict[bytes, int]) -> int:
        fingerprint = self._cluster.fingerprint(row)
        known = memo.get(fingerprint)
        if known is None:
            if len(memo) >= self.MOST_MEMOS:
                memo.clear()
            known = memo[fingerprint] = int(self.evaluate(Nodes(self._cluster, np.array([row])))[0])
        return known

    def _current_versions(self) -> tuple[int, int]:
        """The versions of what the rows share, as far as the plugin reads it."""
        cluster = self._cluster
        return (
            cluster.node_set_version if self._reads & Aspect.IMAGES else 0,
            cluster.store.version if self._reads & Aspect.OBJECTS else 0,
        )

    def _evaluate_all(self) -> None:
        self._versions = self._current_versions()
        self._cursors = [log.head for log in self._logs]
        self.values = np.array(self.evaluate(self._cluster.nodes), dtype=np.int64)
        self._uniform = "unknown"
        self.generation += 1

    def _grow(self) -> None:
        missing = self._cluster.columns.size - len(self.values)
        if missing:
            self.values = np.concatenate([self.values, np.zeros(missing, dtype=np.int64)])


class FilterResults(Results):
    """A filter's code per row: 0 passes."""

    __slots__ = ("_pod", "_state", "describe", "may_have_errors", "plugin")

    def __init__(self, cluster: Cluster, reads: Aspect, plugin: FilterPlugin, pod: Pod, state: CycleState) -> None:
        super().__init__(cluster, reads)
        self.plugin, self._pod, self._state = plugin, pod, state
        self.describe: Callable[[int], Status]
        self.may_have_errors = False

    def evaluate(self, nodes: Nodes) -> Ints:
        verdict = self.plugin.filter(self._state, self._pod, nodes)
        self.describe = verdict.describe
        self.may_have_errors = self.may_have_errors or bool((verdict.codes < 0).any())
        return verdict.codes


class ScoreResults(Results):
    """A plugin's raw score per row."""

    __slots__ = ("_pod", "_state", "plugin")

    def __init__(self, cluster: Cluster, reads: Aspect, plugin: ScorePlugin, pod: Pod, state: CycleState) -> None:
        super().__init__(cluster, reads)
        self.plugin, self._pod, self._state = plugin, pod, state

    def evaluate(self, nodes: Nodes) -> Ints:
        return self.plugin.score(self._state, self._pod, nodes)
