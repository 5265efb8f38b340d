"""`podium run` and `podium shadow`: a scheduler for a live cluster, and one that only watches the cluster's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import options

if TYPE_CHECKING:
    from podium.config import KubeSchedulerConfiguration
    from podium.engine.release import Release
    from podium.framework import Registry
    from podium.live.shadow import Compared, Shadow

SCHEDULER_NAME = "podium"
"""The pods that are scheduled when no configuration says otherwise: those with this schedulerName."""


def run(
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="A KubeSchedulerConfiguration; else one profile named `podium`."),
    ] = None,
    plugins: options.Plugins = [],
    release: options.Releases = options.CURRENT,
    feature_gates: options.FeatureGates = None,
    tie_break: options.TiesOfRelease = None,
    seed: options.Seed = 0,
    bind_concurrency: Annotated[
        int, typer.Option("--bind-concurrency", metavar="N", min=1, help="How many pods are bound at once.")
    ] = 64,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide, and write nothing.")] = False,
    elect: Annotated[
        bool, typer.Option("--leader-elect/--no-leader-elect", help="Whether replicas agree which of them works.")
    ] = True,
    host: Annotated[str, typer.Option("--bind-address", help="Where to serve metrics and decisions.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="At which port; 0 for a free one.")] = 10259,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Say more about what happens.")] = False,
) -> None:
    """Schedule the pods of a cluster that name this scheduler, until told to stop.

    Answers /livez, /readyz, /metrics and /decisions/NAMESPACE/POD over HTTP. SIGTERM lets bindings under way finish.
    """
    from podium.cli.inputs import choose_release, registry_with
    from podium.cli.live import find, log_to_stderr
    from podium.live.process import Listening, run_scheduler
    from podium.live.scheduler import Settings

    registry, chosen = registry_with(plugins), choose_release(release, feature_gates, ())
    settings = read_settings(config, registry, chosen)
    access = find(kubeconfig or settings.client_connection.kubeconfig or None, context)
    log_to_stderr(verbose=verbose)
    run_scheduler(
        access,
        settings,
        Settings(bind_concurrency, dry_run),
        Listening(host, port),
        # Who writes nothing leaves the lease to those who do.
        elect=elect and settings.leader_election.leader_elect and not dry_run,
        registry=registry,
        release=chosen,
        tie_break=tie_break,
        seed=seed,
    )


def read_settings(
    file: str | None, registry: Registry, release: Release, name: str = SCHEDULER_NAME
) -> KubeSchedulerConfiguration:
    """The configuration of a file, or one profile of this name with the default plugins."""
    from podium.cli.inputs import Given, check_config, find_config
    from podium.manifests import Objects

    if file is None:
        profiles = [{"schedulerName": name}]
        kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        given = Given({**kind, "profiles": profiles}, "the default configuration")
    else:
        given = find_config(file, Objects(), release)
    found = check_config(given, registry, release)
    assert found is not None, "there is a document"
    return found


def shadow(
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="The configuration that the cluster's scheduler has."),
    ] = None,
    log: Annotated[
        str | None, typer.Option("--log", metavar="FILE", help="Also write every pod as a line of JSON.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, help="Serve Prometheus metrics at this port.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--for", metavar="SECONDS", min=0.0, help="Stop after this time; else on Ctrl-C.")
    ] = None,
    plugins: options.Plugins = [],
    release: options.Releases = options.CURRENT,
    feature_gates: options.FeatureGates = None,
) -> None:
    """Follow a cluster without writing to it: decide every pod just before its scheduler binds it, and compare.

    Says for each pod whether the node is the same, as good, or another one and which plugin makes the difference, and
    when it cannot know. At the end, how often the two agree.
    """
    import json
    from contextlib import ExitStack
    from pathlib import Path

    from podium.cli.inputs import choose_release, registry_with
    from podium.cli.live import find, log_to_stderr
    from podium.cli.output import remark
    from podium.errors import InputError
    from podium.live.shadow import run_shadow

    registry, chosen = registry_with(plugins), choose_release(release, feature_gates, ())
    settings = read_settings(config, registry, chosen, "default-scheduler")
    access = find(kubeconfig, context)
    log_to_stderr(verbose=False)
    with ExitStack() as stack:
        try:
            file = stack.enter_context(Path(log).open("a", buffering=1)) if log else None
        except OSError as error:
            raise InputError((error.strerror or str(error)).lower(), log or "") from None

        def report(compared: Compared) -> None:
            print(_line(compared), flush=True)
            if file is not None:
                file.write(json.dumps(compared.to_dict()) + "\n")

        def begun(found: Shadow) -> None:
            nodes, waiting = found.cluster.node_count, len(found.cluster.pending)
            remark(f"context {access.context}: following {nodes} nodes, {waiting} pods wait")

        found = run_shadow(
            access,
            settings,
            report,
            port=port,
            seconds=seconds,
            on_start=begun,
            registry=registry,
            release=chosen,
            tie_break="first",
        )
    print(_summary(found))


def _line(compared: Compared) -> str:
    match compared.outcome.value:
        case "same" | "tie":
            return f"{compared.outcome.value:8} {compared.pod} on {compared.node}"
        case "unknown":
            return f"unknown  {compared.pod} on {compared.node}: {compared.reason}"
    where = compared.podium or "nowhere"
    return f"other    {compared.pod} on {compared.node}, Podium: {where}: {compared.reason}"


def _summary(found: Shadow) -> str:
    counts = ", ".join(f"{count} {outcome.value}" for outcome, count in found.outcomes.items()) or "no pod was bound"
    rate = "" if found.agreement is None else f"; agreement {found.agreement:.1%}"
    by = ", ".join(f"{plugin} {count}" for plugin, count in found.plugins.most_common() if count)
    return f"{counts}{rate}{f'; differences by {by}' if by else ''}"
