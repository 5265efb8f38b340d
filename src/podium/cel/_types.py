"""The static types of CEL, and the declarations of functions: signature, implementation and cost of a call."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import ceil
from typing import NamedTuple, TypeVar

from podium.cel._values import Cidr, Ip, NamedFormat, Optional, QuantityValue, Semver, Url, Value


class Type(NamedTuple):
    """A type: its name and its type parameters."""

    name: str
    parameters: tuple[Type, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})" if self.parameters else self.name

    @property
    def is_variable(self) -> bool:
        return self.name.startswith("~")

    @property
    def is_dyn(self) -> bool:
        return self.name in ("dyn", "any")


class Wrapper(Type):
    """A type that also allows null; cel-go otherwise treats it as the same type, so it compares equal to it."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"wrapper({self.name})"


BOOL, INT, UINT, DOUBLE = Type("bool"), Type("int"), Type("uint"), Type("double")
STRING, BYTES, NULL = Type("string"), Type("bytes"), Type("null_type")
DYN, ANY = Type("dyn"), Type("any")
DURATION, TIMESTAMP = Type("google.protobuf.Duration"), Type("google.protobuf.Timestamp")
QUANTITY, SEMVER = Type("kubernetes.Quantity"), Type("kubernetes.Semver")
URL, FORMAT, DEVICE = Type("kubernetes.URL"), Type("kubernetes.NamedFormat"), Type("kubernetes.DRADevice")
IP, CIDR, EMPTY = Type("net.IP"), Type("net.CIDR"), Type("google.protobuf.Empty")

_SHORT = {"duration": DURATION, "timestamp": TIMESTAMP, "optional": Type("optional_type"), "null": NULL}
_SHORT |= {"quantity": QUANTITY, "semver": SEMVER, "URL": URL, "Format": FORMAT, "IP": IP, "CIDR": CIDR}

# Kinds that null may be assigned to.
_STRUCTS = frozenset({QUANTITY, SEMVER, URL, FORMAT, DEVICE, EMPTY})
_NULLABLE = frozenset({*(kind.name for kind in (DURATION, TIMESTAMP, IP, CIDR, *_STRUCTS)), "optional_type"})


def list_of(element: Type) -> Type:
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("optional_type", (value,))


def type_of_type(described: Type) -> Type:
    return Type("type", (described,))


def is_struct(t: Type) -> bool:
    """Whether the type has declared fields, so that an unknown field is an error at compile time."""
    return t in _STRUCTS


def has_variable(t: Type) -> bool:
    """Whether the type contains a type variable."""
    return t.is_variable or t.is_dyn or any(map(has_variable, t.parameters))


def unwrap_optional(t: Type) -> tuple[Type, bool]:
    """The type inside an optional type, and whether it was optional."""
    return (t.parameters[0], True) if t.name == "optional_type" else (t, False)


class Signature(NamedTuple):
    """A declared overload: `list(A).slice(int, int): list(A)` is a member, `size(string): int` is not."""

    function: str
    member: bool
    arguments: tuple[Type, ...]
    result: Type


_TOKEN = re.compile(r"\s*([A-Za-z_][\w.]*|[(),:.])")


def parse_signature(text: str) -> Signature:
    """Read a signature. A single capital letter is a type variable; the receiver of a member is its first argument."""
    head, _, result = text.rpartition(": ")
    receiver, name, arguments = "", head.split("(")[0], head
    if match := re.fullmatch(r"(.+?)\.([@\w]+)(\(.*\))", head):
        opened = match[1].count("(") == match[1].count(")")
        if opened and match[1] not in _NAMESPACES:
            receiver, name, arguments = match[1], match[2], match[3]
    inside = arguments[arguments.index("(") + 1 : -1]
    types = [*([parse_type(receiver)] if receiver else []), *(_parse_list(inside) if inside else [])]
    return Signature(name, bool(receiver), tuple(types), parse_type(result))


_NAMESPACES = frozenset({"optional", "sets", "lists", "strings", "format", "ip", "cel"})


def parse_type(text: str) -> Type:
    """The type written as in a signature."""
    (parsed,) = _parse_list(text)
    return parsed


def _parse_list(text: str) -> list[Type]:
    tokens = _TOKEN.findall(text)
    types, rest = _read_types(tokens)
    assert not rest, text
    return types


def _read_types(tokens: list[str]) -> tuple[list[Type], list[str]]:
    types: list[Type] = []
    while tokens:
        name, *tokens = tokens
        parameters: list[Type] = []
        if tokens and tokens[0] == "(":
            parameters, tokens = _read_types(tokens[1:])
            tokens = tokens[1:]
        known = _SHORT.get(name, Type(f"~{name}" if len(name) == 1 else name))
        types.append(Type(known.name, tuple(parameters)))
        if not tokens or tokens[0] != ",":
            break
        tokens = tokens[1:]
    return types, tokens


class Substitution(dict[Type, Type]):
    """The types bound to type variables."""

    def resolve(self, t: Type, variables_are_dyn: bool = False) -> Type:
        """The type with its variables replaced; free variables stay, or become dyn."""
        if (known := self.get(t)) is not None:
            return self.resolve(known, variables_are_dyn)
        if t.is_variable:
            return DYN if variables_are_dyn else t
        if not t.parameters:
            return t
        return Type(t.name, tuple(self.resolve(each, variables_are_dyn) for each in t.parameters))

    def assign(self, given: tuple[Type, ...], wanted: tuple[Type, ...]) -> bool:
        """Whether every given type is assignable to the wanted one; new bindings are kept only if so."""
        trial = Substitution(self)
        if len(given) == len(wanted) and all(map(trial._assignable, given, wanted)):
            self.update(trial)
            return True
        return False

    def _assignable(self, one: Type, other: Type) -> bool:
        if other.is_variable:
            valid, bound = self._bind(one, other)
            if valid or bound:
                return valid
        if one.is_variable:
            return self._bind(other, one)[0]
        if one.is_dyn or other.is_dyn:
            return True
        if NULL in (one, other):
            named = other if one == NULL else one
            return named == NULL or isinstance(named, Wrapper) or named.name in _NULLABLE
        if one.name != other.name:
            return False
        if one.name == "type":
            return True
        return len(one.parameters) == len(other.parameters) and all(
            self._assignable(*pair) for pair in zip(one.parameters, other.parameters, strict=True)
        )

    def _bind(self, t: Type, variable: Type) -> tuple[bool, bool]:
        """Whether the variable can be bound to `t`, and whether it was bound already."""
        if t == variable:
            return True, True
        if (known := self.get(variable)) is not None:
            if t == known:
                return True, True
            if not self._assignable(t, known):
                return False, True
            general = more_general(t, known)
            if not self._occurs(variable, general):
                self[variable] = general
            return True, True
        if self._occurs(variable, t):
            return False, False
        self[variable] = t
        return True, False

    def _occurs(self, variable: Type, within: Type) -> bool:
        if variable == within:
            return True
        if within.is_variable:
            known = self.get(within)
            return known is not None and self._occurs(variable, known)
        return any(self._occurs(variable, each) for each in within.parameters)


def more_general(one: Type, other: Type) -> Type:
    """The less specific of two types that agree."""
    return one if _at_most_as_specific(one, other) else other


def _at_most_as_specific(one: Type, other: Type) -> bool:
    if one.is_dyn or one.is_variable:
        return True
    if other.is_dyn or other.is_variable or one.name != other.name:
        return False
    if one.name == "type":
        return True
    return len(one.parameters) == len(other.parameters) and all(
        _at_most_as_specific(*pair) for pair in zip(one.parameters, other.parameters, strict=True)
    )


Implementation = Callable[..., Value]
Run = TypeVar("Run", bound=Implementation)
# The cost of a call, given its arguments and its result, for the run-time cost limit.
Cost = Callable[[list[Value], Value], int]


class Overload(NamedTuple):
    """One signature of a function with its implementation.

    `small` means that the cost and the result are proportional to one argument, so that no expression of the length
    that the API admits comes near the cost limit by these calls alone. `dynamic` means that `run` checks its arguments
    itself; otherwise they are checked before it is called.
    """

    function: str
    member: bool
    arguments: tuple[Type, ...]
    result: Type
    run: Implementation
    cost: Cost
    small: bool
    dynamic: bool


def unit(_arguments: list[Value], _result: Value) -> int:
    """The cost of most functions."""
    return 1


class Library(dict[str, list[Overload]]):
    """Overloads by the name of their function, in the order they were declared."""

    def declare(
        self, *signatures: str, cost: Cost = unit, small: bool = True, dynamic: bool = False
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


_TRAVERSAL = 0.1
_PATTERN = 0.25
_SIZED = (str, bytes, list, dict)


def size(value: Value) -> int:
    """The size for cost: of a string, list or map; 1 for other values."""
    if isinstance(value, _SIZED):
        return len(value)
    if type(value) is Optional and value.present:
        return size(value.value)
    if type(value) is Ip:
        return 4 if value.address.version == 4 else 16
    return ceil(value.bits / 8) if type(value) is Cidr else 1


# Functions whose cost depends on their name only; other calls that may reach several overloads cost 1.
BY_NAME = frozenset({
    "isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes", "lowerAscii", "upperAscii", "substring",
    "trim", "replace", "split", "join", "find", "findAll", "containsIP", "containsCIDR", "isSemver", "semver",
    "validate",
})  # fmt: skip


def traversal(argument: int = 0, factor: int = 1) -> Cost:
    """A tenth of the size of an argument, times a factor."""
    return lambda given, _result: ceil(size(given[argument]) * factor * _TRAVERSAL)


def smaller(given: list[Value], _result: Value) -> int:
    """A comparison: a tenth of the smaller size."""
    return ceil(min(size(given[0]), size(given[1])) * _TRAVERSAL)


def both(given: list[Value], _result: Value) -> int:
    """A concatenation: a tenth of the sum of the sizes."""
    return ceil((size(given[0]) + size(given[1])) * _TRAVERSAL)


def product(given: list[Value], _result: Value) -> int:
    """A search: a tenth of one size times a tenth of the other."""
    return ceil(size(given[0]) * _TRAVERSAL) * ceil(size(given[1]) * _TRAVERSAL)


def pattern(given: list[Value], _result: Value) -> int:
    """A match with a regular expression."""
    return _pattern_cost(size(given[0]), size(given[1]))


def validation(given: list[Value], _result: Value) -> int:
    """A check of a format by name."""
    return _pattern_cost(size(given[1]), given[0].pattern_size) if type(given[0]) is NamedFormat else 1


def _pattern_cost(text: int, expression: int) -> int:
    return ceil((1.0 + text) * _TRAVERSAL) * ceil(expression * _PATTERN)


def elements(given: list[Value], _result: Value) -> int:
    """A search in a list: each element counts."""
    return size(given[1])


def deep(given: list[Value], _result: Value) -> int:
    """A walk through everything in the first argument."""
    return _walk(given[0])


def _walk(value: Value) -> int:
    if isinstance(value, (str, bytes)):
        return int(len(value) * _TRAVERSAL)
    if isinstance(value, list):
        return sum(map(_walk, value))
    if isinstance(value, dict):
        return sum(_walk(key) + _walk(item) for key, item in value.items())
    return 1


def joined(_given: list[Value], result: Value) -> int:
    """The size of the resulting string, twice."""
    return ceil(size(result) * 2 * _TRAVERSAL)


def sets(factor: int) -> Cost:
    """Each element of one list against each of the other."""
    return lambda given, _result: 1 + size(given[0]) * size(given[1]) * factor


def made_list(_given: list[Value], result: Value) -> int:
    """A new list: its size."""
    return size(result) + 11


def flattened(given: list[Value], _result: Value) -> int:
    """A new list: the size of the input times the depth."""
    depth = given[1] if len(given) == 2 and type(given[1]) is int else 1
    return size(given[0]) * depth + 11


def ordered(argument: int = 0) -> Cost:
    """A new list: the square of the size of an argument."""

    def cost(given: list[Value], _result: Value) -> int:
        found = given[argument] if type(given[argument]) is list else []
        factor = 2.1 if found and isinstance(found[0], (str, bytes)) else 2.0
        return int(len(found) * len(found) * factor) + 11

    return cost


def contained(text_argument: bool, extra: bool) -> Cost:
    """A network that contains an address, or a network with `extra`, given as a text or not."""

    def cost(given: list[Value], _result: Value) -> int:
        network = size(given[0])
        total = ceil(2 * network * _TRAVERSAL) + (ceil(network * _TRAVERSAL) + 1 if extra else 0)
        return total + (ceil(size(given[1]) * _TRAVERSAL) if text_argument else 0)

    return cost


def equality(given: list[Value], result: Value) -> int:
    """`==`: a comparison, or 1 for the types of Kubernetes."""
    return 1 if type(given[0]) in _KUBERNETES else smaller(given, result)


_KUBERNETES = frozenset({QuantityValue, Semver, Ip, Cidr, Url, NamedFormat})
