"""Reads a parsed document strictly: every field has a type, unknown fields are errors, and all errors are collected."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Final, TypeVar

from podium.model.meta import integer
from podium.model.quantity import INT64

T = TypeVar("T")

SECOND: Final = 1_000_000_000
"""Durations are whole nanoseconds."""

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # the micro sign
    "\u03bcs": 1_000,  # the Greek letter mu: Go reads both
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_MOST_FRACTION = 18
"""How many digits after the point matter: an hour has fewer than 10**13 nanoseconds."""
_TERM = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]+)")


def parse_duration(text: str) -> int:
    """The duration in nanoseconds; ValueError if Go would not read it. Only `0` needs no unit."""
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if unsigned == "0":
        return 0
    total, position = 0, 0
    while position < len(unsigned) or not unsigned:
        term = _TERM.match(unsigned, position)
        if term is None or not (term[1] or term[2]) or term[3] not in _UNITS:
            raise ValueError(f"invalid duration {text!r}")
        whole, fraction, unit = term[1] or "0", (term[2] or "")[:_MOST_FRACTION], _UNITS[term[3]]
        total += integer(whole) * unit + int(fraction or "0") * unit // 10 ** len(fraction)
        position = term.end()
    nanoseconds = -total if text[0] == "-" else total
    if nanoseconds not in INT64:
        raise ValueError(f"invalid duration {text!r}")
    return nanoseconds


LONGEST = 10 * 366 * 86_400
"""The latest time and the longest duration of a simulation: ten years, in seconds."""


def seconds_of(value: Any, noun: str = "duration", example: str = "300s") -> float:
    """Seconds, from a number of them or from a duration such as 1h30m.

    ValueError, with the end of a sentence that begins with the value, if it is neither, or not from 0 to ten years.
    """
    try:
        seconds = parse_duration(value) / SECOND if isinstance(value, str) else float(value)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(f"is not a {noun} such as {example} or 1h30m") from None
    if not 0 <= seconds <= LONGEST or isinstance(value, bool):
        raise ValueError(f"is not a {noun} from 0 on, up to ten years")
    return seconds


def quote(value: object) -> str:
    """`value` as JSON, for a message."""
    return json.dumps(value, default=str)


class Problems:
    """All problems found, each with its field path, in order."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self._paths: set[str] = set()

    def add(self, path: str, what: str) -> None:
        self._paths.add(path)
        self.errors.append(f"{path}: {what}" if path else what)

    def has(self, path: str) -> bool:
        """Whether there is a problem with a field."""
        return path in self._paths

    def unknown(self, path: str) -> None:
        self.errors.append(f"unknown field {quote(path)}")

    def wrong_type(self, path: str, wanted: str) -> None:
        # The value is not repeated: it may be a secret key in the wrong place.
        self.add(path, f"must be {wanted}")

    def invalid(self, path: str, value: object, why: str) -> None:
        self.add(path, f"Invalid value: {quote(value)}: {why}")

    def required(self, path: str, why: str = "must not be empty") -> None:
        self.add(path, f"Required value: {why}")

    def unsupported(self, path: str, value: object, supported: Iterable[str]) -> None:
        self.add(path, f"Unsupported value: {quote(value)}: supported values: {', '.join(map(quote, supported))}")

    def duplicate(self, path: str, value: object) -> None:
        self.add(path, f"Duplicate value: {quote(value)}")

    def forbidden(self, path: str, why: str) -> None:
        self.add(path, f"Forbidden: {why}")


class Fields:
    """One JSON object being read; leaving its `with` block reports the fields that were not read.

    Null means an absent field, as in Go; for a non-pointer duration it is an error, as in Go.
    """

    def __init__(self, value: object, path: str, problems: Problems) -> None:
        self.path = path
        self.problems = problems
        self._left: dict[str, object] = {}
        if isinstance(value, dict):
            self._left = {str(name): item for name, item in value.items()}
        elif value is not None:
            problems.wrong_type(path, "an object")

    def __enter__(self) -> Fields:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in self._left:
            self.problems.unknown(self._at(name))

    def _at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def take(self, name: str) -> object:
        """The raw field; None if it is absent."""
        return self._left.pop(name, None)

    def present(self, name: str) -> bool:
        """Whether the field exists and is not null."""
        return self._left.get(name) is not None

    def _optional(self, name: str, kind: type[T], wanted: str) -> T | None:
        """The field if it is of the kind; otherwise reports what was `wanted`."""
        value = self.take(name)
        if value is None or isinstance(value, kind):
            return value
        self.problems.wrong_type(self._at(name), wanted)
        return None

    def optional_string(self, name: str) -> str | None:
        return self._optional(name, str, "a string")

    def string(self, name: str) -> str:
        return self.optional_string(name) or ""

    def optional_boolean(self, name: str) -> bool | None:
        return self._optional(name, bool, "true or false")

    def boolean(self, name: str) -> bool:
        return self.optional_boolean(name) or False

    def optional_integer(self, name: str, bits: int = 32) -> int | None:
        """An integer that fits `bits`; YAML's `1e2` is one, since it reaches Go's decoder as 100."""
        value = self.take(name)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            return value
        self.problems.wrong_type(self._at(name), f"an integer of {bits} bits")
        return None

    def integer(self, name: str, default: int = 0, bits: int = 32) -> int:
        value = self.optional_integer(name, bits)
        return default if value is None else value

    def number(self, name: str) -> float:
        value = self.take(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        if value is not None:
            self.problems.wrong_type(self._at(name), "a number")
        return 0.0

    def optional_duration(self, name: str) -> int | None:
        """Nanoseconds from a string like `1m30s`."""
        value = self.take(name)
        if value is None:
            return None
        if isinstance(value, str):
            try:
                return parse_duration(value)
            except ValueError as error:
                self.problems.add(self._at(name), f"{error}: write it as in 5s, 100ms or 1m30s")
        else:
            self.problems.wrong_type(self._at(name), "a duration in quotes, such as 5s, 100ms or 1m30s")
        return None

    def duration(self, name: str) -> int:
        if name in self._left and self._left[name] is None:
            self._left[name] = ""
        return self.optional_duration(name) or 0

    def base64(self, name: str) -> bytes:
        """The bytes of a base64 string. Messages do not repeat the value, since it may be a key."""
        try:
            return base64.b64decode(self.string(name).replace("\n", "").replace("\r", ""), validate=True)
        except (binascii.Error, ValueError):
            self.problems.wrong_type(self._at(name), "base64")
            return b""

    def optional_list(self, name: str) -> list[object] | None:
        return self._optional(name, list, "a list")

    def strings(self, name: str) -> list[str]:
        texts = []
        for index, item in enumerate(self.optional_list(name) or []):
            if item is None or isinstance(item, str):
                texts.append(item or "")
            else:
                self.problems.wrong_type(f"{self._at(name)}[{index}]", "a string")
        return texts

    def string_map(self, name: str) -> dict[str, str]:
        inner = Fields(self.take(name), self._at(name), self.problems)
        return {key: inner.string(key) for key in list(inner._left)}

    def optional_child(self, name: str) -> Fields | None:
        value = self.take(name)
        return None if value is None else Fields(value, self._at(name), self.problems)

    def child(self, name: str) -> Fields:
        return Fields(self.take(name), self._at(name), self.problems)

    def children(self, name: str) -> list[Fields]:
        items = self.optional_list(name) or []
        return [Fields(item, f"{self._at(name)}[{index}]", self.problems) for index, item in enumerate(items)]
