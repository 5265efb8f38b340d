"""Determines the type of every part of an expression and the overloads of every call; refuses invalid expressions."""

from __future__ import annotations

from typing import NoReturn

from podium.cel import _syntax as syntax
from podium.cel import _types as t
from podium.cel._messages import MESSAGES
from podium.cel._regex import compile_pattern
from podium.cel._string_library import CLAUSES, clauses
from podium.cel._syntax import fail, qualified_name
from podium.cel._types import Library, Overload, Substitution, Type, list_of, map_of, optional_of, unwrap_optional
from podium.cel._values import EvalError, TypeValue, type_name

# Names of types that may be written in an expression, and what they describe.
_TYPES: dict[str, Type] = {each.name: each for each in (t.BOOL, t.INT, t.UINT, t.DOUBLE, t.STRING, t.BYTES, t.NULL)}
_TYPES |= {each.name: each for each in (t.DURATION, t.TIMESTAMP, t.IP, t.CIDR, t.DYN, t.EMPTY)}
_TYPES |= {
    "list": list_of(t.DYN),
    "map": map_of(t.DYN, t.DYN),
    "type": Type("type"),
    "optional_type": optional_of(t.DYN),
}
# The only constant of the only enumeration.
_NULL_VALUE = "google.protobuf.NullValue.NULL_VALUE"
_DEVICE = "device"


class Checker:
    """Checks one expression; `check` fills in its nodes."""

    def __init__(self, text: str, library: Library, device_fields: dict[str, Type]) -> None:
        self.text = text
        self.library = library
        self.device_fields = device_fields
        self.bound = Substitution()
        self.scopes: list[dict[str, Type]] = [{_DEVICE: t.DEVICE}]
        self.variables = 0
        self.seen: list[syntax.Expr] = []

    def check(self, root: syntax.Expr) -> Type:
        """The type of the whole expression; afterwards every node has its own, without variables."""
        self.visit(root)
        for node in self.seen:
            node.type = self.bound.resolve(node.type, True)
        return root.type

    def fail(self, node: syntax.Expr, message: str) -> NoReturn:
        fail(self.text, node.at, message)

    def visit(self, node: syntax.Expr) -> Type:
        match node:
            case syntax.Literal():
                found = Type(type_name(node.value))
            case syntax.Ident():
                found = self.ident(node)
            case syntax.Select():
                found = self.select(node)
            case syntax.Call():
                found = self.call(node)
            case syntax.ListLiteral():
                found = self.list_literal(node)
            case syntax.MapLiteral():
                found = self.map_literal(node)
            case syntax.MessageLiteral():
                found = self.message_literal(node)
            case syntax.Fold():
                found = self.fold(node)
            case _:
                raise AssertionError(node)
        node.type = found
        self.seen.append(node)
        return found

    def lookup(self, name: str) -> Type | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def ident(self, node: syntax.Ident) -> Type:
        if (found := self.lookup(node.name)) is not None:
            return found
        if (described := _TYPES.get(node.name)) is None:
            self.fail(node, f"undeclared reference to '{node.name}' (in container '')")
        node.constant = TypeValue(described.name)
        return t.type_of_type(described)

    def select(self, node: syntax.Select) -> Type:
        name = qualified_name(node)
        if name and self.lookup(name.split(".")[0]) is None:
            if name == _NULL_VALUE:
                node.constant = 0
                return t.INT
            if (described := _TYPES.get(name)) is not None:
                node.constant = TypeValue(described.name)
                return t.type_of_type(described)
        operand, optional = unwrap_optional(self.bound.resolve(self.visit(node.operand)))
        found = self.field(node, operand)
        if optional or node.optional:
            found = optional_of(found)
        return t.BOOL if node.test_only else found

    def field(self, node: syntax.Select, operand: Type) -> Type:
        if operand.name == "map":
            return operand.parameters[1]
        if t.is_struct(operand):
            if operand == t.DEVICE and node.name in self.device_fields:
                return self.device_fields[node.name]
            self.fail(node, f"undefined field '{node.name}'")
        if operand.is_variable:
            self.bound.assign((t.DYN,), (operand,))
        elif not operand.is_dyn:
            self.fail(node, f"type '{operand}' does not support field selection")
        return t.DYN

    def call(self, node: syntax.Call) -> Type:
        arguments = [self.visit(each) for each in node.arguments]
        if node.target is not None:
            prefix = qualified_name(node.target)
            if prefix and f"{prefix}.{node.function}" in self.library:
                node.function, node.target = f"{prefix}.{node.function}", None
            else:
                arguments.insert(0, self.visit(node.target))
        if (declared := self.library.get(node.function)) is None:
            self.fail(node, f"undeclared reference to '{node.function}' (in container '')")
        if node.function in ("_&&_", "_||_"):
            return self.logical(node, arguments, declared)
        return self.resolve(node, tuple(arguments), declared)

    def logical(self, node: syntax.Call, arguments: list[Type], declared: list[Overload]) -> Type:
        for argument, found in zip(node.arguments, arguments, strict=True):
            if not self.bound.assign((found,), (t.BOOL,)):
                self.fail(argument, f"expected type 'bool' but found '{found}'")
        node.overloads = declared
        return t.BOOL

    def resolve(self, node: syntax.Call, arguments: tuple[Type, ...], declared: list[Overload]) -> Type:
        """The result type of the overloads that may apply: that of the first, or dyn if they differ."""
        result: Type | None = None
        node.overloads = []
        for overload in declared:
            if overload.member != (node.target is not None):
                continue
            wanted, returned = self.instantiate(overload)
            if not self.bound.assign(arguments, wanted):
                continue
            node.overloads.append(overload)
            returned = self.bound.resolve(returned)
            if result is None:
                result = returned
            elif not result.is_dyn and returned != result:
                result = t.DYN
        if result is None:
            shown = [str(self.bound.resolve(each, True)) for each in arguments]
            call = f"{shown[0]}.({', '.join(shown[1:])})" if node.target is not None else f"({', '.join(shown)})"
            self.fail(node, f"found no matching overload for '{node.function}' applied to '{call}'")
        return result

    def instantiate(self, overload: Overload) -> tuple[tuple[Type, ...], Type]:
        """Arguments and result of an overload, with fresh type variables for this call."""
        fresh = Substitution()
        self.variables += 1

        def rename(found: Type) -> Type:
            if found.is_variable:
                return fresh.setdefault(found, Type(f"{found.name}{self.variables}"))
            return Type(found.name, tuple(map(rename, found.parameters))) if found.parameters else found

        return tuple(map(rename, overload.arguments)), rename(overload.result)

    def new_variable(self) -> Type:
        self.variables += 1
        return Type(f"~{self.variables}")

    def join(self, previous: Type | None, found: Type) -> Type:
        """The common type of the elements so far."""
        if previous is None:
            return found
        # Elements of several types make a list of dyn, which is refused later unless it is for format().
        return t.more_general(previous, found) if self.bound.assign((previous,), (found,)) else t.DYN

    def unwrapped(self, node: syntax.Expr, optional: bool) -> Type:
        found = self.visit(node)
        if not optional:
            return found
        inside, was_optional = unwrap_optional(found)
        if not was_optional and not inside.is_dyn:
            self.fail(node, f"expected type 'optional_type({inside})' but found '{inside}'")
        return inside

    def list_literal(self, node: syntax.ListLiteral) -> Type:
        element: Type | None = None
        for index, each in enumerate(node.elements):
            element = self.join(element, self.unwrapped(each, index in node.optional))
        return list_of(element or self.new_variable())

    def map_literal(self, node: syntax.MapLiteral) -> Type:
        key_type: Type | None = None
        value_type: Type | None = None
        for key, value, optional in node.entries:
            key_type = self.join(key_type, self.visit(key))
            value_type = self.join(value_type, self.unwrapped(value, optional))
        return map_of(key_type or self.new_variable(), value_type or self.new_variable())

    def message_literal(self, node: syntax.MessageLiteral) -> Type:
        message = MESSAGES.get(node.name)
        if message is None:
            self.fail(node, f"undeclared reference to '{node.name}' (in container '')")
        for field, value, optional in node.fields:
            found = self.unwrapped(value, optional)
            if field not in message.fields:
                self.fail(value, f"undefined field '{field}'")
            wanted = message.fields[field].kind.type
            if not self.bound.assign((wanted,), (found,)):
                self.fail(value, f"expected type of field '{field}' is '{wanted}' but provided type is '{found}'")
        return message.type

    def fold(self, node: syntax.Fold) -> Type:
        over = self.visit(node.range)
        initial = self.visit(node.initial)
        over = self.bound.resolve(over)
        first, second = self.loop_variables(node, over)
        self.scopes.append({node.accumulator: initial})
        self.scopes.append({node.variable: first} | ({node.second_variable: second} if node.second_variable else {}))
        self.visit(node.condition)
        self.demand(node.condition, t.BOOL)
        self.visit(node.step)
        self.demand(node.step, initial)
        self.scopes.pop()
        result = self.visit(node.result)
        self.scopes.pop()
        return self.bound.resolve(result)

    def loop_variables(self, node: syntax.Fold, over: Type) -> tuple[Type, Type]:
        if over.name == "list":
            return (t.INT, over.parameters[0]) if node.second_variable else (over.parameters[0], t.DYN)
        if over.name == "map":
            return over.parameters[0], over.parameters[1]
        if over.name != "dyn" and not over.is_variable:
            problem = "cannot be range of a comprehension (must be list, map, or dynamic)"
            self.fail(node.range, f"expression of type '{over}' {problem}")
        self.bound.assign((t.DYN,), (over,))
        return t.DYN, t.DYN

    def demand(self, node: syntax.Expr, wanted: Type) -> None:
        if not self.bound.assign((wanted,), (node.type,)):
            self.fail(node, f"expected type '{wanted}' but found '{node.type}'")


def validate(text: str, root: syntax.Expr) -> None:
    """Refuse an expression with an invalid duration, timestamp or pattern, or a list or map of mixed types."""
    _visit(text, root, False)


def _visit(text: str, node: syntax.Expr, in_format: bool) -> None:
    if isinstance(node, syntax.Call):
        if node.arguments and isinstance(literal := node.arguments[0], syntax.Literal):
            _literal(text, node, literal)
        if node.function == "format":
            in_format = True
            _format(text, node)
    elif isinstance(node, syntax.ListLiteral) and not in_format:
        _same(text, [(each, _inside(text, each, index in node.optional)) for index, each in enumerate(node.elements)])
    elif isinstance(node, syntax.MapLiteral) and not in_format:
        _same(text, [(key, key.type) for key, _, _ in node.entries])
        _same(text, [(value, _inside(text, value, optional)) for _, value, optional in node.entries])
    for child in node.children():
        _visit(text, child, in_format)


def _inside(text: str, node: syntax.Expr, optional: bool) -> Type:
    inside, was_optional = unwrap_optional(node.type)
    if optional and not was_optional:
        fail(text, node.at, f"expected type 'optional_type({inside})' but found '{inside}'")
    return inside if optional else node.type


def _same(text: str, types: list[tuple[syntax.Expr, Type]]) -> None:
    for node, found in types[1:]:
        if found != types[0][1]:
            fail(text, node.at, f"expected type '{types[0][1]}' but found '{found}'")


def _literal(text: str, call: syntax.Call, literal: syntax.Literal) -> None:
    try:
        if call.function == "matches" and isinstance(literal.value, str):
            compile_pattern(literal.value)
        elif call.function in ("duration", "timestamp") and len(call.overloads) == 1:
            call.overloads[0].run(literal.value)
    except EvalError:
        fail(text, literal.at, f"invalid {call.function} argument")


def _format(text: str, call: syntax.Call) -> None:
    """Check a constant format against the types of its arguments, if they are written out."""
    if not isinstance(call.target, syntax.Literal) or not isinstance(call.arguments[0], syntax.ListLiteral):
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


def _clause(text: str, argument: syntax.Expr, letter: str) -> None:
    if argument.type.name != "dyn" and argument.type.name not in CLAUSES[letter]:
        fail(text, argument.at, f"error during formatting: %{letter} cannot be used with {argument.type}")
    if letter == "s" and isinstance(argument, (syntax.ListLiteral, syntax.MapLiteral)):
        for child in argument.children():
            _clause(text, child, letter)
