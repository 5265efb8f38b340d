"""Quantities and semantic versions."""

from __future__ import annotations

import math
import re
from functools import lru_cache

from podium.cel import cost
from podium.cel.functions.standard import checked_int
from podium.cel.overloads import Library
from podium.cel.values import MAX_INT, MAX_UINT, MIN_INT, Amount, EvalError, Semver
from podium.errors import QuantityError
from podium.model.quantity import parse_quantity

library = Library()
declare = library.declare

_NANO = 10**9
_SHAPE = re.compile(r"[+-]?0*([0-9]*)(?:\.([0-9]*))?(.*)", re.DOTALL)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@lru_cache(maxsize=65_536)
def to_amount(text: str | int | float) -> Amount:
    """The amount of a quantity as Kubernetes holds it; raises QuantityError."""
    amount = parse_quantity(text)
    nanos = amount.numerator * (_NANO // amount.denominator)
    return Amount(nanos, _scale(str(text), nanos))


def _scale(text: str, nanos: int) -> int | None:
    """The power of ten of the int64 that holds the quantity, or none where it is held as a big decimal."""
    match = _SHAPE.fullmatch(text)
    assert match is not None
    whole, fraction, suffix = match[1] or "0", match[2] or "", match[3]
    if suffix in _BINARY:
        fast = not fraction and 14 - len(whole) - int(_BINARY[suffix] * 3 / 10) >= 0
        return 0 if fast and MIN_INT <= nanos // _NANO <= MAX_INT else None
    exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    scale = exponent - len(fraction)
    return scale if len(whole) + len(fraction) <= 18 and scale >= -9 else None


@declare("quantity(string): quantity", cost=cost.traversal())
def _quantity(text: str) -> Amount:
    try:
        if text != text.strip():
            raise QuantityError(f"{text!r} is not a quantity")
        return to_amount(text)
    except QuantityError as error:
        raise EvalError(error.message) from None


@declare("isQuantity(string): bool", cost=cost.traversal())
def _is_quantity(text: str) -> bool:
    try:
        _quantity(text)
    except EvalError:
        return False
    return True


@declare("sign(quantity): int")
def _sign(amount: Amount) -> int:
    return (amount.nanos > 0) - (amount.nanos < 0)


@declare("quantity.isGreaterThan(quantity): bool")
def _is_greater(one: Amount, other: Amount) -> bool:
    return one.nanos > other.nanos


@declare("quantity.isLessThan(quantity): bool")
def _is_less(one: Amount, other: Amount) -> bool:
    return one.nanos < other.nanos


@declare("quantity.compareTo(quantity): int")
def _compare(one: Amount, other: Amount) -> int:
    return (one.nanos > other.nanos) - (one.nanos < other.nanos)


@declare("quantity.asApproximateFloat(): double")
def _approximate(amount: Amount) -> float:
    scale = -9 if amount.scale is None else amount.scale
    units = amount.nanos * 10**-scale // _NANO if scale < 0 else amount.nanos // _NANO // 10**scale
    try:
        return float(units) * 10.0**scale
    except OverflowError:
        return math.inf if amount.nanos > 0 else -math.inf


@declare("quantity.isInteger(): bool")
def _is_integer(amount: Amount) -> bool:
    return amount.scale is not None and amount.scale >= 0 and MIN_INT <= amount.nanos // _NANO <= MAX_INT


@declare("quantity.asInteger(): int")
def _as_integer(amount: Amount) -> int:
    if not _is_integer(amount):
        raise EvalError("cannot convert value to integer")
    return amount.nanos // _NANO


@declare("quantity.add(quantity): quantity")
def _add(one: Amount, other: Amount) -> Amount:
    nanos = one.nanos + other.nanos
    if one.scale is None or other.scale is None:
        return Amount(nanos, None, True)
    if not other.nanos or not one.nanos:
        return Amount(nanos, one.scale if not other.nanos else other.scale, True)
    scale = min(one.scale, other.scale)
    units = nanos * 10**-scale // _NANO if scale < 0 else nanos // _NANO // 10**scale
    return Amount(nanos, scale if MIN_INT <= units <= MAX_INT else None, True)


@declare("quantity.add(int): quantity")
def _add_int(one: Amount, number: int) -> Amount:
    return _add(one, Amount(number * _NANO, 0))


@declare("quantity.sub(quantity): quantity")
def _sub(one: Amount, other: Amount) -> Amount:
    return _add(one, Amount(-other.nanos, other.scale))


@declare("quantity.sub(int): quantity")
def _sub_int(one: Amount, number: int) -> Amount:
    return _add(one, Amount(-number * _NANO, 0))


# Longer than any the API admits, and a bound on the numbers read from one.
_MAX_VERSION = 4_000
_NUMBER = r"(?:0|[1-9][0-9]*)"
_SEMVER = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-([0-9A-Za-z.-]*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)


@lru_cache(maxsize=65_536)
def parse_semver(text: str) -> Semver:
    """A semantic version, strictly read; raises EvalError."""
    match = _SEMVER.fullmatch(text)
    if match is None:
        raise EvalError(f"{text!r} is not a semantic version")
    if len(text) > _MAX_VERSION:
        raise EvalError("the semantic version is too long")
    core = (int(match[1]), int(match[2]), int(match[3]))
    parts = [] if match[4] is None else match[4].split(".")
    prerelease = tuple(int(part) if part.isdigit() else part for part in parts)
    wrong = any(not part or (part.isdigit() and part[0] == "0" and part != "0") for part in parts)
    if wrong or any(isinstance(number, int) and number > MAX_UINT for number in (*core, *prerelease)):
        raise EvalError(f"{text!r} is not a semantic version")
    return Semver(text, core, prerelease)


def _normalized(text: str) -> str:
    """The version without a leading v and leading zeros, with the minor and patch numbers that are missing."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped and stripped[0] in "0123456789" else f"0{stripped}"
    if len(parts) < 3 and re.search("[+-]", parts[-1]):
        raise EvalError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][:3])


@declare("semver(string): semver", cost=cost.traversal())
def _semver(text: str) -> Semver:
    return parse_semver(text)


@declare("semver(string, bool): semver", cost=cost.traversal())
def _semver_normalized(text: str, normalize: bool) -> Semver:
    return parse_semver(_normalized(text) if normalize else text)


@declare("isSemver(string): bool", "isSemver(string, bool): bool", cost=cost.traversal())
def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _semver_normalized(text, normalize)
    except EvalError:
        return False
    return True


@declare("semver.isGreaterThan(semver): bool")
def _is_later(one: Semver, other: Semver) -> bool:
    return one.key > other.key


@declare("semver.isLessThan(semver): bool")
def _is_earlier(one: Semver, other: Semver) -> bool:
    return one.key < other.key


@declare("semver.compareTo(semver): int")
def _compare_versions(one: Semver, other: Semver) -> int:
    return (one.key > other.key) - (one.key < other.key)


@declare("semver.major(): int")
def _major(version: Semver) -> int:
    return checked_int(version.core[0])


@declare("semver.minor(): int")
def _minor(version: Semver) -> int:
    return checked_int(version.core[1])


@declare("semver.patch(): int")
def _patch(version: Semver) -> int:
    return checked_int(version.core[2])
