"""`podium simulate`: where everything that is pending would go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import options, timeline
from podium.cli.output import Format, Output

if TYPE_CHECKING:
    from podium.engine import Simulation


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
    events: timeline.Events = None,
    until: timeline.Until = None,
    log: timeline.Log = None,
    samples: timeline.Samples = None,
    plot: timeline.Plot = None,
    snapshot_at: timeline.SnapshotAt = None,
    snapshot: timeline.Snapshot = None,
    resume: timeline.Resume = None,
    node_groups: timeline.NodeGroups = None,
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

    wishes = timeline.Wishes(events, until, log, samples, plot, snapshot_at, snapshot, resume, node_groups)
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
        return timeline.simulate_timeline(
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
    from podium.present.html.placements import simulation_page

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
