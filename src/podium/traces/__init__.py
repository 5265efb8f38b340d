"""Published traces of clusters as objects and timelines, in the formats that `FORMATS` names."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from podium.errors import InputError
from podium.traces._published import read_alibaba_2018, read_google_2019, read_openb
from podium.traces._recordings import read_kwok_record, read_simkube
from podium.traces.trace import Advance, Trace, TraceEvent, Written, write_trace
from podium.wording import counted

__all__ = ["FORMATS", "Trace", "TraceEvent", "Written", "checked_format", "read_trace", "write_trace"]


class TraceFormat(NamedTuple):
    """The reader of a format, and the files it needs."""

    read: Callable[[Sequence[str], Advance], Trace]
    files: tuple[str, ...]
    """The names of the files in messages."""


FORMATS: Mapping[str, TraceFormat] = {
    "openb": TraceFormat(read_openb, ("NODES.csv", "PODS.csv")),
    "alibaba-2018": TraceFormat(read_alibaba_2018, ("machine_meta.csv", "batch_task.csv")),
    "google-2019": TraceFormat(read_google_2019, ("machine_events.json", "instance_events.json")),
    "simkube": TraceFormat(read_simkube, ("TRACE",)),
    "kwok-record": TraceFormat(read_kwok_record, ("FILE",)),
}


def checked_format(name: str, files: Sequence[str]) -> TraceFormat:
    """The format of this name; raises an InputError if it is unknown, or needs another number of files."""
    found = FORMATS.get(name)
    if found is None:
        raise InputError(f"format {name!r} is unknown; use {', '.join(FORMATS)}")
    if len(files) != len(found.files):
        raise InputError(f"{name} needs {' '.join(found.files)}: {counted(len(found.files), 'file')}, not {len(files)}")
    return found


def read_trace(name: str, files: Sequence[str], advance: Advance = lambda read: None) -> Trace:
    """Read a trace; raises an InputError that names the file, the line and the field that is wrong."""
    return checked_format(name, files).read(files, advance)
