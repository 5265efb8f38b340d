"""What an unquoted YAML scalar means to Kubernetes: Go's YAML rules, then JSON's.

kubectl reads YAML with Go's yaml.v2 and turns it into JSON. Its rules are neither YAML 1.1 nor 1.2: `yes` is a
boolean, `010` is eight, `1:30` and dates are strings.
"""

from __future__ import annotations

import re

Scalar = str | int | float | bool | None

_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
}
_NUMBER_STARTS = frozenset("+-.0123456789")
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_BASED = re.compile(r"([-+]?)0(?:[xX]([0-9a-fA-F]+)|[bB]([01]+)|[oO]?([0-7]+))")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_MIN_INT64, _MAX_UINT64 = -(2**63), 2**64 - 1

# Go writes floats below this without an exponent, so JSON readers see an integer.
_INTEGRAL_FLOAT_LIMIT = 1e21


def resolve_scalar(text: str) -> Scalar:
    """The value of an unquoted scalar; NaN and the infinities come back as floats, which JSON cannot hold."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    # Underscores group digits, except in a number that starts with its decimal point.
    plain = text if text[0] == "." else text.replace("_", "")
    integer = _integer(plain)
    if integer is not None:
        return integer
    if _FLOAT.fullmatch(plain):
        return _json_number(float(plain), text)
    return text


def key_text(key: Scalar) -> str | None:
    """A map key as JSON spells it; None for a key that JSON cannot have."""
    match key:
        case str():
            return key
        case bool():
            return "true" if key else "false"
        case int():
            return str(key)
        case float():
            return f"{key:g}"
    return None


def _integer(plain: str) -> int | None:
    """The integer that Go reads with a base prefix, if it fits 64 bits."""
    if _DECIMAL.fullmatch(plain):
        number = int(plain)
    elif based := _BASED.fullmatch(plain):
        sign, hexadecimal, binary, octal = based.groups()
        number = int(hexadecimal, 16) if hexadecimal else int(binary, 2) if binary else int(octal, 8)
        number = -number if sign == "-" else number
    else:
        return None
    return number if _MIN_INT64 <= number <= _MAX_UINT64 else None


def _json_number(number: float, text: str) -> int | float | str:
    if number in (float("inf"), float("-inf")):
        return text  # Go refuses a number out of range and keeps the text.
    return int(number) if number.is_integer() and abs(number) < _INTEGRAL_FLOAT_LIMIT else number
