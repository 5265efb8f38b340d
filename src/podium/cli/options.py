"""Options that several commands have."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class TieBreak(StrEnum):
    RANDOM = "random"
    FIRST = "first"
    ROUND_ROBIN = "round-robin"


class Sampling(StrEnum):
    ALL = "all"
    UPSTREAM = "upstream"


Files = Annotated[
    list[str],
    typer.Option(
        "-f",
        "--filename",
        metavar="FILE",
        help="YAML or JSON of Kubernetes objects, plain or gzip, a directory, or `-` for stdin; several add up.",
    ),
]
Config = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="A KubeSchedulerConfiguration; by default the one in the input."),
]
Profile = Annotated[
    str | None, typer.Option("--profile", metavar="NAME", help="Decide with this profile, not the pod's own.")
]
Plugins = Annotated[
    list[str],
    typer.Option("--plugin", metavar="MODULE:CLASS", help="A plugin of your own; may be given several times."),
]
Seed = Annotated[int, typer.Option("--seed", help="Of the random tie-break: the same seed, the same choices.")]
Ties = Annotated[
    TieBreak, typer.Option("--tie-break", help="Which of several best nodes is taken; `first` is the smallest name.")
]
Sampled = Annotated[
    Sampling, typer.Option("--sampling", help="Evaluate all nodes, or as many as kube-scheduler would.")
]
All = Annotated[bool, typer.Option("--all", help="Show every node, not the first ten.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Also say which kinds of objects were not needed.")]
