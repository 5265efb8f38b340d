"""A trace as files that every command takes: nodes, pods and events."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from podium.errors import InputError
from podium.traces.trace import Trace

NODES, PODS, EVENTS = "nodes.json", "pods.json", "events.jsonl"

_encode = msgspec.json.encode


class Written(NamedTuple):
    """How much was written."""

    nodes: int
    pods: int


def write_trace(trace: Trace, directory: str) -> Written:
    """Write the nodes, the pods as if all were pending, and the pods as they come and go, each into a file.

    Pods are written one at a time: a trace need not fit into memory. If something is wrong with the trace, no file
    is written at all.
    """
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder, prefix=".import-") as unfinished:
            written = _write(trace, Path(unfinished))
            for name in (NODES, PODS, EVENTS):
                (Path(unfinished) / name).replace(folder / name)
    except OSError as error:
        raise InputError((error.strerror or str(error)).lower(), directory) from None
    return written


def _write(trace: Trace, folder: Path) -> Written:
    nodes, number = list(trace.nodes), 0
    (folder / NODES).write_bytes(_encode({"apiVersion": "v1", "kind": "List", "items": nodes}))
    with open(folder / PODS, "wb") as pods, open(folder / EVENTS, "wb") as events:
        pods.write(b'{"apiVersion":"v1","kind":"List","items":[')
        for number, arrival in enumerate(trace.arrivals, 1):
            pods.write((b",\n" if number > 1 else b"\n") + _encode(arrival.pod))
            event = {"time": arrival.time, "event": "add", "object": arrival.pod}
            if arrival.lifetime is not None:
                event["lifetime"] = arrival.lifetime
            events.write(_encode(event) + b"\n")
        pods.write(b"\n]}\n")
    return Written(len(nodes), number)
