"""Reads a YAML file as plain values with line numbers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, TypeGuard

import yaml

from podium.config.fields import seconds_of
from podium.errors import InputError
from podium.input_files import open_input
from podium.manifests import load_documents
from podium.manifests.files import GZIP_MAGIC, UTF_16_MARKS

Path = tuple[str | int, ...]
"""The keys and indices that lead to a value."""


DEEPEST = 1000
"""How many levels of lists and mappings are read."""


class LocatedValue(NamedTuple):
    """A value of a YAML text."""

    document: int
    """The number of its document, from 1."""
    path: Path
    line: int
    """The line of its key, as a value in block style begins on the next line; in a list, its own."""
    text: str | None
    """Its text, if it is a scalar without quotes."""


@dataclass(slots=True)
class _Around:
    """A list or a mapping that is being read."""

    is_mapping: bool
    step: str | int | None
    """The index or the key of the next value; None if a key comes next."""
    line: int = 0
    """The line of the key."""


def located_values(text: bytes) -> Iterator[LocatedValue]:
    """Every value of a YAML text, up to one that is nested too deeply to be read."""
    document, around = 0, list[_Around]()
    for event in yaml.parse(text, yaml.CSafeLoader):
        if isinstance(event, yaml.DocumentStartEvent):
            document += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            around.pop()
            _go_on(around)
        elif len(around) > DEEPEST:
            return
        elif isinstance(event, yaml.NodeEvent):
            assert event.start_mark is not None
            line, inner = event.start_mark.line + 1, around[-1] if around else None
            if inner is not None and inner.step is None:
                inner.step, inner.line = str(getattr(event, "value", "")), line
                continue
            path = tuple(each.step for each in around if each.step is not None)
            plain = event.value if isinstance(event, yaml.ScalarEvent) and event.implicit[0] else None
            yield LocatedValue(document, path, inner.line if inner and inner.is_mapping else line, plain)
            if isinstance(event, yaml.CollectionStartEvent):
                is_mapping = isinstance(event, yaml.MappingStartEvent)
                around.append(_Around(is_mapping, None if is_mapping else 0))
            else:
                _go_on(around)


def _go_on(around: list[_Around]) -> None:
    """Expect the next value of the innermost list, or the next key of the innermost mapping."""
    if around:
        step = around[-1].step
        around[-1].step = step + 1 if isinstance(step, int) else None


def line_of(path: Path, lines: Mapping[Path, int]) -> int:
    """The line of a value, or of the innermost one around it that has a line."""
    while path not in lines and path:
        path = path[:-1]
    return lines.get(path, 1)


_NO_NUMBER = re.compile(r"[-+]?\.(nan|NaN|NAN|inf|Inf|INF)")
_PATH = re.compile(r"(?:unknown field \")?((?:\.?[\w$/-]+|\[\d+\]|\['[^']*'\])+)(?::|\"| is | needs )")
_STEP = re.compile(r"\[(\d+)\]|\['([^']*)'\]|([\w$/-]+)")


def path_in(problem: str) -> Path:
    """The path that a problem begins with, as `spec.taints[0].key: is empty` does; empty if there is none."""
    begins = _PATH.match(problem)
    steps = _STEP.findall(begins[1]) if begins else ()
    return tuple(int(index) if index else quoted or name for index, quoted, name in steps)


def _placed(error: InputError, file: str) -> InputError:
    """An error about a text that is no YAML, with the line; the error itself if another thing is wrong."""
    if not os.path.isfile(file):
        return error
    with open_input(file) as opened:
        data = opened.read()
    if data.startswith((GZIP_MAGIC, *UTF_16_MARKS)):
        return error
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        return InputError("is not text: it has a zero byte", f"{file} line {line}")
    try:
        data.decode()
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        return InputError(f"is not UTF-8 text: {problem.reason}", f"{file} line {line}")
    with suppress(yaml.YAMLError):
        for value in located_values(data):
            if value.text and _NO_NUMBER.fullmatch(value.text):
                field = ".".join(map(str, value.path))
                return InputError(f"{field}: is {value.text}; it needs a number", f"{file} line {value.line}")
    return error


class LocatedDocument:
    """One document of a file, and the line of every value in it."""

    def __init__(self, file: str) -> None:
        if os.path.isdir(file):
            raise InputError("is a directory", file)
        try:
            documents = list(load_documents(file))
        except InputError as error:
            raise _placed(error, file) from None
        if len(documents) != 1:
            raise InputError(f"has {len(documents)} documents; it needs one", file)
        self.file = file
        self.value: object = documents[0][1]
        self._lines: dict[Path, int] = {}
        # Every file that can be read has line numbers, unless it is packed or comes from stdin.
        with suppress(OSError, yaml.YAMLError), open_input(file) as text:
            self._lines = {value.path: value.line for value in located_values(text.read())}

    def refuse(self, path: Path, problem: str) -> NoReturn:
        """Raise an InputError that names the file, the line and the field."""
        raise self.error(path, problem)

    def error(self, path: Path, problem: str) -> InputError:
        line = line_of((*path, *path_in(problem)), self._lines)
        field = ".".join(map(str, path))
        return InputError(f"{field}: {problem}" if field else problem, f"{self.file} line {line}")

    def section(self, path: Path = ()) -> Section:
        """The mapping at a path; an error if there is something else."""
        value: Any = self.value
        for key in path:
            value = value[key]
        if not isinstance(value, Mapping):
            self.refuse(path, f"is {_kind(value)}; it needs fields")
        return Section(self, path, value)


class Section:
    """A mapping of a document, read field by field. `done` refuses fields that were not read as unknown."""

    def __init__(self, document: LocatedDocument, path: Path, fields: Mapping[str, Any]) -> None:
        self.document, self.path, self.fields = document, path, fields
        self._known: list[str] = []

    def __contains__(self, field: str) -> bool:
        return self.fields.get(field) is not None

    def refuse(self, field: str, problem: str) -> NoReturn:
        self.document.refuse((*self.path, field) if field else self.path, problem)

    def raw(self, field: str) -> Any:
        """A field of any type; None if it is missing."""
        self._known.append(field)
        return self.fields.get(field)

    def text(self, field: str, default: str | None = None) -> str:
        value = self.raw(field)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or not value:
            self.refuse(field, "needs a text" if value is None else f"is {_kind(value)}; it needs a text")
        return value

    def one_of(self, field: str, allowed: tuple[str, ...], default: str | None = None) -> str:
        value = self.text(field, default)
        if value not in allowed:
            self.refuse(field, f"is {value!r}; use {', '.join(allowed)}")
        return value

    def number(self, field: str, default: float | None = None, *, least: float = float("-inf")) -> float:
        value = self.raw(field)
        if value is None and default is not None:
            return default
        if not is_number(value):
            self.refuse(field, "needs a number" if value is None else f"is {_kind(value)}; it needs a number")
        if value < least:
            self.refuse(field, f"is {value}; it needs {least:g} or more")
        return float(value)

    def whole(self, field: str, default: int | None = None, *, least: int = 0) -> int:
        value = self.number(field, default, least=least)
        if value != int(value):
            self.refuse(field, f"is {value}; it needs a whole number")
        return int(value)

    def duration(self, field: str, default: float = 0.0) -> float:
        """Seconds, from a text such as 10m or a number of seconds."""
        value = self.raw(field)
        if value is None:
            return default
        try:
            return seconds_of(value)
        except ValueError:
            self.refuse(field, f"is {value!r}; it needs a duration such as 10m or 90s, up to ten years")

    def truth(self, field: str, default: bool) -> bool:
        value = self.raw(field)
        if value is not None and not isinstance(value, bool):
            self.refuse(field, f"is {_kind(value)}; it needs true or false")
        return default if value is None else bool(value)

    def texts(self, field: str) -> tuple[str, ...]:
        """A text or a list of texts; empty if the field is missing."""
        value = self.raw(field)
        found = [] if value is None else [value] if isinstance(value, str) else value
        if not isinstance(found, list) or not all(isinstance(each, str) and each for each in found):
            self.refuse(field, "needs a text or a list of texts")
        return tuple(found)

    def inner(self, field: str) -> Section:
        self._known.append(field)
        if field not in self:
            return Section(self.document, (*self.path, field), {})
        return self.document.section((*self.path, field))

    def items(self, field: str) -> list[Section]:
        """The mappings of a list; empty if the field is missing."""
        value = self.raw(field)
        if value is not None and not isinstance(value, list):
            self.refuse(field, f"is {_kind(value)}; it needs a list")
        return [self.document.section((*self.path, field, place)) for place in range(len(value or ()))]

    def allow(self, *fields: str) -> None:
        """Refuse fields other than these at once, so that a misspelt field is not reported as a missing one."""
        self._known += fields
        self.done()

    def done(self) -> None:
        """Refuse a field that no reader asked for."""
        for field in self.fields:
            if field not in self._known:
                self.refuse(field, f"is not a field here; there are {', '.join(dict.fromkeys(self._known))}")


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether the value is a number other than NaN."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _kind(value: object) -> str:
    match value:
        case None:
            return "empty"
        case Mapping():
            return "a mapping"
        case list():
            return "a list"
    return repr(value)
