"""`podium dump`: a live cluster, or files, as one file that can be attached to a bug report."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli import options


def dump(
    out: Annotated[str, typer.Option("-o", "--out", metavar="FILE", help="Where to write it; `-` for stdout.")],
    files: options.Files = [],  # noqa: B006
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    anonymous: Annotated[
        bool,
        typer.Option("--anonymize", help="Put words for names, labels and images; decisions stay as they are."),
    ] = False,
    verbose: options.Verbose = False,
) -> None:
    """Write everything that scheduling reads of a cluster into one file of JSON, for `-f`.

    Other fields of the objects, such as environment variables, are left out.
    """
    import sys

    from podium.cli.inputs import mention, read_objects
    from podium.cli.output import write_text
    from podium.live.anonymize import anonymize
    from podium.live.dump import documents
    from podium.live.dump import dump as encode

    objects = read_objects(files, kubeconfig, context)
    mention(objects, verbose=verbose)
    items = documents(objects)
    text = encode(anonymize(items) if anonymous else items)
    if out == "-":
        sys.stdout.write(text.decode())
    else:
        write_text(out, text.decode())
