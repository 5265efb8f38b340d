"""resource.Quantity, exact: parses `500m`, `1.5Gi` and `1e3`.

An amount is a `Fraction`, so sums and comparisons never lose anything; int64 appears only where Kubernetes turns an
amount into a number to schedule with (`value`, `milli_value`), with the same rounding and the same overflow.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import NoReturn

from podium.errors import QuantityError
from podium.model import Quantity, ResourceList

INT64 = range(-(2**63), 2**63)
"""The range of Go's int64."""
MAX_INT64 = INT64[-1]


def int64(number: int) -> int:
    """The number truncated to 64 bits: Go's arithmetic wraps around on overflow."""
    return number if -MAX_INT64 <= number <= MAX_INT64 else (number + 2**63) % 2**64 - 2**63


_MAX_BINARY = Fraction(MAX_INT64)

_DECIMAL_EXPONENTS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_EXPONENTS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIXES = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()}
_BINARY_SUFFIXES = {0: ""} | {exponent: suffix for suffix, exponent in _BINARY_EXPONENTS.items()}

_SHAPE = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")
_ADVICE = "write a number with an optional suffix, such as 500m, 2, 1.5Gi or 1e3"

# Far beyond anything meaningful; it bounds how large a number a few characters of input can create.
_MAX_EXPONENT = 1_000
_MAX_LENGTH = 1_000

_NANO = 10**9
_INT64_DIGITS = 18
_SINGLE_STEP_SCALES = frozenset({0, 1, 2, 3, 6, 9})


@lru_cache(maxsize=65_536, typed=True)
def parse_quantity(text: Quantity) -> Fraction:
    """The exact amount of a quantity.

    Amounts finer than nano are rounded away from zero to nano; a binary-suffixed amount is capped at 2^63-1, a decimal
    amount is not. A number means what Go reads from JSON: the shortest decimal that reads back as the same float.
    """
    if isinstance(text, str):
        return _parse(text.strip(), text)
    if isinstance(text, bool):
        _refuse(text)
    if isinstance(text, int):
        return Fraction(text)
    return _parse(repr(text), text)


def value(q: Quantity | Fraction) -> int:
    """The amount in whole units, rounded away from zero, as `Quantity.Value()` gives it."""
    return _scaled(q if isinstance(q, Fraction) else parse_quantity(q), 0)


def milli_value(q: Quantity | Fraction) -> int:
    """The amount in thousandths, rounded away from zero, as `Quantity.MilliValue()` gives it."""
    return _scaled(q if isinstance(q, Fraction) else parse_quantity(q), 3)


def format_quantity(amount: Fraction | int, binary: bool = False) -> str:
    """The canonical text of an amount: no fraction digits, the largest suffix that stays exact.

    `binary` asks for Ki, Mi, ...; as in Kubernetes it only applies to whole amounts of at least 1024. Finer than
    nano is rounded away from zero to nano. Beyond the largest suffix the number grows: `1000E`.
    """
    nanos = _away_from_zero(amount, _NANO)
    if nanos == 0:
        return "0"
    if binary and nanos % _NANO == 0 and abs(nanos) >= 1024 * _NANO:
        number, exponent = nanos // _NANO, 0
        while number % 1024 == 0 and exponent < 60:
            number, exponent = number // 1024, exponent + 10
        return f"{number}{_BINARY_SUFFIXES[exponent]}"
    number, exponent = nanos, -9
    while number % 1000 == 0 and exponent < 18:
        number, exponent = number // 1000, exponent + 3
    return f"{number}{_DECIMAL_SUFFIXES[exponent]}"


def canonical_quantity(q: Quantity) -> str:
    """A quantity as Kubernetes writes it back: `1024Mi` as `1Gi`, `0.5` as `500m`, `1000e0` as `1e3`."""
    amount, text = parse_quantity(q), str(q).strip()
    if not isinstance(q, str) or not _EXPONENT.search(text):
        return format_quantity(amount, binary=is_binary_quantity(q))
    decimal = format_quantity(amount)
    suffix = decimal.lstrip("-0123456789")
    exponent = _DECIMAL_EXPONENTS[suffix]
    return f"{decimal.removesuffix(suffix)}e{exponent}" if exponent else decimal


def is_binary_quantity(q: Quantity) -> bool:
    """Whether a quantity is written in Ki, Mi and so on."""
    return isinstance(q, str) and q.rstrip().endswith("i")


# A cluster has few distinct quantities; the bound is for input that is not a cluster.
_REMEMBERED = 100_000


class _Stored(dict[Quantity, Quantity]):
    """Quantity as written -> quantity as the API server stores it, mostly the same."""

    def __missing__(self, quantity: Quantity) -> Quantity:
        amount = parse_quantity(quantity)
        if amount < 0:
            raise QuantityError(f"{quantity!r} is negative; a quantity must be zero or more")
        millis = amount * 1000
        stored = quantity if millis.denominator == 1 else format_quantity(Fraction(ceil(millis), 1000))
        if len(self) < _REMEMBERED:
            self[quantity] = stored
        return stored


_stored = _Stored()


def check_quantity(quantity: Quantity) -> None:
    """QuantityError for a text that is not a quantity, or for a negative one."""
    _stored[quantity]


def stored_resources(resources: ResourceList) -> ResourceList:
    """The resource list as the API server stores it: amounts finer than a thousandth are rounded up.

    The same dict if nothing changes.
    """
    for quantity in resources.values():
        if _stored[quantity] != quantity:
            return {name: _stored[quantity] for name, quantity in resources.items()}
    return resources


def _parse(text: str, given: Quantity) -> Fraction:
    match = _SHAPE.fullmatch(text)
    if match is None or not text or len(text) > _MAX_LENGTH:
        _refuse(given)
    sign, whole, fraction, suffix = match.groups("")
    digits = whole + fraction
    if suffix in _BINARY_EXPONENTS:
        exponent = 0
        amount = min(Fraction(int(digits or "0") << _BINARY_EXPONENTS[suffix], 10 ** len(fraction)), _MAX_BINARY)
    else:
        exponent = _decimal_exponent(suffix, given)
        amount = int(digits or "0") * Fraction(10) ** (exponent - len(fraction))
    if not digits and (suffix in ("Pi", "Ei") or exponent < -9):
        # Kubernetes reads "Ki" and "-" as zero, but not where the suffix sends it to its big-number parser.
        _refuse(given)
    if _NANO % amount.denominator:
        amount = Fraction(_away_from_zero(amount, _NANO), _NANO)
    return -amount if sign == "-" else amount


def _decimal_exponent(suffix: str, given: Quantity) -> int:
    if (exponent := _DECIMAL_EXPONENTS.get(suffix)) is not None:
        return exponent
    if (match := _EXPONENT.fullmatch(suffix)) is None:
        _refuse(given)
    if abs(exponent := int(match[1])) > _MAX_EXPONENT:
        raise QuantityError(f"quantity {given!r} has an exponent beyond ±{_MAX_EXPONENT}; {_ADVICE}")
    return exponent


def _refuse(given: Quantity) -> NoReturn:
    shown = repr(given) if len(repr(given)) <= 80 else f"{repr(given)[:77]}..."
    raise QuantityError(f"{shown} is not a quantity; {_ADVICE}")


def _away_from_zero(amount: Fraction | int, factor: int) -> int:
    """`amount * factor`, rounded."""
    product, divisor = amount.numerator * factor, amount.denominator
    return -(-product // divisor) if product > 0 else product // divisor


def _scaled(amount: Fraction, scale: int) -> int:
    """`amount * 10**scale` as an int64, rounded away from zero."""
    scaled = _away_from_zero(amount, 10**scale)
    return scaled if -MAX_INT64 <= scaled <= MAX_INT64 else _overflowed(amount, scale, scaled)


def _overflowed(amount: Fraction, scale: int, scaled: int) -> int:
    """The value that Kubernetes gives an amount beyond int64: zero or the low 64 bits, never an error.

    It stores up to 18 digits and a power of ten separately, and multiplies them either in one unchecked step, which
    wraps, or ten by ten, which gives up with zero. Amounts with more digits always wrap. The power of ten is that of
    the canonical spelling, so `10E` is zero.
    """
    digits, exponent = amount.numerator * (_NANO // amount.denominator), -9
    while digits % 10 == 0:
        digits, exponent = digits // 10, exponent + 1
    if exponent > 0:
        digits, exponent = digits * 10 ** (exponent % 3), exponent - exponent % 3
    if len(str(abs(digits))) <= _INT64_DIGITS and exponent + scale not in _SINGLE_STEP_SCALES:
        return 0
    return int64(scaled)
