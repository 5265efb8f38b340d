"""`podium simulate --timeline`: a cluster over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from podium.cli.output import Format

if TYPE_CHECKING:
    from podium.timeline import Timeline, TimelineResult

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
    _show(result, output)
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
        return resume_timeline(_read(wishes.resume), events, settings, where=wishes.resume, **given)
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


def _show(result: TimelineResult, output: Format) -> None:
    from podium.cli.output import emit
    from podium.present.timeline import to_lines

    emit(output, lines=lambda: to_lines(result), document=result.to_dict, rows=lambda: result.pods_csv().rstrip("\n"))


def _read(path: str) -> bytes:
    from podium.errors import InputError

    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise InputError((error.strerror or str(error)).lower(), path) from None
