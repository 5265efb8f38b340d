"""A trace: the nodes of a cluster and the events of its pods, written as files for every command. Also reads CSV
tables, with errors that name file, line and field.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple

import msgspec

from podium.config.fields import LONGEST
from podium.errors import InputError, os_problem
from podium.input_files import Unpacked, open_input
from podium.manifests import Objects, load
from podium.manifests.files import GZIP_MAGIC
from podium.model.meta import dns_subdomain_errors, label_value_errors
from podium.model.objects import HOSTNAME, WORKLOADS
from podium.wording import counted

Manifest = Mapping[str, Any]
"""An object as in a manifest."""


class TraceEvent(NamedTuple):
    """An event, `time` seconds after the beginning. A new pod runs for `lifetime` seconds; None means forever."""

    time: float
    object: Manifest
    lifetime: float | None = None
    event: str = "add"
    """`add`, `update` or `delete`."""
    is_first: bool = True
    """Whether no object had that name before."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace that an importer read. `events` can be iterated only once, because large traces are streamed."""

    beginning: Iterable[Manifest]
    """The objects that exist at the beginning, mainly nodes."""
    events: Iterable[TraceEvent]
    assumed: list[str] = field(default_factory=list)
    """What was assumed or left out, one sentence each. Complete only after all events were read."""
    is_record: bool = False
    """Whether the trace includes what controllers did; simulated controllers then create no pods."""

    def objects(self) -> Objects:
        """The objects at the beginning and all pods that arrive later, in order, as if they were pending."""
        return load([*self.beginning, *(event.object for event in self.events if self.is_pending(event))])

    def is_pending(self, event: TraceEvent) -> bool:
        """Whether an event adds a pod, a workload, or something else that pods need."""
        kind = event.object.get("kind")
        is_made = self.is_record and kind in MAKES_PODS
        return event.event == "add" and event.is_first and kind != "Node" and not is_made


def remarks(what: str, counts: Mapping[str, int]) -> list[str]:
    """The sentences whose count is not 0; `{}` in a sentence stands for what was counted, such as `3 tasks`."""
    return [sentence.format(counted(count, what)) for sentence, count in counts.items() if count]


MAKES_PODS = frozenset(kind.__name__ for kind in WORKLOADS)


def event_line(event: TraceEvent, *, is_record: bool = False) -> dict[str, Any]:
    """An event as a line of a timeline."""
    line: dict[str, Any] = {"time": event.time, "event": event.event}
    line["resource" if is_record else "object"] = event.object
    if event.lifetime is not None:
        line["lifetime"] = event.lifetime
    return line


def is_text(value: object) -> bool:
    """Whether a value is a text that is not empty, as a kind or a name has to be."""
    return isinstance(value, str) and bool(value)


def valid_name(text: str) -> str:
    """Convert a text to a valid Kubernetes name: lower case letters, digits and dashes."""
    return re.sub("[^a-z0-9.-]+", "-", text.lower()).strip("-.") or "unnamed"


def node(name: str, allocatable: Mapping[str, str], labels: Mapping[str, str]) -> Manifest:
    """The manifest of a node."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **labels}},
        "status": {"allocatable": dict(allocatable), "capacity": dict(allocatable)},
    }


def pod(name: str, requests: Mapping[str, str], *, labels: Mapping[str, str], spec: Manifest) -> Manifest:
    """The manifest of a pod with one container. Extended resources are set as limits too, as Kubernetes requires."""
    limits = {resource: amount for resource, amount in requests.items() if "/" in resource}
    resources = {"requests": dict(requests), **({"limits": limits} if limits else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **({"labels": dict(labels)} if labels else {})},
        "spec": {**spec, "containers": [{"name": "task", "image": "task", "resources": resources}]},
    }


HEAD = 4096
"""How many bytes are read to find out whether a file is text."""
STEP = 1000
"""How many rows are read between progress reports."""
MOST = 10**15
"""The largest number in a field: more than any machine has."""
MOST_COLUMNS = 20
"""How many column names an error message shows."""
LONGEST_SHOWN = 60
"""How many characters of a wrong field an error message shows."""

Advance = Callable[[int], object]
"""Called with the number of bytes read since the last call."""


class TableRow:
    """One row of a table; its fields by name."""

    __slots__ = ("_fields", "where")

    def __init__(self, fields: Mapping[str, str], where: str) -> None:
        self._fields, self.where = fields, where

    def __contains__(self, field: str) -> bool:
        return bool(self._fields.get(field))

    def text(self, field: str) -> str:
        """The text of a field; empty if the table does not have it."""
        return self._fields.get(field) or ""

    def name(self, field: str) -> str:
        text = self.text(field)
        if not text:
            raise InputError(f"{field} is empty; it names the row", self.where)
        return text

    def new_name(self, field: str, lines: dict[str, str]) -> str:
        """A valid Kubernetes name that no earlier row has. `lines` has the place of each name; this one is added."""
        name = self.name(field)
        self.check_name(name, field)
        if lines.setdefault(name, self.where) != self.where:
            raise InputError(f"{field} {name!r} is the name of {lines[name]} already", self.where)
        return name

    def check_name(self, name: str, field: str) -> None:
        """Refuse a name, made of a field, that is no valid Kubernetes name."""
        problem = next(iter(dns_subdomain_errors(name)), "")
        if problem:
            raise InputError(f"{field} {name[:LONGEST_SHOWN]!r} is not a name: it {problem}", self.where)

    def label_value(self, text: str, field: str) -> str:
        """A text, made of a field, that can be the value of a label."""
        problem = next(iter(label_value_errors(text)), "")
        if problem:
            shown = repr(text[:LONGEST_SHOWN])
            raise InputError(f"{field} {shown} cannot be the value of a label: it {problem}", self.where)
        return text

    def time(self, field: str, default: int | None = None) -> int:
        """Read a number of seconds, up to ten years."""
        return self.number(field, default, most=LONGEST)

    def number(self, field: str, default: int | None = None, *, most: int = MOST) -> int:
        """Read a whole number from 0 to `most`. An empty field gives `default`, or an error if there is no default."""
        text = self.text(field)
        if not text and default is not None:
            return default
        value = self.amount(field)
        if value != int(value):
            raise InputError(f"{field} {text!r} is not a whole number", self.where)
        if value > most:
            raise InputError(f"{field} {text!r} is more than {most:,}", self.where)
        return int(value)

    def amount(self, field: str) -> float:
        """Read a number from 0 to `MOST`."""
        text = self.text(field)
        try:
            # Python reads 1_000 as a number.
            value = float(text) if "_" not in text else -1
        except ValueError:
            value = -1
        if not 0 <= value < float("inf"):
            raise InputError(f"{field} {text[:LONGEST_SHOWN]!r} is not a number from 0 on", self.where)
        if value > MOST:
            raise InputError(f"{field} {text!r} is more than {MOST:,}", self.where)
        return value


def rows(path: str, needed: Sequence[str], advance: Advance, header: Sequence[str] | None = None) -> Iterator[TableRow]:
    """Read the rows of a table with at least these columns; `header` names the columns of a table without a header."""
    with opened(path) as (raw, text):
        yield from _rows(path, needed, advance, header, raw, text)


def size(paths: Sequence[str]) -> int:
    """The total size of the files in bytes; raises an InputError for a file that cannot be read."""
    total = 0
    for path in paths:
        try:
            with open_input(path):
                total += Path(path).stat().st_size
        except OSError as error:
            raise InputError(os_problem(error), path) from None
    return total


@contextmanager
def opened(path: str) -> Iterator[tuple[IO[bytes], IO[str]]]:
    """Open a text file, plain or gzip; returns the raw file, whose position shows the progress, and the text."""
    try:
        with open_input(path) as raw:
            head = raw.read(HEAD)
            is_packed = head[:2] == GZIP_MAGIC
            if not is_packed and b"\0" in head:
                line = head.count(b"\n", 0, head.index(b"\0")) + 1
                raise InputError("is not text: it has a zero byte", f"{path} line {line}")
            if not is_packed and path.endswith(".gz"):
                raise InputError("is not gzip, though its name ends in .gz; compress it, or rename it", path)
            raw.seek(0)
            if not is_packed:
                yield raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
                return
            with gzip.open(raw, "rb") as plain:
                limited = io.BufferedReader(Unpacked(plain, path))
                yield raw, io.TextIOWrapper(limited, encoding="utf-8-sig", newline="")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"cannot be unpacked as gzip: {error}", path) from None
    except UnicodeDecodeError as error:
        # What comes through a pipe cannot be read again.
        where = f"{path} line {_undecodable_line(path, is_packed)}" if Path(path).is_file() else path
        raise InputError(f"is not UTF-8 text: {error.reason}", where) from None
    except OSError as error:
        raise InputError(os_problem(error), path) from None


def _undecodable_line(path: str, is_packed: bool) -> int:
    """The number of the first line that is not UTF-8."""
    with gzip.open(path, "rb") if is_packed else open(path, "rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 1


def _rows(
    path: str, needed: Sequence[str], advance: Advance, header: Sequence[str] | None, raw: IO[bytes], text: IO[str]
) -> Iterator[TableRow]:
    table = csv.reader(text)
    told = 0
    try:
        columns = list(header) if header is not None else next(table, [])
        missing = [column for column in needed if column not in columns]
        if missing:
            shown = ", ".join(name[:LONGEST_SHOWN] for name in columns[:MOST_COLUMNS]) or "none"
            raise InputError(f"has no column {missing[0]!r}; its columns are {shown}", path)
        for number, values in enumerate(table, 1):
            if not values:
                continue
            where = f"{path} line {table.line_num}"
            if len(values) != len(columns):
                fields = counted(len(values), "field")
                problem = f"has {fields}, but there are {len(columns)} columns; write one for each, empty if not known"
                raise InputError(problem, where)
            yield TableRow(dict(zip(columns, values, strict=False)), where)
            if number % STEP == 0:
                advance(raw.tell() - told)
                told = raw.tell()
    except csv.Error as error:
        raise InputError(f"is not CSV: {error}", f"{path} line {table.line_num}") from None
    advance(raw.tell() - told)


CLUSTER, PODS, EVENTS = "cluster.json", "pods.json", "events.jsonl"

_encode = msgspec.json.encode


class Written(NamedTuple):
    """The number of nodes, pods and events written."""

    nodes: int
    pods: int
    events: int


def write_trace(trace: Trace, directory: str) -> Written:
    """Write three files: the objects at the beginning, the pods as if all were pending, and the events.

    Events are written one at a time, so a trace need not fit into memory. If the trace has an error, no file is
    written.
    """
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder, prefix=".import-") as unfinished:
            written = _write(trace, Path(unfinished))
            for name in (CLUSTER, PODS, EVENTS):
                (Path(unfinished) / name).replace(folder / name)
    except OSError as error:
        raise InputError(os_problem(error), directory) from None
    return written


def _write(trace: Trace, folder: Path) -> Written:
    beginning = list(trace.beginning)
    (folder / CLUSTER).write_bytes(_encode({"apiVersion": "v1", "kind": "List", "items": beginning}))
    happened = written = new = 0
    with open(folder / PODS, "wb") as pods, open(folder / EVENTS, "wb") as events:
        pods.write(b'{"apiVersion":"v1","kind":"List","items":[')
        for event in trace.events:
            happened += 1
            events.write(_encode(event_line(event, is_record=trace.is_record)) + b"\n")
            if trace.is_pending(event):
                pods.write((b",\n" if written else b"\n") + _encode(event.object))
                written += 1
                new += event.object["kind"] == "Pod"
        pods.write(b"\n]}\n")
    nodes = sum(1 for item in beginning if item["kind"] == "Node")
    return Written(nodes, new, happened)
