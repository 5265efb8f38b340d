"""What later files change, and how it is rolled out: in words and tables, and as a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from podium.answers.rollout import ChangedObject, RolloutStep
from podium.present.decision_text import NAMED, TOP, WIDTH
from podium.present.text import Column, Line, shortened, styled, table, wrapped
from podium.wording import counted, joined, listed

INDENT = "    "


def change_lines(
    changes: Sequence[ChangedObject],
    steps: Sequence[RolloutStep] | None = None,
    *,
    width: int = WIDTH,
    everything: bool = False,
) -> list[Line]:
    """What changes, which pods that replaces, where the new ones go, and the steps; no lines if nothing changes.

    Of many objects and steps ten are shown, or `everything`.
    """
    if not changes:
        return []
    lines = [Line("WHAT CHANGES", "bold")]
    shown = changes if everything else changes[:TOP]
    for change in shown:
        lines += _about(change, width, everything)
    if len(shown) < len(changes):
        lines.append(Line(f"and {counted(len(changes) - len(shown), 'more object')}", "dim"))
    if steps:
        lines += [Line(""), *_step_lines(steps, width, everything)]
    return [*lines, Line("")]


def _about(change: ChangedObject, width: int, everything: bool) -> Iterator[Line]:
    said = outcome(change)
    yield from wrapped(f"{change.title}: {said}" if said else change.title, width, then=INDENT, style=_style(change))
    paths = change.paths if everything else change.paths[:NAMED]
    more = f" and {len(change.paths) - len(paths):,} more" if len(paths) < len(change.paths) else ""
    if paths:
        yield from wrapped(", ".join(paths) + more, width, first=INDENT, then=INDENT, style="dim")
    nodes = Counter(node for node in (change.new or {}).values() if node is not None)
    if nodes:
        most_first = sorted(nodes.items(), key=lambda item: (-item[1], item[0]))
        names = [node if count == 1 else f"{node} x{count:,}" for node, count in most_first]
        yield from wrapped(f"to {listed(names, len(names) if everything else NAMED)}", width, first=INDENT, then=INDENT)
    for message, pods in _by_message(change).items():
        pending = f"{listed(pods, len(pods) if everything else NAMED)}: {message}"
        yield from wrapped(pending, width, first=INDENT, then=INDENT, style="red")
    if change.note:
        yield from wrapped(change.note, width, first=INDENT, then=INDENT)


def _style(change: ChangedObject) -> str:
    return "red" if change.stuck or change.pending else ""


def _by_message(change: ChangedObject) -> dict[str, list[str]]:
    """The pods that stay pending, those with the same reasons together."""
    groups: dict[str, list[str]] = {}
    for pod, message in (change.messages or {}).items():
        groups.setdefault(message, []).append(pod)
    return groups


def outcome(change: ChangedObject) -> str:
    """What becomes of a workload's pods; empty for what has none."""
    if change.new is None:
        return ""
    counts = ((change.replaced, "replaced"), (change.added, "added"), (change.removed, "removed"))
    parts = [f"{counted(number, 'pod')} {what}" for number, what in counts if number]
    pods = joined(parts) or "no pod changes"
    pending = len(change.pending)
    waiting = f", {pending:,} of them pending" if pending else ""
    return f"{pods}{waiting}{_progress(change)}"


def _progress(change: ChangedObject) -> str:
    if change.steps is None:
        return ""
    if change.stuck:
        return f"; stuck at step {change.steps:,}"
    return f"; done in {counted(change.steps, 'step')}" if change.steps else ""


def _step_lines(steps: Sequence[RolloutStep], width: int, everything: bool) -> list[Line]:
    shown = steps if everything else steps[:TOP]
    columns = [
        Column("STEP", [f"{step.number:,}" for step in shown]),
        Column("WORKLOAD", [shortened(step.workload, width // 3) for step in shown], right=False),
        Column("DELETED", [f"{len(step.deleted):,}" for step in shown]),
        Column("MADE", [f"{len(step.created):,}" for step in shown]),
        Column("PLACED", [f"{len(step.placed):,}" for step in shown]),
        Column("WAITING", [f"{len(step.waiting):,}" for step in shown]),
        Column("OLD", [f"{step.old_ready:,}" for step in shown]),
        Column("NEW", [f"{step.new_ready:,}" for step in shown]),
    ]
    lines = styled(table(columns), ["bold", *("red" if step.waiting else "" for step in shown)])
    if len(shown) < len(steps):
        lines.append(Line(f"and {counted(len(steps) - len(shown), 'more step')}", "dim"))
    return lines


def changes_document(changes: Sequence[ChangedObject], steps: Sequence[RolloutStep] | None) -> dict[str, Any]:
    """What a Simulation has besides where pods go: `changes`, and `rollout` where it was asked for, else null."""
    rollout = None
    if steps is not None:
        complete = not any(change.stuck for change in changes)
        rollout = {"complete": complete, "steps": [step.to_dict() for step in steps]}
    return {"changes": [change.to_dict() for change in changes], "rollout": rollout}
