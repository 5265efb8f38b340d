"""Static types of CEL, and when a value of one may stand where another is asked for.

A type is a name with parameters: `list(string)`, `map(string, dyn)`. A type variable has a name that starts with `~`;
a `Substitution` says what each stands for. `dyn` and `any` agree with everything, which moves the check to run time.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Type(NamedTuple):
    """A type: its name and the types it is made of."""

    name: str
    parameters: tuple[Type, ...] = ()

    def __str__(self) -> str:
        if self.name == "wrapper":
            return f"wrapper({self.parameters[0]})"
        return f"{self.name}({', '.join(map(str, self.parameters))})" if self.parameters else self.name

    @property
    def is_variable(self) -> bool:
        return self.name.startswith("~")

    @property
    def is_dyn(self) -> bool:
        return self.name in ("dyn", "any")


BOOL, INT, UINT, DOUBLE = Type("bool"), Type("int"), Type("uint"), Type("double")
STRING, BYTES, NULL = Type("string"), Type("bytes"), Type("null_type")
DYN, ANY = Type("dyn"), Type("any")
DURATION, TIMESTAMP = Type("google.protobuf.Duration"), Type("google.protobuf.Timestamp")
QUANTITY, SEMVER = Type("kubernetes.Quantity"), Type("kubernetes.Semver")
URL, FORMAT, DEVICE = Type("kubernetes.URL"), Type("kubernetes.NamedFormat"), Type("kubernetes.DRADevice")
IP, CIDR = Type("net.IP"), Type("net.CIDR")

_SHORT = {"duration": DURATION, "timestamp": TIMESTAMP, "optional": Type("optional_type"), "null": NULL}
_SHORT |= {"quantity": QUANTITY, "semver": SEMVER, "URL": URL, "Format": FORMAT, "IP": IP, "CIDR": CIDR}

# Kinds that null may be assigned to.
_NULLABLE = frozenset({*(kind.name for kind in (DURATION, TIMESTAMP, QUANTITY, SEMVER, URL, FORMAT, DEVICE, IP, CIDR))})
_STRUCTS = frozenset({QUANTITY, SEMVER, URL, FORMAT, DEVICE})
_NULLABLE |= {"optional_type"}


def list_of(element: Type) -> Type:
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("optional_type", (value,))


def type_of_type(described: Type) -> Type:
    return Type("type", (described,))


def is_struct(t: Type) -> bool:
    """Whether fields are declared for the type, so that an unknown one is an error at compile time."""
    return t in _STRUCTS


def has_variable(t: Type) -> bool:
    """Whether the type depends on what it is used with."""
    return t.is_variable or t.is_dyn or any(map(has_variable, t.parameters))


def unwrap_optional(t: Type) -> tuple[Type, bool]:
    """The type inside an optional one, and whether it was optional."""
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
    """What each type variable stands for."""

    def resolve(self, t: Type, variables_are_dyn: bool = False) -> Type:
        """The type with its variables replaced; free ones stay, or become dyn."""
        if (known := self.get(t)) is not None:
            return self.resolve(known, variables_are_dyn)
        if t.is_variable:
            return DYN if variables_are_dyn else t
        if not t.parameters:
            return t
        return Type(t.name, tuple(self.resolve(each, variables_are_dyn) for each in t.parameters))

    def assign(self, given: tuple[Type, ...], wanted: tuple[Type, ...]) -> bool:
        """Whether every given type may stand for the wanted one; keeps what it learned only if so."""
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
            return named == NULL or named.name in _NULLABLE
        if one.name != other.name:
            return False
        if one.name == "type":
            return True
        return len(one.parameters) == len(other.parameters) and all(
            self._assignable(*pair) for pair in zip(one.parameters, other.parameters, strict=True)
        )

    def _bind(self, t: Type, variable: Type) -> tuple[bool, bool]:
        """Whether the variable may stand for `t`, and whether it already stood for something."""
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
