"""`podium simulate`: where everything that is pending would go, at once or over time (`--timeline`)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from podium.cli import options
from podium.cli.output import Format, Output

if TYPE_CHECKING:
    from podium.answers.rollout import ChangedObject, RolloutStep
    from podium.answers.simulation import Simulation
    from podium.cluster_input import ClusterInput
    from podium.engine.release import AnyRelease
    from podium.engine.scheduler import SchedulerOptions
    from podium.present.text import Line
    from podium.timeline import Timeline, TimelineResult
    from podium.workloads.admission import Refusal


class Bound(StrEnum):
    MAX = "max"
    MIN = "min"


def simulate(
    source: options.ScenarioSource = options.ScenarioSource(),
    output: Output = Format.TABLE,
    everything: Annotated[bool, typer.Option("--all", help="Show every workload and node, not the first ten.")] = False,
    html: options.Html = None,
    stepwise: Annotated[
        bool,
        typer.Option(
            "--rollout",
            help="Roll out step by step what a later -f changes, by its update strategy (maxSurge and so on); "
            "without it, new pods replace old ones at once.",
        ),
    ] = False,
    hpa: Annotated[
        Bound | None,
        typer.Option("--hpa", help="Scale what a HorizontalPodAutoscaler targets to its maximum or minimum."),
    ] = None,
    preempt: Annotated[
        bool, typer.Option("--preempt/--no-preempt", help="Whether pods may evict others of a lower priority for room.")
    ] = True,
    events: Events = None,
    until: Until = None,
    log: Log = None,
    samples: SamplesFile = None,
    plot: Plot = None,
    snapshot_at: SnapshotAt = None,
    snapshot: Snapshot = None,
    resume: Resume = None,
    node_groups: NodeGroupsFile = None,
    deciding: options.AllSchedulerOptions = options.AllSchedulerOptions(),
) -> int:
    """Place everything that is pending, workloads without pods included, and show how full the nodes get.

    Pods are decided by priority, then creation, then as they stand in the input; a pod that fits nowhere evicts pods of
    a lower priority if that helps, as in a cluster. Exit code 1 if a pod ends up without a node.
    An object of a later -f is applied over that of an earlier one, and what that changes is shown first.
    With --timeline, pods come, run and go, nodes join and fail, over simulated time.
    """
    from podium.cli.inputs import (
        in_scenario,
        mention,
        mention_missing_owners,
        read_input,
        registry_with,
        scheduler_options,
    )
    from podium.cli.output import write_report
    from podium.cluster_input import ClusterInput

    chosen = TimelineOptions(events, until, log, samples, plot, snapshot_at, snapshot, resume, node_groups)
    if any(chosen):
        unwanted = {
            "--html": html is not None,
            "--rollout": stepwise,
            "--hpa": hpa is not None,
            "--no-preempt": not preempt,
        }
        for option in (*(name for name, given in unwanted.items() if given), *([] if deciding.cache else [NO_CACHE])):
            more = "; --plot draws one" if option == "--html" else ""
            raise typer.BadParameter(f"cannot be used with --timeline{more}", param_hint=option)
        return simulate_timeline(chosen, source, deciding, output)
    registry = registry_with(deciding.plugins)
    given = _scaled(read_input(source), hpa)
    settings = scheduler_options(deciding, given.objects, registry)
    if source.scenario is not None:
        objects, settings = in_scenario(source, deciding, given.objects, settings)
        given = ClusterInput(objects, strict=given.strict)
    objects = given.objects
    mention(given.expanded, source, assume_volumes=settings.assume_volumes)
    mention_missing_owners(given, source)
    found = (_step_by_step if stepwise else _at_once)(given, settings, preempt=preempt)
    if not write_report(html, lambda: _page(found)):
        _show(found, output, objects.unchanged, settings.release, everything=everything)
    return 0 if found.is_complete else 1


NO_CACHE = "--no-equivalence-cache"


class Simulated(NamedTuple):
    """Where pods go, what later files changed, and the steps of the rollout if asked for."""

    simulation: Simulation
    changes: tuple[ChangedObject, ...]
    steps: tuple[RolloutStep, ...] | None
    refused: tuple[Refusal, ...]
    """Pods that LimitRanges or ResourceQuotas do not allow."""

    @property
    def is_complete(self) -> bool:
        """Whether every pod that is wanted exists and has a node."""
        return self.simulation.fits and not self.refused and not any(change.stuck for change in self.changes)


def _scaled(given: ClusterInput, bound: Bound | None) -> ClusterInput:
    """The input, with every workload of an autoscaler at the requested bound."""
    from podium.cli.output import warn
    from podium.cluster_input import ClusterInput
    from podium.model import HorizontalPodAutoscaler
    from podium.model.objects import SCALED
    from podium.workloads import scaled_by_autoscalers

    if bound is None:
        return given
    objects = given.objects
    if not objects.of(HorizontalPodAutoscaler):
        warn(f"--hpa {bound}: no HorizontalPodAutoscaler in the input, so nothing is scaled")
    read = {obj.identity for obj in objects if isinstance(obj, SCALED)}
    for autoscaler in objects.of(HorizontalPodAutoscaler):
        target = autoscaler.spec.scale_target_ref
        if (target.kind, autoscaler.namespace, target.name) not in read:
            said = f"HorizontalPodAutoscaler {autoscaler.key}: its target {target.kind}/{target.name}"
            warn(f"--hpa {bound}: {said} is not in the input, so it is not scaled")
    return ClusterInput(scaled_by_autoscalers(objects, bound.value), strict=given.strict)


def _at_once(given: ClusterInput, settings: SchedulerOptions, *, preempt: bool) -> Simulated:
    from podium.answers.rollout import changed_objects, requested_before
    from podium.answers.simulation import simulate, with_usage_before
    from podium.cli.output import progress

    objects, cluster = given.objects, given.cluster()
    with progress("placing pods", len(cluster.pending)) as advance:
        simulation = simulate(cluster, config=settings, preempt=preempt, on_decided=lambda placement: advance())
    if objects.applied:
        simulation = with_usage_before(simulation, requested_before(objects))
    return Simulated(simulation, changed_objects(objects, simulation), None, given.refused)


def _step_by_step(given: ClusterInput, settings: SchedulerOptions, *, preempt: bool) -> Simulated:
    from podium.answers.rollout import rollout
    from podium.cli.output import warn
    from podium.workloads.rolling_updates import ROLLED_OUT

    objects = given.objects
    if not any(isinstance(applied.after, ROLLED_OUT) for applied in objects.applied):
        warn("--rollout: no later -f changes a Deployment, StatefulSet or DaemonSet, so there is nothing to roll out")
    found = rollout(objects, settings)
    return Simulated(found.simulation, found.changes, found.steps, found.refused)


def _page(found: Simulated) -> str:
    from podium.present.html_reports import simulation_page

    return simulation_page(found.simulation, found.changes)


def _show(found: Simulated, output: Format, unchanged: int, release: AnyRelease, *, everything: bool) -> None:
    from podium.cli.output import emit, text_width
    from podium.present.simulation import change_lines, refused_lines, to_document, to_lines, to_rows

    def lines() -> list[Line]:
        width = text_width(output)
        changes = change_lines(found.changes, found.steps, unchanged=unchanged, width=width, everything=everything)
        return [
            *changes,
            *refused_lines(found.refused, width),
            *to_lines(found.simulation, width=width, everything=everything),
        ]

    emit(
        output,
        lines=lines,
        document=lambda: to_document(*found),
        rows=lambda: to_rows(found.simulation),
        release=release,
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
SamplesFile = Annotated[
    str | None, typer.Option(metavar="FILE", help="With --timeline: write queue depth and utilisation, .csv or .json.")
]
Plot = Annotated[str | None, typer.Option(metavar="FILE", help="With --timeline: draw these, .svg or .png.")]
SnapshotAt = Annotated[
    str | None, typer.Option("--snapshot-at", metavar="TIME", help="With --timeline: stop then, and write --snapshot.")
]
Snapshot = Annotated[
    str | None, typer.Option(metavar="FILE", help="With --timeline: where to write the state when it stops.")
]
Resume = Annotated[
    str | None, typer.Option(metavar="FILE", help="With --timeline: continue from such a state, instead of -f.")
]
NodeGroupsFile = Annotated[
    str | None,
    typer.Option(
        "--node-groups",
        metavar="FILE",
        help="With --timeline: groups of nodes that grow and shrink; docs/autoscaling.md.",
    ),
]


class TimelineOptions(NamedTuple):
    """The command line's options for a simulation over time."""

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
    chosen: TimelineOptions, source: options.Source, deciding: options.AllSchedulerOptions, output: Format
) -> int:
    """Run the timeline and write the requested output; 1 if pods still wait at the end."""
    from podium.cli.output import warn

    _check(chosen, source.files)
    timeline = _timeline(chosen, source, deciding)
    times = [seconds(time) for time in (chosen.until, chosen.snapshot_at) if time is not None]
    try:
        result = timeline.run(min(times, default=None))
    finally:
        timeline.close()
    if chosen.snapshot is not None:
        from podium.cli.output import write_bytes
        from podium.timeline import save_timeline

        write_bytes(chosen.snapshot, save_timeline(timeline))
    _write_files(chosen, result)
    for warning in result.warnings:
        warn(warning)
    _timeline_show(result, output)
    return 1 if result.unplaced else 0


def _check(chosen: TimelineOptions, files: Sequence[str]) -> None:
    from podium.errors import InputError

    if chosen.events is None:
        given = next(name for name, value in chosen._asdict().items() if value)
        raise InputError(f"--{given.replace('_', '-')} needs --timeline EVENTS")
    if chosen.snapshot_at is not None and chosen.snapshot is None:
        raise InputError("--snapshot-at needs --snapshot FILE to write to")
    if chosen.events == "-" and "-" in files:
        raise InputError("--timeline and -f cannot both read stdin; put one of them into a file")
    if chosen.resume is not None and files:
        raise InputError("--resume has the cluster already: leave out -f")
    if chosen.node_groups is not None and (chosen.resume is not None or chosen.snapshot is not None):
        raise InputError("--node-groups cannot be used with --snapshot or --resume: groups are not part of a snapshot")


def _timeline(chosen: TimelineOptions, source: options.Source, deciding: options.AllSchedulerOptions) -> Timeline:
    from podium.cli.inputs import (
        in_scenario,
        mention,
        mention_ignored,
        mention_missing_owners,
        read_input,
        registry_with,
        scheduler_options,
    )
    from podium.manifests.files import read_bytes
    from podium.timeline import Timeline, read_timeline, resume_timeline
    from podium.wording import counted
    from podium.workloads.missing_owners import FURTHER_PODS, NEW_NODES

    registry = registry_with(deciding.plugins)
    events = read_timeline(chosen.events or "-")
    if source.verbose:
        mention_ignored(f"{counted(len(events.events), 'event')} read", events.ignored)
    given = read_input(source, needs_nodes=False)
    objects = given.settled
    mention(objects, source, assume_volumes=deciding.assume_volumes)
    mention_missing_owners(given, source, FURTHER_PODS, NEW_NODES)
    objects, settings = in_scenario(source, deciding, objects, scheduler_options(deciding, objects, registry))
    if chosen.resume is not None:
        return resume_timeline(read_bytes(chosen.resume), events, settings, where=chosen.resume)
    groups = None
    if chosen.node_groups is not None:
        from podium.autoscaling import Autoscaler, read_node_groups

        groups = read_node_groups(chosen.node_groups)
    timeline = Timeline(objects, events, settings)
    if groups is not None:
        Autoscaler(timeline, groups)
    return timeline


def seconds(text: str) -> float:
    """A time on the command line: seconds, or a duration like 1h30m."""
    from podium.config.fields import seconds_of
    from podium.errors import InputError

    given: float | str = text
    with suppress(ValueError):
        given = float(text)
    try:
        return seconds_of(given, "time", "3600")
    except ValueError as error:
        raise InputError(f"{text!r} {error}") from None


def _write_files(chosen: TimelineOptions, result: TimelineResult) -> None:
    import msgspec

    from podium.cli.output import write_bytes

    # The plot is written first: if its name is invalid or a library is missing, nothing is written at all.
    if chosen.plot is not None:
        from podium.present.plot import write_plot

        write_plot(result, chosen.plot)
    if chosen.log is not None:
        write_bytes(chosen.log, result.log_lines())
    if chosen.samples is not None:
        is_json = chosen.samples.endswith(".json")
        write_bytes(chosen.samples, msgspec.json.encode(result.to_dict()) if is_json else result.samples_csv().encode())


def _timeline_show(result: TimelineResult, output: Format) -> None:
    from podium.cli.output import emit, text_width
    from podium.present.simulation import timeline_lines

    emit(
        output,
        lines=lambda: timeline_lines(result, width=text_width(output)),
        document=result.to_dict,
        rows=lambda: result.pods_csv().rstrip("\n"),
    )
