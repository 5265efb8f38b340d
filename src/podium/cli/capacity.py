"""`podium capacity`: how many more pods fit, and how many nodes the rest needs."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.answers import Capacity, NodesNeeded, NodeTemplate
    from podium.load import Objects
    from podium.objects import Pod

FILE_ENDINGS = (".yaml", ".yml", ".json", ".gz")


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"
    CLUSTER_CAPACITY = "cluster-capacity"


def capacity(
    files: options.Files,
    pods: Annotated[
        list[str],
        typer.Argument(
            metavar="[POD...]",
            help="A file with a pod or a workload, or the name of one in the input; none for what is pending, with "
            "--nodes-needed.",
        ),
    ] = [],  # noqa: B006
    podspec: Annotated[
        list[str], typer.Option("--podspec", metavar="FILE", help="Another POD, as cluster-capacity has it.")
    ] = [],  # noqa: B006
    mix: Annotated[str, typer.Option("--mix", metavar="3:1", help="How many of each POD come in turn.")] = "",
    at_least: Annotated[
        int, typer.Option("--at-least", metavar="N", min=1, help="Exit code 1 if fewer than N pods fit.")
    ] = 1,
    limit: Annotated[
        int, typer.Option("--max-limit", metavar="N", min=0, help="Stop after N pods; 0 for no limit.")
    ] = 0,
    exclude: Annotated[
        list[str], typer.Option("--exclude-nodes", metavar="NODE,...", help="As if these nodes were not there.")
    ] = [],  # noqa: B006
    nodes: Annotated[
        list[str],
        typer.Option(
            "--nodes-needed",
            metavar="FILE[=PRICE]",
            help="How many nodes like this it takes to fit --at-least N pods; several for the cheapest mix.",
        ),
    ] = [],  # noqa: B006
    config: options.Config = None,
    profile: options.Profile = None,
    output: Annotated[Format, typer.Option("-o", "--output", help="What to write.")] = Format.TABLE,
    everything: Annotated[bool, typer.Option("--all", help="Show every node, not the first ten.")] = False,
    tie_break: options.Ties = options.TieBreak.FIRST,
    seed: options.Seed = 0,
    plugins: options.Plugins = [],  # noqa: B006
    verbose: options.Verbose = False,
) -> int:
    """Find out how many more pods fit, where, and what stops the next one.

    Nothing is evicted, and pods that are pending already take no room. Exit code 1 if fewer fit than asked for.
    """
    from podium import answers
    from podium.cli.inputs import mention, read_config, read_objects, registry_with
    from podium.cli.progress import progress
    from podium.cluster import Cluster
    from podium.errors import InputError

    registry = registry_with(plugins)
    objects = read_objects(files)
    mention(objects, verbose=verbose)
    cluster = Cluster.from_objects(objects)
    settings = read_config(config, objects, registry)
    chosen = {"registry": registry, "tie_break": tie_break.value, "seed": seed}
    templates = [_with_profile(pod, profile) for name in (*pods, *podspec) for pod in read_pods(name, objects)]
    node_templates = [_read_node(text) for text in nodes]
    if not templates and not nodes:
        raise InputError("no pod to find the capacity for; name a file or a pod, or ask with --nodes-needed")
    if templates and nodes and at_least == 1:
        raise InputError("--nodes-needed needs to know for how many pods: say --at-least N")
    excluded = [name for text in exclude for name in text.split(",") if name]
    if not templates:
        trimmed = answers.without_nodes(cluster, excluded)
        with progress("trying nodes", 0) as tried:
            waiting = list(trimmed.pending.values())
            needed = answers.nodes_needed(trimmed, waiting, node_templates, settings, on_tried=tried, **chosen)
        _show_needed(needed, output, priced=_are_priced(nodes))
        return 0 if not needed.pods else 1
    most = limit or (at_least if nodes else 0)
    with progress("placing pods", most) as placed:
        answer = answers.capacity(
            cluster,
            templates,
            settings,
            mix=_read_mix(mix),
            limit=most,
            exclude_nodes=excluded,
            on_placed=placed,
            **chosen,
        )
    ...
    return 0
