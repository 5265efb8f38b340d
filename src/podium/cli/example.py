"""`podium example`: write out a cluster to try things on."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer


class Cluster(StrEnum):
    FLEET = "fleet"
    SHOP = "shop"


class Format(StrEnum):
    YAML = "yaml"
    JSON = "json"


def example(
    cluster: Annotated[
        Cluster, typer.Argument(help="`fleet` has 63 nodes and some 400 pods; `shop` is what `podium demo` explains.")
    ],
    output: Annotated[Format, typer.Option("-o", "--output", help="What to write.")] = Format.YAML,
) -> None:
    """Write an example cluster to stdout, for the commands that take -f."""
    from podium.example.clusters import fleet_text, shop_text

    text = fleet_text if cluster is Cluster.FLEET else shop_text
    sys.stdout.write(text(json=output is Format.JSON))
