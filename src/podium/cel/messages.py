"""Message literals: the wrappers of Protocol Buffers, durations and timestamps, written `name{field: value}`."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple

from podium.cel import types as t
from podium.cel.types import Type
from podium.cel.values import Duration, EvalError, Timestamp, Uint, Value

MESSAGE_COST = 40
_NANOS = 10**9
_KINDS: dict[Type, type] = {
    t.BOOL: bool,
    t.INT: int,
    t.UINT: Uint,
    t.DOUBLE: float,
    t.STRING: str,
    t.BYTES: bytes,
}


class Message(NamedTuple):
    """A kind of message: the types of its fields, and what a literal of it stands for."""

    type: Type
    fields: Mapping[str, Type]
    build: Callable[[Mapping[str, Value]], Value]


def _wrapper(wrapped: Type, default: Value, convert: Callable[[Value], Value] = lambda value: value) -> Message:
    """A message that holds one value, and stands for it."""
    return Message(wrapped, {"value": wrapped}, lambda fields: convert(fields.get("value", default)))


def _within(least: int, most: int, problem: str) -> Callable[[Value], Value]:
    def convert(value: Value) -> Value:
        if not least <= value <= most:
            raise EvalError(problem)
        return value

    return convert


def _single_precision(value: Value) -> Value:
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _nanos(fields: Mapping[str, Value]) -> int:
    seconds, nanos = fields.get("seconds", 0), fields.get("nanos", 0)
    return int(seconds) * _NANOS + int(_INT32(nanos))


_INT32 = _within(-(2**31), 2**31 - 1, "integer overflow")
_TIME_FIELDS = {"seconds": t.INT, "nanos": t.INT}
_PREFIX = "google.protobuf."

MESSAGES: dict[str, Message] = {
    f"{_PREFIX}{name}": message
    for name, message in {
        "BoolValue": _wrapper(t.BOOL, False),
        "BytesValue": _wrapper(t.BYTES, b""),
        "DoubleValue": _wrapper(t.DOUBLE, 0.0),
        "FloatValue": _wrapper(t.DOUBLE, 0.0, _single_precision),
        "Int32Value": _wrapper(t.INT, 0, _INT32),
        "Int64Value": _wrapper(t.INT, 0),
        "StringValue": _wrapper(t.STRING, ""),
        "UInt32Value": _wrapper(t.UINT, Uint(0), _within(0, 2**32 - 1, "unsigned integer overflow")),
        "UInt64Value": _wrapper(t.UINT, Uint(0)),
        "Duration": Message(t.DURATION, _TIME_FIELDS, lambda fields: Duration(_nanos(fields))),
        "Timestamp": Message(t.TIMESTAMP, _TIME_FIELDS, lambda fields: Timestamp(_nanos(fields))),
    }.items()
}
"""By their full names."""


def checked_field(name: str, field: str, value: Value) -> Value:
    """The value of a field, whose type may have been known only now; EvalError if it is another one."""
    if type(value) is not _KINDS[MESSAGES[name].fields[field]]:
        raise EvalError(f"field type conversion error for {name}.{field} value type: unsupported conversion")
    return value
