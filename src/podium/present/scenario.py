"""Renders what a scenario does: each step in sentences, and what differs from the cluster before it."""

from __future__ import annotations

from typing import Any

from podium.answers.applied_scenario import Differences, Effect
from podium.answers.scenario import Cordon, Evict, Place, Scale, Uncordon
from podium.present.disruption import sentences
from podium.present.disruption import to_document as disruption_document
from podium.wording import counted, listed

NAMED = 6


def effect_sentences(effect: Effect) -> list[str]:
    """What a step did."""
    nodes, names = counted(len(effect.nodes), "node"), listed(effect.nodes, NAMED)
    if effect.disruption is not None:
        return [each.alone for each in sentences(effect.disruption)]
    match effect.step, effect.pods, effect.objects:
        case Cordon(), _, _:
            return [f"{nodes} cordoned: {names}."]
        case Uncordon(), _, _:
            return [f"{nodes} uncordoned: {names}."]
        case Scale(workload=workload), (before, after), _:
            return [f"{workload} goes from {counted(before, 'pod')} to {after:,}."]
        case Place(), (placed, waiting), _:
            return [f"{counted(placed, 'pending pod')} placed, {waiting:,} still pending."]
        case Evict(pods=pods), _, _:
            return [f"{counted(len(pods), 'pod')} evicted: {listed(pods, NAMED)}."]
        case _, _, dict() as kinds:
            found = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
            return [f"{counted(sum(kinds.values()), 'object')} applied: {found}."]
    return [f"{nodes} like {getattr(effect.step, 'like', '')} added: {names}."]


def effect_document(effect: Effect) -> dict[str, Any]:
    """What a step did, as plain data; for a drain or a failure with the fate of every pod and budget."""
    found = None if effect.disruption is None else disruption_document(effect.disruption)
    return {
        "do": type(effect.step).__struct_config__.tag,
        "title": effect.step.words,
        "words": effect_sentences(effect),
        "nodes": list(effect.nodes),
        "disruption": found,
    }


MOST_LISTED = 500


def differences_document(found: Differences) -> dict[str, Any]:
    """What differs, as plain data: every node, and the first 500 pods."""
    return {
        "newNodes": list(found.new_nodes),
        "goneNodes": list(found.gone_nodes),
        "changedNodes": list(found.changed_nodes),
        "movedPods": len(found.moved),
        "pods": [each.to_dict() for each in found.moved[:MOST_LISTED]],
    }
