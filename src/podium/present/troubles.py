"""Renders what is wrong in a cluster, as plain data with a sentence for each finding."""

from __future__ import annotations

from typing import Any

from podium.answers.audit import Finding
from podium.answers.closest_nodes import ClosestNode
from podium.answers.troubles import BlockingBudget, PendingCause, Troubles
from podium.engine.decision import why
from podium.present import API_VERSION
from podium.present.explanation import obstacle_text
from podium.wording import counted

MOST_LISTED = 100


def to_document(found: Troubles) -> dict[str, Any]:
    """What is wrong, of kind Troubles; at most 100 of each kind are listed, and all are counted."""
    unfit = None if found.drift is None else found.drift[Finding.UNFIT]
    drifted = None if found.drift is None else found.drift[Finding.DRIFTED]
    return {
        "apiVersion": API_VERSION,
        "kind": "Troubles",
        "counts": {
            "pending": sum(len(cause.pods) for cause in found.pending),
            "placeable": found.placeable,
            "workloads": len(found.workloads),
            "fullNodes": len(found.full_nodes),
            "budgets": len(found.budgets),
            "unfit": unfit,
            "drifted": drifted,
        },
        "pending": [_cause(cause) for cause in found.pending[:MOST_LISTED]],
        "workloads": [
            {
                "namespace": each.namespace,
                "workload": each.workload,
                "waiting": each.waiting,
                "pods": each.pods,
                "words": f"{each.waiting:,} of {counted(each.pods, 'pod')} without a node that fits",
            }
            for each in found.workloads[:MOST_LISTED]
        ],
        "fullNodes": [
            {"node": each.node, "resource": each.resource, "share": round(each.share, 4), "words": _share(each.share)}
            for each in found.full_nodes[:MOST_LISTED]
        ],
        "budgets": [_budget(each) for each in found.budgets[:MOST_LISTED]],
    }


def _cause(cause: PendingCause) -> dict[str, Any]:
    return {
        "reason": cause.reason,
        "pods": list(cause.pods[:MOST_LISTED]),
        "count": len(cause.pods),
        "closest": [{"node": each.node, "words": closest_words(each)} for each in cause.closest],
    }


def closest_words(node: ClosestNode) -> str:
    """Everything that keeps a pod off a node: what is missing, where that is known."""
    parts = [
        obstacle_text(found) if (found := node.obstacles.get(status.plugin)) else why(status)
        for status in node.blockers
    ]
    return "; ".join(parts)


def _budget(each: BlockingBudget) -> dict[str, Any]:
    healthy, desired, expected = each.health
    return {
        "budget": each.budget,
        "healthy": healthy,
        "desired": desired,
        "expected": expected,
        "pods": list(each.pods[:MOST_LISTED]),
        "words": f"{healthy:,} of {counted(expected, 'pod')} healthy and {desired:,} needed: none may be evicted",
    }


def _share(share: float) -> str:
    return f"{100 * share:.0f} %"
