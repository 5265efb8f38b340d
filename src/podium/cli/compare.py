"""`podium compare`: the same pods placed in two ways, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from podium.cli import options
from podium.cli.output import FailIf, Format, Output

if TYPE_CHECKING:
    from podium.answers import Comparison, Condition, Way
    from podium.framework import Registry
    from podium.manifests import Objects

T = TypeVar("T")


def compare(
    files: Annotated[
        list[str],
        typer.Option("-f", "--filename", metavar="FILE", help="The cluster; with --cluster, what both have besides."),
    ] = [],  # noqa: B006
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    configs: Annotated[
        list[str],
        typer.Option(
            "--config",
            metavar="FILE",
            help="A KubeSchedulerConfiguration, or what the release reads; two are compared, one with that of the "
            "input or the default.",
        ),
    ] = [],  # noqa: B006
    clusters: Annotated[
        list[str], typer.Option("--cluster", metavar="FILE", help="Twice, for two clusters to compare.")
    ] = [],  # noqa: B006
    releases: Annotated[
        list[str],
        typer.Option(
            "--release", metavar="RELEASE", help=f"A release such as v1.33; one is compared with {options.CURRENT}."
        ),
    ] = [],  # noqa: B006
    replay: Annotated[bool, typer.Option("--replay", help="Place the running pods anew as well.")] = False,
    fail_if: FailIf = [],  # noqa: B006
    output: Output = Format.TABLE,
    everything: Annotated[bool, typer.Option("--all", help="Show every pod and workload, not the first ten.")] = False,
    tie_break: options.Ties = options.TieBreak.FIRST,
    seed: options.Seed = 0,
    plugins: options.Plugins = [],  # noqa: B006
    html: options.Html = None,
    verbose: options.Verbose = False,
) -> int:
    """Place what is pending in two ways, with two configurations, on two clusters or as two releases would.

    Says which pods go elsewhere and which plugin is responsible, and how packing, imbalance, spread and fragmentation
    compare. Exit code 1 if a --fail-if holds, else 0.
    """
    from podium import answers
    from podium.answers.compare import NAMES
    from podium.cli.inputs import registry_with
    from podium.cli.output import exit_code, progress, read_conditions, write_report

    conditions = read_conditions(fail_if, NAMES)
    registry = registry_with(plugins)
    before, after = _ways((files, kubeconfig, context), configs, clusters, releases, registry, verbose=verbose)
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
    source: tuple[Sequence[str], str | None, str | None],
    configs: Sequence[str],
    clusters: Sequence[str],
    releases: Sequence[str],
    registry: Registry,
    *,
    verbose: bool,
) -> tuple[Way, Way]:
    """The two ways that the options ask for; `source` is files, or a kubeconfig and a context."""
    from podium.answers import Way
    from podium.cli.inputs import mention, read_config, read_objects
    from podium.cluster import Cluster
    from podium.engine.release import CURRENT, release_of
    from podium.errors import InputError
    from podium.manifests import expand_workloads

    files, kubeconfig, context = source
    _check_axes(configs, clusters, releases)
    alone = len(clusters) < 2 and len(configs) < 2 and len(releases) < 2
    releases_of = [release_of(name or CURRENT).name for name in _sides(releases, alone and not configs)]
    configs_of = _sides(configs, alone and bool(configs))
    known: dict[str | None, tuple[Objects, Cluster]] = {}
    ways = []
    for cluster, config, release in zip(_sides(clusters, False), configs_of, releases_of, strict=True):
        if cluster not in known:
            objects = expand_workloads(read_objects([*([cluster] if cluster else []), *files], kubeconfig, context))
            mention(objects, verbose=verbose)
            known[cluster] = objects, Cluster.from_objects(objects)
        objects, built = known[cluster]
        settings = read_config(config, objects, registry, release)
        differs = release if releases_of[0] != releases_of[1] else ""
        name = (cluster if len(clusters) == 2 else differs) or config or _unnamed(objects)
        ways.append(Way(cluster=built, config=settings, release=release, name=name))
    if ways[0].name == ways[1].name and ways[0].config == ways[1].config and ways[0].cluster is ways[1].cluster:
        raise InputError(f"both ways are the same: {ways[0].name}; name two that differ")
    return ways[0], ways[1]


def _check_axes(configs: Sequence[str], clusters: Sequence[str], releases: Sequence[str]) -> None:
    from podium.errors import InputError

    for option, values in (("--config", configs), ("--cluster", clusters), ("--release", releases)):
        if len(values) > 2:
            raise InputError(f"{option} is given {len(values)} times; two are compared")
    if len(clusters) == 1:
        raise InputError("--cluster is given once; give it twice to compare clusters, or name the only one with -f")
    if not configs and not clusters and not releases:
        raise InputError(
            "nothing to compare: give --config, --cluster or --release twice, or one of --config, --release"
        )
    if sum(len(values) == 2 for values in (configs, clusters, releases)) > 1:
        raise InputError(
            "only one of --config, --cluster and --release may be given twice, or it is unclear what differs"
        )


def _sides(values: Sequence[T], against_none: bool) -> tuple[T | None, T | None]:
    """The value of each side; a single one is that of both, or of the second `against_none`."""
    if not values:
        return None, None
    return (None if against_none else values[0]) if len(values) == 1 else values[0], values[-1]


def _unnamed(objects: Objects) -> str:
    return "the default configuration" if objects.scheduler_config is None else "the configuration of the input"


def _pod_count(way: Way, replay: bool) -> int:
    from podium.model.pod_kinds import belongs_to_node

    running = sum(not belongs_to_node(pod) for pod, _ in way.cluster.placed()) if replay else 0
    return len(way.cluster.pending) + running


def _page(comparison: Comparison) -> str:
    from podium.present.html.comparisons import comparison_page

    return comparison_page(comparison)


def _show(comparison: Comparison, conditions: Sequence[Condition], output: Format, *, everything: bool) -> None:
    from podium.cli.output import emit, text_width, with_conditions
    from podium.present.comparison import to_document, to_lines, to_rows

    emit(
        output,
        lines=lambda: to_lines(comparison, width=text_width(output), everything=everything),
        document=lambda: with_conditions(to_document(comparison), conditions, comparison.values),
        rows=lambda: to_rows(comparison),
    )
