"""`podium capacity` and `podium devices`: how many more pods fit, how many nodes the rest needs, and which
devices are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import options
from podium.cli.output import Format, Output

if TYPE_CHECKING:
    from podium.answers import Capacity, CapacityQuestion, NodesNeeded
    from podium.cluster import Cluster
    from podium.engine.release import AnyRelease
    from podium.engine.scheduler import SchedulerOptions
    from podium.manifests import Objects
    from podium.model import Pod

CLUSTER_CAPACITY = "cluster-capacity"
MOST_PLACED_PODS = 1_000_000
"""The maximum number of pods that `--nodes-needed` places; each takes time."""
OUTPUTS = (*Format, CLUSTER_CAPACITY)


def _output(text: str) -> str:
    if text not in OUTPUTS:
        raise typer.BadParameter(f"{text!r} is not one of {', '.join(OUTPUTS)}.")
    return text


@dataclass(frozen=True, kw_only=True)
class CapacityOptions:
    """The question, as given by the options."""

    pods: Annotated[
        list[str],
        typer.Argument(
            metavar="POD",
            autocompletion=options.complete_pods,
            help="A file or directory with pods and workloads, or the name of one in the input; several are counted "
            "each on its own, one row each, unless --mix is given. Without POD, --nodes-needed is for pending pods.",
        ),
    ] = field(default_factory=list)
    podspec: Annotated[
        list[str], typer.Option("--podspec", metavar="FILE", help="The same as POD, for users of cluster-capacity.")
    ] = field(default_factory=list)
    mix: Annotated[
        str, typer.Option("--mix", metavar="3:1", help="Count several together: so many of each POD, in turns.")
    ] = ""
    at_least: Annotated[
        int, typer.Option("--at-least", metavar="N", min=1, help="Exit code 1 if fewer than N pods of a POD fit.")
    ] = 1
    limit: Annotated[
        int, typer.Option("--max-limit", metavar="N", min=0, help="Stop after N pods; 0 for no limit.")
    ] = 0
    exclude: Annotated[
        list[str], typer.Option("--exclude-nodes", metavar="NODE,...", help="Leave out these nodes.")
    ] = field(default_factory=list)
    nodes: Annotated[
        list[str],
        typer.Option(
            "--nodes-needed",
            metavar="FILE[=PRICE]",
            help="Find out how many nodes like this --at-least N pods need; give several for the cheapest mix.",
        ),
    ] = field(default_factory=list)
    profile: options.Profile = None

    def read(self, objects: Objects, source: options.Source) -> tuple[CapacityQuestion, Objects]:
        """Read everything that the options name; returns the question, and the objects including those of the
        named files.
        """
        from podium.answers import CapacityQuestion
        from podium.cli.inputs import read_node, read_templates
        from podium.errors import InputError

        templates, objects = read_templates((*self.pods, *self.podspec), objects, source, self.profile)
        nodes = [read_node(text, source) for text in self.nodes]
        excluded = [name for text in self.exclude for name in text.split(",") if name]
        if nodes and self.at_least > MOST_PLACED_PODS:
            raise InputError(
                f"--at-least {self.at_least:,} is more than the {MOST_PLACED_PODS:,} pods that --nodes-needed can place"
            )
        if templates and nodes and self.at_least == 1:
            raise InputError("--nodes-needed must know for how many pods: say --at-least N")
        if not templates and not nodes:
            raise InputError("no pod to find the capacity for: name a file or a pod, or ask with --nodes-needed")
        mix = _read_mix(self.mix, templates)
        return CapacityQuestion(templates, mix, self.at_least, self.limit, nodes, excluded), objects


def capacity(
    source: options.ScenarioSource = options.ScenarioSource(),
    wanted: CapacityOptions = CapacityOptions(),
    output: Annotated[
        str,
        typer.Option("-o", "--output", parser=_output, metavar="|".join(OUTPUTS), help="What to write to stdout."),
    ] = Format.TABLE,
    everything: options.All = False,
    html: options.Html = None,
    deciding: options.TiesByName = options.TiesByName(),
) -> int:
    """Find out how many more pods fit, where, and what stops the next one.

    Of a chart, a directory or file of several workloads, each is counted on its own. Nothing is evicted, and pods that
    are pending already take no room. Exit code 1 if fewer fit than asked for.
    """
    from podium.cli.inputs import (
        in_scenario,
        mention,
        mention_missing_owners,
        read_input,
        registry_with,
        scheduler_options,
    )
    from podium.cli.output import write_report
    from podium.cluster import Cluster
    from podium.workloads.missing_owners import NEW_NODES

    registry = registry_with(deciding.plugins)
    given = read_input(source)
    mention(given.settled, source)
    mention_missing_owners(given, source, *([NEW_NODES] if wanted.nodes else []))
    settings = scheduler_options(deciding, given.settled, registry)
    objects, settings = in_scenario(source, deciding, given.settled, settings)
    asked, objects = wanted.read(objects, source)
    cluster = Cluster.from_objects(objects)
    if asked.counts_each and output != CLUSTER_CAPACITY:
        return _each_alone(asked, cluster, settings, output, html)
    answer, needed = asked.count(cluster, settings)
    if not write_report(html, lambda: _page(answer, needed, wanted.at_least)):
        priced = any("=" in text for text in wanted.nodes)
        least = wanted.at_least
        _show(answer, needed, output, settings.release, at_least=least, everything=everything, priced=priced)
    fits = answer.count >= wanted.at_least if answer is not None else needed is not None and not needed.pods
    return 0 if fits else 1


def _each_alone(
    asked: CapacityQuestion, cluster: Cluster, settings: SchedulerOptions, output: str, html: str | None
) -> int:
    """Count every workload on its own; exit code 1 if one of them has too little room."""
    from podium.cli.output import emit, text_width, write_report
    from podium.present.capacity import workload_document, workload_lines, workload_rows
    from podium.present.html_reports import workload_capacity_page

    found = asked.count_each(cluster, settings)
    if not write_report(html, lambda: workload_capacity_page(found, at_least=asked.at_least)):
        form = Format(output)
        emit(
            form,
            lines=lambda: workload_lines(found, at_least=asked.at_least, width=text_width(form)),
            document=lambda: workload_document(found),
            rows=lambda: workload_rows(found),
            release=settings.release,
        )
    return 0 if all(each.count >= asked.at_least for each in found) else 1


def _read_mix(text: str, templates: Sequence[Pod]) -> tuple[int, ...]:
    """How many pods of each template come in turn; empty unless it was given."""
    from podium.answers.capacity import checked_mix
    from podium.errors import InputError

    if not text:
        return ()
    try:
        mix = [int(number) for number in text.split(":")]
    except ValueError:
        raise InputError(f"--mix {text!r} must be numbers with colons between them, such as 3:1") from None
    try:
        return checked_mix(mix, templates)
    except InputError as error:
        raise error.at(f"--mix {text}") from None


def _page(answer: Capacity | None, needed: NodesNeeded | None, at_least: int) -> str:
    from podium.present.html_reports import capacity_page

    return capacity_page(answer, needed, at_least=at_least)


def _show(
    answer: Capacity | None,
    needed: NodesNeeded | None,
    output: str,
    release: AnyRelease,
    *,
    at_least: int,
    everything: bool,
    priced: bool,
) -> None:
    from podium.cli.output import emit, text_width
    from podium.errors import InputError
    from podium.present import to_json
    from podium.present.capacity import needed_lines, to_document, to_lines, to_review, to_rows
    from podium.present.text import Line

    if output == CLUSTER_CAPACITY:
        if answer is None:
            raise InputError("-o cluster-capacity is about pods to place; name one")
        print(to_json(to_review(answer)))
        return
    form = Format(output)

    def text() -> list[Line]:
        width = text_width(form)
        lines = [] if answer is None else to_lines(answer, at_least=at_least, width=width, everything=everything)
        more = [] if needed is None else needed_lines(needed, width=width, priced=priced)
        return [*lines, *([Line("")] if lines and more else []), *more]

    emit(
        form,
        lines=text,
        document=lambda: to_document(answer, needed),
        rows=lambda: to_rows(answer, needed),
        release=release,
    )


def devices(
    source: options.Source = options.Source(),
    output: Output = Format.TABLE,
    everything: Annotated[bool, typer.Option("--all", help="List every device, also those that are free.")] = False,
    deciding: options.WhichRelease = options.WhichRelease(),
) -> None:
    """List the devices that claims can ask for: by node and class, who holds them, and what is free.

    They stand in the ResourceSlices of the input, and who holds them in its ResourceClaims.
    """
    from podium.answers.capacity import devices as find
    from podium.cli.inputs import choose_release, mention, read_input
    from podium.cli.output import emit, text_width
    from podium.cluster import Cluster
    from podium.present.capacity import devices_document, devices_lines, devices_rows

    objects = read_input(source).settled
    mention(objects, source)
    found = find(Cluster.from_objects(objects), choose_release(deciding, objects).rules)
    emit(
        output,
        lines=lambda: devices_lines(found, width=text_width(output), everything=everything),
        document=lambda: devices_document(found),
        rows=lambda: devices_rows(found),
    )
