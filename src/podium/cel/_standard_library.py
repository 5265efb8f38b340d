"""CEL's standard library: operators, size, text tests, type() and dyn(), and the differences between releases."""

from __future__ import annotations

import math
from collections.abc import Callable

from podium.cel import _types as types
from podium.cel._regex import compile_pattern
from podium.cel._types import Library
from podium.cel._values import (
    KEY_TYPES,
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    Duration,
    EvalError,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    compare,
    contains,
    equal,
    to_key,
    type_name,
)

library = Library()
declare = library.declare

MIN_TIME, MAX_TIME = -62_135_596_800, 253_402_300_799
_NANO = 10**9


def checked_int(number: int) -> int:
    """Return the number if it fits an int of 64 bits; raises EvalError otherwise."""
    if MIN_INT <= number <= MAX_INT:
        return number
    raise EvalError("integer overflow")


def checked_uint(number: int) -> Uint:
    """Return the number if it fits a uint of 64 bits; raises EvalError otherwise."""
    if 0 <= number <= MAX_UINT:
        return Uint(number)
    raise EvalError("unsigned integer overflow")


def checked_duration(nanos: int) -> Duration:
    """Return the duration if Go can represent it; raises EvalError otherwise."""
    if MIN_INT <= nanos <= MAX_INT:
        return Duration(nanos)
    raise EvalError("duration overflow")


def checked_time(nanos: int) -> Timestamp:
    """Return the timestamp if its year is from 1 to 9999; raises EvalError otherwise."""
    if MIN_TIME <= nanos // _NANO <= MAX_TIME:
        return Timestamp(nanos)
    raise EvalError("timestamp overflow")


# Logical operators; the planner implements them itself.
def _planned(*_arguments: Value) -> Value:
    raise AssertionError


declare("_&&_(bool, bool): bool", "_||_(bool, bool): bool", "_?_:_(bool, A, A): A")(_planned)
declare("@not_strictly_false(bool): bool")(_planned)
declare("_[_](list(A), int): A", "_[_](map(A, B), A): B")(_planned)
declare("_[_](optional(list(A)), int): optional(A)", "_[_](optional(map(A, B)), A): optional(B)")(_planned)
declare("_[?_](list(A), int): optional(A)", "_[?_](optional(list(A)), int): optional(A)")(_planned)
declare("_[?_](map(A, B), A): optional(B)", "_[?_](optional(map(A, B)), A): optional(B)")(_planned)
declare("_==_(A, A): bool", cost=types.equality)(_planned)
declare("_!=_(A, A): bool", cost=types.smaller)(_planned)


@declare("!_(bool): bool", dynamic=True)
def _not(value: Value) -> Value:
    if type(value) is not bool:
        raise EvalError("no such overload")
    return not value


_SCALARS = ("bool", "int", "uint", "double", "timestamp", "duration")
_MIXED = [(one, other) for one in ("int", "uint", "double") for other in ("int", "uint", "double") if one != other]


def _ordering(operator: str, accept: Callable[[int], bool]) -> None:
    def run(one: Value, other: Value) -> bool:
        if type(one) is type(other) is int:
            return accept((one > other) - (one < other))
        return accept(compare(one, other))

    pairs = [*((each, each) for each in _SCALARS), *_MIXED]
    declare(*(f"_{operator}_({one}, {other}): bool" for one, other in pairs), dynamic=True)(run)
    texts = (f"_{operator}_(string, string): bool", f"_{operator}_(bytes, bytes): bool")
    declare(*texts, cost=types.smaller, dynamic=True)(run)


_ordering("<", lambda order: order < 0)
_ordering("<=", lambda order: order <= 0)
_ordering(">", lambda order: order > 0)
_ordering(">=", lambda order: order >= 0)


def _divide(one: int, other: int) -> int:
    if other == 0:
        raise EvalError("division by zero")
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient


def _modulo(one: int, other: int) -> int:
    if other == 0:
        raise EvalError("modulus by zero")
    if one == MIN_INT and other == -1:
        raise EvalError("integer overflow")
    return one - other * _divide(one, other)


def _divide_double(one: float, other: float) -> float:
    if other:
        return one / other
    if not one or one != one:
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1.0, other)


_SAME: dict[str, dict[type, Callable[[Value, Value], Value]]] = {
    "+": {
        int: lambda a, b: checked_int(a + b), Uint: lambda a, b: checked_uint(int(a) + int(b)),
        float: lambda a, b: a + b, str: lambda a, b: a + b, bytes: lambda a, b: a + b, list: lambda a, b: a + b,
        Duration: lambda a, b: checked_duration(a.nanos + b.nanos),
    },
    "-": {
        int: lambda a, b: checked_int(a - b), Uint: lambda a, b: checked_uint(int(a) - int(b)),
        float: lambda a, b: a - b, Duration: lambda a, b: checked_duration(a.nanos - b.nanos),
        Timestamp: lambda a, b: checked_duration(a.nanos - b.nanos),
    },
    "*": {
        int: lambda a, b: checked_int(a * b), Uint: lambda a, b: checked_uint(int(a) * int(b)),
        float: lambda a, b: a * b,
    },
    "/": {
        int: lambda a, b: checked_int(_divide(a, b)), Uint: lambda a, b: Uint(_divide(int(a), int(b))),
        float: _divide_double,
    },
    "%": {int: _modulo, Uint: lambda a, b: Uint(_modulo(int(a), int(b)))},
}  # fmt: skip


def _shifted(operator: str, one: Value, other: Value) -> Value:
    """Add a duration to a time, in either order, or subtract one."""
    if operator == "+" and type(one) is Duration and type(other) is Timestamp:
        one, other = other, one
    if operator not in ("+", "-") or type(one) is not Timestamp or type(other) is not Duration:
        raise EvalError("no such overload")
    return checked_time(one.nanos + other.nanos if operator == "+" else one.nanos - other.nanos)


def _arithmetic(operator: str) -> Callable[[Value, Value], Value]:
    same = _SAME[operator]

    def run(one: Value, other: Value) -> Value:
        if type(one) is type(other) and type(one) in same:
            return same[type(one)](one, other)
        return _shifted(operator, one, other)

    return run


# The first matching type is taken for a value of unknown type: double before int.
_RESULTS = {
    "+": "bytes double duration timestamp int list(A) string uint",
    "-": "double duration int timestamp uint",
    "*": "double int uint",
    "/": "double int uint",
    "%": "int uint",
}


def _declare_arithmetic(operator: str, kinds: str) -> None:
    run = _arithmetic(operator)
    for kind in kinds.split():
        text = kind in ("bytes", "string")
        grows = text or kind == "list(A)"
        price = types.both if text else types.unit
        pairs = [f"{kind}, {kind}"]
        if kind == "timestamp":
            pairs = ["duration, timestamp", "timestamp, duration"] if operator == "+" else ["timestamp, duration"]
        for pair in pairs:
            signature = f"_{operator}_({pair}): {kind}"
            declare(signature, cost=price, small=not grows, dynamic=True)(run)
    if operator == "-":
        declare("_-_(timestamp, timestamp): duration", dynamic=True)(run)


for _operator, _kinds in _RESULTS.items():
    _declare_arithmetic(_operator, _kinds)


@declare("-_(double): double", "-_(int): int", dynamic=True)
def _negate(value: Value) -> Value:
    if type(value) is int:
        return checked_int(-value)
    if type(value) is float:
        return -value
    if type(value) is Duration:
        return checked_duration(-value.nanos)
    raise EvalError("no such overload")


def _in(wanted: Value, container: Value) -> bool:
    if type(container) is list:
        return contains(container, wanted)
    if isinstance(container, dict):
        return type(wanted) in KEY_TYPES and to_key(wanted) in container
    raise EvalError("no such overload")


declare("@in(A, list(A)): bool", cost=types.elements, dynamic=True)(_in)
declare("@in(A, map(A, B)): bool", dynamic=True)(_in)


@declare(
    *(f"size({each}): int" for each in ("bytes", "list(A)", "map(A, B)", "string")),
    *(f"{each}.size(): int" for each in ("bytes", "list(A)", "map(A, B)", "string")),
    dynamic=True,
)
def _size(value: Value) -> int:
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    raise EvalError("no such overload")


@declare("type(A): type(A)")
def _type(value: Value) -> TypeValue:
    return TypeValue(type_name(value))


@declare("dyn(A): dyn")
def _dyn(value: Value) -> Value:
    return value


@declare("string.contains(string): bool", cost=types.product)
def _contains(text: str, part: str) -> bool:
    return part in text


@declare("cel.@mapInsert(map(A, B), A, B): map(A, B)", "cel.@mapInsert(map(A, B), map(A, B)): map(A, B)", small=False)
def _map_insert(*_arguments: Value) -> Value:
    raise AssertionError("the planner inserts in place")


def same(one: Value, other: Value) -> bool:
    """Whether two values are equal; values that cannot be compared are different."""
    try:
        return equal(one, other)
    except EvalError:
        return False


# More elements than the cost limit allows; such a list is not created.
_MAX_RANGE = 1_000_000


def cel_library(newer: bool) -> Library:
    """The functions that differ between cel-go 0.26 and 0.29: the newer one checks more and counts other arguments."""
    library = Library()

    @library.declare("string.startsWith(string): bool", cost=types.traversal(1 if newer else 0))
    def _starts_with(text: str, prefix: str) -> bool:
        return text.startswith(prefix)

    @library.declare("string.endsWith(string): bool", cost=types.traversal(1 if newer else 0))
    def _ends_with(text: str, suffix: str) -> bool:
        return text.endswith(suffix)

    @library.declare("matches(string, string): bool", cost=types.pattern if newer else types.unit)
    @library.declare("string.matches(string): bool", cost=types.pattern)
    def _matches(text: str, pattern: str) -> bool:
        return compile_pattern(pattern).search(text)

    @library.declare("string.indexOf(string): int", "string.indexOf(string, int): int", cost=types.deep)
    def _index_of(text: str, part: str, offset: int = 0) -> int:
        _check_offset(part, offset)
        if part == "":
            return min(offset, len(text)) if newer else offset
        return text.find(part, offset)

    @library.declare("string.lastIndexOf(string): int", cost=types.deep)
    def _last_index_of(text: str, part: str) -> int:
        return text.rfind(part)

    @library.declare("string.lastIndexOf(string, int): int", cost=types.deep)
    def _last_index_before(text: str, part: str, offset: int) -> int:
        _check_offset(part, offset)
        if part == "":
            return min(offset, len(text)) if newer else offset
        return -1 if offset >= len(text) else text.rfind(part, 0, offset + len(part))

    def _check_offset(part: str, offset: int) -> None:
        if offset < 0 and (newer or part):
            raise EvalError(f"index out of range: {offset}")

    if not newer:

        @library.declare("duration(int): duration")
        def _duration(number: int) -> Value:
            # Declared so that expressions compile; never called.
            raise EvalError(f"type conversion error: {number} is not a duration")

    @library.declare("lists.range(int): list(int)", cost=types.made_list, small=False)
    def _range(count: int) -> list[Value]:
        if newer and count < 0:
            raise EvalError(f"lists.range: size must be non-negative, got {count}")
        if newer and count > _MAX_RANGE:
            raise EvalError(f"lists.range: size {count} exceeds maximum allowed ({_MAX_RANGE})")
        return [*range(min(count, _MAX_RANGE))]

    return library


def includes_library(limit: int) -> Library:
    """The library of `value.includes(element)`: whether a list has the element, or the value is equal to it.

    A list with more than `limit` elements is refused, if there is a limit.
    """
    library = Library()

    @library.declare("dyn.includes(dyn): bool", cost=types.unit if limit else types.deep)
    def _includes(value: Value, wanted: Value) -> bool:
        if type(value) is not list:
            return same(value, wanted)
        for index, each in enumerate(value):
            if limit and index >= limit:
                raise EvalError(f"'includes' function cannot be applied to lists longer than {limit} values")
            if same(each, wanted):
                return True
        return False

    return library
