"""`text.format(arguments)`: the clauses %s, %d, %f, %e, %b, %x, %X and %o."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from podium.cel.functions.conversions import to_text
from podium.cel.values import EvalError, Uint, Value, from_key, type_name

_CLAUSE = re.compile(r"%(?:%|(?:\.([0-9]+))?(.))", re.DOTALL)
_PRECISION = 6
_MAX_PRECISION_DIGITS = 4

# The types each clause takes; a constant format is checked against them when it is compiled.
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
    """The text with its clauses replaced by the arguments."""
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
    """An element of a list or map: texts in quotes, doubles with six digits."""
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
