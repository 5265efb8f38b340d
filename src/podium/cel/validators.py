"""Checks of a whole expression after its types are known: literals that can never be right."""

from __future__ import annotations

from podium.cel.functions.text_format import CLAUSES, clauses
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
        if node.function == "format":
            in_format = True
            _format(text, node)
    elif isinstance(node, ListLiteral) and not in_format:
        _same(text, [(each, _inside(text, each, index in node.optional)) for index, each in enumerate(node.elements)])
    elif isinstance(node, MapLiteral) and not in_format:
        _same(text, [(key, key.type) for key, _, _ in node.entries])
        _same(text, [(value, _inside(text, value, optional)) for _, value, optional in node.entries])
    for child in node.children():
        _visit(text, child, in_format)


def _inside(text: str, node: Node, optional: bool) -> Type:
    inside, was_optional = unwrap_optional(node.type)
    if optional and not was_optional:
        fail(text, node.at, f"expected type 'optional_type({inside})' but found '{inside}'")
    return inside if optional else node.type


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


def _format(text: str, call: Call) -> None:
    """Check a constant format against the types of the arguments written out for it."""
    if not isinstance(call.target, Literal) or not isinstance(call.arguments[0], ListLiteral):
        return
    arguments = call.arguments[0].elements
    used = 0
    try:
        for _, letter, _ in clauses(call.target.value):
            if letter and used >= len(arguments):
                raise EvalError(f"index {used} out of range")
            if letter:
                _clause(text, arguments[used], letter)
                used += 1
    except EvalError as error:
        fail(text, call.at, str(error))
    if used < len(arguments):
        message = f"too many arguments supplied to string.format (expected {used}, got {len(arguments)})"
        fail(text, call.at, message)


def _clause(text: str, argument: Node, letter: str) -> None:
    if argument.type.name != "dyn" and argument.type.name not in CLAUSES[letter]:
        fail(text, argument.at, f"error during formatting: %{letter} cannot be used with {argument.type}")
    if letter == "s" and isinstance(argument, (ListLiteral, MapLiteral)):
        for child in argument.children():
            _clause(text, child, letter)
