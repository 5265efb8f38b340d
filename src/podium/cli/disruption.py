"""`podium drain`, `podium fail` and `podium audit`: where running pods go when nodes are lost, and where they would go
now.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import options
from podium.cli.output import Format, Output, fail_if

if TYPE_CHECKING:
    from podium.answers import Audit, Condition, Disruption, DisruptionSettings, WorstCase
    from podium.cluster import Cluster
    from podium.engine.release import AnyRelease
    from podium.present.text import Line

NodeArguments = Annotated[
    list[str],
    typer.Argument(
        metavar="NODE|KEY=VALUE",
        autocompletion=options.complete_nodes,
        help="The nodes, by name, by the beginning of a name, or by label; zone=, region= and hostname= are short for "
        "the usual ones.",
    ),
]
Selectors = Annotated[
    list[str], typer.Option("-l", "--selector", metavar="KEY=VALUE,...", help="The nodes that have all these labels.")
]


MEASURES = "moves, returns, pending, blocked, lost, stays, terminating, preempted, violated and nodes"


@dataclass(frozen=True, kw_only=True)
class LossOptions:
    """How pods are placed again when nodes are lost, and how the answer is shown."""

    preempt: Annotated[
        bool, typer.Option("--preempt/--no-preempt", help="Whether pods may evict others of a lower priority for room.")
    ] = True
    fail_when: Annotated[list[str], fail_if("pending > 0", MEASURES)] = field(default_factory=list)
    output: Output = Format.TABLE
    everything: Annotated[bool, typer.Option("--all", help="Show every pod and workload, not the first ten.")] = False
    html: options.Html = None


def drain(
    source: options.ScenarioSource = options.ScenarioSource(),
    nodes: NodeArguments = [],
    selectors: Selectors = [],
    wanted: LossOptions = LossOptions(),
    deciding: options.TiesByName = options.TiesByName(),
) -> int:
    """Cordon nodes and evict their pods one by one: where they go, which stay pending, and which budgets block.

    Exit code 1 if a pod does not find another node, or is blocked, or has no controller; with --fail-if, if that holds.
    """
    from podium import answers
    from podium.answers.disruption import DISRUPTION_NAMES
    from podium.cli.output import exit_code, progress, read_conditions
    from podium.errors import InputError

    if not nodes and not selectors:
        raise InputError("say which nodes to drain: by name, or by label such as zone=eu-1a")
    conditions = read_conditions(wanted.fail_when, DISRUPTION_NAMES)
    cluster, settings = _read(source, deciding, preempt=wanted.preempt)
    nodes = answers.find_nodes(cluster, nodes, selectors)
    with progress("evicting pods", _pod_count(cluster, nodes)) as advance:
        found = answers.drain(cluster, nodes, settings, on_decided=advance)
    _show(found, conditions, wanted, settings.release)
    return exit_code(conditions, found.values, otherwise=not found.harmless)


def fail(
    source: options.ScenarioSource = options.ScenarioSource(),
    nodes: NodeArguments = [],
    selectors: Selectors = [],
    worst: Annotated[
        str | None,
        typer.Option("--any", metavar="N|zone|LABEL", help="The N nodes, or the zone, that would be worst to lose."),
    ] = None,
    most: Annotated[
        int, typer.Option("--most", metavar="N", min=1, help="How many sets of nodes to try for --any.")
    ] = 2_000,
    wanted: LossOptions = LossOptions(),
    deciding: options.TiesByName = options.TiesByName(),
) -> int:
    """Take nodes away: where their pods go, which stay pending and what pins them, and which budgets are violated.

    Exit code 1 if a pod does not find another node, or has no controller; with --fail-if, if that holds.
    """
    from podium import answers
    from podium.answers.disruption import DISRUPTION_NAMES
    from podium.cli.output import exit_code, progress, read_conditions
    from podium.errors import InputError

    if bool(nodes or selectors) == (worst is not None):
        raise InputError("say which nodes fail: by name, by label such as zone=eu-1a, or --any N for the worst N")
    conditions = read_conditions(wanted.fail_when, DISRUPTION_NAMES)
    cluster, settings = _read(source, deciding, preempt=wanted.preempt)
    case: WorstCase | None = None
    if worst is not None:
        case = _worst(cluster, worst, settings, most)
        disruption = case.disruption
    else:
        nodes = answers.find_nodes(cluster, nodes, selectors)
        with progress("placing pods again", _pod_count(cluster, nodes)) as advance:
            disruption = answers.fail(cluster, nodes, settings, on_decided=advance)
    _show(case or disruption, conditions, wanted, settings.release)
    return exit_code(conditions, disruption.values, otherwise=not disruption.harmless)


def _pod_count(cluster: Cluster, nodes: Iterable[str]) -> int:
    return sum(len(cluster.pods_on(cluster.rows[name])) for name in nodes)


def _worst(cluster: Cluster, what: str, settings: DisruptionSettings, most: int) -> WorstCase:
    from podium import answers
    from podium.answers.disruption import trials_needed
    from podium.cli.output import progress
    from podium.errors import InputError
    from podium.wording import one_line

    try:
        with progress("trying sets of nodes", trials_needed(cluster, what, most)) as advance:
            return answers.worst_case(cluster, what, settings, most=most, on_tried=advance)
    except InputError as error:
        raise error.at(f"--any {one_line(what, 60)}") from None


def _read(source: options.Source, deciding: options.Deciding, *, preempt: bool) -> tuple[Cluster, DisruptionSettings]:
    """The cluster, and the settings for deciding."""
    from podium.answers import DisruptionSettings
    from podium.cli.inputs import read_cluster
    from podium.cluster import Cluster
    from podium.workloads.missing_owners import BUDGETS

    objects, settings = read_cluster(source, deciding, BUDGETS)
    return Cluster.from_objects(objects), DisruptionSettings(**vars(settings), preempt=preempt)


def _show(
    found: Disruption | WorstCase, conditions: Sequence[Condition], wanted: LossOptions, release: AnyRelease
) -> None:
    from podium.answers import WorstCase
    from podium.cli.output import emit, text_width, with_conditions, write_report
    from podium.present.disruption import to_document, to_lines, to_rows, worst_lines
    from podium.present.html_reports import disruption_page

    if write_report(wanted.html, lambda: disruption_page(found)):
        return
    disruption = found.disruption if isinstance(found, WorstCase) else found

    def lines() -> list[Line]:
        width = text_width(wanted.output)
        if isinstance(found, WorstCase):
            return worst_lines(found, width=width, everything=wanted.everything)
        return to_lines(found, width=width, everything=wanted.everything)

    emit(
        wanted.output,
        lines=lines,
        document=lambda: with_conditions(to_document(found), conditions, disruption.values),
        rows=lambda: to_rows(disruption),
        release=release,
    )


AUDIT_MEASURES = "pods, agreement (a share), agrees, drifted, unfit, undecided and skipped"
AuditFailIf = Annotated[list[str], fail_if("agreement < 95%", AUDIT_MEASURES)]


def audit(
    source: options.ScenarioSource = options.ScenarioSource(),
    fail_when: AuditFailIf = [],
    output: Output = Format.TABLE,
    everything: Annotated[bool, typer.Option("--all", help="Show every pod, not the first ten.")] = False,
    html: options.Html = None,
    deciding: options.Deciding = options.Deciding(),
) -> int:
    """Decide every running pod again, and say which are where they would go now, which drifted, which no longer fit.

    A node that is as good as the best agrees. Exit code 1 if a pod no longer fits; with --fail-if, if that holds.
    """
    from podium import answers
    from podium.answers.audit import AUDIT_NAMES
    from podium.cli.inputs import read_cluster
    from podium.cli.output import exit_code, progress, read_conditions, write_report
    from podium.cluster import Cluster

    conditions = read_conditions(fail_when, AUDIT_NAMES)
    objects, settings = read_cluster(source, deciding)
    cluster = Cluster.from_objects(objects)
    with progress("deciding pods again", sum(1 for _ in cluster.placed())) as advance:
        found = answers.audit(cluster, settings, on_decided=advance)
    if not write_report(html, lambda: _page(found)):
        _audit_show(found, conditions, output, settings.release, everything=everything)
    return exit_code(conditions, found.values, otherwise=bool(found.values["unfit"]))


def _page(found: Audit) -> str:
    from podium.present.html_reports import audit_page

    return audit_page(found)


def _audit_show(
    found: Audit, conditions: Sequence[Condition], output: Format, release: AnyRelease, *, everything: bool
) -> None:
    from podium.cli.output import emit_measured
    from podium.present.disruption import audit_document, audit_lines, audit_rows

    emit_measured(
        found,
        conditions,
        output,
        lines=audit_lines,
        document=audit_document,
        rows=audit_rows,
        release=release,
        everything=everything,
    )
