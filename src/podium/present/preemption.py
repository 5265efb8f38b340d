"""What preemption considered, in words and as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.preemption.choice import Candidate
from podium.present.text import Column, Line, styled, table, wrapped
from podium.wording import counted, listed

if TYPE_CHECKING:
    from podium.engine.decision import Decision

TOP = 10
NAMED = 3


def preemption_words(decision: Decision) -> list[str]:
    """Where evicting which pods makes room, and why there; nothing if no room can be made."""
    if decision.nominated is None:
        return []
    victims = listed(decision.victims, NAMED) or "pods that are going already"
    number = counted(len(decision.candidates), "candidate")
    return [
        f"Evicting {victims} makes room on {decision.nominated}.",
        f"It was taken from {number}: {decision.chosen_by}.",
    ]


def preemption_lines(decision: Decision, width: int, *, every_node: bool) -> list[Line]:
    """The candidates, the one that won first."""
    order = sorted(decision.candidates, key=lambda one: (one.node != decision.nominated, one.costs, one.node))
    shown = order if every_node else order[:TOP]
    if not shown:
        return []
    columns = [
        Column("  CANDIDATE", [f"{'*' if one.node == decision.nominated else ' '} {one.node}" for one in shown], False),
        Column("PDBS VIOLATED", [str(one.pdb_violations) for one in shown]),
        Column("HIGHEST", [str(one.victims[0].priority) for one in shown]),
        Column("VICTIMS", [str(len(one.victims)) for one in shown]),
    ]
    styles = ["bold", *("green" if one.node == decision.nominated else "" for one in shown)]
    lines: list[Line] = []
    for line, one in zip(styled(table(columns), styles), [None, *shown], strict=True):
        lines.append(line)
        if one is not None:
            names = listed([victim.key for victim in one.victims], NAMED)
            lines += wrapped(names, width, first="    ", then="    ", style="dim")
    if len(shown) < len(order):
        lines.append(Line(f"  and {counted(len(order) - len(shown), 'more candidate')}", "dim"))
    return lines


def preemption_document(decision: Decision) -> dict[str, object] | None:
    """What preemption considered as plain data; None if it could not help or was not asked."""
    if decision.nominated is None:
        return None
    return {
        "nominated": decision.nominated,
        "victims": list(decision.victims),
        "chosenBy": decision.chosen_by,
        "candidates": [_candidate(one) for one in sorted(decision.candidates, key=lambda one: (one.costs, one.node))],
    }


def _candidate(one: Candidate) -> dict[str, object]:
    victims = [{"pod": victim.key, "priority": victim.priority} for victim in one.victims]
    return {"node": one.node, "pdbViolations": one.pdb_violations, "victims": victims}
