"""The results of plugins: `Status` for a pod, `Verdict` for many nodes at once, what PreFilter and PostFilter return;
and checks of what plugins return.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from podium.cluster.columns import Ints, Mask, lowest
from podium.errors import PluginError
from podium.model import Object

Reasons = tuple[str, ...]


class Code(Enum):
    """kube-scheduler's status codes, under its names."""

    SUCCESS = "Success"
    ERROR = "Error"
    UNSCHEDULABLE = "Unschedulable"
    UNSCHEDULABLE_AND_UNRESOLVABLE = "UnschedulableAndUnresolvable"
    WAIT = "Wait"
    SKIP = "Skip"
    PENDING = "Pending"

    @property
    def rejects(self) -> bool:
        return self in (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)


class Status(NamedTuple):
    """A code and its reasons; the framework fills in `plugin`."""

    code: Code = Code.SUCCESS
    reasons: Reasons = ()
    plugin: str = ""
    collected_from: tuple[str, ...] = ()
    """The plugins whose reasons were collected, in releases that do so; `plugin` names all of them."""

    @property
    def plugins(self) -> tuple[str, ...]:
        """The plugins that gave the reasons; none if it was an extender."""
        return self.collected_from or ((self.plugin,) if self.plugin else ())

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    @classmethod
    def unschedulable(cls, *reasons: str) -> Status:
        """Rejected, but evicting pods might help."""
        return cls(Code.UNSCHEDULABLE, reasons)

    @classmethod
    def unresolvable(cls, *reasons: str) -> Status:
        """Rejected, and evicting pods cannot help."""
        return cls(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)

    @classmethod
    def error(cls, *reasons: str) -> Status:
        """An error; the pod is not scheduled this time."""
        return cls(Code.ERROR, reasons)


SUCCESS = Status()
SKIP = Status(Code.SKIP)
WAIT = Status(Code.WAIT)


class PreFilterResult(NamedTuple):
    """The result of PreFilter: a status, and the only nodes to check (None for all)."""

    status: Status = SUCCESS
    node_names: frozenset[str] | None = None


PASSED = PreFilterResult()
SKIPPED = PreFilterResult(SKIP)


class ObjectChange(NamedTuple):
    """A change that a plugin asks for: `after` replaces the object or, if None, the object is deleted."""

    before: Object
    after: Object | None


class PostFilterResult(NamedTuple):
    """What PostFilter decided for a pod that fits nowhere; the caller makes the changes."""

    status: Status
    nominated_node: str | None = None
    changes: tuple[ObjectChange, ...] = ()


class Verdict:
    """A filter's result for many nodes: a small code per node, 0 if it passes, negative for an error.

    Codes and text are made on demand: `describe` turns a code other than 0 into a `Status`.
    """

    __slots__ = ("_codes", "_rejections", "accepted", "describe")

    def __init__(self, codes: Ints, describe: Callable[[int], Status]) -> None:
        self._codes: Ints | None = codes
        self._rejections: tuple[tuple[Mask, Status], ...] = ()
        self.accepted: int | None = None
        """The number of nodes, if `accept` made it; None if it has codes or masks."""
        self.describe = describe
        """Returns the status for a code other than 0."""

    @classmethod
    def accept(cls, nodes: Sized) -> Verdict:
        """Pass all nodes. Faster than codes or masks that reject none, because nothing has to read them."""
        verdict = cls.__new__(cls)
        verdict._codes, verdict._rejections, verdict.accepted = None, (), len(nodes)
        verdict.describe = _describe_success
        return verdict

    @classmethod
    def reject(cls, nodes: Mask, reason: str) -> Verdict:
        """Reject the marked nodes; evicting pods from them might help."""
        return cls.first((nodes, Status.unschedulable(reason)))

    @classmethod
    def unresolvable(cls, nodes: Mask, reason: str) -> Verdict:
        """Reject the marked nodes; evicting pods from them cannot help."""
        return cls.first((nodes, Status.unresolvable(reason)))

    @classmethod
    def first(cls, *rejections: tuple[Mask, Status]) -> Verdict:
        """Reject the nodes that any of the masks selects, with the status of the first mask that does."""
        verdict = cls.__new__(cls)
        verdict._codes = verdict.accepted = None
        verdict._rejections = tuple([(np.asarray(mask, dtype=np.bool_), status) for mask, status in rejections])
        verdict.describe = lambda code: rejections[abs(code) - 1][1]
        return verdict

    @classmethod
    def choose(cls, codes: Mask | Ints, statuses: tuple[Status, ...]) -> Verdict:
        """Give every node with code k > 0 the k-th status."""
        numbers = codes.astype(np.int64)
        for place, status in enumerate(statuses, 1):
            if status.code is Code.ERROR:
                numbers[numbers == place] = -place
        return cls(numbers, lambda code: statuses[abs(code) - 1])

    @property
    def arrays(self) -> list[Ints | Mask]:
        """The arrays it was made from: codes or masks."""
        return [mask for mask, _ in self._rejections] if self._rejections else [self.codes]

    @property
    def codes(self) -> Ints:
        if self._codes is None:
            count = len(self._rejections[0][0]) if self.accepted is None else self.accepted
            self._codes = np.zeros(count, dtype=np.int64)
            for place in range(len(self._rejections), 0, -1):
                mask, status = self._rejections[place - 1]
                self._codes[mask] = -place if status.code is Code.ERROR else place
        return self._codes

    @property
    def rejected(self) -> Mask:
        """Whether each node is rejected."""
        if not self._rejections:
            mask: Mask = self.codes != 0
            return mask
        (mask, _), *others = self._rejections
        for other, _ in others:
            mask = mask | other
        return mask

    @property
    def error(self) -> Status | None:
        """The first error, if there is any."""
        if self.accepted is not None:
            return None
        if self._rejections and Code.ERROR not in [status.code for _, status in self._rejections]:
            return None
        if lowest(self.codes) >= 0:
            return None
        return self.describe(int(self.codes[self.codes < 0].max()))


def _describe_success(code: int) -> Status:
    return SUCCESS


WHOLE = int, np.integer
INT64 = np.dtype(np.int64)


def checked_status(plugin: str, found: Any) -> Status:
    """The result of `filter_node`; PluginError if it is not a Status."""
    if not isinstance(found, Status):
        raise PluginError(plugin, f"returns {found!r} from filter_node: return a Status")
    return found


def checked_number(plugin: str, found: Any) -> int:
    """The result of `score_node`; PluginError if it is not a whole number."""
    if not isinstance(found, WHOLE):
        raise PluginError(plugin, f"returns {found!r} from score_node: return an int")
    return int(found)


def checked_numbers(plugin: str, point: str, found: Any, count: int) -> Ints:
    """The result of an array method, one number per node; PluginError if it is anything else."""
    if not (isinstance(found, np.ndarray) and found.dtype == INT64 and found.shape == (count,)):
        shape = f"{found.dtype}{list(found.shape)}" if isinstance(found, np.ndarray) else type(found).__name__
        raise PluginError(plugin, f"returns {shape} from {point}: return an int64 array, one number for each node")
    return found


def checked_verdict(plugin: str, found: Any, count: int) -> Verdict:
    """The result of a filter for each node; PluginError if it is anything else."""
    if not isinstance(found, Verdict):
        raise PluginError(plugin, f"returns {type(found).__name__} from filter: return a Verdict")
    if found.accepted == count:
        return found
    for array in found.arrays:
        if not isinstance(array, np.ndarray) or array.shape != (count,) or array.dtype.kind not in "bi":
            checked_numbers(plugin, "filter", array, count)
    return found
