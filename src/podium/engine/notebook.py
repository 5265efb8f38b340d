"""How decisions and simulations show themselves in a notebook."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from podium.engine.explanation import NAMED, TOP, ranking, scored, words
from podium.engine.heat_map import heat_map, rejection_table
from podium.engine.markup import Heading, Markup, element, table
from podium.engine.text import counted, listed

if TYPE_CHECKING:
    from podium.engine.decision import Decision
    from podium.engine.simulate import Placement, Simulation


def decision_html(decision: Decision) -> str:
    """The decision in words, the scores of the ten best nodes, and the rejections by reason."""
    parts = [element("p", " ".join(words(decision)))]
    if scored(decision):
        order = ranking(decision)
        parts.append(heat_map(decision, order[:TOP]))
        parts += [element("p", f"and {counted(len(order) - TOP, 'more node')}")] if len(order) > TOP else []
    if decision.rejected:
        parts.append(rejection_table(decision, NAMED))
    return element("div", *parts)


def simulation_html(simulation: Simulation) -> str:
    """How many pods fit, where the pods of each workload go, and why others stay pending."""
    pods, pending = counted(len(simulation.placements), "pending pod"), len(simulation.pending)
    parts = [element("p", f"{pods}: {len(simulation.placed):,} placed, {pending:,} still pending.")]
    if simulation.placements:
        parts.append(workload_table(simulation, NAMED))
    if simulation.pending:
        parts.append(pending_table(simulation, NAMED))
    return element("div", *parts)


def workload_table(simulation: Simulation, most: int | None = None) -> Markup:
    """Where the pods of each workload go; of many nodes the first `most` are named."""
    groups: dict[tuple[str, str], list[Placement]] = {}
    for each in simulation.placements:
        groups.setdefault((each.pod.namespace, each.workload), []).append(each)
    rows = []
    for (namespace, workload), placements in groups.items():
        nodes = Counter(each.node for each in placements if each.node is not None).most_common()
        on = [node if count == 1 else f"{node} x{count:,}" for node, count in nodes]
        named = listed(on, len(on) if most is None else most) or "-"
        rows.append((namespace, workload, f"{len(placements):,}", f"{sum(count for _, count in nodes):,}", named))
    return table(["Namespace", "Workload", Heading("Pods", right=True), Heading("Placed", right=True), "On"], rows)


def pending_table(simulation: Simulation, most: int | None = None) -> Markup:
    """Why pods stay pending; of many with the same reason the first `most` are named."""
    groups: dict[str, list[str]] = {}
    for each in simulation.pending:
        groups.setdefault(each.message, []).append(each.pod.key)
    rows = [(listed(keys, len(keys) if most is None else most), message) for message, keys in groups.items()]
    return table(["Stay pending", "Because"], rows)
