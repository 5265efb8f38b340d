"""Parses the text of an expression by recursive descent, and expands macros like has() and all()."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from podium.cel._syntax import (
    Call,
    Expr,
    Fold,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    MessageLiteral,
    Select,
    Token,
    fail,
    literal_value,
    qualified_name,
    tokenize,
    walk,
)

ACCUMULATOR = "@result"
_UNUSED = "#unused"
_MAX_NODES = 10_000
_SORT_INPUT = "@__sortBy_input__"


class MacroError(Exception):
    """A macro with invalid arguments."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at
        self.message = message


class _Use(NamedTuple):
    """One use of a macro."""

    at: int
    name: str
    target: Expr
    arguments: list[Expr]


def expand(at: int, name: str, target: Expr | None, arguments: list[Expr]) -> Expr | None:
    """The expansion of a call if it is a macro, else None."""
    if target is None:
        return _has(at, arguments[0]) if name == "has" and len(arguments) == 1 else None
    expander = _MACROS.get((name, len(arguments)))
    return expander(_Use(at, name, target, arguments)) if expander else None


def _has(at: int, argument: Expr) -> Expr:
    if not isinstance(argument, Select) or argument.test_only or argument.optional:
        raise MacroError(argument.at, "invalid argument to has() macro")
    return Select(at, argument.operand, argument.name, True)


def _variable(node: Expr, message: str = "argument must be a simple name") -> str:
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


def _accumulated(use: _Use) -> Expr:
    return Ident(use.at, ACCUMULATOR)


def _call(use: _Use, function: str, *arguments: Expr) -> Expr:
    return Call(use.at, function, None, list(arguments))


def _fold(use: _Use, names: tuple[str, str], initial: Expr, condition: Expr, step: Expr, result: Expr) -> Expr:
    return Fold(use.at, use.target, *names, ACCUMULATOR, initial, condition, step, result)


def _quantifier(count: int) -> Callable[[_Use], Expr]:
    """all, exists and exists_one with one or two variables."""

    def expander(use: _Use) -> Expr:
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


def _gather(use: _Use, names: tuple[str, str], initial: Expr, kept: Expr | None, step: Expr) -> Expr:
    """A loop that adds to a list or map, for the elements that the filter keeps."""
    if kept is not None:
        step = _call(use, "_?_:_", kept, step, _accumulated(use))
    return _fold(use, names, initial, Literal(use.at, True), step, _accumulated(use))


def _map(use: _Use) -> Expr:
    name = _variable(use.arguments[0], "argument is not an identifier")
    kept = use.arguments[1] if len(use.arguments) == 3 else None
    return _into_list(use, (name, ""), kept, use.arguments[-1])


def _filter(use: _Use) -> Expr:
    name = _variable(use.arguments[0], "argument is not an identifier")
    return _into_list(use, (name, ""), use.arguments[1], use.arguments[0])


def _transform_list(use: _Use) -> Expr:
    return _into_list(use, _variables(use, 2), _kept(use), use.arguments[-1])


def _kept(use: _Use) -> Expr | None:
    return use.arguments[2] if len(use.arguments) == 4 else None


def _into_list(use: _Use, names: tuple[str, str], kept: Expr | None, element: Expr) -> Expr:
    step = _call(use, "_+_", _accumulated(use), ListLiteral(use.at, [element], frozenset()))
    return _gather(use, names, ListLiteral(use.at, [], frozenset()), kept, step)


def _transform_map(use: _Use) -> Expr:
    names = _variables(use, 2)
    step = _call(use, "cel.@mapInsert", _accumulated(use), Ident(use.at, names[0]), use.arguments[-1])
    return _gather(use, names, MapLiteral(use.at, []), _kept(use), step)


def _transform_map_entry(use: _Use) -> Expr:
    names = _variables(use, 2)
    step = _call(use, "cel.@mapInsert", _accumulated(use), use.arguments[-1])
    return _gather(use, names, MapLiteral(use.at, []), _kept(use), step)


def _let(use: _Use, name: str, value: Expr, body: Expr) -> Expr:
    """The body with a name for the value: a loop over nothing, whose accumulator is the name."""
    nothing = ListLiteral(use.at, [], frozenset())
    return Fold(use.at, nothing, _UNUSED, "", name, value, Literal(use.at, False), Ident(use.at, name), body)


def _bind(use: _Use) -> Expr | None:
    if not isinstance(use.target, Ident) or use.target.name != "cel":
        return None
    if not isinstance(use.arguments[0], Ident):
        raise MacroError(use.arguments[0].at, "cel.bind() variable names must be simple identifiers")
    return _let(use, use.arguments[0].name, use.arguments[1], use.arguments[2])


def _optional_map(use: _Use) -> Expr:
    variable = use.arguments[0]
    if not isinstance(variable, Ident):
        raise MacroError(variable.at, f"{use.name}() variable name must be a simple identifier")
    # The operand occurs twice in the expansion, so that a chain of these doubles with each.
    if sum(1 for _ in islice(walk(use.target), _MAX_NODES)) == _MAX_NODES:
        raise MacroError(use.at, "expression is too large")
    body = _let(use, variable.name, Call(use.at, "value", use.target, []), use.arguments[1])
    if use.name == "optMap":
        body = _call(use, "optional.of", body)
    return _call(use, "_?_:_", Call(use.at, "hasValue", use.target, []), body, _call(use, "optional.none"))


def _sort_by(use: _Use) -> Expr:
    if isinstance(use.target, (Literal, MapLiteral)):
        message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(use.target.at, message)
    keys = _map(_Use(use.at, "map", Ident(use.at, _SORT_INPUT), use.arguments))
    ordered = Call(use.at, "@sortByAssociatedKeys", Ident(use.at, _SORT_INPUT), [keys])
    return _let(use, _SORT_INPUT, use.target, ordered)


_MACROS: dict[tuple[str, int], Callable[[_Use], Expr | None]] = {
    **{(name, 2): _quantifier(1) for name in ("all", "exists", "exists_one")},
    **{(name, 3): _quantifier(2) for name in ("all", "exists", "exists_one", "existsOne")},
    ("map", 2): _map, ("map", 3): _map, ("filter", 2): _filter,
    ("transformList", 3): _transform_list, ("transformList", 4): _transform_list,
    ("transformMap", 3): _transform_map, ("transformMap", 4): _transform_map,
    ("transformMapEntry", 3): _transform_map_entry, ("transformMapEntry", 4): _transform_map_entry,
    ("bind", 3): _bind, ("optMap", 2): _optional_map, ("optFlatMap", 2): _optional_map, ("sortBy", 2): _sort_by,
}  # fmt: skip


MAX_DEPTH = 250
_RESERVED = frozenset({
    "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
    "namespace", "return", "var", "void", "while",
})  # fmt: skip
_RELATIONS = frozenset({"<", "<=", ">=", ">", "==", "!=", "in"})
_LITERALS = frozenset({"int", "uint", "double", "string", "bytes", "true", "false", "null"})


def parse(text: str, escaped_names: bool) -> Expr:
    """Parse an expression to a tree; CelError that marks the position. Names in backquotes are read if
    `escaped_names`.
    """
    parser = _Parser(text, escaped_names)
    node = parser.expression()
    parser.expect("end")
    return node


class _Parser:
    def __init__(self, text: str, escaped_names: bool) -> None:
        self.text = text
        self.name_kinds = ("name", "escaped") if escaped_names else ("name",)
        self.tokens = tokenize(text)
        self.position = 0
        self.depth = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.position]

    def take(self) -> Token:
        token = self.tokens[self.position]
        self.position += 1
        return token

    def accept(self, kind: str) -> bool:
        if self.next.kind == kind:
            self.position += 1
            return True
        return False

    def expect(self, kind: str) -> Token:
        if self.next.kind != kind:
            self.unexpected()
        return self.take()

    def unexpected(self) -> None:
        token = self.next
        found = f"mismatched input {token.text!r}" if token.kind != "end" else "unexpected end of the expression"
        fail(self.text, token.at, f"Syntax error: {found}")

    def expression(self) -> Expr:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            fail(self.text, self.next.at, f"expression recursion limit exceeded: {MAX_DEPTH}")
        node = self.alternatives()
        if self.next.kind == "?":
            at = self.take().at
            first = self.alternatives()
            self.expect(":")
            node = Call(at, "_?_:_", None, [node, first, self.expression()])
        self.depth -= 1
        return node

    def alternatives(self) -> Expr:
        return self.logical("||", lambda: self.logical("&&", self.relation))

    def logical(self, operator: str, operand: Callable[[], Expr]) -> Expr:
        terms = [operand()]
        at = self.next.at
        while self.accept(operator):
            terms.append(operand())
        return Call(at, f"_{operator}_", None, terms) if len(terms) > 1 else terms[0]

    def relation(self) -> Expr:
        node = self.sum()
        while self.next.kind in _RELATIONS:
            operator = self.take()
            function = "@in" if operator.kind == "in" else f"_{operator.kind}_"
            node = Call(operator.at, function, None, [node, self.sum()])
        return node

    def sum(self) -> Expr:
        node = self.product()
        while self.next.kind in ("+", "-"):
            operator = self.take()
            node = Call(operator.at, f"_{operator.kind}_", None, [node, self.product()])
        return node

    def product(self) -> Expr:
        node = self.unary()
        while self.next.kind in ("*", "/", "%"):
            operator = self.take()
            node = Call(operator.at, f"_{operator.kind}_", None, [node, self.unary()])
        return node

    def unary(self) -> Expr:
        operator = self.next
        if operator.kind not in ("!", "-") or self.starts_number():
            return self.member()
        count = 0
        while self.accept(operator.kind):
            count += 1
        node = self.member()
        return Call(operator.at, "!_" if operator.kind == "!" else "-_", None, [node]) if count % 2 else node

    def starts_number(self) -> bool:
        """Whether a minus sign belongs to the number after it."""
        return self.next.kind == "-" and self.tokens[self.position + 1].kind in ("int", "double")

    def member(self) -> Expr:
        node = self.primary()
        while self.next.kind in (".", "["):
            at = self.take().at
            if self.tokens[self.position - 1].kind == "[":
                function = "_[?_]" if self.accept("?") else "_[_]"
                node = Call(at, function, None, [node, self.expression()])
                self.expect("]")
                continue
            optional = self.accept("?")
            name = self.take()
            if name.kind not in self.name_kinds:
                self.position -= 1
                self.unexpected()
            if name.kind == "name" and not optional and self.next.kind == "(":
                node = self.call(name, node)
            else:
                node = Select(at, node, name.text.strip("`"), False, optional)
        return node

    def primary(self) -> Expr:
        token = self.take()
        if token.kind in _LITERALS:
            return Literal(token.at, literal_value(token, self.text, False))
        if token.kind == "-" and self.next.kind in ("int", "double"):
            return Literal(token.at, literal_value(self.take(), self.text, True))
        if token.kind == "(":
            node = self.expression()
            self.expect(")")
            return node
        if token.kind == "[":
            return self.list_literal(token.at)
        if token.kind == "{":
            return self.map_literal(token.at)
        if token.kind == "." and self.next.kind == "name":
            return self.name(self.take())
        if token.kind == "name":
            return self.name(token)
        self.position -= 1
        self.unexpected()
        raise AssertionError

    def name(self, token: Token) -> Expr:
        node: Expr
        if token.text in _RESERVED:
            fail(self.text, token.at, f"reserved identifier: {token.text}")
        node = self.call(token, None) if self.next.kind == "(" else Ident(token.at, token.text)
        following, place = node, self.position
        while isinstance(following, (Ident, Select)) and self.next.kind == ".":
            if [each.kind for each in self.tokens[self.position + 1 : self.position + 3]] not in (
                ["name", "."],
                ["name", "{"],
            ):
                break
            self.take()
            following = Select(token.at, following, self.take().text)
        if self.next.kind == "{" and isinstance(following, (Ident, Select)):
            return self.message_literal(qualified_name(following))
        self.position = place
        return node

    def call(self, name: Token, target: Expr | None) -> Expr:
        at = self.expect("(").at
        arguments: list[Expr] = []
        if not self.accept(")"):
            arguments.append(self.expression())
            while self.accept(","):
                arguments.append(self.expression())
            self.expect(")")
        try:
            expanded = expand(at, name.text, target, arguments)
        except MacroError as problem:
            fail(self.text, problem.at, problem.message)
        return expanded or Call(at, name.text, target, arguments)

    def list_literal(self, at: int) -> Expr:
        elements: list[Expr] = []
        optional: set[int] = set()
        while self.next.kind != "]":
            if self.accept("?"):
                optional.add(len(elements))
            elements.append(self.expression())
            if not self.accept(","):
                break
        self.expect("]")
        return ListLiteral(at, elements, frozenset(optional))

    def message_literal(self, name: str) -> Expr:
        at = self.expect("{").at
        fields: list[tuple[str, Expr, bool]] = []
        while self.next.kind != "}":
            optional = self.accept("?")
            if self.next.kind not in self.name_kinds:
                self.unexpected()
            field = self.take().text.strip("`")
            self.expect(":")
            fields.append((field, self.expression(), optional))
            if not self.accept(","):
                break
        self.expect("}")
        return MessageLiteral(at, name, fields)

    def map_literal(self, at: int) -> Expr:
        entries: list[tuple[Expr, Expr, bool]] = []
        while self.next.kind != "}":
            optional = self.accept("?")
            key = self.expression()
            self.expect(":")
            entries.append((key, self.expression(), optional))
            if not self.accept(","):
                break
        self.expect("}")
        return MapLiteral(at, entries)
