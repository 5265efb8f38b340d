"""Go's JSON conventions: what kube-scheduler's encoder writes and what its decoder accepts."""

from __future__ import annotations

import json
from functools import cache
from typing import NoReturn

import msgspec

from podium.objects import Object

_INT64 = range(-(2**63), 2**63)


class WireError(ValueError):
    """An answer that kube-scheduler could not have used; the message says why, on one line."""


def document(value: Object) -> dict[str, object]:
    """The object as JSON builtins, with `apiVersion` and `kind`.

    Unlike our own encoding this writes defaults such as `schedulerName`: the API server has filled them in
    by the time an extender sees the object. Quantities become strings, as the API writes them.
    """
    fields = _builtins(value)
    assert isinstance(fields, dict)
    return {"apiVersion": "v1", "kind": type(value).__name__, **fields}


def _builtins(value: object) -> object:
    if isinstance(value, msgspec.Struct):
        pairs = ((key, getattr(value, name), optional) for name, key, optional in _fields(type(value)))
        return {key: _builtins(item) for key, item, optional in pairs if item or (optional and item is not None)}
    if isinstance(value, dict):
        # The only numbers in maps of the API are quantities.
        return {key: str(item) if isinstance(item, int | float) else _builtins(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_builtins(item) for item in value]
    return value


@cache
def _fields(struct: type[msgspec.Struct]) -> tuple[tuple[str, str, bool], ...]:
    """Attribute, JSON name, and whether an empty value differs from an absent one, for each field."""
    return tuple((field.name, field.encode_name, field.default is None) for field in msgspec.structs.fields(struct))


def parse(body: bytes) -> object:
    """The first JSON value in the body; whatever follows it is not looked at, as in Go."""
    text = body.decode("utf-8", "replace").lstrip(" \t\r\n")
    if not text:
        raise WireError("the answer is empty")
    try:
        value, _ = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        raise WireError(f"the answer is not JSON: {one_line(text, 80)}") from None
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def one_line(text: str, limit: int) -> str:
    """The text on one printable line of at most `limit` characters."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


def field(value: object, name: str) -> object:
    """The named member of a JSON object, in any case; None when absent, or when the object is null."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise WireError(f"{_kind(value)} stands where an object with {name} should")
    folded = name.lower()
    # Spelled twice, the later one counts.
    return next((value[key] for key in reversed(value) if key.lower() == folded), None)


def string(value: object, name: str) -> str:
    """A JSON string; null is the empty string."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise WireError(f"{name} is {_kind(value)}, not a string")
    # Half a surrogate pair cannot be printed; Go puts the replacement character in its place.
    return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def integer(value: object, name: str) -> int:
    """A JSON integer that fits int64; null is zero."""
    if value is None:
        return 0
    if type(value) is not int or value not in _INT64:
        raise WireError(f"{name} is {_kind(value)}, not a 64-bit integer")
    return value


def sequence(value: object, name: str) -> list[object]:
    """A JSON array; null is the empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise WireError(f"{name} is {_kind(value)}, not an array")
    return value


def mapping(value: object, name: str) -> dict[str, object]:
    """A JSON object used as a map; null is the empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise WireError(f"{name} is {_kind(value)}, not an object")
    return {string(key, name): member for key, member in value.items()}


def _kind(value: object) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "an array"}
    return names.get(type(value), "an object")
