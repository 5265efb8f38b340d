"""`podium why-not`: what keeps a pod off a node, and the smallest changes that would turn it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import options

if TYPE_CHECKING:
    from podium.answers import WhyNot


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


def why_not(
    pod: Annotated[str, typer.Argument(metavar="POD", help="The pod's name, or namespace/name.")],
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node it should go to.")],
    files: options.Files,
    namespace: Annotated[str | None, typer.Option("-n", "--namespace", help="The pod's namespace.")] = None,
    config: options.Config = None,
    profile: options.Profile = None,
    output: Annotated[Format, typer.Option("-o", "--output", help="What to write.")] = Format.TABLE,
    most: Annotated[int, typer.Option("--most", metavar="N", min=0, help="How many suggestions to look for.")] = 5,
    release: options.Releases = options.Release.V1_36,
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
    from podium.cli.inputs import find_pod, mention, read_config, read_objects, registry_with
    from podium.cli.output import write_text
    from podium.cluster import Cluster

    registry = registry_with(plugins)
    found, objects = find_pod(read_objects(files), pod, namespace)
    mention(objects, verbose=verbose)
    answer = answers.why_not(
        Cluster.from_objects(objects),
        found,
        node,
        read_config(config, objects, registry, release.value),
        registry=registry,
        release=release.value,
        profile=profile,
        tie_break=tie_break,
        seed=seed,
        most=most,
    )
    if html is not None:
        from podium.present.html.decisions import why_not_page

        write_text(html, why_not_page(answer))
    _show(answer, output)
    return 0 if answer.goes_there else 1


def _show(answer: WhyNot, output: Format) -> None:
    from podium.cli.output import print_lines, width
    from podium.present.text import to_json, to_yaml
    from podium.present.why_not import to_document, to_lines, to_rows

    match output:
        case Format.JSON:
            print(to_json(to_document(answer)))
        case Format.YAML:
            print(to_yaml(to_document(answer)))
        case Format.CSV:
            print(to_rows(answer))
        case Format.TABLE:
            print_lines(to_lines(answer, width=width()))
