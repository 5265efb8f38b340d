"""The columns of a cluster, one row per node, and the change logs that let cached results catch up."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from enum import IntFlag
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from podium.model import Node, Taint
from podium.model.resources import node_allocatable
from podium.model.selectors import Requirement


def lowest(values: NDArray[np.integer[Any]]) -> int:
    """The smallest value; 0 for an empty array."""
    found: int = values.item(values.argmin()) if len(values) else 0
    return found


def highest(values: NDArray[np.integer[Any]]) -> int:
    """The largest value; 0 for an empty array."""
    found: int = values.item(values.argmax()) if len(values) else 0
    return found


def is_any(mask: Mask) -> bool:
    """Whether any entry is true."""
    return mask.item(mask.argmax()) if len(mask) else False


Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]
H = TypeVar("H", bound=Hashable)


def divisors(capacity: Ints | int) -> tuple[Ints | int, Mask | bool]:
    """Divisors that are never zero, and which nodes have any capacity: True for all, False for none."""
    if isinstance(capacity, int):
        return (capacity, True) if capacity else (1, False)
    present = capacity != 0
    return (capacity, True) if present.all() else (np.maximum(capacity, 1), present)


def round_half_away(numbers: Floats) -> Ints:
    """Round to the nearest integer, halves away from zero, as Go's math.Round does; NumPy's rounds halves to even."""
    whole = np.trunc(numbers)
    rounded: Floats = whole + np.where(np.abs(numbers - whole) >= 0.5, np.sign(numbers), 0.0)
    return rounded.astype(np.int64)


def rounded(number: float) -> int:
    """The same as `round_half_away`, for one number."""
    whole = math.trunc(number)
    if abs(number - whole) < 0.5:
        return whole
    return whole + 1 if number > 0 else whole - 1


CPU, MEMORY, EPHEMERAL_STORAGE, PODS = range(4)
FIXED_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")
NON_ZERO = FIXED_RESOURCES[:2]
"""The resources for which scores assume a default request if a container requests none."""


class Interned(Generic[H]):
    """A dictionary of distinct values, each with a small integer code in order of arrival.

    It only grows, so forks of a cluster share it.
    """

    __slots__ = ("codes", "values")

    def __init__(self) -> None:
        self.codes: dict[H, int] = {}
        self.values: list[H] = []

    def __len__(self) -> int:
        return len(self.values)

    def code(self, value: H) -> int:
        found = self.codes.get(value)
        if found is None:
            found = self.codes[value] = len(self.values)
            self.values.append(value)
        return found


class LabelColumn:
    """One label key over all rows: the code of each node's value, -1 where the node lacks the label."""

    __slots__ = ("codes", "values")

    def __init__(self, capacity: int) -> None:
        self.codes: Codes = np.full(capacity, -1, dtype=np.int64)
        self.values: Interned[str] = Interned()

    def table(self, requirement: Requirement) -> Mask:
        """Whether each distinct value meets the requirement; the last entry (index -1) is for nodes without the
        label.
        """
        size = len(self.values)
        if requirement.operator in ("In", "NotIn"):
            answers = np.full(size + 1, requirement.operator == "NotIn")
            for value in requirement.values:
                code = self.values.codes.get(value)
                if code is not None:
                    answers[code] = requirement.operator == "In"
        else:
            answers = np.fromiter(map(requirement.matches_value, self.values.values), np.bool_, size)
            answers = np.append(answers, False)
        answers[-1] = requirement.matches_absent
        return answers

    def copy(self) -> LabelColumn:
        twin = LabelColumn(0)
        twin.codes, twin.values = self.codes.copy(), self.values
        return twin


class Columns:
    """Everything about nodes that plugins read as arrays; nodes are the last axis, rows up to `size` are in use."""

    def __init__(self, capacity: int = 16) -> None:
        self.size = 0
        self.alive: Mask = np.zeros(capacity, dtype=np.bool_)
        self.resources: Interned[str] = Interned()
        for name in FIXED_RESOURCES:
            self.resources.code(name)
        self.allocatable: Ints = np.zeros((len(FIXED_RESOURCES), capacity), dtype=np.int64)
        self.used: Ints = np.zeros((len(NON_ZERO) + len(FIXED_RESOURCES), capacity), dtype=np.int64)
        """The requests of pods: the rows of `non_zero`, then those of `requested`."""
        self._common: dict[str, int | None] = {}
        self.labels: dict[str, LabelColumn] = {}
        self.taint_sets: Interned[tuple[Taint, ...]] = Interned()
        self.taints: Codes = np.zeros(capacity, dtype=np.int64)
        self.unschedulable: Mask = np.zeros(capacity, dtype=np.bool_)
        self.taint_sets.code(())

    @property
    def capacity(self) -> int:
        return len(self.alive)

    @property
    def non_zero(self) -> Ints:
        """The requests for the resources in NON_ZERO, with defaults for containers that request none."""
        return self.used[: len(NON_ZERO)]

    @property
    def requested(self) -> Ints:
        """The requests for every resource."""
        return self.used[len(NON_ZERO) :]

    def resource(self, name: str) -> int:
        """The index of a resource on the first axis of `allocatable` and `requested`; a new resource gets a zero
        column.
        """
        index = self.resources.code(name)
        missing = index + 1 - len(self.allocatable)
        if missing > 0:
            empty = np.zeros((missing, self.capacity), dtype=np.int64)
            self.allocatable = np.concatenate([self.allocatable, empty])
            self.used = np.concatenate([self.used, empty])
        return index

    def common_allocatable(self, name: str) -> int | None:
        """The allocatable amount of a resource if it is the same on every row, else None."""
        if name not in self._common:
            index = self.resources.codes.get(name, len(self.allocatable))
            amounts = self.allocatable[index, : self.size] if index < len(self.allocatable) else np.zeros(1, np.int64)
            self._common[name] = amounts.item(0) if (amounts == amounts[:1]).all() and len(amounts) else None
        return self._common[name]

    def amounts(self, names: Iterable[str], row: int) -> tuple[dict[str, int], dict[str, int]]:
        """By resource, the amounts that the pods on a row request, and the allocatable amounts."""
        codes, known = self.resources.codes, len(self.allocatable)
        places = [(name, place) for name in names if (place := codes.get(name, known)) < known]
        requested = {name: self.used.item(len(NON_ZERO) + place, row) for name, place in places}
        return requested, {name: self.allocatable.item(place, row) for name, place in places}

    def label(self, key: str) -> LabelColumn:
        """The column of a label key; if no node has the label, all entries are -1."""
        column = self.labels.get(key)
        if column is None:
            column = self.labels[key] = LabelColumn(self.capacity)
        return column

    def new_row(self) -> int:
        """Append a dead row, growing every column when it is full."""
        if self.size == self.capacity:
            self._each_array(lambda array: np.concatenate([array, np.zeros_like(array)], axis=-1))
            for column in self.labels.values():
                column.codes[self.size :] = -1
        self.size += 1
        self._common.clear()
        return self.size - 1

    def set_node(self, row: int, node: Node) -> None:
        """Write the node object's data to a row; the requests of its pods stay."""
        self.alive[row] = True
        self._set_allocatable(row, node_allocatable(node))
        self._set_labels(row, node.metadata.labels)
        self.taints[row] = self.taint_sets.code(tuple(node.spec.taints))
        self.unschedulable[row] = node.spec.unschedulable

    def clear_node(self, row: int) -> None:
        """Make the row dead: no labels, no taints, nothing allocatable."""
        self.alive[row] = False
        self._set_allocatable(row, {})
        self._set_labels(row, {})
        self.taints[row] = 0
        self.unschedulable[row] = False

    def _set_allocatable(self, row: int, amounts: dict[str, int]) -> None:
        self._common.clear()
        self.allocatable[:, row] = 0
        for name, amount in amounts.items():
            index = self.resource(name)  # may replace the array, so it comes before the subscript
            self.allocatable[index, row] = amount

    def _set_labels(self, row: int, labels: dict[str, str]) -> None:
        for column in self.labels.values():
            column.codes[row] = -1
        for key, value in labels.items():
            column = self.label(key)
            column.codes[row] = column.values.code(value)

    def _each_array(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
        for name in ("alive", "allocatable", "used", "taints", "unschedulable"):
            setattr(self, name, change(getattr(self, name)))
        for column in self.labels.values():
            column.codes = change(column.codes)

    def copy(self) -> Columns:
        twin = Columns.__new__(Columns)
        twin.size, twin.resources, twin.taint_sets = self.size, self.resources, self.taint_sets
        for name in ("alive", "allocatable", "used", "taints", "unschedulable"):
            setattr(twin, name, getattr(self, name).copy())
        twin.labels = {key: column.copy() for key, column in self.labels.items()}
        twin._common = self._common.copy()
        return twin


class Aspect(IntFlag):
    """The parts of a node, or of the cluster, that a plugin's result may depend on."""

    RESOURCES = 1
    """The node's allocatable, requested and number of pods."""
    PORTS = 2
    """The host ports in use on the node."""
    LABELS = 4
    """The node's labels and name."""
    TAINTS = 8
    """The node's taints and whether it is cordoned."""
    PODS = 16
    """Which pods are on the node."""
    IMAGES = 32
    """Which images the nodes have, and how many nodes there are."""
    OBJECTS = 64
    """Namespaces, services, owners, volumes and every other object that is neither node nor pod."""


ROW_ASPECTS = Aspect.RESOURCES | Aspect.PORTS | Aspect.LABELS | Aspect.TAINTS | Aspect.PODS
SHARED_ASPECTS = Aspect.IMAGES | Aspect.OBJECTS


class ChangeLog:
    """The rows on which one aspect changed, in order. A reader keeps a cursor and asks for later changes."""

    __slots__ = ("_dropped", "_rows", "head")

    LIMIT = 1 << 16

    def __init__(self) -> None:
        self._rows: Ints = np.zeros(2, dtype=np.int64)
        self._dropped = 0
        self.head = 0
        """The cursor of a reader that has read everything."""

    def append(self, row: int) -> None:
        if self.head - self._dropped == len(self._rows):
            self._make_room()
        self._rows[self.head - self._dropped] = row
        self.head += 1

    def _make_room(self) -> None:
        """Double the room; if the log is long, drop its older half first."""
        kept = self._rows if len(self._rows) < self.LIMIT else self._rows[len(self._rows) // 2 :]
        self._dropped += len(self._rows) - len(kept)
        self._rows = np.concatenate([kept, np.zeros_like(kept)])

    def since(self, cursor: int) -> Ints | None:
        """Rows changed after `cursor`, possibly repeated; None when the log no longer reaches back that far."""
        start = cursor - self._dropped
        return self._rows[start : self.head - self._dropped] if start >= 0 else None


NO_ROWS: Ints = np.zeros(0, dtype=np.int64)


class LogReader:
    """Reads several change logs together, from where it stopped the last time; at first, everything is unread."""

    __slots__ = ("_cursors", "_logs")

    def __init__(self, logs: Iterable[ChangeLog]) -> None:
        self._logs = list(logs)
        self._cursors = [-1] * len(self._logs)

    @property
    def is_behind(self) -> bool:
        """Whether there are unread changes."""
        return [log.head for log in self._logs] != self._cursors

    def unread(self) -> Ints | None:
        """The rows with unread changes, possibly repeated; None if the log does not reach back: any row may have
        changed.
        """
        rows = NO_ROWS
        for log, cursor in zip(self._logs, self._cursors, strict=True):
            if log.head != cursor:
                changed = log.since(cursor)
                if changed is None:
                    return None
                rows = np.concatenate([rows, changed]) if len(rows) else changed
        return rows

    def catch_up(self) -> None:
        """Mark all changes so far as read."""
        self._cursors = [log.head for log in self._logs]

    def read(self) -> Ints | None:
        """The same as `unread`, and mark the changes as read."""
        rows = self.unread()
        self.catch_up()
        return rows


def once(rows: Ints) -> Ints:
    """The rows without repetition."""
    return np.array([*set(rows.tolist())], dtype=np.int64)
