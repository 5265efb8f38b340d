"""Renders plans, lists of steps to carry out: as text and tables, as a document, as CSV, as kubectl commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podium.answers.consolidation import Consolidation
from podium.present import API_VERSION, to_csv
from podium.present.explanation import NAMED, TOP, WIDTH
from podium.present.text import Column, Line, Sentence, flowing, styled, table, wrapped
from podium.wording import counted, listed

FEW = 3
"""How many of the nodes that the pods of one node move to are named."""


def consolidation_lines(
    plan: Consolidation, problems: Sequence[str] = (), *, width: int = WIDTH, everything: bool = False
) -> list[Line]:
    """What the plan gains, its steps, and the nodes that stay; at most ten steps are shown, unless `everything`.

    `problems` is what did not end as planned when the plan was played.
    """
    lines = flowing(consolidation_sentences(plan, problems), width)
    if plan.steps:
        lines += [Line(""), *_step_lines(plan, everything)]
    if plan.kept:
        lines += [Line(""), Line("NODES THAT STAY", "bold")]
        for reason, nodes in kept_by_reason(plan).items():
            lines += wrapped(f"{listed(nodes, NAMED)}: {reason}", width, first="  ", then="    ")
    return lines


def consolidation_sentences(plan: Consolidation, problems: Sequence[str] = ()) -> list[Sentence]:
    """What the plan gains, how good it is, and whether it was confirmed."""
    if not plan.steps:
        return [Sentence(f"None of the {counted(plan.node_count, 'node')} can go.", "red"), Sentence(_bound(plan))]
    gain = f"That saves {plan.saves:,.2f} of {plan.cost_before:,.2f} per hour."
    moves = f"{counted(plan.moves, 'pod')} {'moves' if plan.moves == 1 else 'move'}"
    first = f"{len(plan.steps):,} of {counted(plan.node_count, 'node')} can go, and {moves}."
    played = [Sentence(f"Played through the scheduling loop: {problem}.", "red") for problem in problems]
    confirmed = Sentence("Played through the scheduling loop, every pod finds its node.")
    return [Sentence(first, "green"), Sentence(gain), Sentence(_bound(plan)), *(played or [confirmed])]


def _bound(plan: Consolidation) -> str:
    if plan.covers_all_sets:
        return "Every set of nodes was tried: none saves more."
    least = f"At least {counted(plan.fewest, 'node')} must stay for the resources that pods ask for"
    return (
        f"{least}; not every set of nodes was tried, so there may be a plan that leaves fewer than {plan.nodes_left:,}."
    )


def _step_lines(plan: Consolidation, everything: bool) -> list[Line]:
    steps = plan.steps if everything else plan.steps[:TOP]
    columns = [
        Column("STEP", [str(number) for number in range(1, len(steps) + 1)]),
        Column("DRAIN", [step.node for step in steps], right=False),
        Column("PODS", [str(len(step.moves)) for step in steps]),
        Column("SAVES", [f"{step.price:,.2f}" for step in steps]),
        Column("THEY GO TO", [destinations(step.moves) for step in steps], right=False),
    ]
    lines = styled(table(columns), ["bold", *[""] * len(steps)])
    rest = len(plan.steps) - len(steps)
    return [*lines, *([Line(f"{counted(rest, 'more step')}: --all shows them")] if rest else [])]


def destinations(moves: Sequence[Any]) -> str:
    """The nodes that pods move to, the first ones by name."""
    return listed(sorted({move.to for move in moves}), FEW) if moves else ""


def kept_by_reason(plan: Consolidation) -> dict[str, list[str]]:
    """The nodes that stay, by the reason; most nodes first."""
    found: dict[str, list[str]] = {}
    for kept in plan.kept:
        found.setdefault(kept.reason, []).append(kept.node)
    return dict(sorted(found.items(), key=lambda each: -len(each[1])))


def consolidation_document(plan: Consolidation, problems: Sequence[str] = ()) -> dict[str, Any]:
    """The plan as plain data, of kind Consolidation."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Consolidation",
        "nodes": plan.node_count,
        "nodesLeft": plan.nodes_left,
        "fewestNodes": plan.fewest,
        "coversAllSets": plan.covers_all_sets,
        "moves": plan.moves,
        "saves": plan.saves,
        "costBefore": plan.cost_before,
        "confirmed": not problems,
        "problems": list(problems),
        "steps": [
            {
                "drain": step.node,
                "saves": step.price,
                "moves": [
                    {"pod": move.pod, "workload": move.workload, "from": move.node, "to": move.to}
                    for move in step.moves
                ],
            }
            for step in plan.steps
        ],
        "kept": [{"node": kept.node, "reason": kept.reason, "pod": kept.pod or None} for kept in plan.kept],
        "commands": list(plan.commands),
    }


def consolidation_rows(plan: Consolidation) -> str:
    """The plan as CSV: a row per pod that moves, and one for a node without such pods."""
    rows: list[Sequence[Any]] = []
    for number, step in enumerate(plan.steps, 1):
        rows += [(number, step.node, move.pod, move.workload, move.to) for move in step.moves] or [
            (number, step.node, "", "", "")
        ]
    return to_csv(("step", "drain", "pod", "workload", "to"), rows)


def consolidation_commands(plan: Consolidation) -> str:
    """The steps as lines for a shell."""
    return "\n".join(plan.commands)
