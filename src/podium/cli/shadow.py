"""`podium shadow`: what Podium would have decided, beside what a cluster's scheduler does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import options

if TYPE_CHECKING:
    from podium.live.shadow import Compared, Shadow


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
    plugins: options.Plugins = [],  # noqa: B006
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
    from podium.cli.run import read_settings
    from podium.errors import InputError
    from podium.live.shadow_process import run_shadow

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
