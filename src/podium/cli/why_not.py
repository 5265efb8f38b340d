"""`podium why-not`: what keeps a pod off a node, and the smallest changes that would turn it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import options
from podium.cli.output import Format, Output

if TYPE_CHECKING:
    from podium.answers import WhyNot


def why_not(
    pod: Annotated[
        str,
        typer.Argument(metavar="POD", autocompletion=options.complete_pods, help="The pod's name, or namespace/name."),
    ],
    node: Annotated[
        str, typer.Argument(metavar="NODE", autocompletion=options.complete_nodes, help="The node it should go to.")
    ],
    files: options.Files = [],  # noqa: B006
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    namespace: Annotated[str | None, typer.Option("-n", "--namespace", help="The pod's namespace.")] = None,
    config: options.Config = None,
    profile: options.Profile = None,
    output: Output = Format.TABLE,
    most: Annotated[int, typer.Option("--most", metavar="N", min=0, help="How many suggestions to look for.")] = 5,
    release: options.Releases = options.CURRENT,
    feature_gates: options.FeatureGates = None,
    tie_break: options.TiesOfRelease = None,
    seed: options.Seed = 0,
    plugins: options.Plugins = [],  # noqa: B006
    html: options.Html = None,
    verbose: options.Verbose = False,
) -> int:
    """Find out what keeps a pod off a node or makes another win, and the smallest changes that would turn it.

    Every suggestion was tried. A pod that runs already is decided again as if it did not run yet. Exit code 0 if the
    pod goes there already, 1 if not.
    """
    from podium import answers
    from podium.answers.pod_lookup import find_pod
    from podium.cli.inputs import choose_release, mention, read_config, read_objects, registry_with
    from podium.cli.output import write_report
    from podium.cluster import Cluster

    registry = registry_with(plugins)
    found, objects = find_pod(read_objects(files, kubeconfig, context), pod, namespace)
    mention(objects, verbose=verbose)
    chosen = choose_release(release, feature_gates, objects)
    answer = answers.why_not(
        Cluster.from_objects(objects),
        found,
        node,
        read_config(config, objects, registry, chosen),
        registry=registry,
        release=chosen,
        profile=profile,
        tie_break=tie_break,
        seed=seed,
        most=most,
    )
    if not write_report(html, lambda: _page(answer)):
        _show(answer, output)
    return 0 if answer.goes_there else 1


def _page(answer: WhyNot) -> str:
    from podium.present.html.decisions import why_not_page

    return why_not_page(answer)


def _show(answer: WhyNot, output: Format) -> None:
    from podium.cli.output import emit, text_width
    from podium.present.why_not import to_document, to_lines, to_rows

    emit(
        output,
        lines=lambda: to_lines(answer, width=text_width(output)),
        document=lambda: to_document(answer),
        rows=lambda: to_rows(answer),
    )
