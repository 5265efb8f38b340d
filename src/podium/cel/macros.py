"""Macros: has(), cel.bind(), the quantifiers and transformations of lists and maps, optMap and sortBy.

Each becomes a `Fold` or a call, so that the checker and the evaluator know nothing of them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from podium.cel.syntax import Call, Fold, Ident, ListLiteral, Literal, MapLiteral, Node, Select, walk

ACCUMULATOR = "@result"
_UNUSED = "#unused"
_MAX_NODES = 10_000
_SORT_INPUT = "@__sortBy_input__"


class MacroError(Exception):
    """A macro with arguments it cannot take."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at
        self.message = message


class _Use(NamedTuple):
    """One use of a macro."""

    at: int
    name: str
    target: Node
    arguments: list[Node]


def expand(at: int, name: str, target: Node | None, arguments: list[Node]) -> Node | None:
    """What the call stands for if it is a macro, else nothing."""
    if target is None:
        return _has(at, arguments[0]) if name == "has" and len(arguments) == 1 else None
    expander = _MACROS.get((name, len(arguments)))
    return expander(_Use(at, name, target, arguments)) if expander else None


def _has(at: int, argument: Node) -> Node:
    if not isinstance(argument, Select) or argument.test_only or argument.optional:
        raise MacroError(argument.at, "invalid argument to has() macro")
    return Select(at, argument.operand, argument.name, True)


def _variable(node: Node, message: str = "argument must be a simple name") -> str:
    if not isinstance(node, Ident):
        raise MacroError(node.at, message)
    if node.name in (ACCUMULATOR, "__result__"):
        raise MacroError(node.at, "iteration variable overwrites accumulator variable")
    return node.name


def _variables(use: _Use, count: int) -> tuple[str, str]:
    first = _variable(use.arguments[0])
    second = _variable(use.arguments[1]) if count == 2 else ""
    if first == second:
        raise MacroError(use.arguments[1].at, f"duplicate variable name: {first}")
    return first, second


def _accumulated(use: _Use) -> Node:
    return Ident(use.at, ACCUMULATOR)


def _call(use: _Use, function: str, *arguments: Node) -> Node:
    return Call(use.at, function, None, list(arguments))


def _fold(use: _Use, names: tuple[str, str], initial: Node, condition: Node, step: Node, result: Node) -> Node:
    return Fold(use.at, use.target, *names, ACCUMULATOR, initial, condition, step, result)


def _quantifier(count: int) -> Callable[[_Use], Node]:
    """all, exists and exists_one with one or two variables."""

    def expander(use: _Use) -> Node:
        names = _variables(use, count)
        predicate, result = use.arguments[-1], _accumulated(use)
        if use.name == "all":
            going = _call(use, "@not_strictly_false", _accumulated(use))
            step = _call(use, "_&&_", _accumulated(use), predicate)
            return _fold(use, names, Literal(use.at, True), going, step, result)
        if use.name == "exists":
            going = _call(use, "@not_strictly_false", _call(use, "!_", _accumulated(use)))
            step = _call(use, "_||_", _accumulated(use), predicate)
            return _fold(use, names, Literal(use.at, False), going, step, result)
        one = Literal(use.at, 1)
        more = _call(use, "_+_", _accumulated(use), one)
        step = _call(use, "_?_:_", predicate, more, _accumulated(use))
        result = _call(use, "_==_", _accumulated(use), Literal(use.at, 1))
        return _fold(use, names, Literal(use.at, 0), Literal(use.at, True), step, result)

    return expander


def _gather(use: _Use, names: tuple[str, str], initial: Node, kept: Node | None, step: Node) -> Node:
    """A loop that adds to a list or map, for the elements the filter keeps."""
    if kept is not None:
        step = _call(use, "_?_:_", kept, step, _accumulated(use))
    return _fold(use, names, initial, Literal(use.at, True), step, _accumulated(use))


def _map(use: _Use) -> Node:
    name = _variable(use.arguments[0], "argument is not an identifier")
    kept = use.arguments[1] if len(use.arguments) == 3 else None
    return _into_list(use, (name, ""), kept, use.arguments[-1])


def _filter(use: _Use) -> Node:
    name = _variable(use.arguments[0], "argument is not an identifier")
    return _into_list(use, (name, ""), use.arguments[1], use.arguments[0])


def _transform_list(use: _Use) -> Node:
    return _into_list(use, _variables(use, 2), _kept(use), use.arguments[-1])


def _kept(use: _Use) -> Node | None:
    return use.arguments[2] if len(use.arguments) == 4 else None


def _into_list(use: _Use, names: tuple[str, str], kept: Node | None, element: Node) -> Node:
    step = _call(use, "_+_", _accumulated(use), ListLiteral(use.at, [element], frozenset()))
    return _gather(use, names, ListLiteral(use.at, [], frozenset()), kept, step)


def _transform_map(use: _Use) -> Node:
    names = _variables(use, 2)
    step = _call(use, "cel.@mapInsert", _accumulated(use), Ident(use.at, names[0]), use.arguments[-1])
    return _gather(use, names, MapLiteral(use.at, []), _kept(use), step)


def _transform_map_entry(use: _Use) -> Node:
    names = _variables(use, 2)
    step = _call(use, "cel.@mapInsert", _accumulated(use), use.arguments[-1])
    return _gather(use, names, MapLiteral(use.at, []), _kept(use), step)


def _let(use: _Use, name: str, value: Node, body: Node) -> Node:
    """The body with a name for the value: a loop over nothing, whose accumulator is the name."""
    nothing = ListLiteral(use.at, [], frozenset())
    return Fold(use.at, nothing, _UNUSED, "", name, value, Literal(use.at, False), Ident(use.at, name), body)


def _bind(use: _Use) -> Node | None:
    if not isinstance(use.target, Ident) or use.target.name != "cel":
        return None
    if not isinstance(use.arguments[0], Ident):
        raise MacroError(use.arguments[0].at, "cel.bind() variable names must be simple identifiers")
    return _let(use, use.arguments[0].name, use.arguments[1], use.arguments[2])


def _optional_map(use: _Use) -> Node:
    variable = use.arguments[0]
    if not isinstance(variable, Ident):
        raise MacroError(variable.at, f"{use.name}() variable name must be a simple identifier")
    # The operand stands twice in what it becomes, so that a chain of these doubles with each.
    if sum(1 for _ in islice(walk(use.target), _MAX_NODES)) == _MAX_NODES:
        raise MacroError(use.at, "expression is too large")
    body = _let(use, variable.name, Call(use.at, "value", use.target, []), use.arguments[1])
    if use.name == "optMap":
        body = _call(use, "optional.of", body)
    return _call(use, "_?_:_", Call(use.at, "hasValue", use.target, []), body, _call(use, "optional.none"))


def _sort_by(use: _Use) -> Node:
    if isinstance(use.target, (Literal, MapLiteral)):
        message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(use.target.at, message)
    keys = _map(_Use(use.at, "map", Ident(use.at, _SORT_INPUT), use.arguments))
    ordered = Call(use.at, "@sortByAssociatedKeys", Ident(use.at, _SORT_INPUT), [keys])
    return _let(use, _SORT_INPUT, use.target, ordered)


_MACROS: dict[tuple[str, int], Callable[[_Use], Node | None]] = {
    **{(name, 2): _quantifier(1) for name in ("all", "exists", "exists_one")},
    **{(name, 3): _quantifier(2) for name in ("all", "exists", "exists_one", "existsOne")},
    ("map", 2): _map, ("map", 3): _map, ("filter", 2): _filter,
    ("transformList", 3): _transform_list, ("transformList", 4): _transform_list,
    ("transformMap", 3): _transform_map, ("transformMap", 4): _transform_map,
    ("transformMapEntry", 3): _transform_map_entry, ("transformMapEntry", 4): _transform_map_entry,
    ("bind", 3): _bind, ("optMap", 2): _optional_map, ("optFlatMap", 2): _optional_map, ("sortBy", 2): _sort_by,
}  # fmt: skip
