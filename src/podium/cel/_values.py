"""The values of an expression at run time, their types, and how they are compared.

bool, int, float, str, bytes, None, list and dict represent themselves; `Uint` distinguishes uint from int. A map with
bool keys holds `BOOL_KEYS` in their place, because Python treats True as 1 and CEL does not.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from podium.cel._types import Type

MIN_INT, MAX_INT, MAX_UINT = -(2**63), 2**63 - 1, 2**64 - 1

# A value of the language; the module's docstring lists the Python types.
Value = Any


class EvalError(Exception):
    """An error of an evaluation, which `||`, `&&` and the quantifiers may absorb."""


class Uint(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()


class Duration(NamedTuple):
    """A span of time in nanoseconds."""

    nanos: int


class Timestamp(NamedTuple):
    """A point in time: nanoseconds since 1970 in UTC."""

    nanos: int


class TypeValue(NamedTuple):
    """A type as a value, as returned by `type(x)`; equal types have equal names."""

    name: str


class QuantityValue(NamedTuple):
    """A quantity in nanos. `scale` is the power of ten of the int64 Kubernetes holds, if it holds one.

    `computed` marks the result of add and sub, which Kubernetes refuses on the right of `==`.
    """

    nanos: int
    scale: int | None
    computed: bool = False


class Ip(NamedTuple):
    """An IP address."""

    address: IPv4Address | IPv6Address


class Cidr(NamedTuple):
    """An address with a prefix length; host bits may be set."""

    address: IPv4Address | IPv6Address
    bits: int


class Url(NamedTuple):
    """A URL in its parts; `text` is how it prints."""

    text: str
    scheme: str
    host: str
    path: str
    query: str


class NamedFormat(NamedTuple):
    """A named format: a function that checks a text, and the size of its pattern, which determines the cost."""

    name: str
    problems: Callable[[str], list[str]]
    pattern_size: int


class Semver:
    """A semantic version; the build metadata does not count in comparisons."""

    __slots__ = ("core", "key", "text")

    def __init__(self, text: str, core: tuple[int, int, int], prerelease: tuple[int | str, ...]) -> None:
        self.text = text
        self.core = core
        # A version comes after all its pre-releases; numbers come before words.
        parts = tuple((0, part, "") if isinstance(part, int) else (1, 0, part) for part in prerelease)
        self.key = (core, not prerelease, parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Semver({self.text!r})"


class Optional:
    """A value that may be absent."""

    __slots__ = ("present", "value")

    def __init__(self, present: bool, value: Value = None) -> None:
        self.present = present
        self.value = value


NONE = Optional(False)


class BoolKey:
    """Represents a bool among the keys of a map."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value


BOOL_KEYS = {True: BoolKey(True), False: BoolKey(False)}


class Empty(NamedTuple):
    """The message without fields."""


EMPTY = Empty()


class DomainMap(dict[str, dict[str, Value]]):
    """Attributes or capacities by domain; an unknown domain is an empty map."""

    def __missing__(self, key: str) -> dict[str, Value]:
        return {}


_NAMES: dict[type, str] = {
    bool: "bool", int: "int", Uint: "uint", float: "double", str: "string", bytes: "bytes", type(None): "null_type",
    list: "list", dict: "map", DomainMap: "map", Optional: "optional_type", TypeValue: "type",
    Duration: "google.protobuf.Duration", Timestamp: "google.protobuf.Timestamp", QuantityValue: "kubernetes.Quantity",
    Semver: "kubernetes.Semver", Url: "kubernetes.URL", NamedFormat: "kubernetes.NamedFormat", Ip: "net.IP",
    Cidr: "net.CIDR", Empty: "google.protobuf.Empty",
}  # fmt: skip


def type_name(value: Value) -> str:
    """The name of a value's type."""
    return _NAMES[type(value)]


def fits(value: Value, wanted: Type) -> bool:
    """Whether a value fits an argument of the wanted type; a list or map is judged by its first element."""
    if wanted.is_dyn or wanted.is_variable:
        return True
    if _NAMES[type(value)] != wanted.name:
        return False
    if wanted.name == "list":
        return not value or fits(value[0], wanted.parameters[0])
    if wanted.name == "map" and value:
        first = next(iter(value))
        return fits(from_key(first), wanted.parameters[0]) and fits(value[first], wanted.parameters[1])
    return True


KEY_TYPES = frozenset({str, int, Uint, float, bool})


def to_key(value: Value) -> Value:
    """The key that represents a value in a map."""
    kind = type(value)
    if kind is str or kind is int or kind is Uint or kind is float:
        return value
    if kind is bool:
        return BOOL_KEYS[value]
    raise EvalError(f"unsupported key type: {type_name(value)}")


def from_key(key: Value) -> Value:
    """The value that a key of a map represents."""
    return key.value if type(key) is BoolKey else key


def equal(one: Value, other: Value) -> bool:
    """Whether two values are equal. Numbers are compared across types; values of other different types are unequal.

    Raises EvalError where Kubernetes does: for a quantity, version, address, URL or format compared with something
    else.
    """
    if one is None or other is None:
        return one is other
    return _EQUALITY[type(one)](one, other)


def contains(elements: list[Value], wanted: Value) -> bool:
    """Whether a list has an equal element; elements that cannot be compared with it are ignored."""
    for each in elements:
        try:
            if equal(wanted, each):
                return True
        except EvalError:
            continue
    return False


def compare(one: Value, other: Value) -> int:
    """-1, 0 or 1; raises EvalError for values that have no order."""
    kind, other_kind = type(one), type(other)
    if kind in _NUMBERS and other_kind in _NUMBERS:
        if one != one or other != other:
            raise EvalError("NaN values cannot be ordered")
    elif kind is not other_kind or kind not in _ORDERED:
        raise EvalError("no such overload")
    return -1 if one < other else int(one > other)


_NUMBERS = frozenset({int, Uint, float})
_ORDERED = frozenset({bool, str, bytes, Duration, Timestamp})


def _same(one: Value, other: Value) -> bool:
    return type(one) is type(other) and bool(one == other)


def _same_number(one: Value, other: Value) -> bool:
    return type(other) in _NUMBERS and bool(one == other)


def _same_kind_only(one: Value, other: Value) -> bool:
    if type(one) is not type(other) or (type(other) is QuantityValue and other.computed):
        raise EvalError("no such overload")
    if type(one) is QuantityValue:
        return bool(one.nanos == other.nanos)
    return bool((one.name == other.name) if type(one) is NamedFormat else (one == other))


def _not_unequal(one: Value, other: Value) -> bool:
    """Equality of elements: those that cannot be compared are not unequal."""
    try:
        return equal(one, other)
    except EvalError:
        return True


def _same_list(one: list[Value], other: Value) -> bool:
    return type(other) is list and len(one) == len(other) and all(map(_not_unequal, one, other))


def _same_map(one: dict[Value, Value], other: Value) -> bool:
    if not isinstance(other, dict) or len(one) != len(other):
        return False
    default = type(other) is DomainMap
    return all((default or key in other) and _not_unequal(value, other[key]) for key, value in one.items())


def _same_optional(one: Optional, other: Value) -> bool:
    if type(other) is not Optional or one.present != other.present:
        return False
    return not one.present or equal(one.value, other.value)


_EQUALITY: dict[type, Callable[[Any, Value], bool]] = {
    bool: _same, int: _same_number, Uint: _same_number, float: _same_number, str: _same, bytes: _same,
    list: _same_list, dict: _same_map, DomainMap: _same_map, Optional: _same_optional, TypeValue: _same,
    Duration: _same, Timestamp: _same, Empty: _same,
    QuantityValue: _same_kind_only, Semver: _same_kind_only, Url: _same_kind_only, NamedFormat: _same_kind_only,
    Ip: _same_kind_only, Cidr: _same_kind_only,
}  # fmt: skip
