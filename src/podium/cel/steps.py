"""The closures an expression is compiled to, and the cost they add up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from podium.cel.values import Value

COST_LIMIT = 1_000_000

# What one evaluation works on: the cost so far, the device, and the variables.
Slots = list[Any]
Run = Callable[[Slots], Value]


class CostLimitError(Exception):
    """The evaluation cost more than the limit; nothing absorbs this."""


class Step(NamedTuple):
    """The closure of a node. `constant`: it stands for `value`, also to cel-go; `folded`: it always gives `value`."""

    run: Run
    constant: bool = False
    value: Value = None
    folded: bool = False


def constant(value: Value) -> Step:
    """A step that gives a value known when it is compiled."""
    return Step(lambda _slots: value, True, value)


def charge(slots: Slots, cost: int) -> None:
    """Add to the cost of the evaluation; raises CostLimitError beyond the limit."""
    slots[0] += cost
    if slots[0] > COST_LIMIT:
        raise CostLimitError
