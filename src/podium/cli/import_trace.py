"""`podium import`: a published trace as files that every command takes."""

from __future__ import annotations

from typing import Annotated

import typer


def import_trace(
    kind: Annotated[
        str, typer.Argument(metavar="FORMAT", help="openb, alibaba-2018, google-2019, simkube or kwok-record.")
    ],
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="The files of the trace, plain or gzip.")],
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="The directory to write to.")],
) -> int:
    """Turn a trace into cluster.json, pods.json (all pending at once) and events.jsonl (as they come and go).

    `podium import openb NODES.csv PODS.csv --out DIR`, then `podium simulate -f DIR/cluster.json -f DIR/pods.json` or
    `podium simulate -f DIR/cluster.json --timeline DIR/events.jsonl`. What had to be assumed or left out is said.
    """
    from podium.cli.output import progress
    from podium.traces import read_trace, write_trace
    from podium.traces.tables import size
    from podium.wording import counted

    with progress("reading", size(files)) as advance:
        trace = read_trace(kind, files, advance)
        written = write_trace(trace, out)
    amounts = (counted(written.nodes, "node"), counted(written.pods, "pod"), counted(written.events, "event"))
    print(f"{out}: {', '.join(amounts)}")
    for sentence in trace.assumed:
        print(f"- {sentence}")
    return 0
