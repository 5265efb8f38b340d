"""`podium simulate`: where everything that is pending would go, at once or over time (`--timeline`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from podium.cli import options
from podium.cli.output import Format, Output

if TYPE_CHECKING:
    from podium.engine import Simulation
    from podium.timeline import Timeline, TimelineResult


def simulate(
    files: options.Files = [],  # noqa: B006
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    config: options.Config = None,
    output: Output = Format.TABLE,
    everything: Annotated[bool, typer.Option("--all", help="Show every workload and node, not the first ten.")] = False,
    release: options.Releases = options.CURRENT,
    feature_gates: options.FeatureGates = None,
    tie_break: options.TiesOfRelease = None,
    seed: options.Seed = 0,
    sampling: options.Sampled = options.Sampling.ALL,
    cache: options.EquivalenceCache = True,
    assume_volumes: options.AssumeVolumes = False,
    plugins: options.Plugins = [],  # noqa: B006
    html: options.Html = None,
    verbose: options.Verbose = False,
    events: Events = None,
    until: Until = None,
    log: Log = None,
    samples: Samples = None,
    plot: Plot = None,
    snapshot_at: SnapshotAt = None,
    snapshot: Snapshot = None,
    resume: Resume = None,
    node_groups: NodeGroups = None,
) -> int:
    """Place everything that is pending, workloads without pods included, and show how full the nodes get.

    Pods are decided by priority, then creation, then as they stand in the input. Exit code 1 if something does not fit.
    With --timeline, pods come, run and go, nodes join and fail, over simulated time.
    """
    from podium.cli.inputs import choose_release, mention, read_config, read_objects, registry_with
    from podium.cli.output import progress, write_report
    from podium.cluster import Cluster
    from podium.engine import simulate
    from podium.manifests import expand_workloads

    wishes = Wishes(events, until, log, samples, plot, snapshot_at, snapshot, resume, node_groups)
    if any(wishes):
        if html is not None:
            raise typer.BadParameter("cannot be used with --timeline; --plot draws one", param_hint="--html")
        if not cache:
            raise typer.BadParameter("cannot be used with --timeline", param_hint="--no-equivalence-cache")
        scheduling = {
            "tie_break": tie_break,
            "seed": seed,
            "sampling": sampling.value,
            "release": release,
            "feature_gates": feature_gates,
            "assume_volumes": assume_volumes,
        }
        return simulate_timeline(
            wishes, files, config, output=output, plugins=plugins, verbose=verbose, options=scheduling
        )
    registry = registry_with(plugins)
    objects = expand_workloads(read_objects(files, kubeconfig, context))
    mention(objects, verbose=verbose, assume_volumes=assume_volumes)
    chosen = choose_release(release, feature_gates, objects)
    settings = read_config(config, objects, registry, chosen)
    cluster = Cluster.from_objects(objects)
    with progress("placing pods", len(cluster.pending)) as advance:
        simulation = simulate(
            cluster,
            config=settings,
            registry=registry,
            release=chosen,
            tie_break=tie_break,
            seed=seed,
            sampling=sampling.value,
            equivalence_cache=cache,
            assume_volumes=assume_volumes,
            on_decided=lambda placement: advance(),
        )
    if not write_report(html, lambda: _page(simulation)):
        _show(simulation, output, everything=everything)
    return 0 if simulation.fits else 1


def _page(simulation: Simulation) -> str:
    from podium.present.html.reports import simulation_page

    return simulation_page(simulation)


def _show(simulation: Simulation, output: Format, *, everything: bool) -> None:
    from podium.cli.output import emit, text_width
    from podium.present.simulation import to_document, to_lines, to_rows

    emit(
        output,
        lines=lambda: to_lines(simulation, width=text_width(output), everything=everything),
        document=lambda: to_document(simulation),
        rows=lambda: to_rows(simulation),
    )


Events = Annotated[
    str | None,
    typer.Option(
        "--timeline", metavar="EVENTS", help="Simulate time: events as JSON lines, or a record.jsonl; `-` for stdin."
    ),
]
Until = Annotated[
    str | None, typer.Option(metavar="TIME", help="With --timeline: when to stop, such as 3600 or 1h30m.")
]
Log = Annotated[str | None, typer.Option(metavar="FILE", help="With --timeline: write what happened as JSON lines.")]
Samples = Annotated[
    str | None, typer.Option(metavar="FILE", help="With --timeline: write queue depth and utilisation, .csv or .json.")
]
Plot = Annotated[str | None, typer.Option(metavar="FILE", help="With --timeline: draw them, .svg or .png.")]
SnapshotAt = Annotated[
    str | None, typer.Option("--snapshot-at", metavar="TIME", help="With --timeline: stop then, and write --snapshot.")
]
Snapshot = Annotated[
    str | None, typer.Option(metavar="FILE", help="With --timeline: where to write the state when it stops.")
]
Resume = Annotated[
    str | None, typer.Option(metavar="FILE", help="With --timeline: go on from such a state, instead of -f.")
]
NodeGroups = Annotated[
    str | None,
    typer.Option(
        "--node-groups",
        metavar="FILE",
        help="With --timeline: groups of nodes that grow and shrink; docs/autoscaling.md.",
    ),
]


class Wishes(NamedTuple):
    """What the command line asks of a simulation over time."""

    events: str | None = None
    until: str | None = None
    log: str | None = None
    samples: str | None = None
    plot: str | None = None
    snapshot_at: str | None = None
    snapshot: str | None = None
    resume: str | None = None
    node_groups: str | None = None


def simulate_timeline(
    wishes: Wishes,
    files: Sequence[str],
    config: str | None,
    *,
    output: Format,
    plugins: Sequence[str],
    verbose: bool,
    options: Mapping[str, Any],
) -> int:
    """Let time pass and write what is asked for; 1 if pods still wait at the end."""
    from podium.cli.output import warn

    _check(wishes, files)
    timeline = _timeline(wishes, files, config, plugins, verbose, options)
    times = [seconds(time) for time in (wishes.until, wishes.snapshot_at) if time is not None]
    try:
        result = timeline.run(min(times, default=None))
    finally:
        timeline.close()
    if wishes.snapshot is not None:
        from podium.cli.output import write_bytes
        from podium.timeline import save_timeline

        write_bytes(wishes.snapshot, save_timeline(timeline))
    _write_files(wishes, result)
    for warning in result.warnings:
        warn(warning)
    _timeline_show(result, output)
    return 1 if result.unplaced else 0


def _check(wishes: Wishes, files: Sequence[str]) -> None:
    from podium.errors import InputError

    if wishes.events is None:
        given = next(name for name, value in wishes._asdict().items() if value)
        raise InputError(f"--{given.replace('_', '-')} needs --timeline EVENTS")
    if wishes.snapshot_at is not None and wishes.snapshot is None:
        raise InputError("--snapshot-at needs --snapshot FILE to write to")
    if wishes.events == "-" and "-" in files:
        raise InputError("--timeline and -f cannot both read stdin; put one of them into a file")
    if wishes.resume is not None and files:
        raise InputError("--resume has the cluster already: leave out -f")
    if wishes.node_groups is not None and (wishes.resume is not None or wishes.snapshot is not None):
        raise InputError("--node-groups cannot be used with --snapshot or --resume: groups are not part of a snapshot")


def _timeline(
    wishes: Wishes,
    files: Sequence[str],
    config: str | None,
    plugins: Sequence[str],
    verbose: bool,
    options: Mapping[str, Any],
) -> Timeline:
    from podium.cli.inputs import choose_release, mention, mention_ignored, read_config, registry_with
    from podium.manifests import Objects, load
    from podium.manifests.files import read_bytes
    from podium.timeline import Timeline, read_timeline, resume_timeline
    from podium.wording import counted

    registry = registry_with(plugins)
    events = read_timeline(wishes.events or "-")
    if verbose:
        mention_ignored(f"{counted(len(events.events), 'event')} read", events.ignored)
    objects = load(*dict.fromkeys(files)) if files else Objects()
    mention(objects, verbose=verbose, assume_volumes=bool(options.get("assume_volumes")))
    given = {**options, "registry": registry}
    chosen = given["release"] = choose_release(given["release"], given.pop("feature_gates"), objects)
    settings = read_config(config, objects, registry, chosen)
    if wishes.resume is not None:
        return resume_timeline(read_bytes(wishes.resume), events, settings, where=wishes.resume, **given)
    groups = None
    if wishes.node_groups is not None:
        from podium.autoscaling import Autoscaler, read_node_groups

        groups = read_node_groups(wishes.node_groups)
    timeline = Timeline(objects, events, settings, **given)
    if groups is not None:
        Autoscaler(timeline, groups)
    return timeline


def seconds(text: str) -> float:
    """A time on the command line: seconds, or a duration such as 1h30m."""
    from podium.config.fields import SECOND, parse_duration
    from podium.errors import InputError
    from podium.timeline.events import LONGEST

    try:
        time = float(text)
    except ValueError:
        try:
            time = parse_duration(text) / SECOND
        except ValueError:
            raise InputError(f"{text!r} is not a time such as 3600 or 1h30m") from None
    if not 0 <= time <= LONGEST:
        raise InputError(f"{text!r} is not a time from 0 on, up to ten years")
    return time


def _write_files(wishes: Wishes, result: TimelineResult) -> None:
    import msgspec

    from podium.cli.output import write_bytes

    # The plot comes first: its name or a missing library may be refused, and then nothing is written at all.
    if wishes.plot is not None:
        from podium.present.plot import write_plot

        write_plot(result, wishes.plot)
    if wishes.log is not None:
        write_bytes(wishes.log, result.log_lines())
    if wishes.samples is not None:
        is_json = wishes.samples.endswith(".json")
        write_bytes(wishes.samples, msgspec.json.encode(result.to_dict()) if is_json else result.samples_csv().encode())


def _timeline_show(result: TimelineResult, output: Format) -> None:
    from podium.cli.output import emit
    from podium.present.timeline import to_lines

    emit(output, lines=lambda: to_lines(result), document=result.to_dict, rows=lambda: result.pods_csv().rstrip("\n"))
