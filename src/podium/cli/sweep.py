"""`podium tune`, `podium sweep` and `podium import`: many runs on many processes or machines, and published traces as
their input.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli import options, simulate
from podium.cli.compare import is_timeline
from podium.cli.output import Format, Output

if TYPE_CHECKING:
    from podium.answers import TimelineTuning, Tuning
    from podium.cluster_input import ClusterInput
    from podium.engine.release import Release
    from podium.framework import Registry
    from podium.manifests import Objects
    from podium.sweep import Row, SweepResult, Workers


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
    output: Output = Format.TABLE,
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
    processes = _workers(jobs, dask, run_count(spec))
    inputs = load_inputs(spec)
    folder = out or Path(file).stem
    with processes as workers, progress("running", run_count(spec)) as advance:

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
    try:
        result.write_parquet(f"{folder}/rows.parquet")
    except InputError as error:
        warn(f"rows.parquet is left out: {error}")
    if result.best is not None:
        try:
            plot = sweep_plot(result)
        except Exception as error:  # hours of runs are worth more than their picture
            warn(f"plot.svg is left out: {type(error).__name__}: {error}")
        else:
            write_text(f"{folder}/plot.svg", plot)


def _show(result: SweepResult, output: Format, folder: str) -> None:
    from podium.cli.output import emit
    from podium.present.tuning import sweep_document, sweep_lines

    emit(
        output,
        lines=lambda: sweep_lines(result, folder),
        document=lambda: sweep_document(result),
        rows=lambda: result.to_csv().rstrip("\n"),
    )


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
    from podium.traces import checked_format, read_trace, write_trace
    from podium.traces.trace import size
    from podium.wording import counted

    checked_format(kind, files)
    with progress("reading", size(files)) as advance:
        trace = read_trace(kind, files, advance)
        written = write_trace(trace, out)
    amounts = (counted(written.nodes, "node"), counted(written.pods, "pod"), counted(written.events, "event"))
    print(f"{out}: {', '.join(amounts)}")
    for sentence in trace.assumed:
        print(f"- {sentence}")
    if not written.events:
        print("- all of it is there at the beginning: pods.json and events.jsonl are empty")
    return 0


@dataclass(frozen=True, kw_only=True)
class Searching(options.TiesByName):
    """The scheduler that decides while its weights are searched."""

    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed and --trials give the same result.")] = 0


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How much a search may try, and where."""

    trials: Annotated[
        int | None, typer.Option("--trials", metavar="N", help="How many configurations to try; 100 unless --seconds.")
    ] = None
    seconds: Annotated[float | None, typer.Option("--seconds", metavar="S", help="How long to try.")] = None
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", help="How many to try at once; one per processor unless given.")
    ] = None
    dask: options.Dask = None

    @property
    def most(self) -> int | None:
        """The maximum number of configurations to try; None for as many as the time allows."""
        from podium.answers.tune import TRIALS

        return self.trials if self.trials is not None or self.seconds is not None else TRIALS

    def workers(self) -> AbstractContextManager[Workers | None]:
        """The workers of the Dask cluster, if one was named."""
        if self.dask is None:
            return nullcontext()
        if self.jobs is not None:
            raise typer.BadParameter("cannot be used with --dask, which has its own workers", param_hint="--jobs")
        return _dask_cluster(self.dask)


@dataclass(frozen=True, kw_only=True)
class TimelineOptions:
    """The events that each configuration is tried with, if there are any."""

    events: simulate.Events = None
    until: simulate.Until = None
    node_groups: simulate.NodeGroupsFile = None

    def search(self, objects: Objects, objective: str | None) -> Callable[..., Tuning | TimelineTuning]:
        """`tune_timeline` with these events."""
        from podium.answers import tune_timeline
        from podium.autoscaling import read_node_groups
        from podium.timeline import read_timeline

        return partial(
            tune_timeline,
            objects,
            read_timeline(self.events or "-"),
            objective,
            until=None if self.until is None else simulate.seconds(self.until),
            node_groups=None if self.node_groups is None else read_node_groups(self.node_groups),
        )


Objective = Annotated[
    str | None,
    typer.Option(
        "--objective",
        metavar="NAME|MODULE:FUNCTION",
        help="fewest-nodes (the default), lowest-imbalance, most-spread, least-fragmentation, lowest-cost, or a "
        "function that takes a Simulation and returns a number to minimise. With --timeline: cost (the default "
        "with node groups), node_hours, nodes_added, nodes_removed, evictions, mean_wait (the default without), "
        "longest_wait, p95_wait, end, or a function of a TimelineResult.",
    ),
]


def tune(
    source: options.Source = options.Source(),
    objective: Objective = None,
    timeline: TimelineOptions = TimelineOptions(),
    replay: Annotated[bool, typer.Option("--replay", help="Also place the running pods again.")] = False,
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="Where to write the configuration.")] = None,
    budget: SearchOptions = SearchOptions(),
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME", help="The profile to tune; by default the first.")
    ] = None,
    output: Output = Format.TABLE,
    everything: Annotated[bool, typer.Option("--all", help="Show every pod that moves, not the first ten.")] = False,
    html: options.Html = None,
    deciding: Searching = Searching(),
) -> int:
    """Search plugin weights and the scoring strategy of NodeResourcesFit for the best placement of what is pending.

    No configuration is better that leaves more pods pending, or more important ones. Weights that cannot matter, as a
    plugin scores all nodes alike for every pod, are left as they are. Shows what would change compared with today's
    configuration, and why; if nothing is better, nothing is written. For an old release it searches the weights of
    priorities, and finds a Policy. With --timeline the events happen with each configuration, and the lowest cost or
    wait is searched for. Exit code 1 if nothing better was found.
    """
    from podium.cli.inputs import choose_release, mention, read_input, registry_with
    from podium.cli.output import progress, write_report, write_text
    from podium.present import to_yaml

    when = (timeline.events, timeline.until, timeline.node_groups)
    has_time = is_timeline(when, {"--replay": replay})
    registry = registry_with(deciding.plugins)
    given = read_input(source, needs_nodes=not has_time)
    objects = given.settled
    mention(objects, source)
    chosen = choose_release(deciding, objects)
    if objective is not None and ":" in objective:
        # The full path, as a process may start elsewhere.
        sys.path.insert(0, os.getcwd())
    search = timeline.search(objects, objective) if has_time else _search_now(given, objective, replay=replay)
    _check_directory(out)
    most = budget.most
    with (
        budget.workers() as workers,
        progress("trying configurations", None if most is None else most + 1) as advance,
    ):
        found = search(
            _document(deciding.config, objects, registry, chosen),
            profile=profile,
            trials=most,
            seconds=budget.seconds,
            jobs=budget.jobs,
            workers=workers,
            **deciding.keywords(registry, chosen),
            on_tried=advance,
        )
    if out is not None and found.improves:
        write_text(out, f"{to_yaml(found.document)}\n")
    if not write_report(html, lambda: _tune_page(found)):
        _tune_show(found, output, out=out, everything=everything)
    return 0 if found.improves else 1


def _search_now(given: ClusterInput, objective: str | None, *, replay: bool) -> Callable[..., Tuning | TimelineTuning]:
    """`tune` with the pods as they are."""
    from podium import answers

    return partial(answers.tune, given.cluster(), objective or "fewest-nodes", replay=replay)


def _check_directory(out: str | None) -> None:
    """Refuse a file in a missing directory before a long search, not after it."""
    from podium.errors import InputError

    if out is not None and out != "-" and not Path(out).parent.is_dir():
        raise InputError("no such file or directory", out)


def _dask_cluster(address: str) -> AbstractContextManager[Workers]:
    from podium.sweep import dask_cluster

    return dask_cluster(address)


def _document(file: str | None, objects: Objects, registry: Registry, release: Release) -> dict[str, Any] | None:
    """The configuration as written in its file, else among the objects; None if there is neither."""
    from podium.cli.inputs import check_config, find_config
    from podium.config.extender_calls import names_extenders
    from podium.errors import InputError
    from podium.releases import provider_policy

    if file is None and names_extenders(objects.scheduler_config):
        raise InputError("the configuration among the input has extenders, which are not called: name it with --config")
    given = find_config(file, objects, release)
    check_config(given, registry, release)
    if given.options is not None:
        return provider_policy(release.name, given.options)
    return None if given.document is None else dict(given.document)


def _tune_page(found: Tuning | TimelineTuning) -> str:
    from podium.present.html_reports import tuning_page

    return tuning_page(found)


def _tune_show(found: Tuning | TimelineTuning, output: Format, *, out: str | None, everything: bool) -> None:
    from podium.cli.output import emit, text_width
    from podium.present.tuning import to_document, to_lines, to_rows

    emit(
        output,
        lines=lambda: to_lines(found, out=out, width=text_width(output), everything=everything),
        document=lambda: to_document(found),
        rows=lambda: to_rows(found),
    )
