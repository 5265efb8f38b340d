"""Nodes as plugins see them: all at once as arrays, or one at a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from podium.cluster.columns import NON_ZERO, Codes, Ints, Mask
from podium.cluster.node_groups import Amounts, Groups
from podium.cluster.recently_used import RecentlyUsed
from podium.model import Node, Pod, Taint
from podium.model.selectors import NodeMatcher, NodeTerm, Requirement

if TYPE_CHECKING:
    from podium.cluster.cluster import Cluster

S = TypeVar("S", bound=np.generic)


class Nodes:
    """Some rows of a cluster, or all of them. Arrays have one entry per row, in the order of `rows`."""

    __slots__ = ("_columns", "_rows", "_taken", "cluster")

    def __init__(self, cluster: Cluster, rows: Ints | None = None) -> None:
        """The view of `rows`; None for all."""
        self.cluster, self._columns, self._rows = cluster, cluster.columns, rows
        self._taken: dict[str, Ints] = {}

    def __len__(self) -> int:
        rows = self._rows
        return self._columns.size if rows is None else len(rows)

    def __iter__(self) -> Iterator[NodeInfo]:
        return (NodeInfo(self.cluster, row) for row in self.rows.tolist())

    @property
    def rows(self) -> Ints:
        rows = self._rows
        return np.arange(self._columns.size) if rows is None else rows

    def rows_where(self, mask: Mask) -> Ints:
        """Those of the rows that are marked."""
        rows = self._rows
        marked: Ints = mask.nonzero()[0] if rows is None else rows[mask]
        return marked

    def of(self, rows: Ints) -> Nodes:
        """The view of some rows of the same cluster."""
        return Nodes(self.cluster, rows)

    def take(self, column: NDArray[S]) -> NDArray[S]:
        """The part of a whole-cluster column (nodes on the last axis) that belongs to these nodes."""
        rows = self._rows
        return column[..., : self._columns.size] if rows is None else column.take(rows, axis=-1)

    @property
    def names(self) -> list[str]:
        return [self.cluster.names[row] for row in self.rows]

    def allocatable(self, resource: str) -> Ints:
        """What the nodes offer of a resource: milli-cpu, bytes or units."""
        return self._amount("allocatable", resource)

    def capacity(self, resource: str) -> Ints | int:
        """What `allocatable` says, as one number where all nodes of the cluster have the same: faster to work with."""
        common = self._columns.common_allocatable(resource)
        return self.allocatable(resource) if common is None else common

    def requested(self, resource: str) -> Ints:
        """What the pods on the nodes request of a resource; "pods" is how many there are."""
        return self._amount("requested", resource)

    def non_zero_requested(self, resource: str) -> Ints:
        """What is requested, with the defaults for containers that request no cpu or no memory."""
        return self._amount("non_zero" if resource in NON_ZERO else "requested", resource)

    def _amount(self, table: str, resource: str) -> Ints:
        amounts = self._taken.get(table)
        if amounts is None:
            # All resources of these nodes, once.
            amounts = self._taken[table] = self.take(getattr(self._columns, table))
        index = self._columns.resources.codes.get(resource)
        return np.zeros(len(self), dtype=np.int64) if index is None or index >= len(amounts) else amounts[index]

    @property
    def unschedulable(self) -> Mask:
        return self.take(self._columns.unschedulable)

    def by_taints(self, judge: Callable[[tuple[Taint, ...]], int]) -> Ints:
        """What `judge` says of each node's taints; every distinct set of taints is judged once."""
        answers = np.fromiter(map(judge, self._columns.taint_sets.values), np.int64)
        return answers[self.take(self._columns.taints)]

    def by_label(self, label: str, judge: Callable[[str | None], int]) -> Ints:
        """What `judge` says of each node's value of a label, None where it has none; every distinct value once."""
        answers = [*map(judge, self._columns.label(label).values.values), judge(None)]
        return np.array(answers, dtype=np.int64)[self.codes(label)]

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

    def representatives(self, labels: tuple[str, ...]) -> Representatives:
        """One node for each combination of these labels' values among the nodes."""
        groups = self.cluster.groups.by(labels)
        counts = np.bincount(self.take(groups.of_row), minlength=len(groups.first))
        return Representatives(self.cluster, groups, counts)

    def among(self, rows: Iterable[int]) -> Mask:
        """Whether each node is one of these rows."""
        everywhere = np.zeros(self._columns.size, dtype=np.bool_)
        everywhere[list(rows)] = True
        return self.take(everywhere)


class FoundNodes(Nodes):
    """Nodes whose rows are looked for once they are needed."""

    __slots__ = ("_find", "_found", "_represent")

    def __init__(
        self,
        cluster: Cluster,
        find: Callable[[], Ints] | None,
        represent: Callable[[Groups], Representatives],
    ) -> None:
        """`find` is None where that is all rows; `represent` knows the representatives of the rows in each group."""
        self.cluster, self._columns, self._taken = cluster, cluster.columns, {}
        self._find, self._represent = find, represent
        self._found: Ints | None = None

    # All other nodes know their rows: for them it is an attribute, which is read several times for every plugin.
    @property
    def _rows(self) -> Ints | None:  # type: ignore[override]
        if self._find is not None:
            self._found, self._find = self._find(), None
        return self._found

    def representatives(self, labels: tuple[str, ...]) -> Representatives:
        return self._represent(self.cluster.groups.by(labels))


class Representatives:
    """One node of each label group that some nodes belong to; it stands for the others of its group."""

    __slots__ = ("_within", "counts", "groups", "memo", "nodes", "numbers", "places")

    MOST_KEPT = 64

    def __init__(self, cluster: Cluster, groups: Groups, counts: Ints) -> None:
        self.groups, self.counts = groups, counts
        """How many of the nodes are in each group there is."""
        self.places: Ints = counts.nonzero()[0]
        """The groups with such nodes."""
        self.nodes, self.numbers = Nodes(cluster, groups.first[self.places]), counts[self.places]
        """One node of each of them, and how many nodes it stands for."""
        self.memo: dict[Hashable, Any] = {}
        """What plugins worked out from the nodes' labels and the numbers, under keys of their choice."""
        self._within: RecentlyUsed[Representatives] | None = None

    def spread(self, values: Ints) -> Ints:
        """Values of the nodes as values of all groups; 0 for those without nodes."""
        if len(values) == len(self.counts):
            return values
        everywhere = np.zeros(len(self.counts), dtype=np.int64)
        everywhere[self.places] = values
        return everywhere

    def within(self, allowed: Mask) -> Representatives:
        """Those of some groups."""
        if self._within is None:
            self._within = RecentlyUsed(self.MOST_KEPT)
        key = allowed.tobytes()
        found: Representatives | None = self._within[key]
        if found is None:
            found = self._within[key] = Representatives(self.nodes.cluster, self.groups, self.counts * allowed)
        return found


class NodeInfo:
    """One node: the object, the pods on it, and what is left. Use it before the cluster changes again."""

    __slots__ = ("_amounts", "_cluster", "row")

    def __init__(self, cluster: Cluster, row: int) -> None:
        self._cluster, self.row = cluster, row
        self._amounts: Amounts | None = None

    @property
    def cluster(self) -> Cluster:
        return self._cluster

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

    def code(self, label: str) -> int:
        """The code of the node's value of a label, -1 if it has none."""
        return self._cluster.columns.label(label).codes.item(self.row)

    @property
    def amounts(self) -> Amounts:
        """What there is of all resources; nodes that are alike share it."""
        if self._amounts is None:
            self._amounts = self._cluster.resource_states.amounts(self.row)
        return self._amounts

    def allocatable(self, resource: str) -> int:
        return self.amounts.allocatable.get(resource, 0)

    def requested(self, resource: str) -> int:
        return self.amounts.requested.get(resource, 0)

    def non_zero_requested(self, resource: str) -> int:
        return self.amounts.non_zero.get(resource, 0)
