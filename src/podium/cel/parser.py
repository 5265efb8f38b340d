"""Parses the text of an expression by recursive descent. Macros are replaced by what they stand for on the way."""

from __future__ import annotations

from collections.abc import Callable

from podium.cel.lexer import Token, fail, literal_value, tokenize
from podium.cel.macros import MacroError, expand
from podium.cel.syntax import Call, Ident, ListLiteral, Literal, MapLiteral, Node, Select, qualified_name

MAX_DEPTH = 250
_RESERVED = frozenset({
    "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
    "namespace", "return", "var", "void", "while",
})  # fmt: skip
_RELATIONS = frozenset({"<", "<=", ">=", ">", "==", "!=", "in"})
_LITERALS = frozenset({"int", "uint", "double", "string", "bytes", "true", "false", "null"})


def parse(text: str, escaped_names: bool) -> Node:
    """The expression as a tree, or a CelError that marks the place; names in backquotes are read on demand."""
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

    def expression(self) -> Node:
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

    def alternatives(self) -> Node:
        return self.logical("||", lambda: self.logical("&&", self.relation))

    def logical(self, operator: str, operand: Callable[[], Node]) -> Node:
        terms = [operand()]
        at = self.next.at
        while self.accept(operator):
            terms.append(operand())
        return Call(at, f"_{operator}_", None, terms) if len(terms) > 1 else terms[0]

    def relation(self) -> Node:
        node = self.sum()
        while self.next.kind in _RELATIONS:
            operator = self.take()
            function = "@in" if operator.kind == "in" else f"_{operator.kind}_"
            node = Call(operator.at, function, None, [node, self.sum()])
        return node

    def sum(self) -> Node:
        node = self.product()
        while self.next.kind in ("+", "-"):
            operator = self.take()
            node = Call(operator.at, f"_{operator.kind}_", None, [node, self.product()])
        return node

    def product(self) -> Node:
        node = self.unary()
        while self.next.kind in ("*", "/", "%"):
            operator = self.take()
            node = Call(operator.at, f"_{operator.kind}_", None, [node, self.unary()])
        return node

    def unary(self) -> Node:
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

    def member(self) -> Node:
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

    def primary(self) -> Node:
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

    def name(self, token: Token) -> Node:
        node: Node
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
            fail(self.text, token.at, f"undeclared reference to '{qualified_name(following)}' (in container '')")
        self.position = place
        return node

    def call(self, name: Token, target: Node | None) -> Node:
        at = self.expect("(").at
        arguments: list[Node] = []
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

    def list_literal(self, at: int) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        while self.next.kind != "]":
            if self.accept("?"):
                optional.add(len(elements))
            elements.append(self.expression())
            if not self.accept(","):
                break
        self.expect("]")
        return ListLiteral(at, elements, frozenset(optional))

    def map_literal(self, at: int) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        while self.next.kind != "}":
            optional = self.accept("?")
            key = self.expression()
            self.expect(":")
            entries.append((key, self.expression(), optional))
            if not self.accept(","):
                break
        self.expect("}")
        return MapLiteral(at, entries)
