"""A decision by columns: a list per plugin with a number per node, which a browser reads and sorts quickly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.engine.decision import Decision, lead, not_looked_at, ranking, runner_up
from podium.framework import Status
from podium.present.decision_text import words
from podium.present.explanation import Explained, notes
from podium.present.preemption import preemption_document
from podium.present.text import API_VERSION


def decision_table(explained: Explained) -> dict[str, Any]:
    """What `explain` says, of kind DecisionTable: `nodes` best first, and every other list in that order."""
    decision = explained.decision
    nodes = ranking(decision)
    return {
        "apiVersion": API_VERSION,
        "kind": "DecisionTable",
        "pod": decision.pod,
        "runsOn": explained.runs_on or None,
        "node": decision.node,
        "message": decision.message or None,
        "error": decision.error or None,
        "words": [*words(decision), *notes(explained)],
        "counts": {
            "total": decision.node_count,
            "feasible": len(decision.feasible),
            "rejected": len(decision.rejected),
            "notLookedAt": not_looked_at(decision),
        },
        "ties": list(decision.ties),
        "runnerUp": _runner_up(decision),
        "nodes": nodes,
        "totals": [decision.totals.get(node, 0) for node in nodes],
        "plugins": _plugins(decision, nodes),
        "rejected": _rejected(explained.decision.rejected, explained.details),
        "notLookedAtBecause": list(decision.absent.reasons) if decision.absent and not_looked_at(decision) else [],
        "preemption": preemption_document(decision),
    }


def _runner_up(decision: Decision) -> dict[str, Any] | None:
    second = runner_up(decision)
    if second is None or decision.node is None:
        return None
    behind = decision.totals[decision.node] - decision.totals[second]
    return {"node": second, "lead": behind, "leadByPlugin": lead(decision, second)}


def _plugins(decision: Decision, nodes: list[str]) -> list[dict[str, Any]]:
    """Each plugin that scored; an extender says only what its scores come to."""
    found: list[dict[str, Any]] = [
        {
            "plugin": scores.plugin,
            "title": scores.title or scores.plugin,
            "weight": scores.weight,
            "raw": [scores.raw[node] for node in nodes],
            "normalised": [scores.normalized[node] for node in nodes],
        }
        for scores in decision.scores
    ]
    for name, weighted in decision.extender_scores.items():
        found.append(
            {"plugin": name, "title": name, "weight": None, "weighted": [weighted.get(node, 0) for node in nodes]}
        )
    return found


def _rejected(statuses: Mapping[str, Status], details: Mapping[str, str]) -> list[dict[str, Any]]:
    """The rejected nodes by plugin and reasons, what rejected most nodes first."""
    groups: dict[Status, list[str]] = {}
    for node, status in statuses.items():
        groups.setdefault(status, []).append(node)
    found = [
        {
            "plugin": status.plugin,
            "code": status.code.value,
            "reasons": list(status.reasons),
            "nodes": nodes,
            "details": {node: details[node] for node in nodes if node in details},
        }
        for status, nodes in groups.items()
    ]
    return sorted(found, key=lambda group: (-len(group["nodes"]), group["plugin"], group["reasons"]))
