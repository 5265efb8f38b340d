"""Checks of a whole expression after its types are known: literals that can never be right."""

from __future__ import annotations

from podium.cel.lexer import fail
from podium.cel.regex import compile_pattern
from podium.cel.syntax import Call, ListLiteral, Literal, MapLiteral, Node
from podium.cel.types import Type, unwrap_optional
from podium.cel.values import EvalError


def validate(text: str, root: Node) -> None:
    """Refuse an expression with an invalid duration, timestamp or pattern, or a list or map of mixed types."""
    _visit(text, root, False)


def _visit(text: str, node: Node, in_format: bool) -> None:
    if isinstance(node, Call):
        if node.arguments and isinstance(literal := node.arguments[0], Literal):
            _literal(text, node, literal)
        in_format = in_format or node.function == "format"
    elif isinstance(node, ListLiteral) and not in_format:
        types = [(each, _inside(each.type, index in node.optional)) for index, each in enumerate(node.elements)]
        _same(text, types)
    elif isinstance(node, MapLiteral) and not in_format:
        _same(text, [(key, key.type) for key, _, _ in node.entries])
        _same(text, [(value, _inside(value.type, optional)) for _, value, optional in node.entries])
    for child in node.children():
        _visit(text, child, in_format)


def _inside(found: Type, optional: bool) -> Type:
    return unwrap_optional(found)[0] if optional else found


def _same(text: str, types: list[tuple[Node, Type]]) -> None:
    for node, found in types[1:]:
        if found != types[0][1]:
            fail(text, node.at, f"expected type '{types[0][1]}' but found '{found}'")


def _literal(text: str, call: Call, literal: Literal) -> None:
    try:
        if call.function == "matches" and isinstance(literal.value, str):
            compile_pattern(literal.value)
        elif call.function in ("duration", "timestamp") and len(call.overloads) == 1:
            call.overloads[0].run(literal.value)
    except EvalError:
        fail(text, literal.at, f"invalid {call.function} argument")
