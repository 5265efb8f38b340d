"""`podium sweep` and `podium import`: many runs on many processes or machines, and published traces as their
input.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import options

if TYPE_CHECKING:
    from podium.sweep import Row, SweepResult, Workers


class Format(StrEnum):
    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def sweep(
    file: Annotated[str, typer.Argument(metavar="SWEEP.yaml", help="What to run; docs/research.md describes it.")],
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="Where to write; by default a directory named like the file."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", metavar="N", min=1, help="How many processes; one per processor unless given."),
    ] = None,
    dask: options.Dask = None,
    output: Annotated[Format, typer.Option("-o", "--output", help="What to write to stdout.")] = Format.TABLE,
) -> int:
    """Run every combination of a sweep file and write rows.csv, rows.parquet, summary.csv and plot.svg.

    Runs that are done already are not done again: start it once more after an interruption. Exit code 1 if a run
    failed.
    """
    from podium.cli.output import progress, warn
    from podium.sweep import load_inputs, read_sweep, run_count
    from podium.sweep import sweep as run_sweep
    from podium.sweep.running import described

    if dask is not None and jobs is not None:
        raise typer.BadParameter("cannot be used with --dask, which has its own workers", param_hint="--jobs")
    spec = read_sweep(file)
    inputs = load_inputs(spec)
    folder = out or Path(file).stem
    with _workers(jobs, dask, run_count(spec)) as workers, progress("running", run_count(spec)) as advance:

        def on_done(row: Row) -> None:
            advance()
            if row.error:
                warn(f"run {row.number} ({described(row.point)}) failed: {row.error}")

        result = run_sweep(spec, inputs, workers, folder, on_done)
    _write(result, folder)
    _show(result, output, folder)
    return 1 if result.failed else 0


def _workers(jobs: int | None, dask: str | None, runs: int) -> AbstractContextManager[Workers]:
    from podium.answers.trials import cores
    from podium.sweep import dask_cluster, in_process, local_processes

    if dask is not None:
        return dask_cluster(dask)
    number = min(cores() if jobs is None else jobs, runs)
    return in_process() if number <= 1 else local_processes(number)


def _write(result: SweepResult, folder: str) -> None:
    from podium.cli.output import warn, write_text
    from podium.errors import InputError
    from podium.present.plot import sweep_plot

    write_text(f"{folder}/rows.csv", result.to_csv())
    write_text(f"{folder}/summary.csv", result.summary_csv())
    if result.best is not None:
        write_text(f"{folder}/plot.svg", sweep_plot(result))
    try:
        result.write_parquet(f"{folder}/rows.parquet")
    except InputError as error:
        warn(f"rows.parquet is left out: {error}")


def _show(result: SweepResult, output: Format, folder: str) -> None:
    from podium.cli.output import print_lines
    from podium.present.text import to_json
    from podium.present.tuning import sweep_document, sweep_lines

    match output:
        case Format.CSV:
            print(result.to_csv(), end="")
        case Format.JSON:
            print(to_json(sweep_document(result)))
        case Format.TABLE:
            print_lines(sweep_lines(result, folder))


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
    from podium.traces.trace import size
    from podium.wording import counted

    with progress("reading", size(files)) as advance:
        trace = read_trace(kind, files, advance)
        written = write_trace(trace, out)
    amounts = (counted(written.nodes, "node"), counted(written.pods, "pod"), counted(written.events, "event"))
    print(f"{out}: {', '.join(amounts)}")
    for sentence in trace.assumed:
        print(f"- {sentence}")
    return 0
