"""`podium explain` and `podium why-not`: why a pod goes where it goes, and what would send it elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import options
from podium.cli.output import Format, Output

if TYPE_CHECKING:
    from podium.answers import WhyNot, WhyNowhere
    from podium.answers.explanation import Explained
    from podium.engine import Decision
    from podium.engine.release import AnyRelease
    from podium.model import Pod

COMPARED = 2
"""Of how many nodes `--formulas` shows how their scores come about."""

PodName = Annotated[
    str,
    typer.Argument(
        metavar="POD",
        autocompletion=options.complete_pods,
        help="The pod's name, namespace/name, or a workload such as deploy/web.",
    ),
]


def explain(
    pod: PodName,
    source: options.ScenarioSource = options.ScenarioSource(),
    from_scheduler: Annotated[
        str | None,
        typer.Option("--from-scheduler", metavar="URL", help="Ask a running `podium run` at its --port instead."),
    ] = None,
    token_file: Annotated[
        str | None,
        typer.Option("--token-file", metavar="FILE", help="For --from-scheduler: its --decisions-token-file."),
    ] = None,
    namespace: options.Namespace = None,
    profile: options.Profile = None,
    output: Output = Format.TABLE,
    every_node: options.All = False,
    per_node: Annotated[bool, typer.Option("--nodes", help="Show rejections node by node, not by reason.")] = False,
    preempt: Annotated[bool, typer.Option("--preempt", help="Show on which nodes evicting pods makes room.")] = False,
    formulas: Annotated[
        bool,
        typer.Option("--formulas", help="Show how the scores of the two best nodes come about; of each with --all."),
    ] = False,
    html: options.Html = None,
    deciding: options.AllSchedulerOptions = options.AllSchedulerOptions(),
) -> int:
    """Explain why a pod goes to its node, or fits on none.

    A pod that runs already is decided again as if it did not run yet. Exit code 1 if the pod fits nowhere, 2 if it
    cannot be decided.
    """
    from contextlib import closing

    if from_scheduler is not None:
        from podium.cli.live import ask_scheduler

        return ask_scheduler(from_scheduler, pod, namespace, output.value, token_file)
    from podium.answers.explanation import best_nodes, explain_pod
    from podium.cli.inputs import in_scenario, mention, read_input, registry_with, scheduler_options
    from podium.cli.output import remark, write_report
    from podium.cluster import Cluster
    from podium.engine import Scheduler
    from podium.engine.release import release_of
    from podium.errors import InputError
    from podium.lookup import find_pod, pods_of_workload

    registry = registry_with(deciding.plugins)
    objects = read_input(source).settled
    objects, settings = in_scenario(source, deciding, objects, scheduler_options(deciding, objects, registry))
    found, objects, is_wanted = find_pod(objects, pod, namespace)
    mention(objects, source, assume_volumes=deciding.assume_volumes)
    if preempt and (old := release_of(settings.release)).is_old:
        raise InputError(
            f"preemption of {old.name} is not modelled; leave out --preempt, or name a release from v1.29 on"
        )
    if not is_wanted:
        remark(f"{pod} wants no pods now; {found.key} is what its template makes")
    elif found.name != (name := pod.rpartition("/")[2]):
        remark(f"{pod}: {found.key}, {_which_pod(pods_of_workload(objects, found, name))}")
    with closing(Scheduler(Cluster.from_objects(objects), settings)) as scheduler:
        wanted = best_nodes((None if every_node else COMPARED) if formulas else 0)
        explained = explain_pod(scheduler, found, profile, preempt=preempt, formulas_on=wanted)
        if source.verbose:
            remark(_shared_results(explained.decision, explain_pod(scheduler, found, profile).decision))
    error = explained.decision.error
    # As text, the error is the whole answer, and it goes to stderr.
    is_said = bool(error) and output in (Format.TABLE, Format.WIDE)
    if not write_report(html, lambda: _page(explained)) and not is_said:
        show(explained, output, settings.release, every_node=every_node, per_node=per_node)
    if error:
        raise InputError(f"pod {found.key} cannot be decided: {error}")
    return 0 if explained.is_placed else 1


def _which_pod(siblings: Sequence[Pod]) -> str:
    return "its only pod" if len(siblings) == 1 else f"one of its {len(siblings):,} pods"


def _shared_results(first: Decision, second: Decision) -> str:
    """Which plugins reused results, for two pods of one kind decided one after the other."""
    known, shared = (", ".join(decision.kept) or "none" for decision in (first, second))
    return f"results known from earlier pods of this kind: {known}; another one would share: {shared}"


def _page(explained: Explained) -> str:
    from podium.present.html_reports import explanation_page

    return explanation_page(explained)


def show(
    explained: Explained,
    output: Format,
    release: AnyRelease | None = None,
    *,
    every_node: bool = False,
    per_node: bool = False,
) -> None:
    """Print an explanation in the format asked for."""
    from podium.cli.output import emit, text_width
    from podium.present.explanation import to_document, to_lines, to_rows

    wide = output is Format.WIDE
    emit(
        output,
        lines=lambda: to_lines(
            explained, width=text_width(output), wide=wide, every_node=every_node, per_node=per_node
        ),
        document=lambda: to_document(explained),
        rows=lambda: to_rows(explained),
        release=release,
    )


def why_not(
    pod: PodName,
    node: Annotated[
        str | None,
        typer.Argument(
            metavar="[NODE]",
            autocompletion=options.complete_nodes,
            help="The node it should go to. Without it: any node, for a pod that fits nowhere.",
        ),
    ] = None,
    source: options.ScenarioSource = options.ScenarioSource(),
    namespace: options.Namespace = None,
    profile: options.Profile = None,
    output: Output = Format.TABLE,
    most: Annotated[int, typer.Option("--most", metavar="N", min=0, help="How many suggestions to look for.")] = 5,
    html: options.Html = None,
    deciding: options.TiesByRelease = options.TiesByRelease(),
) -> int:
    """Find out what keeps a pod off a node or makes another win, and the smallest changes that send it there.

    Without NODE, the smallest changes that let a pending pod run anywhere, and the nodes it comes closest to. Every
    suggestion was tried. A pod that runs already is decided again as if it did not run yet. Exit code 0 if the pod goes
    there already, 1 if not.
    """
    from podium import answers
    from podium.cli.inputs import in_scenario, mention, read_input, registry_with, scheduler_options
    from podium.cluster import Cluster
    from podium.lookup import find_pod

    registry = registry_with(deciding.plugins)
    objects = read_input(source).settled
    objects, settings = in_scenario(source, deciding, objects, scheduler_options(deciding, objects, registry))
    found, objects, _ = find_pod(objects, pod, namespace)
    mention(objects, source)
    cluster = Cluster.from_objects(objects)
    if node is None:
        anywhere = answers.why_nowhere(cluster, found, settings, profile=profile, most=most, **deciding.choices)
        _show_why_nowhere(anywhere, output, html, settings.release)
        return 0 if anywhere.runs else 1
    answer = answers.why_not(cluster, found, node, settings, profile=profile, most=most, **deciding.choices)
    _show_why_not(answer, output, html, settings.release)
    return 0 if answer.goes_there else 1


def _show_why_not(answer: WhyNot, output: Format, html: str | None, release: AnyRelease) -> None:
    from podium.cli.output import emit, text_width, write_report
    from podium.present.html_reports import why_not_page
    from podium.present.why_not import why_not_document, why_not_lines, why_not_rows

    if not write_report(html, lambda: why_not_page(answer)):
        emit(
            output,
            lines=lambda: why_not_lines(answer, width=text_width(output)),
            document=lambda: why_not_document(answer),
            rows=lambda: why_not_rows(answer),
            release=release,
        )


def _show_why_nowhere(answer: WhyNowhere, output: Format, html: str | None, release: AnyRelease) -> None:
    from podium.cli.output import emit, text_width, write_report
    from podium.present.html_reports import why_nowhere_page
    from podium.present.why_not import why_not_document, why_not_rows, why_nowhere_lines

    if not write_report(html, lambda: why_nowhere_page(answer)):
        emit(
            output,
            lines=lambda: why_nowhere_lines(answer, width=text_width(output)),
            document=lambda: why_not_document(answer),
            rows=lambda: why_not_rows(answer),
            release=release,
        )
