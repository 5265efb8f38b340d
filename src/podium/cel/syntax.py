"""The nodes of a parsed expression. The checker fills in `type`, and for calls the overloads that may apply."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from podium.cel.types import DYN, Type

if TYPE_CHECKING:
    from podium.cel.overloads import Overload
    from podium.cel.values import Value


@dataclass(slots=True, eq=False)
class Node:
    """Any node: where it begins in the text, and the type the checker found."""

    at: int
    type: Type = field(default=DYN, kw_only=True)

    def children(self) -> Iterator[Node]:
        yield from ()


@dataclass(slots=True, eq=False)
class Literal(Node):
    value: Value


@dataclass(slots=True, eq=False)
class Ident(Node):
    """A variable or the name of a type; `constant` is the type value of the latter."""

    name: str
    constant: Value = field(default=None, kw_only=True)


@dataclass(slots=True, eq=False)
class Select(Node):
    """`operand.name`, or has(operand.name) with `test_only`, or `operand.?name` with `optional`.

    `constant` is the value where the whole chain turned out to be the name of a type.
    """

    operand: Node
    name: str
    test_only: bool = False
    optional: bool = False
    constant: Value = field(default=None, kw_only=True)

    def children(self) -> Iterator[Node]:
        yield self.operand


@dataclass(slots=True, eq=False)
class Call(Node):
    """`target.function(arguments)`, or `function(arguments)` without a target. Operators are calls, as `_+_`."""

    function: str
    target: Node | None
    arguments: list[Node]
    overloads: list[Overload] = field(default_factory=list, kw_only=True)

    def children(self) -> Iterator[Node]:
        if self.target is not None:
            yield self.target
        yield from self.arguments


@dataclass(slots=True, eq=False)
class ListLiteral(Node):
    """A list; `optional` has the places of elements written with `?`."""

    elements: list[Node]
    optional: frozenset[int]

    def children(self) -> Iterator[Node]:
        yield from self.elements


@dataclass(slots=True, eq=False)
class MapLiteral(Node):
    """A map; the third of an entry says whether it was written with `?`."""

    entries: list[tuple[Node, Node, bool]]

    def children(self) -> Iterator[Node]:
        for key, value, _ in self.entries:
            yield key
            yield value


@dataclass(slots=True, eq=False)
class Fold(Node):
    """A loop with an accumulator: what every macro over a list or map becomes, and cel.bind without a loop."""

    range: Node
    variable: str
    second_variable: str
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node

    def children(self) -> Iterator[Node]:
        yield from (self.range, self.initial, self.condition, self.step, self.result)


def qualified_name(node: Node) -> str:
    """The dotted name a chain of selections spells, or nothing."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test_only and not node.optional:
        prefix = qualified_name(node.operand)
        return f"{prefix}.{node.name}" if prefix else ""
    return ""


def is_index(node: Node) -> bool:
    """Whether the node is `operand[key]` or `operand[?key]`."""
    return isinstance(node, Call) and node.function in ("_[_]", "_[?_]")


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it."""
    yield node
    for child in node.children():
        yield from walk(child)
