"""`podium plan`: what to do next, step by step, checked by the engine and played through the scheduling loop."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import options
from podium.cli.output import Format, Output, fail_if

if TYPE_CHECKING:
    from podium.answers.consolidation import Consolidation
    from podium.answers.measures import Condition


class PlanGoal(StrEnum):
    """What a plan is for."""

    CONSOLIDATE = "consolidate"


MEASURES = "removed, left, moves, saves and fewest"


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What the plan may do, and how it is shown."""

    selectors: Annotated[
        list[str],
        typer.Option("-l", "--selector", metavar="KEY=VALUE,...", help="Only nodes that have all these labels may go."),
    ] = field(default_factory=list)
    most_moves: Annotated[int | None, typer.Option("--max-moves", metavar="N", min=0, help="Move at most N pods.")] = (
        None
    )
    prices: Annotated[
        list[str],
        typer.Option(
            "--price",
            metavar="TYPE=PRICE",
            help="What a node of an instance type costs per hour; otherwise its label podium/price-per-hour, or 1.",
        ),
    ] = field(default_factory=list)
    commands: Annotated[bool, typer.Option("--commands", help="Print the kubectl commands, and nothing else.")] = False
    fail_when: Annotated[list[str], fail_if("removed < 3", MEASURES)] = field(default_factory=list)
    output: Output = Format.TABLE
    everything: options.All = False
    html: options.Html = None


def plan(
    goal: Annotated[
        PlanGoal, typer.Argument(metavar="consolidate", help="What the plan is for: consolidate, to need fewer nodes.")
    ],
    source: options.Source = options.Source(),
    wanted: PlanOptions = PlanOptions(),
    deciding: options.TiesByName = options.TiesByName(),
) -> int:
    """Plan which nodes can go: in which order to drain them, where their pods move, and what that saves.

    Every step is checked with its budgets, and the plan is played through the scheduling loop. Nothing is carried out.
    Exit code 1 if no node can go or the loop does not confirm the plan; with --fail-if, if that holds.
    """
    from podium.answers import find_nodes
    from podium.answers.consolidation import (
        CONSOLIDATION_NAMES,
        ConsolidationLimits,
        consolidate,
        play_consolidation,
    )
    from podium.cli.inputs import read_cluster
    from podium.cli.output import exit_code, progress, read_conditions
    from podium.cluster import Cluster

    conditions, prices = read_conditions(wanted.fail_when, CONSOLIDATION_NAMES), read_prices(wanted.prices)
    objects, settings = read_cluster(source, deciding)
    cluster = Cluster.from_objects(objects)
    nodes = find_nodes(cluster, [], wanted.selectors) if wanted.selectors else None
    limits = ConsolidationLimits(nodes=nodes, most_moves=wanted.most_moves, prices=prices)
    with progress("trying nodes", cluster.node_count) as advance:
        found = consolidate(cluster, settings, limits, on_tried=advance)
    with progress("playing the plan", None):
        problems = play_consolidation(objects, found, settings)
    _show(found, problems, conditions, wanted)
    return exit_code(conditions, found.values, otherwise=bool(problems) or not found.steps)


def read_prices(texts: Iterable[str]) -> dict[str, float]:
    """Prices per hour by instance type, from `TYPE=PRICE`."""
    from podium.errors import InputError

    found: dict[str, float] = {}
    for text in texts:
        name, equals, price = text.rpartition("=")
        try:
            number = float(price)
        except ValueError:
            number = math.nan
        if not equals or not name or not 0 <= number < math.inf:
            raise InputError(f"--price {text!r} needs an instance type and a price per hour, such as m6i.large=0.107")
        found[name] = number
    return found


def _show(found: Consolidation, problems: list[str], conditions: list[Condition], wanted: PlanOptions) -> None:
    from podium.cli.output import emit, text_width, with_conditions, write_report
    from podium.present.html_reports import consolidation_page
    from podium.present.plan import (
        consolidation_commands,
        consolidation_document,
        consolidation_lines,
        consolidation_rows,
    )

    if write_report(wanted.html, lambda: consolidation_page(found, problems)):
        return
    if wanted.commands:
        print(consolidation_commands(found))
        return
    width = text_width(wanted.output)
    emit(
        wanted.output,
        lines=lambda: consolidation_lines(found, problems, width=width, everything=wanted.everything),
        document=lambda: with_conditions(consolidation_document(found, problems), conditions, found.values),
        rows=lambda: consolidation_rows(found),
    )
