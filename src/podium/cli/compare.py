"""`podium compare`, `podium upgrade` and `podium releases`: the same pods placed in two ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from podium.cli import options, simulate
from podium.cli.output import Format, Output, fail_if
from podium.rules.gates import NEWEST

if TYPE_CHECKING:
    from podium.answers import Comparison, Condition, Upgrade, Way
    from podium.answers.compare import TimelineWay
    from podium.cli.inputs import ConfigSource
    from podium.cluster import Cluster
    from podium.framework import Registry
    from podium.manifests import Objects

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class SourceOfBoth(options.Source):
    """The source of the objects of both sides."""

    files: Annotated[
        list[str],
        typer.Option(
            "-f", "--filename", metavar="FILE", help="The cluster; with --cluster, objects that both have, too."
        ),
    ] = field(default_factory=list)


Configs = Annotated[
    list[str],
    typer.Option(
        "--config",
        metavar="FILE",
        help="A KubeSchedulerConfiguration, or what the release reads; two are compared, a single one with the "
        "configuration in the input or the default.",
    ),
]
Clusters = Annotated[list[str], typer.Option("--cluster", metavar="FILE", help="Twice, for two clusters to compare.")]
ManyReleases = Annotated[
    list[str],
    typer.Option("--release", metavar="RELEASE", help=f"A release such as v1.33; one is compared with {NEWEST}."),
]
ManyNodeGroups = Annotated[
    list[str],
    typer.Option(
        "--node-groups",
        metavar="FILE",
        help="With --timeline: groups of nodes that grow and shrink; two are compared, a single one is used for both, "
        "or, if nothing else differs, compared with none.",
    ),
]

MEASURES = (
    "moved, and pods, pending, nodes, nodes_in_use, cpu_utilisation, memory_utilisation, cpu_imbalance, "
    "memory_imbalance, zone_spread, node_spread, fragmentation, stranded_cpu, stranded_memory, largest_cpu, "
    "largest_memory and cost_per_hour of the second way, or with before. of the first; with --timeline, in the same "
    "way, placed, pending, evictions, mean_wait, longest_wait, p95_wait, end, cpu_utilisation and memory_utilisation, "
    "with node groups also cost, node_hours, nodes_added and nodes_removed"
)
FailIf = Annotated[list[str], fail_if("pending > before.pending", MEASURES)]


def compare(
    source: SourceOfBoth = SourceOfBoth(),
    configs: Configs = [],
    clusters: Clusters = [],
    releases: ManyReleases = [],
    replay: Annotated[bool, typer.Option("--replay", help="Also place the running pods again.")] = False,
    events: simulate.Events = None,
    until: simulate.Until = None,
    node_groups: ManyNodeGroups = [],
    fail_when: FailIf = [],
    output: Output = Format.TABLE,
    everything: Annotated[bool, typer.Option("--all", help="Show every pod and workload, not the first ten.")] = False,
    tie_break: options.Ties = options.TieBreak.FIRST,
    seed: options.Seed = 0,
    plugins: options.Plugins = [],
    html: options.Html = None,
) -> int:
    """Place what is pending in two ways, with two configurations, on two clusters or as two releases would.

    Says which pods go elsewhere and which plugin is responsible, and how packing, imbalance, spread and fragmentation
    compare. With --timeline the same events happen both ways, and waits, evictions, utilisation and cost are compared.
    Exit code 1 if a --fail-if holds, else 0.
    """
    groups = node_groups[0] if node_groups else None
    if is_timeline((events, until, groups), {"--html": html is not None, "--replay": replay}):
        sides = _Sides(source, configs, clusters, releases, node_groups)
        return _compare_timelines(
            sides,
            (events, until),
            registry_names=plugins,
            fail_if=fail_when,
            output=output,
            options={"tie_break": tie_break.value, "seed": seed},
        )
    from podium import answers
    from podium.answers.compare import COMPARISON_NAMES
    from podium.cli.inputs import registry_with
    from podium.cli.output import exit_code, progress, read_conditions, write_report

    conditions = read_conditions(fail_when, COMPARISON_NAMES)
    registry = registry_with(plugins)
    before, after = _ways(source, configs, clusters, releases, registry)
    pods = sum(_pod_count(way, replay) for way in (before, after))
    with progress("placing pods", 2 * pods) as advance:
        comparison = answers.compare(
            before,
            after,
            replay=replay,
            registry=registry,
            tie_break=tie_break.value,
            seed=seed,
            on_decided=advance,
        )
    if not write_report(html, lambda: _page(comparison)):
        _show(comparison, conditions, output, everything=everything)
    return exit_code(conditions, comparison.values)


def _ways(
    source: options.Source,
    configs: Sequence[str],
    clusters: Sequence[str],
    releases: Sequence[str],
    registry: Registry,
) -> tuple[Way, Way]:
    """The two sides that the options ask for."""
    from podium.answers import Way, check_ways
    from podium.cli.inputs import choose_release, mention, read_config, read_input
    from podium.engine.release import CURRENT, release_of

    _check_axes({"--config": configs, "--cluster": clusters, "--release": releases})
    alone = len(clusters) < 2 and len(configs) < 2 and len(releases) < 2
    releases_of = [name and release_of(name).name for name in _sides(releases, alone and not configs)]
    configs_of = _sides(configs, alone and bool(configs))
    known: dict[str | None, tuple[Objects, Cluster, str]] = {}
    ways = []
    for cluster, config, release in zip(_sides(clusters, False), configs_of, releases_of, strict=True):
        if cluster not in known:
            given = read_input(_with_file(source, cluster))
            mention(given.expanded, source)
            usual = CURRENT if releases else choose_release(options.WhichRelease(), given.objects).name
            known[cluster] = given.expanded, given.cluster(), usual
        objects, built, usual = known[cluster]
        settings = read_config(config, objects, registry, release or usual)
        differs = release or usual if releases_of[0] != releases_of[1] else ""
        name = (cluster if len(clusters) == 2 else differs) or config or _unnamed(objects)
        ways.append(Way(cluster=built, config=settings, release=release or usual, name=name))
    check_ways(*ways)
    return ways[0], ways[1]


def _with_file(source: options.Source, file: str | None) -> options.Source:
    return replace(source, files=[file, *source.files]) if file else source


class _Sides(NamedTuple):
    """The command line's values for the two sides of a timeline."""

    source: options.Source
    configs: Sequence[str]
    clusters: Sequence[str]
    releases: Sequence[str]
    node_groups: Sequence[str]


def _compare_timelines(
    sides: _Sides,
    when: tuple[str | None, str | None],
    *,
    registry_names: Sequence[str],
    fail_if: Sequence[str],
    output: Format,
    options: Mapping[str, Any],
) -> int:
    """Run the events on both sides; `when` is where they stand, and when to stop."""
    from podium.answers.compare import TIMELINE_NAMES, compare_timelines
    from podium.cli.inputs import registry_with
    from podium.cli.output import emit_measured, exit_code, read_conditions
    from podium.present.comparison import timeline_document, timeline_lines, timeline_rows
    from podium.timeline import read_timeline

    events, until = when
    conditions, registry = read_conditions(fail_if, TIMELINE_NAMES), registry_with(registry_names)
    stop = None if until is None else simulate.seconds(until)
    before, after = _timeline_ways(sides, registry)
    comparison = compare_timelines(
        before, after, read_timeline(events or "-"), until=stop, registry=registry, **options
    )
    emit_measured(comparison, conditions, output, lines=timeline_lines, document=timeline_document, rows=timeline_rows)
    return exit_code(conditions, comparison.values)


def _timeline_ways(sides: _Sides, registry: Registry) -> tuple[TimelineWay, TimelineWay]:
    from podium.answers.compare import TimelineWay, refuse_same
    from podium.autoscaling import read_node_groups
    from podium.cli.inputs import read_config, read_input
    from podium.engine.release import CURRENT, release_of

    given = {
        "--config": sides.configs,
        "--cluster": sides.clusters,
        "--release": sides.releases,
        "--node-groups": sides.node_groups,
    }
    _check_axes(given)
    twice = next((option for option, values in given.items() if len(values) == 2), None)
    # A single value is compared with the default.
    alone = twice or next((option for option in ("--config", "--release") if given[option]), "--node-groups")
    ways = []
    for side in (0, 1):
        chosen = {option: _sides(values, alone == option and not twice)[side] for option, values in given.items()}
        config, cluster, release, groups = chosen.values()
        source = _with_file(sides.source, cluster)
        objects = read_input(source, needs_nodes=False).settled
        unnamed = {"--node-groups": "no node groups", "--release": CURRENT}.get(alone) or _unnamed(objects)
        release = release_of(release or CURRENT).name
        ways.append(
            TimelineWay(
                objects=objects,
                name=chosen[alone] or unnamed,
                config=read_config(config, objects, registry, release),
                release=release,
                node_groups=None if groups is None else read_node_groups(groups),
            )
        )
    if twice and len({*given[twice]}) == 1:
        refuse_same(given[twice][0])
    return ways[0], ways[1]


def is_timeline(timeline: Sequence[str | None], others: Mapping[str, bool]) -> bool:
    """Whether a timeline is asked for by its events; `timeline` also has the end time and the node groups."""
    from podium.errors import InputError

    events, until, node_groups = timeline
    if events is None:
        if until is not None or node_groups is not None:
            raise InputError(f"{'--until' if until else '--node-groups'} needs --timeline EVENTS")
        return False
    for name, is_given in others.items():
        if is_given:
            raise typer.BadParameter("cannot be used with --timeline", param_hint=name)
    return True


def _check_axes(given: Mapping[str, Sequence[str]]) -> None:
    """Refuse options that do not name two sides; `given` has their values."""
    from podium.errors import InputError

    for option, values in given.items():
        if len(values) > 2:
            raise InputError(f"{option} is given {len(values)} times; two are compared")
    if len(given["--cluster"]) == 1:
        raise InputError("--cluster is given once; give it twice to compare clusters, or name the only one with -f")
    *most, last = given
    if not any(given.values()):
        raise InputError(f"nothing to compare: give {', '.join(most)} or {last} twice, or one of --config, --release")
    if sum(len(values) == 2 for values in given.values()) > 1:
        raise InputError(f"only one of {', '.join(most)} and {last} may be given twice, or it is unclear what differs")


def _sides(values: Sequence[T], against_none: bool) -> tuple[T | None, T | None]:
    """The value of each side; a single value is that of both, or with `against_none` that of the second."""
    if not values:
        return None, None
    return (None if against_none else values[0]) if len(values) == 1 else values[0], values[-1]


def _unnamed(objects: Objects) -> str:
    return "the default configuration" if objects.scheduler_config is None else "the configuration of the input"


def _pod_count(way: Way, replay: bool) -> int:
    from podium.model.pod import belongs_to_node

    running = sum(not belongs_to_node(pod) for pod, _ in way.cluster.placed()) if replay else 0
    return len(way.cluster.pending) + running


def _page(comparison: Comparison) -> str:
    from podium.present.html_reports import comparison_page

    return comparison_page(comparison)


def _show(comparison: Comparison, conditions: Sequence[Condition], output: Format, *, everything: bool) -> None:
    from podium.cli.output import emit_measured
    from podium.present.comparison import to_document, to_lines, to_rows

    emit_measured(
        comparison, conditions, output, lines=to_lines, document=to_document, rows=to_rows, everything=everything
    )


UPGRADE_MEASURES = "pods, moves, unfit, fits, undecided and refused"
UpgradeFailIf = Annotated[list[str], fail_if("unfit > 0", UPGRADE_MEASURES)]


def upgrade(
    source: options.Source = options.Source(),
    to: Annotated[str, typer.Option("--to", metavar="RELEASE", help="The release to upgrade to.")] = NEWEST,
    from_: Annotated[
        str, typer.Option("--from", metavar="RELEASE", help="The release that runs now; `auto` is that of the nodes.")
    ] = options.AUTO,
    config: options.Config = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Also place all pods from scratch by both releases, and compare.")
    ] = False,
    feature_gates: options.FeatureGates = None,
    from_feature_gates: Annotated[
        str | None,
        typer.Option("--from-feature-gates", metavar="A=true,B=false", help="The feature gates that are switched now."),
    ] = None,
    fail_when: UpgradeFailIf = [],
    output: Output = Format.TABLE,
    everything: Annotated[bool, typer.Option("--all", help="Show every pod and workload, not the first ten.")] = False,
    plugins: options.Plugins = [],
    html: options.Html = None,
) -> int:
    """What changes when the scheduler of this cluster is upgraded: pods that go elsewhere, no longer fit, or fit now.

    Every running and every pending pod is decided by both releases; a tie is not a change. --feature-gates are those of
    the new release. Exit code 1 if a pod no longer fits or the configuration is refused; with --fail-if, if that holds.
    """
    from podium.answers.upgrade import UPGRADE_NAMES
    from podium.cli.inputs import choose_release, find_config, mention, read_input, registry_with
    from podium.cli.output import exit_code, read_conditions, write_report

    conditions = read_conditions(fail_when, UPGRADE_NAMES)
    registry = registry_with(plugins)
    given = read_input(source)
    objects = given.expanded
    mention(objects, source)
    before, after = (
        choose_release(options.WhichRelease(release=name, feature_gates=gates), objects)
        for name, gates in ((from_, from_feature_gates), (to, feature_gates))
    )
    found = _decide_by_both(
        given.cluster(),
        find_config(config, objects, after),
        before=before,
        after=after,
        registry=registry,
        replay=replay,
    )
    if not write_report(html, lambda: _upgrade_page(found)):
        _upgrade_show(found, conditions, output, everything=everything)
    return exit_code(conditions, found.values, otherwise=not found.is_harmless)


def _decide_by_both(cluster: Cluster, given: ConfigSource, **settings: Any) -> Upgrade:
    """Decide every pod by both releases; a problem with the configuration names the file it comes from."""
    from podium import answers
    from podium.cli.output import progress
    from podium.errors import ConfigError

    pods = len(cluster.pending) + sum(1 for _ in cluster.placed())
    try:
        with progress("deciding pods", 2 * pods) as advance:
            return answers.upgrade(cluster, given.document, on_decided=advance, **settings)
    except ConfigError as error:
        raise error.at(given.where) from None


def _upgrade_page(found: Upgrade) -> str:
    from podium.present.html_reports import upgrade_page

    return upgrade_page(found)


def _upgrade_show(found: Upgrade, conditions: Sequence[Condition], output: Format, *, everything: bool) -> None:
    from podium.cli.output import emit_measured
    from podium.present.upgrade import to_document, to_lines, to_rows

    emit_measured(found, conditions, output, lines=to_lines, document=to_document, rows=to_rows, everything=everything)


def releases(
    release: Annotated[
        str | None,
        typer.Argument(metavar="[RELEASE]", help="Show only what this release changed, and its feature gates."),
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """The releases of kube-scheduler that Podium can decide as, how each was checked, and what each changed."""
    from podium.cli.output import emit, text_width
    from podium.present.upgrade import release_document, release_lines, release_rows

    emit(
        output,
        lines=lambda: release_lines(release, width=text_width(output)),
        document=lambda: release_document(release),
        rows=lambda: release_rows(release),
    )
