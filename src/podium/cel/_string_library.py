"""CEL's functions of text, lists, sets and optional values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from podium.cel import _types as types
from podium.cel._conversion_library import to_text
from podium.cel._regex import compile_pattern
from podium.cel._standard_library import checked_duration, checked_int, checked_uint, same
from podium.cel._types import Library
from podium.cel._values import (
    NONE,
    Duration,
    Empty,
    EvalError,
    Optional,
    Timestamp,
    Uint,
    Value,
    compare,
    contains,
    from_key,
    type_name,
)

_CLAUSE = re.compile(r"%(?:%|(?:\.([0-9]+))?(.))", re.DOTALL)
_PRECISION = 6
_MAX_PRECISION_DIGITS = 4

# The types that each clause accepts; a constant format is checked against them when it is compiled.
CLAUSES: dict[str, frozenset[str]] = {
    "d": frozenset({"int", "uint"}), "o": frozenset({"int", "uint"}), "b": frozenset({"int", "uint", "bool"}),
    "x": frozenset({"int", "uint", "string", "bytes"}), "X": frozenset({"int", "uint", "string", "bytes"}),
    "f": frozenset({"double", "string"}), "e": frozenset({"double", "string"}),
    "s": frozenset({
        "list", "map", "int", "uint", "double", "bool", "string", "bytes", "type", "null_type",
        "google.protobuf.Timestamp", "google.protobuf.Duration",
    }),
}  # fmt: skip
_SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def clauses(text: str) -> Iterator[tuple[str, str, int]]:
    """The parts of a format: text before a clause, the letter of the clause ('' at the end), and its precision."""
    at, before = 0, ""
    for match in _CLAUSE.finditer(text):
        before += text[at : match.start()]
        at = match.end()
        if match[0] == "%%":
            before += "%"
            continue
        if match[2] not in CLAUSES:
            raise EvalError(f'could not parse formatting clause: unrecognized formatting clause "{match[2]}"')
        if len(match[1] or "") > _MAX_PRECISION_DIGITS:
            raise EvalError("error while converting precision to integer")
        yield before, match[2], int(match[1]) if match[1] else _PRECISION
        before = ""
    rest = text[at:]
    if "%" in rest:
        raise EvalError("unexpected end of string")
    yield before + rest, "", 0


def format_text(text: str, arguments: list[Value]) -> str:
    """Replace the clauses of a format by the arguments."""
    parts: list[str] = []
    place = 0
    for before, letter, precision in clauses(text):
        parts.append(before)
        if letter:
            if place >= len(arguments):
                raise EvalError(f"index {place} out of range")
            parts.append(_formatted(arguments[place], letter, precision))
            place += 1
    return "".join(parts)


def _formatted(value: Value, letter: str, precision: int) -> str:
    if type_name(value) not in CLAUSES[letter]:
        raise EvalError(f"error during formatting: %{letter} cannot be used with {type_name(value)}")
    if letter == "s":
        return _shown(value)
    if letter in "fe":
        return _number(value, letter, precision)
    if isinstance(value, (str, bytes)):
        digits = (value.encode() if isinstance(value, str) else value).hex()
        return digits.upper() if letter == "X" else digits
    return format(int(value), letter)


def _number(value: Value, letter: str, precision: int) -> str:
    if isinstance(value, str):
        if value not in _SPECIAL:
            raise EvalError("fixed-point clause can only be used on doubles, was given string")
        value = _SPECIAL[value]
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "∞" if value > 0 else "-∞"
    if letter == "f":
        return format(value, f",.{precision}f")
    mantissa, _, exponent = format(value, f".{precision}e").partition("e")
    return f"{mantissa}\u202f\u00d7\u202f10{_superscript(int(exponent))}"


def _superscript(number: int) -> str:
    return f"{number:+03d}".translate(str.maketrans("0123456789+-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻"))


def _shown(value: Value) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{', '.join(_member(each) for each in value)}]"
    if isinstance(value, dict):
        pairs = sorted((_member(from_key(key)), _member(each)) for key, each in value.items())
        return f"{{{', '.join(f'{key}:{each}' for key, each in pairs)}}}"
    return value.name if type_name(value) == "type" else to_text(value)


def _member(value: Value) -> str:
    """Format an element of a list or map: texts in quotes, doubles with six digits."""
    kind = type_name(value)
    if kind not in CLAUSES["s"]:
        raise EvalError(f"no formatting function for {kind}")
    if kind == "string":
        return json.dumps(value, ensure_ascii=False)
    if kind == "bytes":
        return f"b{json.dumps(value.decode('utf-8', 'replace'), ensure_ascii=False)}"
    if kind == "double":
        return f"{value:.6f}"
    if kind == "type":
        return f"type({value.name})"
    if kind == "google.protobuf.Timestamp":
        return f'timestamp("{to_text(value)}")'
    if kind == "google.protobuf.Duration":
        return f'duration("{to_text(value)}")'
    return str(int(value)) if type(value) in (int, Uint) else _shown(value)


library = Library()
declare = library.declare

_QUOTED = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_QUOTED |= {"\\": "\\\\", '"': '\\"'}
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {lower: upper for upper, lower in _LOWER.items()}
# The characters that Go's unicode.IsSpace accepts.
_SPACES = (
    "\t\n\v\f\r \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


def _within(index: int, text: str) -> int:
    if 0 <= index <= len(text):
        return index
    raise EvalError(f"index out of range: {index}")


@declare("string.charAt(int): string")
def _char_at(text: str, index: int) -> str:
    return text[_within(index, text) :][:1]


@declare("string.lowerAscii(): string", cost=types.traversal())
def _lower(text: str) -> str:
    return text.translate(_LOWER)


@declare("string.upperAscii(): string", cost=types.traversal())
def _upper(text: str) -> str:
    return text.translate(_UPPER)


@declare("string.replace(string, string): string", cost=types.traversal(factor=2), small=False)
def _replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new)


@declare("string.replace(string, string, int): string", cost=types.traversal(factor=2), small=False)
def _replace_some(text: str, old: str, new: str, count: int) -> str:
    return text.replace(old, new, max(count, -1))


@declare("string.split(string): list(string)", cost=types.traversal(factor=2))
def _split(text: str, separator: str) -> list[Value]:
    return text.split(separator) if separator else list(text)


@declare("string.split(string, int): list(string)", cost=types.traversal(factor=2))
def _split_some(text: str, separator: str, count: int) -> list[Value]:
    if count == 0:
        return []
    if count < 0:
        return _split(text, separator)
    if separator:
        return [*text.split(separator, count - 1)]
    return list(text) if len(text) <= count else [*text[: count - 1], text[count - 1 :]]


@declare("string.substring(int): string", cost=types.traversal())
def _substring(text: str, start: int) -> str:
    return text[_within(start, text) :]


@declare("string.substring(int, int): string", cost=types.traversal())
def _substring_between(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvalError(f"invalid substring range. start: {start}, end: {end}")
    return text[_within(start, text) : _within(end, text)]


@declare("string.trim(): string", cost=types.traversal())
def _trim(text: str) -> str:
    return text.strip(_SPACES)


@declare("strings.quote(string): string", cost=types.traversal())
def _quote(text: str) -> str:
    return f'"{"".join(_QUOTED.get(each, each) for each in text)}"'


@declare("string.format(list(dyn)): string", cost=types.traversal(), small=False)
def _format(text: str, arguments: list[Value]) -> str:
    return format_text(text, arguments)


@declare("list(string).join(): string", "list(string).join(string): string", cost=types.joined, small=False)
def _join(texts: list[Value], separator: str = "") -> str:
    if any(type(each) is not str for each in texts):
        raise EvalError("join: invalid input")
    return separator.join(texts)


@declare("string.find(string): string", cost=types.pattern)
def _find(text: str, pattern: str) -> str:
    span = compile_pattern(pattern).find(text)
    return text[span[0] : span[1]] if span else ""


@declare("string.findAll(string): list(string)", cost=types.pattern)
@declare("string.findAll(string, int): list(string)", cost=types.pattern)
def _find_all(text: str, pattern: str, limit: int = -1) -> list[Value]:
    return [*compile_pattern(pattern).find_all(text, limit)]


_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_ZEROS: dict[str, Value] = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}


def _for_each(template: str) -> list[str]:
    return [template.replace("T", kind) for kind in _COMPARABLE]


@declare(*_for_each("list(T).isSorted(): bool"), cost=types.deep)
def _is_sorted(elements: list[Value]) -> bool:
    return all(_order(one, other) <= 0 for one, other in pairwise(elements))


def _order(one: Value, other: Value) -> int:
    """Compare two elements; 0 if they have no order, as in Kubernetes."""
    try:
        return compare(one, other)
    except EvalError:
        return 0


def _sum(kind: str) -> Callable[[list[Value]], Value]:
    def run(elements: list[Value]) -> Value:
        total = _ZEROS[kind]
        for each in elements:
            if type(each) is not type(total):
                raise EvalError("no such overload")
            if kind == "duration":
                total = checked_duration(total.nanos + each.nanos)
            elif kind == "double":
                total += each
            else:
                total = (checked_int if kind == "int" else checked_uint)(int(total) + int(each))
        return total

    return run


for _kind in _ZEROS:
    declare(f"list({_kind}).sum(): {_kind}", cost=types.deep)(_sum(_kind))


def _extreme(name: str, sign: int) -> None:
    def run(elements: list[Value]) -> Value:
        if not elements:
            raise EvalError(f"{name} called on empty list")
        best = elements[0]
        for each in elements[1:]:
            if _order(best, each) == sign:
                best = each
        return best

    declare(*(f"list({kind}).{name}(): {kind}" for kind in _COMPARABLE), cost=types.deep)(run)


_extreme("min", 1)
_extreme("max", -1)


@declare("list(A).indexOf(A): int", cost=types.deep)
def _index_of(elements: list[Value], wanted: Value) -> int:
    return next((index for index, each in enumerate(elements) if same(each, wanted)), -1)


@declare("list(A).lastIndexOf(A): int", cost=types.deep)
def _last_index_of(elements: list[Value], wanted: Value) -> int:
    return next((index for index in reversed(range(len(elements))) if same(elements[index], wanted)), -1)


@declare("list(A).slice(int, int): list(A)", cost=types.made_list, small=False)
def _slice(elements: list[Value], start: int, end: int) -> list[Value]:
    if not 0 <= start <= end <= len(elements):
        raise EvalError(f"cannot slice({start}, {end}), list is length {len(elements)}")
    return elements[start:end]


@declare("list(list(A)).flatten(): list(A)", cost=types.flattened, small=False, dynamic=True)
@declare("list(dyn).flatten(int): list(dyn)", cost=types.flattened, small=False, dynamic=True)
def _flatten(elements: Value, depth: Value = 1) -> list[Value]:
    if type(elements) is not list or type(depth) is not int:
        raise EvalError("no such overload: flatten")
    if depth < 0:
        raise EvalError("level must be non-negative")
    flat: list[Value] = []
    for each in elements:
        flat += _flatten(each, depth - 1) if type(each) is list and depth else [each]
    return flat


def sort_by(elements: list[Value], keys: list[Value]) -> list[Value]:
    """Sort elements by their keys, which must be of one type that has an order."""
    if len(elements) != len(keys):
        raise EvalError("expected a list of the same size as the associated keys list")
    if not elements:
        return elements
    if type_name(keys[0]) not in {"int", "uint", "double", "bool", "string", "bytes"} and not _is_time(keys[0]):
        raise EvalError("list elements must be comparable")
    if len({type(key) for key in keys}) > 1:
        raise EvalError("list elements must have the same type")
    return [elements[index] for index in sorted(range(len(keys)), key=keys.__getitem__)]


def _is_time(value: Value) -> bool:
    return type_name(value) in ("google.protobuf.Duration", "google.protobuf.Timestamp")


@declare(*_for_each("list(T).sort(): list(T)"), cost=types.ordered(), small=False)
def _sort(elements: list[Value]) -> list[Value]:
    return sort_by(elements, elements)


declare(*_for_each("list(A).@sortByAssociatedKeys(list(T)): list(A)"), cost=types.ordered(1), small=False)(sort_by)


@declare("list(A).reverse(): list(A)", cost=types.made_list, small=False)
def _reverse(elements: list[Value]) -> list[Value]:
    return elements[::-1]


@declare("list(A).distinct(): list(A)", cost=types.ordered(), small=False)
def _distinct(elements: list[Value]) -> list[Value]:
    unique: list[Value] = []
    for each in elements:
        if not any(same(each, other) for other in unique):
            unique.append(each)
    return unique


@declare("sets.contains(list(A), list(A)): bool", cost=types.sets(1), small=False)
def _set_contains(elements: list[Value], others: list[Value]) -> bool:
    return all(contains(elements, each) for each in others)


@declare("sets.equivalent(list(A), list(A)): bool", cost=types.sets(2), small=False)
def _set_equivalent(one: list[Value], other: list[Value]) -> bool:
    return _set_contains(one, other) and _set_contains(other, one)


@declare("sets.intersects(list(A), list(A)): bool", cost=types.sets(1), small=False)
def _set_intersects(one: list[Value], other: list[Value]) -> bool:
    return any(contains(other, each) for each in one)


@declare("optional.of(A): optional(A)")
def _of(value: Value) -> Optional:
    return Optional(True, value)


@declare("optional.none(): optional(A)")
def _none() -> Optional:
    return NONE


@declare("optional.ofNonZeroValue(A): optional(A)")
def _of_non_zero(value: Value) -> Optional:
    zero = not value if isinstance(value, (bool, int, float, str, bytes, list, dict, Empty)) or value is None else False
    if type(value) in (Duration, Timestamp):
        zero = _is_zero_time(value)
    if type(value) is Optional:
        zero = not value.present or not _of_non_zero(value.value).present
    return NONE if zero else Optional(True, value)


def _is_zero_time(value: Duration | Timestamp) -> bool:
    """Whether a value is Go's zero: no duration, or the first moment of year 1."""
    return value.nanos == (0 if type(value) is Duration else -62_135_596_800 * 10**9)


@declare("optional(A).value(): A")
def _value(optional: Optional) -> Value:
    if not optional.present:
        raise EvalError("optional.none() dereference")
    return optional.value


@declare("optional(A).hasValue(): bool")
def _has_value(optional: Optional) -> bool:
    return optional.present


@declare("optional(A).or(optional(A)): optional(A)", "optional(A).orValue(A): A")
def _or(*_arguments: Value) -> Value:
    raise AssertionError("the planner evaluates the alternative only where it is needed")


@declare("list(A).first(): optional(A)")
def _first(elements: list[Value]) -> Optional:
    return Optional(True, elements[0]) if elements else NONE


@declare("list(A).last(): optional(A)")
def _last(elements: list[Value]) -> Optional:
    return Optional(True, elements[-1]) if elements else NONE


@declare("optional.unwrap(list(optional(A))): list(A)", "list(optional(A)).unwrapOpt(): list(A)")
def _unwrap(elements: list[Value]) -> list[Value]:
    if any(type(each) is not Optional for each in elements):
        raise EvalError("value is not optional")
    return [each.value for each in elements if each.present]
