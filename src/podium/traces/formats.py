"""The formats that can be imported, by name, and a trace written as files that every command takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from podium.errors import InputError
from podium.traces.alibaba import read_alibaba_2018, read_openb
from podium.traces.google import read_google_2019
from podium.traces.recordings import read_kwok_record, read_simkube
from podium.traces.trace import Advance, Trace, event_line


class Format(NamedTuple):
    """How a format is read, and which files it needs."""

    read: Callable[[Sequence[str], Advance], Trace]
    files: tuple[str, ...]
    """What to call them."""


FORMATS: Mapping[str, Format] = {
    "openb": Format(read_openb, ("NODES.csv", "PODS.csv")),
    "alibaba-2018": Format(read_alibaba_2018, ("machine_meta.csv", "batch_task.csv")),
    "google-2019": Format(read_google_2019, ("machine_events.json", "instance_events.json")),
    "simkube": Format(read_simkube, ("TRACE",)),
    "kwok-record": Format(read_kwok_record, ("FILE",)),
}


def read_trace(name: str, files: Sequence[str], advance: Advance = lambda read: None) -> Trace:
    """The trace of these files; InputError, one line, that names file, line and field of what cannot be used."""
    found = FORMATS.get(name)
    if found is None:
        raise InputError(f"format {name!r} is unknown; use {', '.join(FORMATS)}")
    if len(files) != len(found.files):
        raise InputError(f"{name} needs {' '.join(found.files)}: {len(found.files)} files, not {len(files)}")
    return found.read(files, advance)


CLUSTER, PODS, EVENTS = "cluster.json", "pods.json", "events.jsonl"

_encode = msgspec.json.encode


class Written(NamedTuple):
    """How much was written."""

    nodes: int
    pods: int
    events: int


def write_trace(trace: Trace, directory: str) -> Written:
    """Write what is there at the beginning, the new pods as if all were pending, and all events, each into a file.

    Events are written one at a time: a trace need not fit into memory. If something is wrong with the trace, no file
    is written at all.
    """
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder, prefix=".import-") as unfinished:
            written = _write(trace, Path(unfinished))
            for name in (CLUSTER, PODS, EVENTS):
                (Path(unfinished) / name).replace(folder / name)
    except OSError as error:
        raise InputError((error.strerror or str(error)).lower(), directory) from None
    return written


def _write(trace: Trace, folder: Path) -> Written:
    beginning = list(trace.beginning)
    (folder / CLUSTER).write_bytes(_encode({"apiVersion": "v1", "kind": "List", "items": beginning}))
    happened = new = 0
    with open(folder / PODS, "wb") as pods, open(folder / EVENTS, "wb") as events:
        pods.write(b'{"apiVersion":"v1","kind":"List","items":[')
        for event in trace.events:
            happened += 1
            events.write(_encode(event_line(event, is_record=trace.is_record)) + b"\n")
            if event.is_new_pod:
                pods.write((b",\n" if new else b"\n") + _encode(event.object))
                new += 1
        pods.write(b"\n]}\n")
    nodes = sum(1 for item in beginning if item["kind"] == "Node")
    return Written(nodes, new, happened)
