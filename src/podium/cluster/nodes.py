"""Nodes as plugins see them: all at once as arrays, one at a time, and in groups of equal nodes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from podium.cluster.columns import NON_ZERO, ChangeLog, Codes, Columns, Ints, Mask
from podium.memory import RecentlyUsed
from podium.model import Node, Pod, Taint
from podium.model.selectors import NodeMatcher, NodeTerm, Requirement

if TYPE_CHECKING:
    from podium.cluster.cluster import Cluster

Places = NDArray[np.intp]


class Groups(NamedTuple):
    """`of_row` is the group number of each row, `first` one row of each group. Dead rows have groups of their own."""

    of_row: Places
    first: Ints
    living: Ints
    """The numbers of the groups that have nodes."""
    examples: Ints
    """One row of each of these groups."""

    def everywhere(self, marked: Mask) -> Mask:
        """Extend a mask over the living groups to all groups; groups of dead rows get False."""
        if len(self.living) == len(self.first):
            return marked
        mask = np.zeros(len(self.first), dtype=np.bool_)
        mask[self.living] = marked
        return mask

    @property
    def are_few(self) -> bool:
        """Whether working on groups saves time compared with working on nodes."""
        return 4 * len(self.first) < len(self.of_row)


class LabelGroups:
    """The groups for each set of labels that was asked for, rebuilt when labels change."""

    def __init__(self, columns: Columns, labels_log: ChangeLog) -> None:
        self._columns, self._labels_log = columns, labels_log
        self._groups: dict[tuple[str, ...], tuple[int, Groups]] = {}

    def by(self, keys: tuple[str, ...]) -> Groups:
        head, groups = self._groups.get(keys, (-1, None))
        if groups is None or head != self._labels_log.head:
            groups = self._group(keys)
            self._groups[keys] = self._labels_log.head, groups
        return groups

    def _group(self, keys: tuple[str, ...]) -> Groups:
        alive = self._columns.alive[: self._columns.size]
        combined = alive.astype(np.int64)
        for key in keys:
            column = self._columns.label(key)
            combined = combined * (len(column.values) + 1) + column.codes[: self._columns.size] + 1
            combined = np.unique(combined, return_inverse=True)[1]
        _, first, of_row = np.unique(combined, return_index=True, return_inverse=True)
        living = np.flatnonzero(alive[first])
        return Groups(of_row, first, living, first[living])


class NodeAmounts(NamedTuple):
    """A node's allocatable and requested amounts by resource; resources that are not listed are 0."""

    allocatable: dict[str, int]
    requested: dict[str, int]
    free: dict[str, int]
    """Allocatable minus requested."""
    non_zero: dict[str, int]
    """The requests, with the defaults for containers that request no cpu or no memory."""
    memo: dict[Hashable, Any]
    """Values that plugins derived from the amounts, under keys of their choice."""


class ResourceStates:
    """A small integer per row; rows with the same integer have equal resources."""

    FEWEST = 1 << 12
    MOST_WAYS = 1 << 16
    MOST_AMOUNTS = 1 << 12
    MOST_CHANGES = 8
    """Up to this many changes of a row are remembered as one transition between states."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._ids: dict[bytes, int] = {}
        self._of_row: Codes = np.zeros(0, dtype=np.int64)
        self._dirty: set[int] = set()
        """The rows whose state is not known."""
        self._unmeasured: set[int] = set()
        """The rows that `_most` may not cover yet."""
        self._after: RecentlyUsed[int] = RecentlyUsed(self.MOST_WAYS)
        """The state that a sequence of changes leads to from another state, for sequences seen so far."""
        self._way: tuple[Hashable, ...] | None = None
        """The last known state of the only dirty row and the changes since; None if that is not known."""
        self._amounts: RecentlyUsed[NodeAmounts] = RecentlyUsed(self.MOST_AMOUNTS)
        self.examples: Ints = np.zeros(0, dtype=np.int64)
        """The row that was last seen in each state; it may be in another state by now."""
        self.epoch = 0
        """Changes when the integers are assigned anew."""
        self._most: Ints = np.zeros(len(columns.used), dtype=np.int64)

    def __len__(self) -> int:
        return len(self._ids)

    def touch(self, row: int) -> None:
        """Note that the row's resources changed."""
        self._dirty.add(row)
        self._unmeasured.add(row)
        self._way = None

    def change(self, row: int, change: Hashable) -> None:
        """Note that the row's resources changed, where an equal change always leads from the same state to the same
        state.
        """
        way: tuple[Hashable, ...]
        if not self._dirty and row < len(self._of_row):
            way = self._of_row.item(row), change
        elif self._way is not None and row in self._dirty and len(self._way) <= self.MOST_CHANGES:
            # Several pods came to a node or left it before its state was read.
            way = *self._way, change
            self._dirty.clear()
        else:
            self.touch(row)
            return
        state: int | None = self._after[way]
        # Of a known state too: the row that was in it may have left it before anybody asked for the highest amounts.
        self._unmeasured.add(row)
        if state is None:
            self._dirty.add(row)
            self._way = way
        else:
            self._of_row[row] = state
            self.examples[state] = row

    def read(self) -> Codes:
        """The state of every row; states without rows are dropped from time to time."""
        if self._dirty:
            size = self._columns.size
            missing = self._columns.capacity - len(self._of_row)
            if missing:
                self._of_row = np.concatenate([self._of_row, np.zeros(missing, dtype=np.int64)])
            if len(self._ids) > max(4 * size, self.FEWEST):
                self._ids.clear()
                self._after.clear()
                self._amounts.clear()
                self._way = None
                self._most = np.zeros_like(self._most)
                self._dirty.update(range(size))
                self._unmeasured.update(range(size))
                self.epoch += 1
            if len(self._dirty) == 1:
                self._read_one(self._dirty.pop())
            else:
                self._read_many(np.fromiter(self._dirty, np.int64, len(self._dirty)))
                self._dirty.clear()
        return self._of_row[: self._columns.size]

    @property
    def most_used(self) -> Ints:
        """Per line of `Columns.used`, the highest amount in any state so far; no row exceeds it."""
        if self._unmeasured:
            used = self._columns.used
            missing = len(used) - len(self._most)
            if missing:
                self._most = np.concatenate([self._most, np.zeros(missing, dtype=np.int64)])
            rows = list(self._unmeasured)
            np.maximum(self._most, used[:, rows[0]] if len(rows) == 1 else used[:, rows].max(axis=1), out=self._most)
            self._unmeasured.clear()
        return self._most

    def amounts(self, row: int) -> NodeAmounts:
        """The amounts on a row, computed once for all rows in the same state."""
        state = self.read().item(row)
        amounts: NodeAmounts | None = self._amounts[state]
        if amounts is None:
            amounts = self._amounts[state] = self._read_amounts(row)
        return amounts

    def _read_amounts(self, row: int) -> NodeAmounts:
        columns, names = self._columns, self._columns.resources.values
        # A fork may know more resources than this cluster.
        allocatable = dict(zip(names, columns.allocatable[:, row].tolist(), strict=False))
        used = columns.used[:, row].tolist()
        requested = dict(zip(names, used[len(NON_ZERO) :], strict=False))
        free = {name: amount - requested[name] for name, amount in allocatable.items()}
        non_zero = dict(zip(NON_ZERO, used, strict=False))
        return NodeAmounts(allocatable, requested, free, requested | non_zero, {})

    def _read_one(self, row: int) -> None:
        """The same as `_read_many`, for the one row that placing a pod changes."""
        columns = self._columns
        tables = (columns.allocatable, columns.used)
        state = self._ids.setdefault(b"".join([table[:, row].tobytes() for table in tables]), len(self._ids))
        self._make_room()
        self._of_row[row] = state
        self.examples[state] = row
        if self._way is not None:
            self._after[self._way] = state

    def _read_many(self, rows: Ints) -> None:
        columns, ids = self._columns, self._ids
        tables = (columns.allocatable, columns.used)
        resources = np.concatenate([table[:, rows] for table in tables]).T
        fingerprints, length = np.ascontiguousarray(resources).tobytes(), 8 * resources.shape[1]
        states = [
            ids.setdefault(fingerprints[start : start + length], len(ids))
            for start in range(0, len(fingerprints), length)
        ]
        self._make_room()
        self._of_row[rows] = states
        self.examples[states] = rows

    def _make_room(self) -> None:
        """Make room for all states."""
        missing = len(self._ids) - len(self.examples)
        if missing > 0:
            self.examples = np.concatenate([self.examples, np.zeros(missing + self.FEWEST, dtype=np.int64)])


class Usage(NamedTuple):
    """The allocatable amounts of a resource on some nodes, and the amounts in use."""

    capacity: Ints | int
    """The result of `Nodes.capacity`."""
    requested: Ints
    most_requested: int
    """An upper bound of `requested` on all nodes of the cluster."""
    non_zero: Ints
    """The requested amounts, with the defaults for containers that request no cpu or no memory."""
    most_non_zero: int


S = TypeVar("S", bound=np.generic)


class Nodes:
    """Some rows of a cluster, or all of them. Arrays have one entry per row, in the order of `rows`."""

    __slots__ = ("_allocatable", "_columns", "_rows", "_usage", "_used", "cluster")

    def __init__(self, cluster: Cluster, rows: Ints | None = None) -> None:
        """A view of `rows`; None for all rows."""
        self.cluster, self._columns, self._rows = cluster, cluster.columns, rows
        self._allocatable: Ints | None = None
        self._used: Ints | None = None
        self._usage: dict[str, Usage] = {}

    def __len__(self) -> int:
        rows = self._rows
        return self._columns.size if rows is None else len(rows)

    def __iter__(self) -> Iterator[NodeInfo]:
        return (NodeInfo(self.cluster, row) for row in self.rows.tolist())

    @property
    def rows(self) -> Ints:
        rows = self._rows
        return np.arange(self._columns.size) if rows is None else rows

    @property
    def snapshot(self) -> Cluster:
        """The cluster that pods and other nodes are counted in: these nodes' own cluster, unless an extender sent the
        nodes.
        """
        return self.cluster

    def rows_where(self, mask: Mask) -> Ints:
        """The rows that a mask selects."""
        rows = self._rows
        marked: Ints = mask.nonzero()[0] if rows is None else rows[mask]
        return marked

    def of(self, rows: Ints) -> Nodes:
        """A view of some rows of the same cluster."""
        return Nodes(self.cluster, rows)

    def take(self, column: NDArray[S]) -> NDArray[S]:
        """The part of a whole-cluster column (nodes on the last axis) that belongs to these nodes."""
        rows = self._rows
        return column[..., : self._columns.size] if rows is None else column.take(rows, axis=-1)

    @property
    def names(self) -> list[str]:
        return [self.cluster.names[row] for row in self.rows]

    def allocatable(self, resource: str) -> Ints:
        """The nodes' allocatable amounts of a resource: milli-cpu, bytes or units."""
        if self._allocatable is None:
            self._allocatable = self.take(self._columns.allocatable)
        return self._line(self._allocatable, resource, 0)

    def capacity(self, resource: str) -> Ints | int:
        """The same as `allocatable`, but a single number if all nodes of the cluster have the same amount, which is
        faster.
        """
        common = self._columns.common_allocatable(resource)
        return self.allocatable(resource) if common is None else common

    def requested(self, resource: str) -> Ints:
        """The amounts of a resource requested by the pods on the nodes; for "pods", the number of pods."""
        return self._line(self._in_use(), resource, len(NON_ZERO))

    def non_zero_requested(self, resource: str) -> Ints:
        """The requested amounts, with the defaults for containers that request no cpu or no memory."""
        return self._line(self._in_use(), resource, 0 if resource in NON_ZERO else len(NON_ZERO))

    def have_room(self, needs: Iterable[tuple[str, int]]) -> bool:
        """Whether every node of the cluster is known to have these amounts left; False if one would have to look."""
        columns, most = self._columns, self.cluster.resource_states.most_used
        for name, amount in needs:
            common = columns.common_allocatable(name)
            place = columns.resources.codes.get(name, len(most)) + len(NON_ZERO)
            if common is None or place >= len(most) or most.item(place) > common - amount:
                return False
        return True

    def usage(self, resource: str) -> Usage:
        """The allocatable amounts and the amounts in use of a resource, computed at the first call."""
        usage = self._usage.get(resource)
        if usage is None:
            used, most = self._in_use(), self.cluster.resource_states.most_used
            index = self._columns.resources.codes.get(resource, len(most)) + len(NON_ZERO)
            if index >= len(most):
                # The resource is newer than the last placed pod, so no pod uses it.
                nothing = np.zeros(len(self), dtype=np.int64)
                usage = Usage(self.capacity(resource), nothing, 0, nothing, 0)
            else:
                requested = used[index], most.item(index)
                index -= len(NON_ZERO) if resource in NON_ZERO else 0
                usage = Usage(self.capacity(resource), *requested, used[index], most.item(index))
            self._usage[resource] = usage
        return usage

    def _in_use(self) -> Ints:
        """The amounts in use of all resources on these nodes, gathered at the first call."""
        used = self._used
        if used is None:
            used = self._used = self.take(self._columns.used)
        return used

    def _line(self, table: Ints, resource: str, start: int) -> Ints:
        """The line of a resource in a table whose resources begin at line `start`; zeros if it has none."""
        index = start + self._columns.resources.codes.get(resource, len(table))
        return table[index] if index < len(table) else np.zeros(len(self), dtype=np.int64)

    @property
    def unschedulable(self) -> Mask:
        return self.take(self._columns.unschedulable)

    def by_taints(self, judge: Callable[[tuple[Taint, ...]], int]) -> Ints:
        """Map each node's taints through `judge`, which is called once for each distinct set of taints."""
        answers = np.fromiter(map(judge, self._columns.taint_sets.values), np.int64)
        return answers[self.take(self._columns.taints)]

    def by_label(self, label: str, judge: Callable[[str | None], int]) -> Ints:
        """Map each node's value of a label through `judge`, which is called once for each distinct value; None if it
        lacks it.
        """
        answers = [*map(judge, self._columns.label(label).values.values), judge(None)]
        return np.array(answers, dtype=np.int64)[self.codes(label)]

    def codes(self, label: str) -> Codes:
        """The code of each node's value of a label; -1 if it lacks the label."""
        return self.take(self._columns.label(label).codes)

    def satisfying(self, requirement: Requirement) -> Mask:
        """Whether each node's labels meet a requirement; each distinct value is tested once."""
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


class ReturnedNodes(Nodes):
    """Nodes as an extender sent them back, without pods, among the nodes and pods of another cluster."""

    __slots__ = ("_snapshot",)

    def __init__(self, cluster: Cluster, rows: Ints, snapshot: Cluster) -> None:
        super().__init__(cluster, rows)
        self._snapshot = snapshot

    @property
    def snapshot(self) -> Cluster:
        return self._snapshot


class FoundNodes(Nodes):
    """Nodes whose rows are determined on first use."""

    __slots__ = ("_find", "_found", "_represent")

    def __init__(
        self,
        cluster: Cluster,
        find: Callable[[], Ints] | None,
        represent: Callable[[Groups], Representatives],
    ) -> None:
        """`find` returns the rows, or is None for all rows; `represent` returns the representatives of a grouping."""
        self.cluster, self._columns = cluster, cluster.columns
        self._allocatable = self._used = None
        self._usage = {}
        self._find, self._represent = find, represent
        self._found: Ints | None = None

    # Other nodes know their rows: for them this is an attribute, which every plugin reads several times.
    @property
    def _rows(self) -> Ints | None:  # type: ignore[override]
        if self._find is not None:
            self._found, self._find = self._find(), None
        return self._found

    def representatives(self, labels: tuple[str, ...]) -> Representatives:
        return self._represent(self.cluster.groups.by(labels))


class Representatives:
    """One node of each label group that some nodes belong to; it represents the other nodes of its group."""

    __slots__ = ("_within", "counts", "groups", "memo", "nodes", "numbers", "places")

    MOST_KEPT = 64

    def __init__(self, cluster: Cluster, groups: Groups, counts: Ints) -> None:
        self.groups, self.counts = groups, counts
        """How many of the nodes are in each group."""
        self.places: Ints = counts.nonzero()[0]
        """The numbers of the groups that contain any of the nodes."""
        self.nodes, self.numbers = Nodes(cluster, groups.first[self.places]), counts[self.places]
        """One node of each of these groups, and how many nodes it represents."""
        self.memo: dict[Hashable, Any] = {}
        """Values that plugins derived from the nodes' labels and the numbers, under keys of their choice."""
        self._within: RecentlyUsed[Representatives] | None = None

    def spread(self, values: Ints) -> Ints:
        """Extend values of these nodes to all groups; groups without nodes get 0."""
        if len(values) == len(self.counts):
            return values
        everywhere = np.zeros(len(self.counts), dtype=np.int64)
        everywhere[self.places] = values
        return everywhere

    def within(self, allowed: Mask) -> Representatives:
        """The representatives of the allowed groups only."""
        if self._within is None:
            self._within = RecentlyUsed(self.MOST_KEPT)
        key = allowed.tobytes()
        found: Representatives | None = self._within[key]
        if found is None:
            found = self._within[key] = Representatives(self.nodes.cluster, self.groups, self.counts * allowed)
        return found


class NodeInfo:
    """One node: the object, the pods on it, and its free resources. Use it before the cluster changes again."""

    __slots__ = ("_amounts", "_cluster", "row")

    def __init__(self, cluster: Cluster, row: int) -> None:
        self._cluster, self.row = cluster, row
        self._amounts: NodeAmounts | None = None

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
        """The code of the node's value of a label; -1 if it lacks the label."""
        return self._cluster.columns.label(label).codes.item(self.row)

    @property
    def amounts(self) -> NodeAmounts:
        """The amounts of all resources, shared by nodes in the same resource state."""
        if self._amounts is None:
            self._amounts = self._cluster.resource_states.amounts(self.row)
        return self._amounts

    def allocatable(self, resource: str) -> int:
        return self.amounts.allocatable.get(resource, 0)

    def requested(self, resource: str) -> int:
        return self.amounts.requested.get(resource, 0)

    def non_zero_requested(self, resource: str) -> int:
        return self.amounts.non_zero.get(resource, 0)
