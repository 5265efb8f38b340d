"""The tokens of an expression and the nodes of its tree. The checker fills in `type`, and for calls the overloads that
apply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from podium.cel._types import DYN, Type
from podium.cel._values import MAX_INT, MAX_UINT, MIN_INT, Uint
from podium.errors import CelError

if TYPE_CHECKING:
    from podium.cel._types import Overload
    from podium.cel._values import Value


@dataclass(slots=True, eq=False)
class Expr:
    """A node of the tree: its position in the text, and the type that the checker found."""

    at: int
    type: Type = field(default=DYN, kw_only=True)

    def children(self) -> Iterator[Expr]:
        yield from ()


@dataclass(slots=True, eq=False)
class Literal(Expr):
    value: Value


@dataclass(slots=True, eq=False)
class Ident(Expr):
    """A variable or the name of a type; for the latter, `constant` is the type value."""

    name: str
    constant: Value = field(default=None, kw_only=True)


@dataclass(slots=True, eq=False)
class Select(Expr):
    """`operand.name`, or has(operand.name) with `test_only`, or `operand.?name` with `optional`.

    `constant` is the value where the whole chain turned out to be the name of a type.
    """

    operand: Expr
    name: str
    test_only: bool = False
    optional: bool = False
    constant: Value = field(default=None, kw_only=True)

    def children(self) -> Iterator[Expr]:
        yield self.operand


@dataclass(slots=True, eq=False)
class Call(Expr):
    """`target.function(arguments)`, or `function(arguments)` without a target. Operators are calls, as `_+_`."""

    function: str
    target: Expr | None
    arguments: list[Expr]
    overloads: list[Overload] = field(default_factory=list, kw_only=True)

    def children(self) -> Iterator[Expr]:
        if self.target is not None:
            yield self.target
        yield from self.arguments


@dataclass(slots=True, eq=False)
class ListLiteral(Expr):
    """A list; `optional` has the indices of elements written with `?`."""

    elements: list[Expr]
    optional: frozenset[int]

    def children(self) -> Iterator[Expr]:
        yield from self.elements


@dataclass(slots=True, eq=False)
class MapLiteral(Expr):
    """A map; the third item of an entry tells whether it was written with `?`."""

    entries: list[tuple[Expr, Expr, bool]]

    def children(self) -> Iterator[Expr]:
        for key, value, _ in self.entries:
            yield key
            yield value


@dataclass(slots=True, eq=False)
class MessageLiteral(Expr):
    """A message by its full name; the third item of a field tells whether it was written with `?`."""

    name: str
    fields: list[tuple[str, Expr, bool]]

    def children(self) -> Iterator[Expr]:
        for _, value, _ in self.fields:
            yield value


@dataclass(slots=True, eq=False)
class Fold(Expr):
    """A loop with an accumulator: the expansion of every macro over a list or map, and of cel.bind without a loop."""

    range: Expr
    variable: str
    second_variable: str
    accumulator: str
    initial: Expr
    condition: Expr
    step: Expr
    result: Expr

    def children(self) -> Iterator[Expr]:
        yield from (self.range, self.initial, self.condition, self.step, self.result)


def qualified_name(node: Expr) -> str:
    """The dotted name of a chain of selections; empty if it is not one."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test_only and not node.optional:
        prefix = qualified_name(node.operand)
        return f"{prefix}.{node.name}" if prefix else ""
    return ""


def is_index(node: Expr) -> bool:
    """Whether the node is `operand[key]` or `operand[?key]`."""
    return isinstance(node, Call) and node.function in ("_[_]", "_[?_]")


def walk(node: Expr) -> Iterator[Expr]:
    """The node and everything below it."""
    yield node
    for child in node.children():
        yield from walk(child)


class Token(NamedTuple):
    """A piece of the text. For operators and keywords, `kind` is the text itself."""

    kind: str
    text: str
    at: int


_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPES |= {each: each for each in "\"'\\?`"}
_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_STRING = (
    rf'[rR]"""(?s:.*?)"""|[rR]\'\'\'(?s:.*?)\'\'\'|[rR]"[^"\n\r]*"|[rR]\'[^\'\n\r]*\''
    rf'|"""(?:{_ESCAPE}|[^\\])*?"""|\'\'\'(?:{_ESCAPE}|[^\\])*?\'\'\''
    rf'|"(?:{_ESCAPE}|[^\\"\n\r])*"|\'(?:{_ESCAPE}|[^\\\'\n\r])*\''
)
_TOKENS = re.compile(
    rf"""(?P<space>[\t \r\n\f]+|//[^\n]*)
    |(?P<bytes>[bB](?:{_STRING}))
    |(?P<string>{_STRING})
    |(?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<uint>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<escaped>`[A-Za-z0-9_.\-/\ ]+`)
    |(?P<operator>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])""",
    re.VERBOSE,
)
_WORDS = frozenset({"in", "true", "false", "null"})


def fail(text: str, at: int, message: str) -> NoReturn:
    """Refuse the expression, with the position marked as cel-go does."""
    line = text.count("\n", 0, at)
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    column = at - start
    shown = text[start:] if end < 0 else text[start:end]
    place = f"ERROR: <input>:{line + 1}:{column + 1}: {message}"
    raise CelError(f"compilation failed: {place}\n | {shown}\n | {'.' * column}^")


def tokenize(text: str) -> list[Token]:
    """All tokens of an expression, and one of the kind `end` after them."""
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKENS.match(text, at)
        if match is None:
            fail(text, at, f"Syntax error: token recognition error at: {text[at]!r}")
        kind = str(match.lastgroup)
        if kind != "space":
            if kind == "operator" or (kind == "name" and match[0] in _WORDS):
                kind = match[0]
            tokens.append(Token(kind, match[0], at))
        at = match.end()
    tokens.append(Token("end", "<EOF>", len(text)))
    return tokens


def literal_value(token: Token, text: str, negative: bool) -> Value:
    """The value of a literal token; `negative` for a number with a minus sign before it."""
    sign = -1 if negative else 1
    if token.kind == "double":
        return sign * float(token.text)
    if token.kind in ("int", "uint"):
        digits = token.text.rstrip("uU")
        hexadecimal = digits.startswith("0x")
        digits = digits.removeprefix("0x").lstrip("0") or "0"
        # Any number with that many digits is too large.
        number = sign * int(digits[:30], 16 if hexadecimal else 10)
        if token.kind == "int" and MIN_INT <= number <= MAX_INT:
            return number
        if token.kind == "uint" and number <= MAX_UINT:
            return Uint(number)
        fail(text, token.at, f"Syntax error: invalid {token.kind} literal")
    if token.kind == "string":
        return _unquote(token, text, False)
    if token.kind == "bytes":
        return _unquote(Token("bytes", token.text[1:], token.at), text, True)
    return {"true": True, "false": False, "null": None}[token.kind]


def _unquote(token: Token, text: str, as_bytes: bool) -> Value:
    body = token.text
    raw = body[0] in "rR"
    body = body[1:] if raw else body
    quote = 3 if body[:3] in ('"""', "'''") else 1
    body = body[quote:-quote].replace("\r\n", "\n").replace("\r", "\n")
    if raw:
        return body.encode() if as_bytes else body
    parts: list[str | bytes] = []
    last = 0
    for match in re.finditer(_ESCAPE, body):
        parts += [body[last : match.start()], _escaped(match[0], token, text, as_bytes)]
        last = match.end()
    parts.append(body[last:])
    if as_bytes:
        return b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    return "".join(part for part in parts if isinstance(part, str))


def _escaped(escape: str, token: Token, text: str, as_bytes: bool) -> str | bytes:
    """The value of one escape sequence: in bytes, octal and \\x are a byte and the others a code point in UTF-8."""
    kind = escape[1]
    if kind in _ESCAPES:
        return _ESCAPES[kind]
    if kind in "xX" or kind.isdigit():
        code = int(escape[2:], 16) if kind in "xX" else int(escape[1:], 8)
        return bytes([code]) if as_bytes else chr(code)
    code = int(escape[2:], 16)
    if as_bytes or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        fail(text, token.at, "Syntax error: invalid unicode code point" if not as_bytes else "invalid bytes literal")
    return chr(code)
