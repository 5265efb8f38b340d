"""Converts YAML text to plain values, document by document.

Built on the parser's events instead of PyYAML's constructor, which resolves scalars by other rules, accepts duplicate
keys, and creates an object for every node on the way.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterator
from io import BytesIO
from itertools import islice
from typing import Any

import yaml

from podium.errors import InputError

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

# Go writes floats below this limit without an exponent, so JSON readers see an integer.
_INTEGRAL_FLOAT_LIMIT = 1e21


def resolve_scalar(text: str) -> Scalar:
    """The value of an unquoted scalar; NaN and the infinities are returned as floats, which JSON cannot represent."""
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
    """A map key as JSON writes it; None for a key that JSON cannot have."""
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


_ACTION = re.compile(
    r"\{\{-?\s*(?:[.$/(]|(?:block|default|define|else|end|fail|if|include|lookup|printf|quote|range|required|template|"
    r"toYaml|tpl|with)\b).{0,80}?\}\}"
)
_LINES_BEFORE = 3
"""How many lines before an error may contain its cause."""


def unrendered(text: str) -> str | None:
    """The error for a text with an action of a Helm template in it, like `{{ .Values.name }}`; None without one."""
    found = _ACTION.search(text)
    return f"{found[0]} looks like an unrendered Helm template; run `helm template` first" if found else None


_TAG = "tag:yaml.org,2002:"
_TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "bool": (bool,), "null": (type(None),)}
# Kubernetes objects need a few dozen levels; the parser's time grows with the square of the depth.
_MAX_DEPTH = 1_000
_MAX_ALIASED = 16 << 20
"""How many bytes aliases may stand for in one document: a few lines of nested aliases would fill any memory."""
_BYTES_PER_VALUE = 16
"""What a value counts for besides its text."""
_NO_KEY = object()
_MERGE = object()


def yaml_documents(text: bytes | str, name: str) -> Iterator[object]:
    """Every document of a YAML stream; an empty document is None. Errors name `name`, the document and the line."""
    parser = yaml.CSafeLoader(text)
    number = 0
    try:
        while not parser.check_event(yaml.StreamEndEvent):
            event = parser.get_event()
            if isinstance(event, yaml.DocumentStartEvent):
                number += 1
                yield _Builder(parser).document()
    except _WrongDocumentError as error:
        raise _wrong(text, f"{name} document {number}", error.line, str(error)) from None
    except yaml.MarkedYAMLError as error:
        where, problem = error.problem_mark, f"{error.problem or error.context or 'not YAML'}; is it YAML?"
        raise _wrong(text, f"{name} document {max(number, 1)}", where.line if where else None, problem) from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        problem = getattr(error, "reason", "") or str(error).partition("\n")[0]
        raise InputError(f"cannot be read as YAML: {problem[:200]}", name) from None
    finally:
        parser.dispose()


class _WrongDocumentError(Exception):
    """YAML that Kubernetes cannot use, and its line, counted from 0."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.line = line


def _wrong(text: bytes | str, document: str, line: int | None, problem: str) -> InputError:
    if line is None:
        return InputError(problem, document)
    lines = BytesIO(text if isinstance(text, bytes) else text.encode("utf-8", "replace"))
    around = b"".join(islice(lines, max(line - _LINES_BEFORE, 0), line + 1))
    return InputError(unrendered(around.decode("utf-8", "replace")) or problem, f"{document} line {line + 1}")


class _Open:
    """A mapping or sequence that is still open."""

    __slots__ = ("anchor", "before", "explicit", "key", "target")

    def __init__(self, target: dict[str, object] | list[object], anchor: str | None, before: int) -> None:
        self.target = target
        self.anchor = anchor
        self.before = before
        """How many bytes of the document came before it."""
        self.key: object = _NO_KEY
        self.explicit: set[str] = set()


class _Builder:
    """Builds one document with a stack of its own, so that nesting cannot exhaust Python's."""

    def __init__(self, parser: Any) -> None:
        self.parser = parser
        self.anchors: dict[str, tuple[object, int]] = {}
        """The value of each anchor, and how many bytes it counts for."""
        self.size = 0
        self.aliased = 0
        self.open: list[_Open] = []
        self.result: object = None

    def document(self) -> object:
        get_event, scalar, alias = self.parser.get_event, yaml.ScalarEvent, yaml.AliasEvent
        while True:
            event = get_event()
            kind = type(event)
            if kind is scalar:
                self._scalar(event)
            elif kind is yaml.MappingStartEvent:
                self._start({}, event)
            elif kind is yaml.SequenceStartEvent:
                self._start([], event)
            elif kind is alias:
                if event.anchor not in self.anchors:
                    raise self._error(f"anchor {event.anchor!r} is unknown, or its value contains itself", event)
                value, size = self.anchors[event.anchor]
                self.aliased += size
                if self.aliased > _MAX_ALIASED:
                    raise self._error(f"its aliases stand for more than {_MAX_ALIASED >> 20} MiB", event)
                self.size += size
                self._add(value, event)
            elif kind is yaml.DocumentEndEvent:
                return self.result
            else:
                ended = self.open.pop()
                if ended.anchor:
                    self.anchors[ended.anchor] = ended.target, self.size - ended.before
                self._add(ended.target, event)

    def _start(self, target: dict[str, object] | list[object], event: Any) -> None:
        if len(self.open) == _MAX_DEPTH:
            raise self._error(f"nested deeper than {_MAX_DEPTH} levels", event)
        self.open.append(_Open(target, event.anchor, self.size))
        self.size += _BYTES_PER_VALUE

    def _scalar(self, event: Any) -> None:
        if event.tag is not None and event.tag != "!":
            value = self._tagged(event)
        elif not event.implicit[0]:
            value = event.value
        elif event.value == "<<" and self._expects_key():
            self.open[-1].key = _MERGE
            return
        else:
            value = resolve_scalar(event.value)
        size = _BYTES_PER_VALUE + len(event.value)
        self.size += size
        if event.anchor:
            self.anchors[event.anchor] = value, size
        self._add(value, event)

    def _tagged(self, event: Any) -> object:
        """A scalar with an explicit tag; a tag that YAML does not define leaves it a string."""
        name = event.tag.removeprefix(_TAG)
        if name == "binary":
            try:
                return base64.b64decode("".join(event.value.split()), validate=True).decode()
            except (binascii.Error, UnicodeDecodeError):
                raise self._error("!!binary value is not base64 text", event) from None
        if name not in _TYPES:
            return event.value
        value = resolve_scalar(event.value)
        if not isinstance(value, _TYPES[name]) or (isinstance(value, bool) and name != "bool"):
            raise self._error(f"{_short(event.value)} is not a !!{name}", event)
        return value

    def _expects_key(self) -> bool:
        return bool(self.open) and isinstance(self.open[-1].target, dict) and self.open[-1].key is _NO_KEY

    def _add(self, value: Any, event: Any) -> None:
        """Put a finished value where it belongs: as key, value, item, or the document itself."""
        if isinstance(value, float) and not math.isfinite(value):
            raise self._error("NaN and infinity are not allowed", event)
        if not self.open:
            self.result = value
            return
        holder = self.open[-1]
        target = holder.target
        if isinstance(target, list):
            target.append(value)
        elif holder.key is _NO_KEY:
            holder.key = self._key(value, holder, event)
        elif holder.key is _MERGE:
            self._merge(value, target, event)
            holder.key = _NO_KEY
        else:
            target[holder.key] = value  # type: ignore[index]
            holder.key = _NO_KEY

    def _key(self, value: Any, holder: _Open, event: Any) -> str:
        key = None if isinstance(value, dict | list) else key_text(value)
        if key is None:
            raise self._error("a map key must be a string, a number or a boolean", event)
        if key in holder.explicit:
            raise self._error(f"key {_short(key)} is set twice", event)
        holder.explicit.add(key)
        return key

    def _merge(self, value: Any, target: dict[str, object], event: Any) -> None:
        # Of several maps the first one wins, so it is written last.
        for each in reversed(value) if isinstance(value, list) else (value,):
            if not isinstance(each, dict):
                raise self._error("<< needs a map or a list of maps", event)
            target.update(each)

    def _error(self, problem: str, event: Any) -> _WrongDocumentError:
        return _WrongDocumentError(problem, event.start_mark.line)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
