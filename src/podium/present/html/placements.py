"""`simulate` and `capacity` as HTML: where pods go, and how full that makes the nodes."""

from __future__ import annotations

from collections import Counter

from podium.answers import Capacity, NodeMix, NodesNeeded
from podium.engine import Simulation
from podium.model.resources import PODS
from podium.present import capacity as capacity_text
from podium.present import simulation as simulation_text
from podium.present.html.page import (
    UNLIMITED,
    Heading,
    Markup,
    bar_section,
    element,
    opening,
    page,
    section,
    table,
    usages,
)
from podium.present.notebook import pending_table, rejection_table, workload_table
from podium.present.text import amount, share
from podium.wording import joined


def simulation_page(simulation: Simulation) -> str:
    """Where everything that is pending goes, what stays pending, and how full the nodes get."""
    lines = simulation_text.to_lines(simulation, width=UNLIMITED)
    if not simulation.placements:
        return page("Simulation", opening(lines), good=True)
    resources = [name for name in simulation_text.resources(simulation.total) if name != PODS]
    return page(
        "Simulation",
        opening(lines),
        section("Stay pending", pending_table(simulation)) if simulation.pending else None,
        section("Placements", workload_table(simulation)),
        section("All nodes together", _totals(simulation)),
        bar_section("How full the nodes get", simulation.nodes, resources),
        good=simulation.fits,
    )


def _totals(simulation: Simulation) -> Markup:
    usage = simulation.total
    rows = []
    for name in simulation_text.resources(usage):
        of, before, after = (amounts.get(name, 0) for amounts in (usage.allocatable, usage.before, usage.after))
        numbers = (amount(name, before), share(before, of), amount(name, after), share(after, of), amount(name, of))
        rows.append((name, *numbers))
    titles = ("Before", "", "After", "", "Allocatable")
    return table(["Resource", *(Heading(title, right=True) for title in titles)], rows)


def capacity_page(answer: Capacity | None, needed: NodesNeeded | None, *, at_least: int = 1) -> str:
    """How many more pods fit, where, what stops the next one, and how many nodes the rest needs."""
    fits = answer.count >= at_least if answer is not None else needed is not None and not needed.pods
    lines = capacity_text.to_lines(answer, at_least=at_least, width=UNLIMITED) if answer is not None else []
    more = capacity_text.needed_lines(needed, width=UNLIMITED) if needed is not None else []
    return page(
        "Capacity",
        [*opening(lines), *opening(more)],
        _needed(needed) if needed is not None and needed.pods else None,
        _stopped(answer) if answer is not None else None,
        _where(answer) if answer is not None else None,
        bar_section("How full the nodes get", usages(None, answer.cluster)) if answer is not None else None,
        good=fits,
    )


def _stopped(answer: Capacity) -> Markup:
    stopped_by = answer.stopped_by
    details = [rejection_table(stopped_by)] if stopped_by is not None and stopped_by.rejected else []
    return section("What stops the next one", element("p", answer.message), *details)


def _where(answer: Capacity) -> Markup:
    counts = {each.template.key: Counter(each.nodes) for each in answer.fits}
    totals: Counter[str] = Counter()
    for each in counts.values():
        totals.update(each)
    rows = [
        (node, f"{total:,}", *(f"{each[node]:,}" for each in counts.values())) for node, total in totals.most_common()
    ]
    return section("Where they fit", table(["Node", *(Heading(name, right=True) for name in ("Pods", *counts))], rows))


def _needed(needed: NodesNeeded) -> Markup:
    mixes = [("best", needed.best), *((f"{name} alone", mix) for name, mix in needed.alone.items())]
    rows = [(what, _mixed(mix), f"{mix.price:,.2f}", f"{len(mix.left):,}") for what, mix in mixes]
    numbers = (Heading(title, right=True) for title in ("Price", "Pods left"))
    return section("Nodes needed", table(["Mix", "Nodes", *numbers], rows))


def _mixed(mix: NodeMix) -> str:
    return joined([f"{count:,} {name}" for name, count in mix.counts.items()]) or "none helps"
