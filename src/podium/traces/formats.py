"""The formats that can be imported, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from podium.errors import InputError
from podium.traces import alibaba_2018, google_2019, kwok_record, openb, simkube
from podium.traces.tables import Advance
from podium.traces.trace import Trace


class Format(NamedTuple):
    """How a format is read, and which files it needs."""

    read: Callable[[Sequence[str], Advance], Trace]
    files: tuple[str, ...]
    """What to call them."""


FORMATS: Mapping[str, Format] = {
    "openb": Format(openb.read, ("NODES.csv", "PODS.csv")),
    "alibaba-2018": Format(alibaba_2018.read, ("machine_meta.csv", "batch_task.csv")),
    "google-2019": Format(google_2019.read, ("machine_events.json", "instance_events.json")),
    "simkube": Format(simkube.read, ("TRACE",)),
    "kwok-record": Format(kwok_record.read, ("FILE",)),
}


def read_trace(name: str, files: Sequence[str], advance: Advance = lambda read: None) -> Trace:
    """The trace of these files; InputError, one line, that names file, line and field of what cannot be used."""
    found = FORMATS.get(name)
    if found is None:
        raise InputError(f"format {name!r} is unknown; use {', '.join(FORMATS)}")
    if len(files) != len(found.files):
        raise InputError(f"{name} needs {' '.join(found.files)}: {len(found.files)} files, not {len(files)}")
    return found.read(files, advance)
