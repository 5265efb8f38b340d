"""`podium tune`: the plugin weights and the scoring strategy that suit a cluster best."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli import options
from podium.cli.output import Format, Output

if TYPE_CHECKING:
    from podium.answers import Tuning
    from podium.engine.release import Release
    from podium.framework import Registry
    from podium.manifests import Objects
    from podium.sweep import Workers


def tune(
    files: options.Files = [],  # noqa: B006
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    objective: Annotated[
        str,
        typer.Option(
            "--objective",
            metavar="NAME|MODULE:FUNCTION",
            help="fewest-nodes, lowest-imbalance, most-spread, least-fragmentation, lowest-cost, or a function that is "
            "given a Simulation and gives a number to minimise.",
        ),
    ] = "fewest-nodes",
    replay: Annotated[bool, typer.Option("--replay", help="Place the running pods anew as well.")] = False,
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="Where to write the configuration.")] = None,
    trials: Annotated[
        int | None, typer.Option("--trials", metavar="N", help="How many configurations to try; 100 unless --seconds.")
    ] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", metavar="S", help="How long to try.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed and --trials, the same result.")] = 0,
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", help="How many to try at once; one per processor unless given.")
    ] = None,
    dask: options.Dask = None,
    config: options.Config = None,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME", help="The profile to tune; by default the first.")
    ] = None,
    output: Output = Format.TABLE,
    everything: Annotated[bool, typer.Option("--all", help="Show every pod that moves, not the first ten.")] = False,
    release: options.Releases = options.CURRENT,
    feature_gates: options.FeatureGates = None,
    tie_break: options.Ties = options.TieBreak.FIRST,
    plugins: options.Plugins = [],  # noqa: B006
    html: options.Html = None,
    verbose: options.Verbose = False,
) -> int:
    """Search plugin weights and the scoring strategy of NodeResourcesFit for the best placement of what is pending.

    No configuration is better that leaves more pods pending, or more important ones. Shows what would change compared
    with today's configuration. For an old release it searches the weights of priorities, and finds a Policy. Exit code
    1 if nothing better was found.
    """
    from podium import answers
    from podium.answers.tuning.tune import TRIALS
    from podium.cli.inputs import choose_release, mention, read_objects, registry_with
    from podium.cli.output import progress, write_report, write_text
    from podium.cluster import Cluster
    from podium.manifests import expand_workloads
    from podium.present.text import to_yaml

    if ":" in objective:
        # By its full name, as a process may start elsewhere.
        sys.path.insert(0, os.getcwd())
    registry = registry_with(plugins)
    objects = expand_workloads(read_objects(files, kubeconfig, context))
    mention(objects, verbose=verbose)
    chosen = choose_release(release, feature_gates, objects)
    most = trials if trials is not None or seconds is not None else TRIALS
    if dask is not None and jobs is not None:
        raise typer.BadParameter("cannot be used with --dask, which has its own workers", param_hint="--jobs")
    with (
        nullcontext() if dask is None else _dask_cluster(dask) as workers,
        progress("trying configurations", None if most is None else most + 1) as advance,
    ):
        found = answers.tune(
            Cluster.from_objects(objects),
            objective,
            _document(config, objects, registry, chosen),
            profile=profile,
            replay=replay,
            trials=most,
            seconds=seconds,
            seed=seed,
            jobs=jobs,
            workers=workers,
            registry=registry,
            release=chosen,
            tie_break=tie_break.value,
            on_tried=advance,
        )
    if out is not None:
        write_text(out, f"{to_yaml(found.document)}\n")
    if not write_report(html, lambda: _page(found)):
        _show(found, output, out=out, everything=everything)
    return 0 if found.improves else 1


def _dask_cluster(address: str) -> AbstractContextManager[Workers]:
    from podium.sweep import dask_cluster

    return dask_cluster(address)


def _document(file: str | None, objects: Objects, registry: Registry, release: Release) -> dict[str, Any] | None:
    """The configuration as it stands in its file, else among the objects; None if there is neither."""
    from podium.cli.inputs import check_config, find_config
    from podium.releases import provider_policy

    given = find_config(file, objects, release)
    check_config(given, registry, release)
    if given.options is not None:
        return provider_policy(release.name, given.options)
    return None if given.document is None else dict(given.document)


def _page(found: Tuning) -> str:
    from podium.present.html.comparisons import tuning_page

    return tuning_page(found)


def _show(found: Tuning, output: Format, *, out: str | None, everything: bool) -> None:
    from podium.cli.output import emit, text_width
    from podium.present.tuning import to_document, to_lines, to_rows

    emit(
        output,
        lines=lambda: to_lines(found, out=out, width=text_width(output), everything=everything),
        document=lambda: to_document(found),
        rows=lambda: to_rows(found),
    )
