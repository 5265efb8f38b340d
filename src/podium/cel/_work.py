"""Limits the work of one evaluation where cel-go's cost says too little: a regular expression of a few hundred
characters may have millions of instructions.

Work is counted, not timed, so that an evaluation ends at the same place on every machine. A unit takes about a
microsecond.
"""

from __future__ import annotations

from contextvars import ContextVar

MOST_WORK = 1_000_000
"""The most units of one evaluation."""


class WorkLimitError(Exception):
    """The evaluation takes too long; nothing absorbs this error."""


class Work:
    """The work of one evaluation so far."""

    __slots__ = ("done", "most")

    def __init__(self, most: float = MOST_WORK) -> None:
        self.done, self.most = 0, min(most, MOST_WORK)

    def add(self, units: int) -> None:
        """Count work; raises WorkLimitError beyond the limit."""
        self.done += units
        if self.done > self.most:
            raise WorkLimitError


WORK: ContextVar[Work | None] = ContextVar("WORK", default=None)
"""The work of the evaluation under way."""


def work_under_way() -> Work:
    """The work to add to; outside of an evaluation, one of its own."""
    return WORK.get() or Work()
