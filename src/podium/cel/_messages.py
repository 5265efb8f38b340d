"""Message literals, written `name{field: value}`: the well-known messages of Protocol Buffers, most of which represent
a plain value.

Value, Struct and ListValue hold JSON values, so that numbers come back as double. Any holds the bytes of another
message, which are decoded when the literal is evaluated.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from podium.cel import _types as t
from podium.cel._conversion_library import to_text
from podium.cel._types import Type, Wrapper, list_of, map_of
from podium.cel._values import (
    EMPTY,
    MAX_INT,
    MIN_INT,
    Cidr,
    Duration,
    Empty,
    EvalError,
    Ip,
    Optional,
    Semver,
    Timestamp,
    Uint,
    Url,
    Value,
)

MESSAGE_COST = 40
_NANOS = 10**9
_MAX_JSON_INT = 2**53 - 1
_PREFIX = "google.protobuf."
_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}
_MAX_FIELD_NUMBER = 2**29 - 1


class Kind(NamedTuple):
    """How a field holds a value: its type, how it converts a given value, and how it is decoded from bytes."""

    type: Type
    convert: Callable[[Value], Value]
    wire: int
    read: Callable[[Any], Value]


class Field(NamedTuple):
    """A field of a message: its number in bytes, and how it holds its value."""

    number: int
    kind: Kind


class Message(NamedTuple):
    """A kind of message: its fields, and the value of a literal with some of them.

    `one_of`: it holds only one of its fields.
    """

    type: Type
    fields: Mapping[str, Field]
    build: Callable[[dict[str, Value]], Value]
    one_of: bool = False


def build_message(name: str, given: Mapping[str, Value]) -> Value:
    """The value of a literal. Raises EvalError for a field whose type is known only now and does not fit."""
    message = MESSAGES[name]
    converted: dict[str, Value] = {}
    for field, value in given.items():
        try:
            converted[field] = message.fields[field].kind.convert(value)
        except EvalError as error:
            raise EvalError(f"field type conversion error for {name}.{field} value type: {error}") from None
    return message.build(converted)


def _cannot(value: Value) -> EvalError:
    return EvalError(f"unsupported conversion of {type(value).__name__}")


def _inside(value: Value) -> Value:
    """The value inside an optional value; any other value itself."""
    if type(value) is not Optional:
        return value
    if not value.present:
        raise EvalError("optional.none() dereference")
    return _inside(value.value)


def _exactly(kind: type) -> Callable[[Value], Value]:
    def convert(value: Value) -> Value:
        value = _inside(value)
        if type(value) is not kind:
            raise _cannot(value)
        return value

    return convert


def _within(kind: type, least: int, most: int) -> Callable[[Value], Value]:
    exactly = _exactly(kind)

    def convert(value: Value) -> Value:
        value = exactly(value)
        if not least <= value <= most:
            raise EvalError("integer overflow")
        return value

    return convert


def _to_single(value: Value) -> Value:
    value = _exactly(float)(value)
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _to_string(value: Value) -> Value:
    """A string; versions, addresses and URLs are converted to one."""
    value = _inside(value)
    match value:
        case str():
            return value
        case Ip() | Cidr():
            return to_text(value)
        case Semver() | Url():
            return value.text
    raise _cannot(value)


def _to_bytes(value: Value) -> Value:
    value = _inside(value)
    if type(value) is list and all(type(each) is Uint and each < 256 for each in value):
        return bytes(value)
    return _exactly(bytes)(value)


def _to_null(value: Value) -> Value:
    """The only value of the enumeration NullValue, whatever the number."""
    _INT32.convert(value)


def _to_json(value: Value) -> Value:
    """A value converted to JSON."""
    value = _inside(value)
    match value:
        case None | bool() | float() | str():
            return value
        case int():
            return float(value) if abs(value) <= _MAX_JSON_INT else str(int(value))
        case bytes():
            return base64.b64encode(value).decode()
        case Duration() | Timestamp():
            return to_text(value)
        case list():
            return _to_json_list(value)
        case dict():
            return _to_json_object(value)
        case Empty():
            return {}
    raise _cannot(value)


def _to_json_list(value: Value) -> Value:
    if type(value) is not list:
        raise _cannot(value)
    return [_to_json(each) for each in value]


def _to_json_object(value: Value) -> Value:
    if not isinstance(value, dict) or any(type(key) is not str for key in value):
        raise _cannot(value)
    return {key: _to_json(each) for key, each in value.items()}


def _to_list_value(value: Value) -> Value:
    """A list as a ListValue message, which Go can also make of an empty map."""
    value = _inside(value)
    return [] if value == {} else _to_json_list(value)


def _to_struct_value(value: Value) -> Value:
    return _to_json_object(_inside(value))


def _signed(bits: int) -> Callable[[int], int]:
    """Reads a signed integer from the lowest bits of an unsigned one."""

    def read(number: int) -> int:
        number &= 2**bits - 1
        return number - 2**bits if number >> (bits - 1) else number

    return read


def _read_string(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise EvalError("string field contains invalid UTF-8") from None


def _read_message(name: str, data: bytes) -> Value:
    """The value of a message's bytes; raises EvalError for invalid bytes."""
    message = _MESSAGES[name]
    return message.build(_read_fields(message.fields, data, message.one_of))


def _read_entry(data: bytes) -> dict[str, Value]:
    """An entry of a map."""
    entry = _read_fields({"key": Field(1, _STRING), "value": Field(2, _JSON)}, data)
    return {entry.get("key", ""): entry.get("value")}


def _read_fields(fields: Mapping[str, Field], data: bytes, one_of: bool = False) -> dict[str, Value]:
    """The values of the fields in the bytes of a message; repeated fields add to lists and maps."""
    by_number = {(field.number, field.kind.wire): (name, field.kind.read) for name, field in fields.items()}
    given: dict[str, Value] = {}
    for number, wire, raw in _parts(data):
        if (number, wire) not in by_number:
            continue
        name, read = by_number[number, wire]
        before, value = given.pop(name, None), read(raw)
        if one_of:
            given.clear()
        match before, value:
            case list(), list():
                value = [*before, *value]
            case dict(), dict():
                value = {**before, **value}
        given[name] = value
    return given


def _parts(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """The fields in the bytes of a message: number, wire type, and the number or bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if not 1 <= number <= _MAX_FIELD_NUMBER or wire not in (_VARINT, _FIXED64, _DELIMITED, _FIXED32):
            raise EvalError("cannot parse invalid wire-format data")
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, wire, value
            continue
        size, at = (_SIZES[wire], at) if wire in _SIZES else _varint(data, at)
        if at + size > len(data):
            raise EvalError("unexpected EOF")
        yield number, wire, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, and the position after it."""
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise EvalError("unexpected EOF")
        number |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            break
    if data[at - 1] >= 0x80 or number >> 64:
        raise EvalError("variable length integer overflow")
    return number, at


_BOOL = Kind(t.BOOL, _exactly(bool), _VARINT, bool)
_BYTES = Kind(t.BYTES, _to_bytes, _DELIMITED, bytes)
_DOUBLE = Kind(t.DOUBLE, _exactly(float), _FIXED64, lambda data: struct.unpack("<d", data)[0])
_FLOAT = Kind(t.DOUBLE, _to_single, _FIXED32, lambda data: struct.unpack("<f", data)[0])
_INT32 = Kind(t.INT, _within(int, -(2**31), 2**31 - 1), _VARINT, _signed(32))
_INT64 = Kind(t.INT, _exactly(int), _VARINT, _signed(64))
_STRING = Kind(t.STRING, _to_string, _DELIMITED, _read_string)
_UINT32 = Kind(t.UINT, _within(Uint, 0, 2**32 - 1), _VARINT, lambda number: Uint(number & (2**32 - 1)))
_UINT64 = Kind(t.UINT, _exactly(Uint), _VARINT, Uint)
_NULL = Kind(t.INT, _to_null, _VARINT, lambda _number: None)
_JSON = Kind(t.DYN, _to_json, _DELIMITED, lambda data: _read_message("Value", data))
_JSON_LIST = list_of(t.DYN)
_JSON_OBJECT = map_of(t.STRING, t.DYN)
_VALUES = Kind(_JSON_LIST, _to_json_list, _DELIMITED, lambda data: [_JSON.read(data)])
_ENTRIES = Kind(_JSON_OBJECT, _to_json_object, _DELIMITED, _read_entry)
_LIST_VALUE = Kind(_JSON_LIST, _to_list_value, _DELIMITED, lambda data: _read_message("ListValue", data))
_STRUCT_VALUE = Kind(_JSON_OBJECT, _to_struct_value, _DELIMITED, lambda data: _read_message("Struct", data))
_TIME_FIELDS = {"seconds": Field(1, _INT64), "nanos": Field(2, _INT32)}


def _wrapper(kind: Kind, default: Value) -> Message:
    """A message that holds one value, and represents it."""
    return Message(Wrapper(kind.type.name), {"value": Field(1, kind)}, lambda given: given.get("value", default))


def _duration(given: Mapping[str, Value]) -> Duration:
    """A duration, limited to the longest one possible."""
    whole = int(given.get("seconds", 0)) * _NANOS
    held = max(MIN_INT, min(MAX_INT, whole))
    return Duration(held if held != whole else max(MIN_INT, min(MAX_INT, whole + given.get("nanos", 0))))


def _timestamp(given: Mapping[str, Value]) -> Timestamp:
    return Timestamp(int(given.get("seconds", 0)) * _NANOS + int(given.get("nanos", 0)))


def _any(given: Mapping[str, Value]) -> Value:
    """The value of the message inside, whose name is the last part of the type URL."""
    url = given.get("type_url", "")
    name = url.rpartition("/")[2]
    if name not in MESSAGES:
        raise EvalError(f"unsupported conversion to ref.Val: type_url {url!r}")
    return _read_message(name.removeprefix(_PREFIX), given.get("value", b""))


_MESSAGES = {
    "Any": Message(t.ANY, {"type_url": Field(1, _STRING), "value": Field(2, _BYTES)}, _any),
    "BoolValue": _wrapper(_BOOL, False),
    "BytesValue": _wrapper(_BYTES, b""),
    "DoubleValue": _wrapper(_DOUBLE, 0.0),
    "Duration": Message(t.DURATION, _TIME_FIELDS, _duration),
    "Empty": Message(t.EMPTY, {}, lambda _given: EMPTY),
    "FloatValue": _wrapper(_FLOAT, 0.0),
    "Int32Value": _wrapper(_INT32, 0),
    "Int64Value": _wrapper(_INT64, 0),
    "ListValue": Message(_JSON_LIST, {"values": Field(1, _VALUES)}, lambda given: given.get("values", [])),
    "StringValue": _wrapper(_STRING, ""),
    "Struct": Message(_JSON_OBJECT, {"fields": Field(1, _ENTRIES)}, lambda given: given.get("fields", {})),
    "Timestamp": Message(t.TIMESTAMP, _TIME_FIELDS, _timestamp),
    "UInt32Value": _wrapper(_UINT32, Uint(0)),
    "UInt64Value": _wrapper(_UINT64, Uint(0)),
    "Value": Message(
        t.DYN,
        {
            "null_value": Field(1, _NULL),
            "number_value": Field(2, _DOUBLE),
            "string_value": Field(3, _STRING),
            "bool_value": Field(4, _BOOL),
            "struct_value": Field(5, _STRUCT_VALUE),
            "list_value": Field(6, _LIST_VALUE),
        },
        lambda given: next(reversed(given.values()), None),
        one_of=True,
    ),
}
MESSAGES = {f"{_PREFIX}{name}": message for name, message in _MESSAGES.items()}
"""By their full names."""
