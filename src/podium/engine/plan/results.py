"""One plugin's results for every node, brought up to date by evaluating only the nodes that changed."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes
from podium.cluster.change_log import NO_ROWS, ROW_ASPECTS, LogReader, once
from podium.cluster.columns import Ints, highest, lowest
from podium.framework import SUCCESS, Code, CycleState, FilterPlugin, ScorePlugin, Status, Verdict
from podium.framework import return_values as returned
from podium.framework.plugin import MAX_NODE_SCORE
from podium.model import Pod

FEW_NODES = 16
"""Up to this many nodes are evaluated one by one: short arrays take longer."""


def filters_by_node(plugin: FilterPlugin) -> bool:
    return _has_node_form(type(plugin).__mro__, FilterPlugin, "filter_node", "filter")


def scores_by_node(plugin: ScorePlugin) -> bool:
    return _has_node_form(type(plugin).__mro__, ScorePlugin, "score_node", "score")


@lru_cache
def _has_node_form(lineage: tuple[type, ...], point: type, single: str, array: str) -> bool:
    """Whether the form for one node says what the form with arrays does.

    They were written together, or there is no other one. A class that overrides one form only means that one.
    """
    latest = next(each for each in lineage if single in vars(each) or array in vars(each))
    is_alone = getattr(lineage[0], array) is getattr(point, array)
    return latest is not point and single in vars(latest) and (array in vars(latest) or is_alone)


NO_VALUES = NO_ROWS


class ReadAspects:
    """The aspects of a cluster that a plugin reads, and their change logs."""

    __slots__ = ("cluster", "logs", "reads_images", "reads_objects")

    def __init__(self, cluster: Cluster, reads: Aspect) -> None:
        self.cluster = cluster
        self.reads_images, self.reads_objects = bool(reads & Aspect.IMAGES), bool(reads & Aspect.OBJECTS)
        # A row that comes or goes is in every log, so one at least is followed.
        self.logs = cluster.logs_of(reads & ROW_ASPECTS or Aspect.LABELS)
        """The changes that matter row by row."""

    def versions(self) -> tuple[int, int]:
        """The versions of what the rows share, as far as it is read: another one touches every row."""
        cluster = self.cluster
        return (
            cluster.node_set_version if self.reads_images else 0,
            cluster.store.version if self.reads_objects else 0,
        )


class Results:
    """One integer per row from one plugin for one kind of pod."""

    __slots__ = ("_cluster", "_reader", "_uniform", "_versions", "followed", "values")

    def __init__(self, followed: ReadAspects) -> None:
        self._cluster, self.followed = followed.cluster, followed
        self._reader = LogReader(followed.logs)
        self._versions = (-1, -1)
        self.values: Ints = NO_VALUES
        self._uniform: int | Literal["unknown"] | None = "unknown"

    @property
    def uniform(self) -> int | None:
        """The value all rows have, if they all have the same one."""
        if self._uniform == "unknown":
            least = lowest(self.values)
            self._uniform = least if least == highest(self.values) else None
        return self._uniform

    def evaluate(self, nodes: Nodes) -> Ints:
        """Ask the plugin."""
        raise NotImplementedError

    def evaluate_node(self, node: NodeInfo) -> int:
        """Ask the plugin about one node; takes a fraction of the time that arrays of one take."""
        raise NotImplementedError

    def record(self, nodes: Nodes) -> Ints:
        """Ask the plugin for values to keep next to those it gave for other nodes at other times."""
        return self.evaluate(nodes)

    def catch_up(self) -> None:
        """Bring `values` up to date with the cluster."""
        versions, reader = self.followed.versions(), self._reader
        if versions == self._versions and not reader.is_behind:
            return
        changed = reader.unread() if versions == self._versions else None
        if changed is None:
            nodes = self._cluster.nodes
            self.values = np.zeros(self._cluster.columns.size, dtype=np.int64)
            self.values[nodes.rows] = self.record(nodes)
        else:
            self._record_changed(once(changed))
        # Not before: a plugin that fails is to be asked again.
        reader.catch_up()
        self._versions, self._uniform = versions, "unknown"

    def _record_changed(self, rows: Ints) -> None:
        missing = self._cluster.columns.size - len(self.values)
        if missing:
            self.values = np.concatenate([self.values, np.zeros(missing, dtype=np.int64)])
        rows = rows[self._cluster.columns.alive[rows]]
        if len(rows):
            self.values[rows] = self.record(Nodes(self._cluster, rows))


class FilterResults(Results):
    """A filter's code per row: 0 passes."""

    __slots__ = ("_pod", "_state", "_statuses", "may_have_errors", "plugin")

    def __init__(self, followed: ReadAspects, plugin: FilterPlugin, pod: Pod, state: CycleState) -> None:
        super().__init__(followed)
        self.plugin, self._pod, self._state = plugin, pod, state
        self._statuses: dict[Status, int] = {}
        self.may_have_errors = False

    def evaluate(self, nodes: Nodes) -> Ints:
        return self._ask(nodes).codes

    def evaluate_node(self, node: NodeInfo) -> int:
        status = self.plugin.filter_node(self._state, self._pod, node)
        if status is SUCCESS:
            return 0
        status = returned.status(self.plugin.name, status)
        self.may_have_errors = self.may_have_errors or status.code is Code.ERROR
        return int(status != SUCCESS)

    def record(self, nodes: Nodes) -> Ints:
        # Codes mean something within one verdict only, so those to be kept are exchanged for codes of our own.
        verdict = self._ask(nodes)
        codes = np.zeros_like(verdict.codes)
        for code in set(verdict.codes.tolist()) - {0}:
            own = self._statuses.setdefault(verdict.describe(code), len(self._statuses) + 1)
            codes[verdict.codes == code] = own if code > 0 else -own
        return codes

    def _ask(self, nodes: Nodes) -> Verdict:
        found = self.plugin.filter(self._state, self._pod, nodes)
        verdict = returned.verdict(self.plugin.name, found, len(nodes))
        self.may_have_errors = self.may_have_errors or lowest(verdict.codes) < 0
        return verdict

    def describe(self, code: int) -> Status:
        """The status that a kept code stands for."""
        return next(status for status, known in self._statuses.items() if known == abs(code))


class ScoreResults(Results):
    """A plugin's raw score per row."""

    __slots__ = ("_pod", "_state", "may_be_invalid", "plugin")

    def __init__(self, followed: ReadAspects, plugin: ScorePlugin, pod: Pod, state: CycleState) -> None:
        super().__init__(followed)
        self.plugin, self._pod, self._state = plugin, pod, state
        self.may_be_invalid = False
        """Whether a score outside 0..100 was seen; it matters only on a feasible node."""

    def evaluate(self, nodes: Nodes) -> Ints:
        found = self.plugin.score(self._state, self._pod, nodes)
        raw = returned.numbers(self.plugin.name, "score", found, len(nodes))
        if not self.may_be_invalid:
            # Seen as unsigned, a negative score is a large one.
            self.may_be_invalid = highest(raw.view(np.uint64)) > MAX_NODE_SCORE
        return raw

    def evaluate_node(self, node: NodeInfo) -> int:
        score = self.plugin.score_node(self._state, self._pod, node)
        if type(score) is not int:
            score = returned.number(self.plugin.name, score)
        if not 0 <= score <= MAX_NODE_SCORE:
            self.may_be_invalid = True
        return score
