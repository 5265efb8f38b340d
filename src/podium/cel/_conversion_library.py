"""CEL's conversions between types, and the calendar functions of timestamps and durations."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from podium.cel import _types as types
from podium.cel._standard_library import MAX_TIME, MIN_TIME, checked_int, checked_time, checked_uint
from podium.cel._types import Library
from podium.cel._values import (  # fmt: skip
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    Cidr,
    Duration,
    EvalError,
    Ip,
    Timestamp,
    Uint,
    Value,
)

library = Library()
declare = library.declare

_NANO = 10**9
_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 10**6, "s": _NANO, "m": 60 * _NANO, "h": 3600 * _NANO}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_FLOAT = re.compile(
    r"[+-]?(?:inf(?:inity)?|nan|(?:[0-9](?:_?[0-9])*\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)", re.IGNORECASE
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _cannot(kind: str, value: Value) -> EvalError:
    return EvalError(f"type conversion error: {value!r} is not a {kind}")


@declare("bool(bool): bool", "bool(string): bool")
def _bool(value: Value) -> bool:
    if type(value) is bool:
        return value
    if value in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if value in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise _cannot("bool", value)


@declare("bytes(bytes): bytes", cost=types.traversal())
@declare("bytes(string): bytes", cost=types.traversal())
def _bytes(value: str | bytes) -> bytes:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


@declare("double(double): double", "double(int): double", "double(string): double", "double(uint): double")
def _double(value: Value) -> float:
    if type(value) is str:
        if not _FLOAT.fullmatch(value) or "_" in value:
            raise _cannot("double", value)
        number = float(value)
        if number in (float("inf"), float("-inf")) and "n" not in value.lower():
            raise _cannot("double", value)
        return number
    return float(value)


def _parse_digits(text: str, pattern: str) -> int | None:
    """Parse a number; None if the text does not match the pattern or has more digits than 64 bits can hold."""
    match = re.fullmatch(pattern, text)
    if match is None or len(digits := match[2].lstrip("0")) > 20:
        return None
    return int(f"{match[1]}{digits or 0}")


@declare(*(f"int({kind}): int" for kind in ("int", "double", "duration", "string", "timestamp", "uint")))
def _int(value: Value) -> int:
    if type(value) is str:
        if (number := _parse_digits(value, r"([+-]?)([0-9]+)")) is None or not MIN_INT <= number <= MAX_INT:
            raise _cannot("int", value)
        return number
    if type(value) is float:
        if not MIN_INT < value < MAX_INT:
            raise EvalError("integer overflow")
        return int(value)
    if type(value) is Duration:
        return value.nanos
    if type(value) is Timestamp:
        return value.nanos // _NANO
    return checked_int(int(value))


@declare("uint(uint): uint", "uint(double): uint", "uint(int): uint", "uint(string): uint")
def _uint(value: Value) -> Uint:
    if type(value) is str:
        if (number := _parse_digits(value, r"()([0-9]+)")) is None or number > MAX_UINT:
            raise _cannot("uint", value)
        return Uint(number)
    if type(value) is float and not 0 <= value < MAX_UINT:
        raise EvalError("unsigned integer overflow")
    return checked_uint(int(value))


@declare(*(f"string({kind}): string" for kind in ("string", "bool")))
@declare("string(bytes): string", cost=types.traversal())
@declare(*(f"string({kind}): string" for kind in ("double", "duration", "int", "timestamp", "uint", "IP", "CIDR")))
def to_text(value: Value) -> str:
    """The text that string() returns for a value."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise EvalError("invalid UTF-8 in bytes, cannot convert to string") from None
        case float():
            return _shortest(value)
        case Duration():
            return f"{_plain(value.nanos / _NANO)}s"
        case Timestamp():
            return _rfc3339(value)
        case Ip():
            return str(value.address)
        case Cidr():
            return f"{value.address}/{value.bits}"
        case int():
            return str(int(value))
    raise EvalError("no such overload")


def _plain(number: float) -> str:
    text = format(Decimal(repr(number)), "f")
    return text.removesuffix(".0") if "." not in text or text.endswith(".0") else text.rstrip("0").rstrip(".")


def _shortest(number: float) -> str:
    """Format a double as Go's %g does: the shortest digits that parse back, with an exponent below -4 or from 6 on."""
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "+Inf" if number > 0 else "-Inf"
    sign = "-" if str(number)[0] == "-" else ""
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    leading = len(fraction) - len(fraction.lstrip("0"))
    power = int(exponent or 0) + (len(whole) - 1 if whole != "0" else -leading - 1)
    digits = (whole + fraction).strip("0")
    if not digits:
        return f"{sign}0"
    if -4 <= power < 6:
        return sign + _plain(abs(number))
    shown = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{sign}{shown}e{'-' if power < 0 else '+'}{abs(power):02d}"


@declare("duration(duration): duration", "duration(string): duration")
def _duration(value: Value) -> Duration:
    if type(value) is Duration:
        return value
    return _parse_duration(value)


def _parse_duration(text: str) -> Duration:
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return Duration(0)
    total, at = 0, 0
    while at < len(body):
        part = _PART.match(body, at)
        if part is None:
            raise _cannot("duration", text)
        total += int(Fraction(part[1] if part[1][-1] != "." else f"{part[1]}0") * _UNITS[part[2]])
        at = part.end()
    nanos = -total if text[:1] == "-" else total
    if not body or not MIN_INT <= nanos <= MAX_INT:
        raise _cannot("duration", text)
    return Duration(nanos)


@declare("timestamp(timestamp): timestamp", "timestamp(int): timestamp", "timestamp(string): timestamp")
def _timestamp(value: Value) -> Timestamp:
    if type(value) is Timestamp:
        return value
    if type(value) is int:
        if not MIN_TIME <= value <= MAX_TIME:
            raise EvalError("timestamp overflow")
        return Timestamp(value * _NANO)
    return _parse_timestamp(value)


def _parse_timestamp(text: str) -> Timestamp:
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise _cannot("timestamp", text)
    year, month, day, hour, minute, second = (int(match[index]) for index in range(1, 7))
    zone = match[8]
    hours, minutes = (0, 0) if zone == "Z" else (int(zone[1:3]), int(zone[4:6]))
    if hours > 24 or minutes > 60:
        raise _cannot("timestamp", text)
    try:
        moment = datetime(year or 1, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise _cannot("timestamp", text) from None
    seconds = int((moment - _EPOCH).total_seconds()) - (366 * 86_400 if not year else 0)
    offset = (hours * 60 + minutes) * 60 * (-1 if zone[0] == "-" else 1)
    return checked_time((seconds - offset) * _NANO + int(f"{match[7] or 0:<09}"[:9]))


def _moment(value: Timestamp) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=value.nanos // 1000)
    except OverflowError:
        raise EvalError("timestamp overflow") from None


def _rfc3339(value: Timestamp) -> str:
    moment = _moment(value)
    fraction = f".{value.nanos % _NANO:09d}".rstrip("0") if value.nanos % _NANO else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + f"{fraction}Z"


def _zone(name: str) -> tzinfo:
    """A time zone by its name in the IANA database, or as an offset such as -08:00."""
    if ":" in name:
        match = re.fullmatch(r"([+-]?)([0-9]{1,2}):([0-9]{1,2})", name)
        if match is None:
            raise EvalError(f"unknown time zone {name}")
        minutes = int(match[2]) * 60 + int(match[3])
        if minutes >= 24 * 60:
            raise EvalError(f"unknown time zone {name}")
        return timezone(timedelta(minutes=-minutes if match[1] == "-" else minutes))
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EvalError(f"unknown time zone {name}") from None


def _calendar(name: str, read: Callable[[datetime], int]) -> None:
    def run(value: Timestamp, zone: str = "UTC") -> int:
        try:
            return read(_moment(value).astimezone(_zone(zone)))
        except OverflowError:
            raise EvalError("timestamp overflow") from None

    declare(f"timestamp.{name}(): int", f"timestamp.{name}(string): int")(run)


_calendar("getFullYear", lambda moment: moment.year)
_calendar("getMonth", lambda moment: moment.month - 1)
_calendar("getDayOfYear", lambda moment: moment.timetuple().tm_yday - 1)
_calendar("getDayOfMonth", lambda moment: moment.day - 1)
_calendar("getDate", lambda moment: moment.day)
_calendar("getDayOfWeek", lambda moment: moment.isoweekday() % 7)
_calendar("getHours", lambda moment: moment.hour)
_calendar("getMinutes", lambda moment: moment.minute)
_calendar("getSeconds", lambda moment: moment.second)
_calendar("getMilliseconds", lambda moment: moment.microsecond // 1000)


def _span(name: str, unit: int) -> None:
    def run(value: Duration) -> int:
        whole = abs(value.nanos) // unit
        return whole if value.nanos >= 0 else -whole

    declare(f"duration.{name}(): int")(run)


_span("getHours", 3600 * _NANO)
_span("getMinutes", 60 * _NANO)
_span("getSeconds", _NANO)


@declare("duration.getMilliseconds(): int")
def _milliseconds(value: Duration) -> int:
    whole = abs(value.nanos) // 10**6
    return whole if value.nanos >= 0 else -whole
