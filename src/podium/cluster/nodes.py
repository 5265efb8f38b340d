"""Nodes as plugins see them: all at once as arrays, or one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from podium.cluster.columns import Codes, Ints, Mask
from podium.objects import Node, Pod, Taint
from podium.selectors import NodeMatcher, NodeTerm, Requirement

if TYPE_CHECKING:
    from podium.cluster.cluster import Cluster

S = TypeVar("S", bound=np.generic)


class Nodes:
    """Some rows of a cluster, or all of them. Arrays have one entry per row, in the order of `rows`."""

    __slots__ = ("_columns", "_rows", "_taken", "cluster")

    def __init__(self, cluster: Cluster, rows: Ints | None = None) -> None:
        self.cluster = cluster
        self._columns = cluster.columns
        self._rows = rows
        self._taken: dict[str, Ints] = {}

    def __len__(self) -> int:
        return self._columns.size if self._rows is None else len(self._rows)

    def __iter__(self) -> Iterator[NodeInfo]:
        return (NodeInfo(self.cluster, int(row)) for row in self.rows)

    @property
    def rows(self) -> Ints:
        return np.arange(self._columns.size) if self._rows is None else self._rows

    def of(self, rows: Ints) -> Nodes:
        """The view of some rows of the same cluster."""
        return Nodes(self.cluster, rows)

    def take(self, column: NDArray[S]) -> NDArray[S]:
        """The part of a whole-cluster column (nodes on the last axis) that belongs to these nodes."""
        return column[..., : self._columns.size] if self._rows is None else column.take(self._rows, axis=-1)

    @property
    def names(self) -> list[str]:
        return [self.cluster.names[row] for row in self.rows]

    def allocatable(self, resource: str) -> Ints:
        """What the nodes offer of a resource: milli-cpu, bytes or units."""
        return self._amount("allocatable", resource)

    def requested(self, resource: str) -> Ints:
        """What the pods on the nodes request of a resource; "pods" is how many there are."""
        return self._amount("requested", resource)

    @property
    def non_zero(self) -> Ints:
        """Requested cpu and memory, shape [2, nodes], with the defaults for containers that request none."""
        return self._table("non_zero")

    def _amount(self, table: str, resource: str) -> Ints:
        amounts = self._table(table)
        index = self._columns.resources.codes.get(resource)
        return np.zeros(len(self), dtype=np.int64) if index is None or index >= len(amounts) else amounts[index]

    def _table(self, name: str) -> Ints:
        """All resources of these nodes, taken once."""
        table = self._taken.get(name)
        if table is None:
            table = self._taken[name] = self.take(getattr(self._columns, name))
        return table

    @property
    def unschedulable(self) -> Mask:
        return self.take(self._columns.unschedulable)

    def by_taints(self, judge: Callable[[tuple[Taint, ...]], int]) -> Ints:
        """What `judge` says of each node's taints; every distinct set of taints is judged once."""
        answers = np.fromiter(map(judge, self._columns.taint_sets.values), np.int64)
        return answers[self.take(self._columns.taints)]

    def codes(self, label: str) -> Codes:
        """The code of each node's value of a label, -1 where it has none."""
        return self.take(self._columns.label(label).codes)

    def satisfying(self, requirement: Requirement) -> Mask:
        """Whether each node's labels meet a requirement; every distinct value is tested once."""
        return self._columns.label(requirement.key).table(requirement)[self.codes(requirement.key)]

    def matching_term(self, term: NodeTerm) -> Mask:
        mask = np.ones(len(self), dtype=np.bool_)
        for requirement in term.labels:
            mask &= self.satisfying(requirement)
        for requirement in term.names:
            if requirement.operator in ("In", "NotIn"):
                rows = (self.cluster.rows.get(name) for name in requirement.values)
                named = self.among(row for row in rows if row is not None)
                mask &= named if requirement.operator == "In" else ~named
            elif requirement.operator == "DoesNotExist":
                mask[:] = False
        return mask

    def matching(self, matcher: NodeMatcher) -> Mask:
        """Whether each node meets a pod's nodeSelector and required node affinity."""
        mask = np.ones(len(self), dtype=np.bool_)
        for requirement in matcher.labels:
            mask &= self.satisfying(requirement)
        if matcher.terms is not None:
            any_term = np.zeros(len(self), dtype=np.bool_)
            for term in matcher.terms:
                any_term |= self.matching_term(term)
            mask &= any_term
        return mask

    def among(self, rows: Iterable[int]) -> Mask:
        """Whether each node is one of these rows."""
        everywhere = np.zeros(self._columns.size, dtype=np.bool_)
        everywhere[list(rows)] = True
        return everywhere if self._rows is None else everywhere[self._rows]


class NodeInfo:
    """One node: the object, the pods on it, and what is left."""

    __slots__ = ("_cluster", "row")

    def __init__(self, cluster: Cluster, row: int) -> None:
        self._cluster = cluster
        self.row = row

    @property
    def name(self) -> str:
        return self._cluster.names[self.row]

    @property
    def node(self) -> Node:
        return self._cluster.node(self.name)

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.metadata.labels

    @property
    def pods(self) -> list[Pod]:
        return self._cluster.pods_on(self.row)

    def allocatable(self, resource: str) -> int:
        return self._one(self._cluster.columns.allocatable, resource)

    def requested(self, resource: str) -> int:
        return self._one(self._cluster.columns.requested, resource)

    def _one(self, table: NDArray[Any], resource: str) -> int:
        index = self._cluster.columns.resources.codes.get(resource)
        return 0 if index is None or index >= len(table) else int(table[index, self.row])
