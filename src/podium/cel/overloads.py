"""Declares functions: a signature, what it does, and what a call of it costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from podium.cel.types import Type, parse_signature
from podium.cel.values import Value

Implementation = Callable[..., Value]
Run = TypeVar("Run", bound=Implementation)
# What a call costs, given its arguments and its result, as the run-time cost limit counts it.
Cost = Callable[[list[Value], Value], int]


class Overload(NamedTuple):
    """One way to call a function.

    `small` says that the cost and the result stay in proportion to one argument, so that no expression of the length
    the API admits comes near the cost limit by such calls alone. `dynamic` says that `run` refuses arguments by
    itself; else they are checked before it is called.
    """

    function: str
    member: bool
    arguments: tuple[Type, ...]
    result: Type
    run: Implementation
    cost: Cost
    small: bool
    dynamic: bool


def one(_arguments: list[Value], _result: Value) -> int:
    """The cost of most functions."""
    return 1


class Library(dict[str, list[Overload]]):
    """Overloads by the name of their function, in the order they were declared."""

    def declare(
        self, *signatures: str, cost: Cost = one, small: bool = True, dynamic: bool = False
    ) -> Callable[[Run], Run]:
        """Add the decorated function under each signature."""

        def add(run: Run) -> Run:
            for text in signatures:
                overload = Overload(*parse_signature(text), run, cost, small, dynamic)
                self.setdefault(overload.function, []).append(overload)
            return run

        return add

    def merged(self, *others: Library) -> Library:
        """The overloads of several libraries together."""
        merged = Library()
        for library in (self, *others):
            for name, overloads in library.items():
                merged.setdefault(name, []).extend(overloads)
        return merged
