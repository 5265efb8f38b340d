"""`podium devices`: which devices there are, who has them, and what is left."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli import options
from podium.cli.output import Format, Output


def devices(
    files: options.Files = [],  # noqa: B006
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    output: Output = Format.TABLE,
    everything: Annotated[bool, typer.Option("--all", help="List every device, also those that are free.")] = False,
    release: options.Releases = options.CURRENT,
    feature_gates: options.FeatureGates = None,
    verbose: options.Verbose = False,
) -> None:
    """List the devices that claims can ask for: by node and class, who holds them, and what is free.

    They stand in the ResourceSlices of the input, and who holds them in its ResourceClaims.
    """
    from podium.answers.devices import devices as find
    from podium.cli.inputs import choose_release, mention, read_objects
    from podium.cli.output import emit, text_width
    from podium.cluster import Cluster
    from podium.present.devices import to_document, to_lines, to_rows

    objects = read_objects(files, kubeconfig, context)
    mention(objects, verbose=verbose)
    found = find(Cluster.from_objects(objects), choose_release(release, feature_gates, objects).rules)
    emit(
        output,
        lines=lambda: to_lines(found, width=text_width(output), everything=everything),
        document=lambda: to_document(found),
        rows=lambda: to_rows(found),
    )
