"""What a plugin says: of a pod as a whole (`Status`), or of many nodes at once (`Verdict`)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

import numpy as np

from podium.cluster.columns import Ints, Mask

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
    """A code and the reasons for it; `plugin` is filled in by the framework."""

    code: Code = Code.SUCCESS
    reasons: Reasons = ()
    plugin: str = ""

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    @classmethod
    def unschedulable(cls, *reasons: str) -> Status:
        """Not here, but evicting pods might help."""
        return cls(Code.UNSCHEDULABLE, reasons)

    @classmethod
    def unresolvable(cls, *reasons: str) -> Status:
        """Not here, and evicting pods cannot help."""
        return cls(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)

    @classmethod
    def error(cls, *reasons: str) -> Status:
        """Something broke; the pod is not scheduled this time."""
        return cls(Code.ERROR, reasons)


SUCCESS = Status()
SKIP = Status(Code.SKIP)
WAIT = Status(Code.WAIT)


class Verdict(NamedTuple):
    """What a filter says of many nodes: a small code per node, 0 for a node that passes, negative for an error.

    Text is made only when somebody looks: `describe` turns a code other than 0 into a `Status`.
    """

    codes: Ints
    describe: Callable[[int], Status]

    @classmethod
    def reject(cls, nodes: Mask, reason: str) -> Verdict:
        """Reject the marked nodes; evicting pods from them might help."""
        return cls.choose(nodes, (Status.unschedulable(reason),))

    @classmethod
    def unresolvable(cls, nodes: Mask, reason: str) -> Verdict:
        """Reject the marked nodes; evicting pods from them cannot help."""
        return cls.choose(nodes, (Status.unresolvable(reason),))

    @classmethod
    def choose(cls, codes: Mask | Ints, statuses: tuple[Status, ...]) -> Verdict:
        """Give every node with code k > 0 the k-th status."""
        numbers = codes.astype(np.int64)
        for place, status in enumerate(statuses, 1):
            if status.code is Code.ERROR:
                numbers[numbers == place] = -place
        return cls(numbers, lambda code: statuses[abs(code) - 1])
